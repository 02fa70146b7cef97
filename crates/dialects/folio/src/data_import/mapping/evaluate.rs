//! Applying mapping rules to a record (section 7.1 of the contract).

use std::borrow::Cow;
use std::collections::HashSet;

use pinakes_marc::{DataField, Field, Record, Tag};
use serde_json::{Map, Value};

use super::fields::Shape;
use super::functions::{Function, Surroundings};
use super::reference::Reference;
use super::rules::{Group, Rules, Target};

/// Applies the rules to a record: control fields in order, then data fields in order.
pub(crate) fn map(
    rules: &Rules,
    record: &Record,
    reference: &Reference,
    shape: &'static Shape,
) -> Map<String, Value> {
    let mut run = Run { rules, record, reference, shape, made: Map::new(), seen: HashSet::new() };
    run.control(Tag::new(b"LDR"), record.leader.as_str());
    for field in &record.fields {
        if let Field::Control(field) = field {
            run.control(field.tag, &field.value);
        }
    }
    for field in &record.fields {
        if let Field::Data(field) = field {
            run.data(field.tag, field);
        }
    }
    run.made
}

struct Run<'a> {
    rules: &'a Rules,
    record: &'a Record,
    reference: &'a Reference,
    shape: &'static Shape,
    made: Map<String, Value>,
    /// Groups and targets for which a field has already been seen.
    seen: HashSet<(usize, usize)>,
}

/// A field, or one subfield of it.
#[derive(Clone, Copy)]
struct Part<'a> {
    field: &'a DataField,
    /// Position of the only subfield to use, if limited to one.
    only: Option<usize>,
}

impl<'a> Run<'a> {
    fn control(&mut self, tag: Tag, text: &str) {
        let rules = self.rules;
        for group in rules.groups(tag) {
            let name = group.targets.first().and_then(|it| it.path.first()).filter(|_| group.is_entity);
            let mut object = Map::new();
            for target in &group.targets {
                let around =
                    Surroundings { leader: &self.record.leader, field: None, reference: self.reference };
                let value = finished(apply(target, Cow::Borrowed(text), &around), target.is_concatenated);
                match (value.is_empty(), name) {
                    (true, _) => {}
                    (false, None) => set(&mut self.made, self.shape, &target.path, 0, value, false),
                    (false, Some(_)) => set(&mut object, self.shape, &target.path, 1, value, true),
                }
            }
            if let Some(name) = name.filter(|_| !object.is_empty()) {
                self.push(name, object);
            }
        }
    }

    fn data(&mut self, tag: Tag, field: &'a DataField) {
        let groups = self.rules.groups(tag);
        let fits = |group: &&Group| group.indicators.is_some_and(|wanted| fit(wanted, field.indicators));
        let has_fitting = groups.iter().any(|it| fits(&it));
        for group in groups {
            if has_fitting != fits(&group) && (has_fitting || group.indicators.is_some()) {
                continue;
            }
            if let Some(replacement) = &group.replacement {
                self.replaced(replacement, field);
            } else if has_subfields(field, &group.required, &group.exclusive) {
                self.group(group, field);
            }
        }
    }

    /// Maps a field under the tag that its `$6` names, of which it is the original script.
    fn replaced(&mut self, replacement: &[(String, Tag)], field: &'a DataField) {
        let Some(digits) = field.value('6').and_then(|it| it.get(..3)) else { return };
        let renamed = replacement.iter().find(|(source, _)| source == digits).map(|(_, tag)| *tag);
        if let Some(tag) = renamed.or_else(|| Tag::try_from(digits).ok()).filter(|it| *it != field.tag) {
            self.data(tag, field);
        }
    }

    fn group(&mut self, group: &'a Group, field: &'a DataField) {
        if !group.is_entity {
            for (place, target) in group.targets.iter().enumerate() {
                if target.ignores_later_fields && self.is_later(target, (group.number, place), field) {
                    continue;
                }
                self.property(target, Part { field, only: None });
            }
            return;
        }
        if group.targets.iter().any(|it| it.ignores_later_fields)
            && !self.seen.insert((group.number, usize::MAX))
        {
            return;
        }
        if !group.per_repeated_subfield {
            return self.entity(group, Part { field, only: None });
        }
        for (at, subfield) in field.subfields.iter().enumerate() {
            if group.targets.iter().any(|it| it.subfields.contains(&subfield.code)) {
                self.entity(group, Part { field, only: Some(at) });
            }
        }
    }

    /// Checks whether an earlier field has already set this property; a field without the target's subfields does not
    /// count.
    fn is_later(&mut self, target: &Target, place: (usize, usize), field: &DataField) -> bool {
        let has_any = target.subfields.is_empty()
            || field.subfields.iter().any(|it| target.subfields.contains(&it.code));
        has_any && !self.seen.insert(place)
    }

    fn property(&mut self, target: &'a Target, part: Part<'a>) {
        for value in self.values(target, part) {
            set(&mut self.made, self.shape, &target.path, 0, value, false);
        }
    }

    /// Builds one object from all targets. An object built from look-ups alone says nothing about the field and is
    /// dropped.
    fn entity(&mut self, group: &'a Group, part: Part<'a>) {
        let (mut object, mut has_text) = (Map::new(), false);
        let Some(name) = group.targets.first().and_then(|it| it.path.first()) else { return };
        for target in &group.targets {
            let is_lookup = target.rules.iter().any(|rule| {
                rule.value.is_some() || rule.functions.iter().any(|(it, _)| Function::is_lookup(*it))
            });
            // A property of the record itself is not part of the object, whatever the rules say.
            if target.path.len() == 1 {
                self.property(target, part);
                continue;
            }
            for value in self.values(target, part) {
                has_text |= !is_lookup;
                set(&mut object, self.shape, &target.path, 1, value, true);
            }
        }
        if !has_text {
            return;
        }
        self.push(name, object);
    }

