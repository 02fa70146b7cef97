//! Which members of a kind's bodies the index reads as values. Most bodies have more, and a map of values costs several
//! times what the borrowed tree does.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::document::Taken;
use crate::{Arity, Counts, Kind, Text, Texts, Tree};

/// What the index reads of a kind's bodies beside the terms at their paths.
#[derive(Debug, Clone)]
pub(super) struct ReadMembers {
    /// A member from which [`Counts::Strings`] alone extracts anything: a large one, which stays a tree.
    part: Option<&'static str>,
    /// The names of the other members; `None` if all are read.
    values: Option<BTreeSet<&'static str>>,
}

impl ReadMembers {
    pub(super) fn of(kind: &'static Kind) -> Self {
        if !kind.lists.is_empty() {
            // What their entries are made of is not declared.
            return Self { part: None, values: None };
        }
        let texts: &[&str] = if let Text::At(paths) = kind.text { paths } else { &[] };
        let columns = kind.columns.iter().filter(|it| it.arity == Arity::One).map(|it| it.path);
        let paths = columns.chain(texts.iter().chain(kind.class_fields).chain(kind.joins).copied());
        let first = |path: &'static str| path.split_once('.').map_or(path, |it| it.0);
        let mut values: BTreeSet<&str> = paths.map(first).collect();
        let (strings, others): (Vec<_>, Vec<_>) =
            kind.facets.iter().partition(|it| matches!(it.counts, Counts::Strings(_)));
        values.extend(others.iter().map(|it| first(it.path)));
        let part = match strings.as_slice() {
            [facet] if !facet.path.contains('.') && !values.contains(facet.path) => Some(facet.path),
            _ => None,
        };
        values.extend(strings.iter().map(|it| first(it.path)).filter(|it| Some(*it) != part));
        Self { part, values: Some(values) }
    }

    /// Returns the members of a body that become values, and what the index holds of what `kind` declares.
    pub(super) fn take(&self, kind: &'static Kind, body: &Tree<'_>) -> (Json, Taken) {
        let Tree::Object(fields) = body else {
            return (Json::Null, Taken::for_index(kind, &Json::Null, None));
        };
        let mut strings = Texts::default();
        for facet in kind.facets.iter().filter(|it| Some(it.path) == self.part) {
            if let (Counts::Strings(extract), Some(Tree::Object(member))) =
                (facet.counts, fields.get(facet.path))
            {
                extract(member, &mut strings);
            }
        }
        let is_read = |name: &str| self.values.as_ref().is_none_or(|it| it.contains(name));
        let values = Json::Object(fields.to_map_of(is_read));
        let taken = Taken::for_index(kind, &values, self.part.map(|it| (it, &strings)));
        (values, taken)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Column, Facet, Fields, Identifier, Type};

    fn keys(fields: &Fields<'_>, into: &mut Texts) {
        fields.iter().for_each(|(name, _)| into.push(name));
    }

    const KEYS: Facet = Facet { name: "keys", path: "meta", counts: Counts::Strings(keys) };
    static SAMPLE: Kind = Kind {
        columns: &[Column::one("mass", Type::Real), Column::many("tags", Type::Text)],
        facets: &[Facet::values("mass"), Facet::values("place.room"), KEYS],
        class_fields: &["group"],
        identifiers: &[Identifier { scheme: "doi", path: "doi" }],
        ..Kind::named("sample")
    };

    /// An index gets the same of a tree as a write extracts from values, and no value that is not read.
    #[test]
    fn trees_yield_what_values_do() {
        let read = ReadMembers::of(&SAMPLE);
        assert_eq!(read.part, Some("meta"));
        for meta in
            [json!({"a": 1, "b\"\u{e9}": {"c": 2}}), json!({}), json!([{"a": 1}]), json!("a"), json!(null)]
        {
            let place = json!({"room": "r", "town": {"name": "t"}});
            let body =
                json!({"group": "g", "meta": meta, "mass": 2.5, "tags": ["t"], "doi": "x", "place": place});
            let text = body.to_string();
            let tree: Tree<'_> = serde_json::from_str(&text).unwrap();
            let (values, taken) = read.take(&SAMPLE, &tree);
            let whole = Taken::from(&SAMPLE, &body);
            assert_eq!((taken.class, taken.cells), (whole.class, whole.cells), "{text}");
            assert_eq!(taken.counted, whole.counted, "{text}");
            assert_eq!(values, json!({"group": "g", "mass": 2.5, "place": place}), "{text}");
        }
    }

    static IN_COLUMN: Kind =
        Kind { columns: &[Column::at("a", "meta.a", Type::Text)], facets: &[KEYS], ..Kind::named("a") };
    static IN_TEXT: Kind = Kind { text: Text::At(&["meta.a"]), facets: &[KEYS], ..Kind::named("b") };
    static IN_CLASS: Kind = Kind { class_fields: &["meta"], facets: &[KEYS], ..Kind::named("c") };
    static IN_JOIN: Kind = Kind { joins: &["meta.a"], facets: &[KEYS], ..Kind::named("d") };
    static IN_FACET: Kind = Kind { facets: &[KEYS, Facet::values("meta.a")], ..Kind::named("e") };

    #[test]
    fn a_member_that_more_is_extracted_from_becomes_values() {
        for kind in [&IN_COLUMN, &IN_TEXT, &IN_CLASS, &IN_JOIN, &IN_FACET] {
            let read = ReadMembers::of(kind);
            assert_eq!((read.part, read.values), (None, Some(["meta"].into())), "{}", kind.name);
        }
        static NO_STRINGS: Kind = Kind { facets: &[Facet::values("meta")], ..Kind::named("f") };
        assert_eq!(ReadMembers::of(&NO_STRINGS).part, None);
    }
}
