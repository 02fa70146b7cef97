//! Texts of occurrences become HTML that holds no script: `cargo fuzz run topic_markup`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    for behaviour in ["markdown", "wiki", "html"] {
        let html = pinakes_conclave::rendered(behaviour, text, "/t/default/").unwrap_or_default().to_lowercase();
        // Text may say anything; what counts is what stands in tags.
        for tag in html.split('<').skip(1).map(|it| it.split('>').next().unwrap_or_default()) {
            let is_wrong = ["script", "iframe", "object", "embed"].iter().any(|it| tag.starts_with(it))
                || ["href=\"javascript:", "src=\"javascript:", "href=\"data:"].iter().any(|it| tag.contains(it));
            assert!(!is_wrong, "{behaviour}: <{tag}> in {html:?}, made of {text:?}");
        }
    }
});
