//! Field values collected one by one, from formats other than field JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{FieldKind, Fields, Registry};

/// Collected field values, in the order in which they were added.
pub(crate) struct Gathered<'r> {
    registry: &'r Registry,
    values: BTreeMap<&'static str, Vec<Value>>,
}

impl<'r> Gathered<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        Self { registry, values: BTreeMap::new() }
    }

    /// Adds a value of a field, unless it is empty.
    pub(crate) fn text(&mut self, field: &'static str, text: &str) {
        if !text.is_empty() {
            let value = self.spelled(field, text).into();
            self.values.entry(field).or_default().push(value);
        }
    }

    /// Adds a compound value without its empty children, unless all are empty.
    pub(crate) fn compound(&mut self, field: &'static str, children: &[(&str, &str)]) {
        let child = |(name, text): &(&str, &str)| {
            ((*name).to_owned(), json!({"typeName": name, "value": self.spelled(name, text)}))
        };
        let map: Map<String, Value> = children.iter().filter(|it| !it.1.is_empty()).map(child).collect();
        if !map.is_empty() {
            self.values.entry(field).or_default().push(map.into());
        }
    }

    /// Returns whether the field has a value.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.values.contains_key(field)
    }

    /// Returns whether a vocabulary contains the term.
    pub(crate) fn is_term(&self, field: &str, text: &str) -> bool {
        self.registry.field(field).is_some_and(|it| it.term(text).is_some())
    }

    /// Returns a term in the spelling of its vocabulary: others write `ARXIV` for `arXiv`.
    fn spelled<'a>(&'a self, field: &str, text: &'a str) -> &'a str {
        let vocabulary = self.registry.field(field).map_or(&[][..], |it| it.vocabulary.as_slice());
        vocabulary.iter().find(|it| it.value.eq_ignore_ascii_case(text)).map_or(text, |it| &it.value)
    }

    /// Returns the fields. Joins several texts of a text field that takes one value.
    ///
    /// Errors: several values of another field that takes one; invalid values.
    pub(crate) fn into_fields(self) -> Result<Fields, String> {
        let mut list = Vec::new();
        for (name, values) in self.values {
            let ty = self.registry.field(name);
            let value = match (ty, values.as_slice()) {
                (Some(ty), [one]) if !ty.is_multiple => one.clone(),
                (Some(ty), several) if !ty.is_multiple => {
                    let between = match ty.kind {
                        FieldKind::Textbox => "\n",
                        FieldKind::Text if !ty.is_compound() && !ty.is_controlled => "; ",
                        _ => return Err(format!("{name} takes one value; {} were given", several.len())),
                    };
                    several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(between).into()
                }
                _ => Value::Array(values),
            };
            list.push(json!({"typeName": name, "value": value}));
        }
        Fields::read_single(self.registry, &json!({"fields": list}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::fields::Metadata;

    #[test]
    fn values_are_put_together_or_refused() {
        let registry = Registry::shipped();
        let gathered = |texts: &[(&'static str, &str)]| {
            let mut all = Gathered::new(&registry);
            texts.iter().for_each(|(field, text)| all.text(field, text));
            all.into_fields()
        };
        let fields = gathered(&[
            ("timeMethod", "a"),
            ("timeMethod", "b"),
            ("notesText", "1"),
            ("notesText", ""),
            ("notesText", "2"),
            ("subject", "law"),
            ("kindOfData", "x"),
            ("kindOfData", "y"),
        ]);
        let json = fields.unwrap().to_json(&registry);
        let metadata = Metadata(&json);
        assert_eq!(metadata.one("timeMethod"), Some("a; b"));
        assert_eq!(metadata.one("notesText"), Some("1\n2"));
        assert_eq!(metadata.many("subject"), ["Law"]);
        assert_eq!(metadata.many("kindOfData"), ["x", "y"]);
        let several = gathered(&[("dateOfDeposit", "2001"), ("dateOfDeposit", "2002")]);
        assert_eq!(several.unwrap_err(), "dateOfDeposit takes one value; 2 were given");
        assert!(gathered(&[("subject", "Alchemy")]).unwrap_err().contains("Alchemy"));
    }
}
