//! Checks that the HTML rendered from occurrence texts contains no script: `cargo fuzz run topic_markup`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    for behaviour in ["markdown", "wiki", "html"] {
        let html = pinakes_conclave::rendered(behaviour, text, "/t/default/");
        let html = html.expect("each of these behaviours is rendered").to_lowercase();
        // Text may say anything; only what is inside tags matters.
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
