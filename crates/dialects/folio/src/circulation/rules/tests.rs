//! A case consists of the rules, a line `====`, and loans (`g=staff m=book`), one per line. The answer lists for each
//! loan the matching lines, best first, and the policies of the best one; or the fault in the rules.

use super::{Facts, PolicyKind, Rules};
use crate::circulation::golden;

#[test]
fn golden() {
    golden::check_all("rules", |case| {
        let (text, loans) = case.split_once("====\n").unwrap();
        match Rules::parse(text) {
            Err(fault) => format!("{fault}\n"),
            Ok(rules) => loans.lines().map(|loan| answer(&rules, loan)).collect(),
        }
    });
}

fn answer(rules: &Rules, loan: &str) -> String {
    let value = |letter: &str| {
        let found = loan.split(' ').find_map(|it| it.strip_prefix(letter)?.strip_prefix('='));
        found.unwrap_or_default()
    };
    let facts = Facts {
        group: value("g"),
        material: value("m"),
        loan_type: value("t"),
        institution: value("a"),
        campus: value("b"),
        library: value("c"),
        location: value("s"),
    };
    let lines: Vec<String> = rules.fitting(&facts).map(|it| it.line.to_string()).collect();
    let best = rules.best(&facts).unwrap();
    let ids: Vec<&str> = PolicyKind::ALL.iter().map(|(_, kind)| best.policies.id(*kind)).collect();
    format!("{loan} -> lines {}; {}\n", lines.join(" "), ids.join(" "))
}

proptest::proptest! {
    /// Any text is either parsed or refused at a position within it.
    #[test]
    fn any_text_is_read_or_refused(lines in "([gmtabcs!+:, \n#()a-z0-9\u{e9}-]{0,40}\n){0,6}") {
        let text = format!("priority: t, s, c, b, a, m, g\n{lines}");
        if let Err(fault) = Rules::parse(&text) {
            let line = text.lines().nth(fault.line - 1);
            proptest::prop_assert!(line.is_some_and(|it| fault.column <= it.chars().count() + 1), "{fault}: {text:?}");
        }
    }
}
