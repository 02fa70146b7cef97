//! Mapping rules as documents: parsing and validation.

use std::collections::HashMap;

use pinakes_marc::Tag;
use serde_json::{Map, Value};

use super::functions::Function;

/// The three rule sets, by what they map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RuleSet {
    /// Bibliographic records to instances.
    Bib,
    /// Holdings records.
    Holdings,
    /// Authorities.
    Authority,
}

impl RuleSet {
    /// All rule sets.
    pub(crate) const ALL: [Self; 3] = [Self::Bib, Self::Holdings, Self::Authority];

    /// Returns its name in paths.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bib => "marc-bib",
            Self::Holdings => "marc-holdings",
            Self::Authority => "marc-authority",
        }
    }

    /// Returns the rule set with a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns FOLIO's default rules as text.
    pub(crate) const fn default_text(self) -> &'static str {
        match self {
            Self::Bib => include_str!("../../../data/mapping/marc-bib.json"),
            Self::Holdings => include_str!("../../../data/mapping/marc-holdings.json"),
            Self::Authority => include_str!("../../../data/mapping/marc-authority.json"),
        }
    }
}

/// A parsed document of rules.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    by_tag: HashMap<Tag, Vec<Group>>,
}

/// The targets that a field is mapped to together: one object, or one property.
#[derive(Debug)]
pub(crate) struct Group {
    /// Whether the targets form one object per field.
    pub(crate) is_entity: bool,
    /// Whether there is one object per occurrence of a subfield instead.
    pub(crate) per_repeated_subfield: bool,
    /// Indicators that the field must have; `*` stands for any.
    pub(crate) indicators: Option<[char; 2]>,
    /// Subfields that must all be present.
    pub(crate) required: Vec<char>,
    /// Subfields that must all be absent.
    pub(crate) exclusive: Vec<char>,
    /// The properties to set.
    pub(crate) targets: Vec<Target>,
    /// The field is treated as the tag named by the first three characters of its `$6`, or as another tag assigned to
    /// that one.
    pub(crate) replacement: Option<Vec<(String, Tag)>>,
    /// Position among all groups; identifies the group for `ignoreSubsequentFields`.
    pub(crate) number: usize,
}

/// One property and the source of its value.
#[derive(Debug)]
pub(crate) struct Target {
    /// Steps to the property.
    pub(crate) path: Vec<String>,
    /// Codes of the subfields; empty for all.
    pub(crate) subfields: Vec<char>,
    /// The rules applied to the text.
    pub(crate) rules: Vec<Rule>,
    pub(crate) required: Vec<char>,
    pub(crate) exclusive: Vec<char>,
    /// Whether functions run on the joined text rather than on each subfield.
    pub(crate) is_concatenated: bool,
    /// Whether only the first field is used.
    pub(crate) ignores_later_fields: bool,
    /// Whether only the first subfield is used.
    pub(crate) ignores_later_subfields: bool,
    /// Separators before a subfield, with the codes that they apply to.
    pub(crate) delimiters: Vec<(String, Vec<char>)>,
    /// Number of characters per value, if the text is split.
    pub(crate) split_chars: Option<usize>,
    /// Used if this target gives nothing.
    pub(crate) alternative: Option<Box<Target>>,
}

/// Functions, and a constant that replaces their result.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) functions: Vec<(Function, Value)>,
    pub(crate) value: Option<String>,
}

impl Rules {
    /// Parses a document. Errors: what is wrong, and under which tag.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let document: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let Value::Object(tags) = document else {
            return Err("expected an object of rules by field tag".to_owned());
        };
        let mut rules = Self::default();
        let mut n_groups = 0;
        for (name, items) in &tags {
            let tag = Tag::try_from(name.as_str()).map_err(|error| error.to_string())?;
            let Value::Array(items) = items else {
                return Err(format!("field {name}: expected a list of rules"));
            };
            let mut groups = Vec::with_capacity(items.len());
            for item in items {
                let group = group(item, n_groups).map_err(|error| format!("field {name}: {error}"))?;
                groups.push(group);
                n_groups += 1;
            }
            rules.by_tag.insert(tag, groups);
        }
        Ok(rules)
    }

    /// Adapts the rules to the extended mode of authorities: subdivisions in headings are joined by `--`.
    pub(crate) fn with_subdivisions(mut self) -> Self {
        let is_heading = |tag: &Tag| tag.as_str().starts_with(['1', '4', '5']);
        let groups = self.by_tag.iter_mut().filter(|(tag, _)| is_heading(tag)).flat_map(|(_, groups)| groups);
        for target in groups.flat_map(|it| &mut it.targets) {
            target.delimiters.push(("--".to_owned(), vec!['v', 'x', 'y', 'z']));
        }
        self
    }

    /// Returns the groups of a tag.
    pub(crate) fn groups(&self, tag: Tag) -> &[Group] {
        self.by_tag.get(&tag).map_or(&[], Vec::as_slice)
    }
}

