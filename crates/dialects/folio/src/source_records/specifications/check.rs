//! Validating a record of the editor against a specification.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Tailored;
use crate::platform::json::text_at;

/// Returns the faults of a record with fields `{tag, indicators, content}`, each as
/// `{tag, severity, definitionType, message, helpUrl}`. Rules about undefined parts give warnings, all others errors.
///
/// `subfields` splits the content of a field. `is_new`: the record has no control number yet and will get one.
pub(crate) fn issues(
    specification: &Tailored,
    body: &Value,
    is_new: bool,
    subfields: impl Fn(&str) -> Vec<(char, String)>,
) -> Vec<Value> {
    let by_tag = specification.by_tag();
    let mut found = Found { specification, by_tag: &by_tag, issues: Vec::new() };
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for field in body.get("fields").and_then(Value::as_array).into_iter().flatten() {
        let Some(tag) = text_at(field, "tag") else { continue };
        let at = seen.entry(tag).and_modify(|it| *it += 1).or_insert(0);
        let Some(definition) = by_tag.get(tag) else {
            found.warning("undefinedField", tag, *at, "field", "Field is undefined.");
            continue;
        };
        if 0 < *at && definition["repeatable"] == false {
            found.error("nonRepeatableField", tag, *at, "field", "Field is non-repeatable.");
        }
        if !tag.starts_with("00") {
            found.indicators(definition, field, tag, *at);
            let content = text_at(field, "content").unwrap_or_default();
            found.subfields(definition, &subfields(content), tag, *at);
        }
    }
    found.headings(&seen);
    let mut required: Vec<&str> =
        by_tag.iter().filter(|(_, it)| it["required"] == true).map(|(tag, _)| *tag).collect();
    required.sort_unstable();
    for tag in required {
        let is_given_later = tag == "000" || is_new && tag == "001";
        if !is_given_later && !seen.contains_key(tag) {
            found.error("missingField", tag, 0, "field", &format!("Field {tag} is required."));
        }
    }
    found.issues
}

/// Checks whether a record with these issues cannot be stored.
pub(crate) fn are_errors(issues: &[Value]) -> bool {
    issues.iter().any(|it| it["severity"] == "error")
}

struct Found<'s> {
    specification: &'s Tailored,
    by_tag: &'s HashMap<&'s str, &'s Value>,
    issues: Vec<Value>,
}

impl Found<'_> {
    fn warning(&mut self, rule: &str, tag: &str, at: usize, of: &str, message: &str) {
        self.add("warn", rule, tag, at, of, message);
    }

    fn error(&mut self, rule: &str, tag: &str, at: usize, of: &str, message: &str) {
        self.add("error", rule, tag, at, of, message);
    }

    fn add(&mut self, severity: &str, rule: &str, tag: &str, at: usize, of: &str, message: &str) {
        if !self.specification.has_rule(rule) {
            return;
        }
        let url = self.by_tag.get(tag).and_then(|it| text_at(it, "url"));
        let mut issue = json!({
            "tag": format!("{tag}[{at}]"), "severity": severity, "definitionType": of, "message": message,
        });
        if let Some(url) = url {
            issue["helpUrl"] = url.into();
        }
        self.issues.push(issue);
    }

    fn indicators(&mut self, definition: &Value, field: &Value, tag: &str, at: usize) {
        let Some(given) = field.get("indicators").and_then(Value::as_array) else { return };
        for indicator in definition["indicators"].as_array().into_iter().flatten() {
            let (order, name) = if indicator["order"] == 1 { (0, "First") } else { (1, "Second") };
            let codes = indicator["codes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let Some(code) = given.get(order).and_then(Value::as_str).filter(|_| !codes.is_empty()) else {
                continue;
            };
            let code = if matches!(code, " " | "#") { "\\" } else { code };
            if !codes.iter().any(|it| text_at(it, "code") == Some(code)) {
                let message = format!("{name} Indicator '{code}' is undefined.");
                self.warning("undefinedIndicatorCode", tag, at, "indicator", &message);
            }
        }
    }

    fn subfields(&mut self, definition: &Value, given: &[(char, String)], tag: &str, at: usize) {
        let defined = definition["subfields"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is = |it: &Value, code: char| {
            text_at(it, "code").is_some_and(|text| text.chars().eq(std::iter::once(code)))
        };
        for (n, (code, _)) in given.iter().enumerate() {
            match defined.iter().find(|it| is(it, *code)) {
                None => {
                    let message = format!("Subfield '{code}' is undefined.");
                    self.warning("undefinedSubfield", tag, at, "subfield", &message);
                }
                Some(subfield)
                    if subfield["repeatable"] == false && given[..n].iter().any(|it| it.0 == *code) =>
                {
                    let message = format!("Subfield '{code}' is non-repeatable.");
                    self.error("nonRepeatableSubfield", tag, at, "subfield", &message);
                }
                Some(_) => {}
            }
        }
        for subfield in defined.iter().filter(|it| it["required"] == true) {
            let code = text_at(subfield, "code").unwrap_or_default();
            if !given.iter().any(|it| is(subfield, it.0)) {
                let message = format!("Subfield '{code}' is required.");
                self.error("missingSubfield", tag, at, "subfield", &message);
            }
        }
    }

    /// Applies the rules for all 1XX fields together.
    fn headings(&mut self, seen: &HashMap<&str, usize>) {
        let mut headings: Vec<(&str, usize)> = seen
            .iter()
            .filter(|(tag, _)| tag.starts_with('1'))
            .flat_map(|(tag, last)| (0..=*last).map(|at| (*tag, at)))
            .collect();
        headings.sort_unstable();
        let is_authority = self.specification.standard.profile == "authority";
        match (is_authority, headings.as_slice()) {
            (true, [_]) | (false, [] | [_]) => {}
            (true, []) => self.error(REQUIRED_1XX, "1XX", 0, "field", WANTED_1XX),
            (true, several) => {
                for (tag, at) in several {
                    self.error(REQUIRED_1XX, tag, *at, "field", WANTED_1XX);
                }
            }
            (false, several) => {
                for (tag, at) in several {
                    self.error("nonRepeatable1XXField", tag, *at, "field", "Field 1XX is non-repeatable.");
                }
            }
        }
    }
}

const REQUIRED_1XX: &str = "nonRepeatableRequired1XXField";
const WANTED_1XX: &str = "Field 1XX is non-repeatable and required.";
