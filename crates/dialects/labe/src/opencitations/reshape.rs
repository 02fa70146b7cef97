//! The parameter `json`: turns the text of a field into a list, or into named parts.
//!
//! `array("; ",author)` splits; `dict(", ",author,family,given)` names the parts. Paths are dotted, and descend
//! into lists, so that rules can be applied to the results of earlier rules.

use serde_json::{Map, Value};

/// Maximum number of rules in one request.
pub(crate) const RULES_MAX: usize = 32;
/// Maximum number of parts into which a value is split.
const PARTS_MAX: usize = 100_000;

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    separator: String,
    path: Vec<String>,
    made: Made,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Made {
    List,
    Parts(Vec<String>),
}

impl Rule {
    /// Parses a rule; `None` if the text is not a rule.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.trim().split_once('(')?;
        let rest = rest.strip_suffix(')')?.trim().strip_prefix('"')?;
        let (separator, rest) = rest.rsplit_once('"')?;
        let mut fields = rest.trim().strip_prefix(',')?.split(',').map(|it| it.trim().to_owned());
        let path: Vec<String> = fields.next()?.split('.').map(str::to_owned).collect();
        let names: Vec<String> = fields.collect();
        let is_sound = !separator.is_empty() && path.iter().chain(&names).all(|it| !it.is_empty());
        let made = match (name.trim(), names.is_empty()) {
            ("array", true) => Made::List,
            ("dict", false) => Made::Parts(names),
            _ => return None,
        };
        is_sound.then(|| Self { separator: separator.to_owned(), path, made })
    }

    /// Applies the rule to a row.
    pub(crate) fn apply(&self, row: &mut Map<String, Value>) {
        if let Some((first, rest)) = self.path.split_first()
            && let Some(value) = row.get_mut(first)
        {
            self.apply_at(value, rest);
        }
    }

    fn apply_at(&self, value: &mut Value, path: &[String]) {
        match (value, path) {
            (Value::Array(list), _) => list.iter_mut().for_each(|it| self.apply_at(it, path)),
            (Value::Object(map), [first, rest @ ..]) => {
                if let Some(value) = map.get_mut(first) {
                    self.apply_at(value, rest);
                }
            }
            (value, []) => {
                if let Value::String(text) = value {
                    *value = self.split(text);
                }
            }
            _ => {}
        }
    }

    fn split(&self, text: &str) -> Value {
        let separator = self.separator.as_str();
        match &self.made {
            Made::List if text.is_empty() => Value::Array(Vec::new()),
            Made::List => text.splitn(PARTS_MAX, separator).map(Value::from).collect(),
            Made::Parts(_) if text.is_empty() => Value::Object(Map::new()),
            Made::Parts(names) => {
                let parts = names.iter().zip(text.splitn(names.len(), separator));
                Value::Object(parts.map(|(name, part)| (name.clone(), Value::from(part))).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rules_follow_one_another() {
        let mut row = Map::new();
        row.insert("author".to_owned(), Value::from("Peroni, Silvio; Shotton, David, M."));
        row.insert("id".to_owned(), Value::from(""));
        for text in [r#"array("; ",author)"#, r#"dict(", ",author,family,given)"#, r#"array(" ",id)"#] {
            Rule::parse(text).iter().for_each(|rule| rule.apply(&mut row));
        }
        let expected = serde_json::json!({
            "author": [{"family": "Peroni", "given": "Silvio"}, {"family": "Shotton", "given": "David, M."}],
            "id": [],
        });
        assert_eq!(Value::Object(row), expected);
    }

    #[test]
    fn what_is_no_rule_is_told() {
        for text in
            ["", "array", "array()", r#"array("",a)"#, r#"array(";",a,b)"#, r#"dict(";",a)"#, r#"array(;,a)"#]
        {
            assert_eq!(Rule::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in r#"(array|dict)?\(?"?.{0,8}"?,?[a-z.,]{0,8}\)?"#, value in "\\PC{0,20}") {
            if let Some(rule) = Rule::parse(&text) {
                let mut row = Map::from_iter([("a".to_owned(), Value::from(value))]);
                rule.apply(&mut row);
            }
        }
    }
}
