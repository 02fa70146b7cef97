//! Texts of occurrences become HTML that holds no script: `cargo fuzz run topic_markup`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    for behaviour in ["markdown", "wiki", "html"] {
        let html = pinakes_conclave::rendered(behaviour, text, "/t/default/");
        let html = html.expect("each of these behaviours is rendered").to_lowercase();
        // Text may say anything; what counts is what stands in tags.
        for tag in html.split('<').skip(1) {
            let tag = tag.split_once('>').map_or(tag, |it| it.0);
            let is_wrong = ["script", "iframe", "object", "embed"].iter().any(|it| tag.starts_with(it))
                || ["href=\"javascript:", "src=\"javascript:", "href=\"data:"]
                    .iter()
                    .any(|it| tag.contains(it));
            assert!(!is_wrong, "{behaviour}: <{tag}> in {html:?}, made of {text:?}");
        }
    }
});
