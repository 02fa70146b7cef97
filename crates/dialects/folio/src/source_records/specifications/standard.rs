//! Standard MARC 21: the fields, indicators and subfields of `data/specifications/*.txt`, and the available rules.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::platform::json::id_of_name;

/// A validation rule, which can be switched on and off.
pub(super) struct Rule {
    /// Its code: `undefinedField`.
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// Whether it is enabled by default.
    pub(super) is_enabled: bool,
    /// The profile to which it applies; empty for all.
    profile: &'static str,
}

const fn rule(code: &'static str, name: &'static str, description: &'static str, is_enabled: bool) -> Rule {
    Rule { code, name, description, is_enabled, profile: "" }
}

const RULES: &[Rule] = &[
    rule("missingField", "Missing Field", "A field that is required must be there", true),
    rule(
        "nonRepeatableField",
        "Repeatable Field",
        "A field that is not repeatable is there once at most",
        true,
    ),
    rule("undefinedField", "Undefined Field", "Fields must be defined", false),
    rule("undefinedIndicatorCode", "Undefined Indicator Code", "Codes of indicators must be defined", false),
    rule("missingSubfield", "Missing Subfield", "A subfield that is required must be there", true),
    rule(
        "nonRepeatableSubfield",
        "Repeatable Subfield",
        "A subfield that is not repeatable is there once in a field at most",
        true,
    ),
    rule("undefinedSubfield", "Undefined Subfield", "Subfields must be defined", false),
    Rule {
        profile: "bibliographic",
        ..rule("nonRepeatable1XXField", "Repeatable 1XX Field", "There is one field 1XX at most", true)
    },
    Rule {
        profile: "authority",
        ..rule("nonRepeatableRequired1XXField", "Required 1XX Field", "There is exactly one field 1XX", true)
    },
];

/// A standard specification.
pub(super) struct Standard {
    pub(super) id: &'static str,
    title: &'static str,
    /// `bibliographic` or `authority`.
    pub(super) profile: &'static str,
    url: &'static str,
    /// Its fields in tag order, with their indicators and subfields.
    pub(super) fields: Vec<Value>,
}

/// All standard specifications.
pub(super) static STANDARDS: LazyLock<[Standard; 2]> = LazyLock::new(|| {
    let bibliographic = Standard {
        id: "6eefa4c6-bbf7-4845-ad82-de7fc4abd0e3",
        title: "MARC bibliographic",
        profile: "bibliographic",
        url: "https://www.loc.gov/marc/bibliographic/",
        fields: Vec::new(),
    };
    let authority = Standard {
        id: "6eefa4c6-bbf7-4845-ad82-de7fc4abd0e4",
        title: "MARC authority",
        profile: "authority",
        url: "https://www.loc.gov/marc/authority/",
        fields: Vec::new(),
    };
    [
        bibliographic.with_fields("bd", include_str!("../../../data/specifications/marc-bibliographic.txt")),
        authority.with_fields("ad", include_str!("../../../data/specifications/marc-authority.txt")),
    ]
});

impl Standard {
    /// Returns its identification.
    pub(super) fn head(&self) -> Value {
        json!({
            "id": self.id, "title": self.title, "family": "MARC", "profile": self.profile, "url": self.url,
        })
    }

    /// Returns its rules with their ids.
    pub(super) fn rules(&self) -> impl Iterator<Item = (String, &'static Rule)> {
        let mine = RULES.iter().filter(|it| it.profile.is_empty() || it.profile == self.profile);
        mine.map(|it| (id_of_name(&format!("{}/rule/{}", self.id, it.code)), it))
    }

    /// Adds the fields of a text: one line per field (`245 NR required Title statement`), followed by an indented line
    /// for each indicator (` ind1 01 Title added entry`) or subfield (` a NR Title`). `pages` is the prefix of the
    /// pages that describe the fields.
    fn with_fields(mut self, pages: &str, text: &str) -> Self {
        for line in text.lines().filter(|it| !it.starts_with('#')) {
            match line.strip_prefix(' ') {
                None => {
                    let mut words = line.splitn(4, ' ');
                    let mut word = || words.next().unwrap_or_default();
                    let (tag, repeatable, kind, label) = (word(), word(), word(), word());
                    self.fields.push(json!({
                        "id": id_of_name(&format!("{}/{tag}", self.id)), "specificationId": self.id, "tag": tag,
                        "label": label, "url": format!("{}{pages}{tag}.html", self.url),
                        "repeatable": repeatable == "R", "required": kind.ends_with("required"), "deprecated": false,
                        "scope": if kind.starts_with("system") { "system" } else { "standard" },
                        "indicators": [], "subfields": [],
                    }));
                }
                Some(part) => {
                    let Some(field) = self.fields.last_mut() else { continue };
                    add_part(field, part);
                }
            }
        }
        self
    }
}

fn add_part(field: &mut Value, line: &str) {
    let id = field["id"].as_str().unwrap_or_default().to_owned();
    let scope = field["scope"].clone();
    let mut words = line.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (name, value, label) = (word(), word(), word());
    let part = id_of_name(&format!("{id}/{name}"));
    if let Some(order) = name.strip_prefix("ind") {
        let codes = value.chars().map(|code| {
            let code = if code == 'b' { '\\' } else { code };
            json!({
                "id": id_of_name(&format!("{part}/{code}")), "indicatorId": part, "code": code.to_string(),
                "label": format!("{label} {code}"), "deprecated": false, "scope": scope,
            })
        });
        let codes: Vec<Value> = codes.collect();
        let order: u8 = order.parse().unwrap_or(1);
        let indicator = json!({"id": part, "fieldId": id, "order": order, "label": label, "codes": codes});
        push(field, "indicators", indicator);
    } else {
        let subfield = json!({
            "id": part, "fieldId": id, "code": name, "label": label, "repeatable": value == "R", "required": false,
            "deprecated": false, "scope": scope,
        });
        push(field, "subfields", subfield);
    }
}

fn push(field: &mut Value, list: &str, part: Value) {
    if let Some(Value::Array(parts)) = field.get_mut(list) {
        parts.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_data_is_read() {
        for (standard, text) in STANDARDS.iter().zip([
            include_str!("../../../data/specifications/marc-bibliographic.txt"),
            include_str!("../../../data/specifications/marc-authority.txt"),
        ]) {
            let lines = |is_part: bool| {
                text.lines().filter(|it| !it.starts_with('#') && it.starts_with(' ') == is_part).count()
            };
            let parts = |field: &Value| {
                ["indicators", "subfields"]
                    .iter()
                    .map(|it| field[it].as_array().map_or(0, Vec::len))
                    .sum::<usize>()
            };
            assert_eq!(standard.fields.len(), lines(false));
            assert_eq!(standard.fields.iter().map(parts).sum::<usize>(), lines(true));
            assert!(standard.fields.is_sorted_by(|a, b| a["tag"].as_str() < b["tag"].as_str()));
            let title = standard.fields.iter().find(|it| it["tag"] == "999").unwrap();
            assert_eq!(title["scope"], "system");
        }
        let title = STANDARDS[0].fields.iter().find(|it| it["tag"] == "245").unwrap();
        assert_eq!(title["required"], true);
        assert_eq!(title["subfields"][0]["label"], "Title");
        assert_eq!(title["indicators"][1]["codes"].as_array().unwrap().len(), 10);
    }
}
