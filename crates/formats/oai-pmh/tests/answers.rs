//! Each `tests/data/<case>.in` is a list of requests to a repository of five records, one a line; the `.out` beside it
//! has the answers. `BLESS=1 cargo test -p pinakes-oai-pmh` rewrites them: read the difference before the commit.
//!
//! A line `# key: value …` says how the repository is: `days`, `packed` and `sets`, the number of sets. `{{token}}` is the
//! token of the answer before.

mod repository;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use pinakes_oai_pmh::{Code, Granularity, Site, TokenForm, answer};
use pinakes_test_support::golden;
use repository::Shelf;

/// 2026-02-01T10:00:00Z.
const NOW_MS: i64 = 1_769_940_000_000;

/// The only function that knows how to ask a repository.
fn ask(site: &Site, shelf: &mut Shelf, request: &str) -> String {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = request.split('&').map(|it| it.split_once('=').unwrap_or((it, "")));
    let pairs: Vec<(String, String)> = pairs.map(|(name, value)| (decoded(name), decoded(value))).collect();
    let given: Vec<(&str, &str)> = pairs.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    match answer(site, shelf, &given) {
        Ok(answer) => format!("{}\n{}", answer.code.map_or("no error", Code::name), answer.xml),
        Err(error) => format!("not answered: {error}"),
    }
}

/// Returns the token of an answer, as it is sent again.
fn token(answer: &str) -> Option<String> {
    let (_, rest) = answer.split_once("<resumptionToken")?;
    let (token, _) = rest.split_once('>')?.1.split_once('<')?;
    Some(utf8_percent_encode(&token.replace("&amp;", "&"), NON_ALPHANUMERIC).to_string())
}

fn answers(text: &str) -> String {
    let mut site = Site {
        base_url: "https://example.org/oai?a&b".to_owned(),
        now_ms: NOW_MS,
        granularity: Granularity::Second,
        declaration: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        tokens: TokenForm::Plain,
        n_records: 2,
        n_headers: 3,
    };
    let mut shelf = Shelf { n_sets: 2 };
    let (mut out, mut before) = (String::new(), String::new());
    for line in text.lines().filter(|it| !it.is_empty()) {
        if let Some(settings) = line.strip_prefix('#') {
            match settings.trim().split_once(": ") {
                Some(("granularity", "days")) => site.granularity = Granularity::Day,
                Some(("tokens", "packed")) => site.tokens = TokenForm::Packed,
                Some(("sets", n)) => shelf.n_sets = n.parse().expect("a number of sets"),
                _ => {}
            }
            continue;
        }
        let request = line.replace("{{token}}", &token(&before).unwrap_or_default());
        before = ask(&site, &mut shelf, &request);
        // Nothing of this may fail: it goes into a string.
        let _ = writeln!(out, "> {line}\n{before}\n");
    }
    out
}

#[test]
fn golden() {
    for case in golden::cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"), "in") {
        let found = answers(&fs::read_to_string(&case).expect("a text"));
        if let Err(difference) = golden::compare(&case.with_extension("out"), &found) {
            panic!("{difference}");
        }
    }
}
