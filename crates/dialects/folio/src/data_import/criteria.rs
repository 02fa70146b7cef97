//! How the values of incoming and stored records are compared, and the conditions by which the store finds the few
//! records that may match.

use pinakes_store::{Expr, Path, Pattern, TextPart};
use serde_json::Value;

use crate::platform::limits::{MATCH_PARTS, MATCH_PATTERN_BYTES};

/// How the values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Criterion {
    Exact,
    ExistingContains,
    IncomingContains,
    ExistingBegins,
    IncomingBegins,
    ExistingEnds,
    IncomingEnds,
}

impl Criterion {
    /// Returns the criterion with a name in match profiles and searches.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "EXACTLY_MATCHES" => Self::Exact,
            "EXISTING_VALUE_CONTAINS_INCOMING_VALUE" => Self::ExistingContains,
            "INCOMING_VALUE_CONTAINS_EXISTING_VALUE" => Self::IncomingContains,
            "EXISTING_VALUE_BEGINS_WITH_INCOMING_VALUE" => Self::ExistingBegins,
            "INCOMING_VALUE_BEGINS_WITH_EXISTING_VALUE" => Self::IncomingBegins,
            "EXISTING_VALUE_ENDS_WITH_INCOMING_VALUE" => Self::ExistingEnds,
            "INCOMING_VALUE_ENDS_WITH_EXISTING_VALUE" => Self::IncomingEnds,
            _ => return None,
        })
    }

    /// Checks whether an incoming and a stored value match.
    pub(crate) fn holds(self, incoming: &str, existing: &str) -> bool {
        match self {
            Self::Exact => incoming == existing,
            Self::ExistingContains => existing.contains(incoming),
            Self::IncomingContains => incoming.contains(existing),
            Self::ExistingBegins => existing.starts_with(incoming),
            Self::IncomingBegins => incoming.starts_with(existing),
            Self::ExistingEnds => existing.ends_with(incoming),
            Self::IncomingEnds => incoming.ends_with(existing),
        }
    }

    /// Returns a condition that every record satisfies which has a value at `path` that matches one of the incoming
    /// values, but perhaps others as well.
    pub(crate) fn in_store(self, path: &Path, incoming: &[String], qualifier: Option<&Qualifier>) -> Expr {
        if incoming.is_empty() {
            return Expr::Nothing;
        }
        let bound = qualifier.and_then(|it| it.in_store(path));
        let compared = match qualifier.filter(|it| it.cuts()) {
            Some(qualifier) => qualifier.cut_in_store(self, path, incoming),
            None => self.of_values(path, incoming),
        };
        bound.map_or(compared.clone(), |it| it.and(compared))
    }

    fn of_values<'t>(self, path: &Path, incoming: &'t [String]) -> Expr {
        match self {
            Self::Exact => among(path, incoming.iter().map(String::as_str)),
            Self::ExistingContains => patterns(path, TextPart::All, incoming, ["", ""]),
            Self::ExistingEnds => patterns(path, TextPart::All, incoming, ["", "$"]),
            Self::ExistingBegins => {
                Expr::Or(incoming.iter().map(|it| Expr::Prefix(path.clone(), it.clone())).collect())
            }
            Self::IncomingBegins => {
                let parts = |it: &'t str| boundaries(it).map(|end| &it[..end]).collect();
                among_parts(path, incoming, |n_bytes| n_bytes + 1, parts)
            }
            Self::IncomingEnds => {
                let parts = |it: &'t str| boundaries(it).map(|begin| &it[begin..]).collect();
                among_parts(path, incoming, |n_bytes| n_bytes + 1, parts)
            }
            Self::IncomingContains => {
                let parts = |it: &'t str| {
                    let from =
                        |begin| boundaries(&it[begin..]).map(move |n_bytes| &it[begin..begin + n_bytes]);
                    boundaries(it).flat_map(from).collect()
                };
                among_parts(path, incoming, |n_bytes| (n_bytes + 1).saturating_mul(n_bytes + 2) / 2, parts)
            }
        }
    }
}

/// Returns a condition that a value is one of these.
fn among<'t>(path: &Path, values: impl Iterator<Item = &'t str>) -> Expr {
    Expr::In(path.clone(), values.map(Into::into).collect())
}

/// Returns a condition that a value is a part of an incoming one; that any value is there, if there are too many parts.
fn among_parts<'t>(
    path: &Path,
    incoming: &'t [String],
    n_parts: impl Fn(usize) -> usize,
    parts: impl Fn(&'t str) -> Vec<&'t str>,
) -> Expr {
    let n: usize = incoming.iter().map(|it| n_parts(it.len())).fold(0, usize::saturating_add);
    if MATCH_PARTS < n {
        return any_text(path);
    }
    let mut found: Vec<&str> = incoming.iter().flat_map(|it| parts(it)).collect();
    found.sort_unstable();
    found.dedup();
    among(path, found.into_iter())
}