    fn push(&mut self, name: &String, object: Map<String, Value>) {
        if !self.shape.is_list(std::slice::from_ref(name)) {
            self.made.entry(name.clone()).or_insert(Value::Object(object));
            return;
        }
        let list = self.made.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(Value::Object(object));
        }
    }

    /// Returns the values of a target in a field, usually one.
    fn values(&self, target: &Target, part: Part<'_>) -> Vec<String> {
        let value = self.value(target, part);
        if value.is_empty() {
            return target.alternative.as_ref().map(|it| self.values(it, part)).unwrap_or_default();
        }
        match target.split_chars {
            None => vec![value],
            Some(n) => {
                let chars: Vec<char> = value.chars().filter(|it| !it.is_whitespace()).collect();
                chars.chunks(n).map(|it| it.iter().collect()).collect()
            }
        }
    }

    fn value(&self, target: &Target, part: Part<'_>) -> String {
        if !has_subfields(part.field, &target.required, &target.exclusive) {
            return String::new();
        }
        let around =
            Surroundings { leader: &self.record.leader, field: Some(part.field), reference: self.reference };
        let wanted = |code: char| target.subfields.is_empty() || target.subfields.contains(&code);
        let subfields = part.field.subfields.iter().enumerate();
        let picked = subfields
            .filter(|(at, it)| part.only.is_none_or(|only| only == *at) && wanted(it.code))
            .map(|(_, it)| it)
            .take(if target.ignores_later_subfields { 1 } else { usize::MAX });
        // A look-up does not depend on the text, so it is done once rather than for each subfield.
        let is_lookup = target
            .rules
            .iter()
            .any(|rule| rule.value.is_some() || rule.functions.iter().any(|(it, _)| it.is_lookup()));
        let mut joined = Cow::Borrowed("");
        let mut is_first = true;
        for subfield in picked {
            let text = Cow::Borrowed(subfield.value.as_str());
            let text = if target.is_concatenated || is_lookup { text } else { apply(target, text, &around) };
            if is_first {
                joined = text;
            } else {
                let before = target.delimiters.iter().find(|(_, codes)| codes.contains(&subfield.code));
                let whole = joined.to_mut();
                whole.push_str(before.map_or(" ", |(text, _)| text));
                whole.push_str(&text);
            }
            is_first = false;
        }
        if is_first {
            return String::new();
        }
        if target.is_concatenated || is_lookup {
            joined = apply(target, joined, &around);
        }
        finished(joined, target.is_concatenated)
    }
}

/// Applies the target's rules to a text in order; a rule with a constant ends this and gives its value.
fn apply<'t>(target: &Target, text: Cow<'t, str>, around: &Surroundings<'_>) -> Cow<'t, str> {
    let mut text = text;
    for rule in &target.rules {
        for (function, parameter) in &rule.functions {
            text = function.apply(text, parameter, around);
        }
        if let Some(value) = &rule.value {
            return Cow::Owned(value.clone());
        }
    }
    text
}

/// Applies the final clean-up of every value.
fn finished(text: Cow<'_, str>, is_concatenated: bool) -> String {
    let text = match text.strip_suffix('\\') {
        Some(rest) if is_concatenated => rest.to_owned(),
        _ => text.into_owned(),
    };
    let text = if text.contains('|') { text.replace('|', " ") } else { text };
    if text.trim().is_empty() { String::new() } else { text }
}

fn fit(wanted: [char; 2], found: [char; 2]) -> bool {
    wanted.iter().zip(found).all(|(wanted, found)| *wanted == '*' || *wanted == found)
}

fn has_subfields(field: &DataField, required: &[char], exclusive: &[char]) -> bool {
    required.iter().all(|code| field.value(*code).is_some())
        && !exclusive.iter().any(|code| field.value(*code).is_some())
}

/// Sets a value at the path after its first `depth` steps. Lists are extended; elsewhere the first value is kept.
fn set(
    object: &mut Map<String, Value>,
    shape: &Shape,
    path: &[String],
    depth: usize,
    value: String,
    fills_last: bool,
) {
    let Some(name) = path.get(depth) else { return };
    let (is_last, is_list) = (path.len() == depth + 1, shape.is_list(&path[..=depth]));
    match (is_last, is_list) {
        (true, false) => {
            let value =
                if shape.is_boolean(path) { Value::Bool(value == "true") } else { Value::String(value) };
            object.entry(name.clone()).or_insert(value);
        }
        (true, true) => {
            let list = object.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                let value = Value::String(value);
                if !(shape.is_set(path) && list.contains(&value)) {
                    list.push(value);
                }
            }
        }
        (false, false) => {
            let inner = object.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                set(inner, shape, path, depth + 1, value, fills_last);
            }
        }
        (false, true) => {
            let list = object.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(list) = list else { return };
            let is_free = |it: &Value| it.get(&path[depth + 1]).is_none();
            if !fills_last || !list.last().is_some_and(is_free) {
                list.push(Value::Object(Map::new()));
            }
            if let Some(Value::Object(inner)) = list.last_mut() {
                set(inner, shape, path, depth + 1, value, fills_last);
            }
        }
    }
}