fn group(item: &Value, number: usize) -> Result<Group, String> {
    let Value::Object(map) = item else { return Err("expected an object".to_owned()) };
    let entity = match map.get("entity") {
        None => None,
        Some(Value::Array(list)) => Some(list.iter().map(target).collect::<Result<Vec<_>, _>>()?),
        Some(_) => return Err("\"entity\" must be a list".to_owned()),
    };
    let replacement = flag(map, "fieldReplacementBy3Digits").then(|| replacements(map)).transpose()?;
    let is_entity = entity.is_some();
    let targets = match entity {
        Some(targets) => targets,
        None if replacement.is_some() => Vec::new(),
        None => vec![target(item)?],
    };
    Ok(Group {
        is_entity,
        per_repeated_subfield: flag(map, "entityPerRepeatedSubfield"),
        indicators: map.get("indicators").map(indicators),
        required: codes(map, "requiredSubfield"),
        exclusive: codes(map, "exclusiveSubfield"),
        targets,
        replacement,
        number,
    })
}

fn target(item: &Value) -> Result<Target, String> {
    let Value::Object(map) = item else { return Err("expected an object with a \"target\"".to_owned()) };
    let Some(path) = map.get("target").and_then(Value::as_str).filter(|it| !it.is_empty()) else {
        return Err("a rule has no \"target\"".to_owned());
    };
    let mut rules = Vec::new();
    for rule in list(map, "rules") {
        rules.push(self::rule(rule).map_err(|error| format!("target {path}: {error}"))?);
    }
    let delimiters = list(map, "subFieldDelimiter").iter().filter_map(Value::as_object).map(|it| {
        let text = it.get("value").and_then(Value::as_str).unwrap_or(" ").to_owned();
        (text, codes(it, "subfields"))
    });
    let alternative = map.get("alternativeMapping").map(target).transpose()?;
    Ok(Target {
        path: path.split('.').map(str::to_owned).collect(),
        subfields: codes(map, "subfield"),
        rules,
        required: codes(map, "requiredSubfield"),
        exclusive: codes(map, "exclusiveSubfield"),
        is_concatenated: flag(map, "applyRulesOnConcatenatedData"),
        ignores_later_fields: flag(map, "ignoreSubsequentFields"),
        ignores_later_subfields: flag(map, "ignoreSubsequentSubfields"),
        delimiters: delimiters.collect(),
        split_chars: map
            .get("subFieldSplit")
            .and_then(|it| it.get("value"))
            .and_then(|it| it.as_str().map_or_else(|| it.as_u64(), |text| text.parse().ok()))
            .and_then(|it| usize::try_from(it).ok())
            .filter(|it| 0 < *it),
        alternative: alternative.map(Box::new),
    })
}

fn rule(item: &Value) -> Result<Rule, String> {
    let mut functions = Vec::new();
    for condition in item.get("conditions").and_then(Value::as_array).into_iter().flatten() {
        let names = condition.get("type").and_then(Value::as_str).unwrap_or_default();
        let parameter = condition.get("parameter").cloned().unwrap_or(Value::Null);
        for name in names.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let function =
                Function::named(name).ok_or_else(|| format!("there is no function named {name:?}"))?;
            functions.push((function, parameter.clone()));
        }
    }
    let value = item.get("value").and_then(Value::as_str).map(str::to_owned);
    Ok(Rule { functions, value })
}

fn indicators(value: &Value) -> [char; 2] {
    let at = |name: &str| match value.get(name).and_then(Value::as_str) {
        None => '*',
        Some(text) => text.chars().next().unwrap_or(' '),
    };
    [at("ind1"), at("ind2")]
}

/// Parses `[{"sourceDigits": "100", "targetField": "700"}]`.
fn replacements(map: &Map<String, Value>) -> Result<Vec<(String, Tag)>, String> {
    let mut pairs = Vec::new();
    for it in list(map, "fieldReplacementRule") {
        let text = |name: &str| it.get(name).and_then(Value::as_str).unwrap_or_default();
        let tag = Tag::try_from(text("targetField")).map_err(|error| error.to_string())?;
        pairs.push((text("sourceDigits").to_owned(), tag));
    }
    Ok(pairs)
}

fn list<'a>(map: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    map.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn codes(map: &Map<String, Value>, name: &str) -> Vec<char> {
    list(map, name).iter().filter_map(|it| it.as_str()?.chars().next()).collect()
}

fn flag(map: &Map<String, Value>, name: &str) -> bool {
    map.get(name).and_then(Value::as_bool).unwrap_or(false)
}