/// Returns a condition that any text is there.
fn any_text(path: &Path) -> Expr {
    Expr::Prefix(path.clone(), String::new())
}

/// Returns the places between the characters of a text, its begin and its end included.
fn boundaries(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().map(|it| it.0).chain([text.len()])
}

/// Returns a condition that a part of a value matches one of the texts, between what stands before and after each.
fn patterns(path: &Path, part: TextPart, texts: &[String], [before, after]: [&str; 2]) -> Expr {
    let mut any = Vec::new();
    let mut left = texts;
    while !left.is_empty() {
        let mut n_bytes = 0_usize;
        let fits = |it: &&String| {
            n_bytes = n_bytes.saturating_add(it.len());
            n_bytes <= MATCH_PATTERN_BYTES
        };
        let n = left.iter().take_while(fits).count().max(1);
        let (taken, others) = left.split_at(n);
        let escaped: Vec<String> = taken.iter().map(|it| regex::escape(it)).collect();
        any.push(pattern(path, part, &format!("{before}(?:{}){after}", escaped.join("|"))));
        left = others;
    }
    Expr::Or(any)
}

/// Returns a condition that a part of a value matches a pattern; that any value is there, if the pattern is too large.
fn pattern(path: &Path, part: TextPart, text: &str) -> Expr {
    match Pattern::new(text, "s") {
        Ok(pattern) => Expr::Regex(path.clone(), pattern.on(part)),
        Err(_) => any_text(path),
    }
}

/// Which values are compared, and which part of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Qualifier {
    kind: String,
    value: String,
    part: TextPart,
}

impl Qualifier {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let part = match text("comparisonPart") {
            "NUMERICS_ONLY" => TextPart::Digits,
            "ALPHANUMERICS_ONLY" => TextPart::Alphanumerics,
            _ => TextPart::All,
        };
        let it =
            Self { kind: text("qualifierType").to_owned(), value: text("qualifierValue").to_owned(), part };
        (it.is_bound() || it.cuts()).then_some(it)
    }

    fn is_bound(&self) -> bool {
        !self.kind.is_empty() && !self.value.is_empty()
    }

    fn cuts(&self) -> bool {
        self.part != TextPart::All
    }

    /// Returns the part of the value that is compared; `None` if the value is excluded.
    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        let fits = !self.is_bound()
            || match self.kind.as_str() {
                "BEGINS_WITH" => text.starts_with(&self.value),
                "ENDS_WITH" => text.ends_with(&self.value),
                _ => text.contains(&self.value),
            };
        fits.then(|| self.part.of(text).into_owned())
    }

    /// Returns a condition that a value is not excluded; `None` if none is.
    fn in_store(&self, path: &Path) -> Option<Expr> {
        let value = regex::escape(&self.value);
        self.is_bound().then(|| match self.kind.as_str() {
            "BEGINS_WITH" => Expr::Prefix(path.clone(), self.value.clone()),
            "ENDS_WITH" => pattern(path, TextPart::All, &format!("{value}$")),
            _ => pattern(path, TextPart::All, &value),
        })
    }

    /// As [`Criterion::in_store`], of values of which only digits, or only letters and digits, are compared.
    fn cut_in_store(&self, criterion: Criterion, path: &Path, incoming: &[String]) -> Expr {
        let around = match criterion {
            Criterion::Exact => ["^", "$"],
            Criterion::ExistingBegins => ["^", ""],
            Criterion::ExistingEnds => ["", "$"],
            Criterion::ExistingContains => ["", ""],
            // Any part of an incoming value may be one of a stored value.
            Criterion::IncomingContains | Criterion::IncomingBegins | Criterion::IncomingEnds => {
                return any_text(path);
            }
        };
        patterns(path, self.part, incoming, around)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NAMES: [&str; 7] = [
        "EXACTLY_MATCHES",
        "EXISTING_VALUE_CONTAINS_INCOMING_VALUE",
        "INCOMING_VALUE_CONTAINS_EXISTING_VALUE",
        "EXISTING_VALUE_BEGINS_WITH_INCOMING_VALUE",
        "INCOMING_VALUE_BEGINS_WITH_EXISTING_VALUE",
        "EXISTING_VALUE_ENDS_WITH_INCOMING_VALUE",
        "INCOMING_VALUE_ENDS_WITH_EXISTING_VALUE",
    ];

    fn check(name: &str, incoming: &[String], existing: &[String], qualifier: Option<&Qualifier>) -> bool {
        let criterion = Criterion::named(name).expect("a criterion");
        let compared = existing.iter().filter_map(|it| match qualifier {
            None => Some(it.clone()),
            Some(qualifier) => qualifier.apply(it),
        });
        let compared: Vec<String> = compared.collect();
        let is_match = incoming.iter().any(|a| compared.iter().any(|b| criterion.holds(a, b)));
        let condition = criterion.in_store(&"values".into(), incoming, qualifier);
        !is_match || pinakes_store::matches(&condition, &json!({ "values": existing }))
    }

    proptest! {
        /// The store must find at least the records that match.
        #[test]
        fn the_store_finds_all_that_match(
            name in prop::sample::select(NAMES.to_vec()),
            incoming in prop::collection::vec("[(a1\u{e9}. -]{0,5}", 0..4),
            existing in prop::collection::vec("[(a1\u{e9}. -]{0,7}", 0..4),
            kind in prop::sample::select(vec!["BEGINS_WITH", "ENDS_WITH", "CONTAINS"]),
            bound in "[(a1.]{0,2}",
            part in prop::sample::select(vec!["", "NUMERICS_ONLY", "ALPHANUMERICS_ONLY"]),
        ) {
            let qualifier = Qualifier::read(
                &json!({"qualifierType": kind, "qualifierValue": bound, "comparisonPart": part}),
            );
            for qualifier in [None, qualifier.as_ref()] {
                prop_assert!(check(name, &incoming, &existing, qualifier));
            }
        }
    }

    #[test]
    fn many_and_long_values_are_found_as_well() {
        let long = |n: usize| format!("{}é{}", "a(".repeat(n), "b".repeat(n));
        let many: Vec<String> = (0..3_000).map(|n| format!("({n}) of many")).collect();
        for name in NAMES {
            for n in [10, 1_000, 30_000] {
                let existing = long(n);
                let incoming = [existing.clone(), existing[..n].to_owned(), existing[3 * n..].to_owned()];
                assert!(check(name, &incoming, &[existing], None), "{name}: {n}");
            }
            assert!(check(name, &many, &["(2999) of many".to_owned()], None), "{name}");
        }
    }

    /// As many as a batch has, of random and of neighbouring numbers.
    #[test]
    fn many_numbers_make_patterns_that_leave_out_others() {
        let qualifier = Qualifier::read(&json!({"comparisonPart": "NUMERICS_ONLY"}));
        for factor in [1, 7_919_117] {
            let number = |n: u64| format!("{:09}", n * factor % 1_000_000_007);
            let incoming: Vec<String> = (0..1_000).map(number).collect();
            let condition = Criterion::Exact.in_store(&"values".into(), &incoming, qualifier.as_ref());
            let holds = |text: String| pinakes_store::matches(&condition, &json!({"values": [text]}));
            assert!((0..1_000).all(|n| holds(format!("(OCoLC)ocm{}", number(n)))));
            assert_eq!((1_000..3_000).filter(|n| holds(number(*n))).count(), 0);
        }
    }

    /// A condition that leaves out nothing would be no help.
    #[test]
    fn others_are_not_found() {
        let part = |part: &str| Qualifier::read(&json!({"comparisonPart": part}));
        let begins = Qualifier::read(&json!({"qualifierType": "BEGINS_WITH", "qualifierValue": "(OCoLC)"}));
        let cases = [
            ("EXACTLY_MATCHES", "123", "1234", None),
            ("EXACTLY_MATCHES", "(OCoLC)1", "(DLC)1", begins),
            ("EXACTLY_MATCHES", "123", "1a24", part("NUMERICS_ONLY")),
            ("EXACTLY_MATCHES", "1a3", "1-3", part("ALPHANUMERICS_ONLY")),
            ("EXISTING_VALUE_ENDS_WITH_INCOMING_VALUE", "12", "1a3", part("NUMERICS_ONLY")),
            ("EXISTING_VALUE_CONTAINS_INCOMING_VALUE", "b", "aca", None),
            ("INCOMING_VALUE_CONTAINS_EXISTING_VALUE", "abcd", "bd", None),
            ("EXISTING_VALUE_BEGINS_WITH_INCOMING_VALUE", "b", "ab", None),
            ("INCOMING_VALUE_BEGINS_WITH_EXISTING_VALUE", "ab", "b", None),
            ("EXISTING_VALUE_ENDS_WITH_INCOMING_VALUE", "a", "ab", None),
            ("INCOMING_VALUE_ENDS_WITH_EXISTING_VALUE", "ab", "a", None),
        ];
        for (name, incoming, existing, qualifier) in cases {
            let criterion = Criterion::named(name).expect("a criterion");
            let condition = criterion.in_store(&"values".into(), &[incoming.to_owned()], qualifier.as_ref());
            let body = json!({ "values": [existing] });
            assert!(!pinakes_store::matches(&condition, &body), "{name}: {condition:?}");
        }
    }
}
