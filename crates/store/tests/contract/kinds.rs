//! The kinds that the tests use.

use pinakes_store::{
    Arity, Column, Counts, Facet, Identifier, Index, Kind, Link, ListEntry, Listing, Search, Text, Type, fold,
};
use serde_json::Value;

/// A kind without any declaration.
pub(crate) static PLAIN: Kind = Kind::named("plain");

/// A kind with every declaration.
pub(crate) static ITEM: Kind = FULL;

/// The same, of which the index holds what is declared.
pub(crate) static SLIM: Kind = Kind { name: "slim", search: Search::Declared, ..FULL };

/// The same, of which the index holds values alone.
pub(crate) static LEAN: Kind = Kind { name: "lean", search: Search::Values, ..FULL };

const FULL: Kind = Kind {
    id_path: Some("pid"),
    columns: &[
        Column::one("name", Type::Text),
        Column::one("size", Type::Integer),
        Column::one("mass", Type::Real),
        Column::one("open", Type::Boolean),
        Column::one("made", Type::Instant),
        Column::one("title", Type::Folded),
        Column::at("depth", "place.depth", Type::Integer),
        Column::many("keywords", Type::Text),
        Column { name: "numbers", path: "runs.number", ty: Type::Integer, arity: Arity::Many },
    ],
    indexes: &[
        Index::on(&["name"]),
        Index::on(&["size"]),
        Index::on(&["made"]),
        Index::on(&["title"]),
        Index::on(&["class"]),
        Index::on(&["class", "made"]),
        Index::on(&["class", "size"]),
    ],
    facets: &[
        Facet::values("name"),
        Facet::values("size"),
        Facet::values("mass"),
        Facet::values("keywords"),
        Facet::days("made"),
        Facet { name: "keys", path: "meta", counts: Counts::Strings(keys) },
        Facet::values("group"),
        Facet::values("free"),
    ],
    class_fields: &["group", "shared"],
    text: Text::AllStrings,
    search: Search::Folded,
    patterns: &["name", "title", "files.path"],
    identifiers: &[Identifier { scheme: "doi", path: "doi" }],
    links: &[Link { relation: "parent", path: "parents", to: "item" }],
    members: Some("files"),
    member_values: &["files.path", "files.size", "files.time", "files.mixed"],
    ..Kind::named("item")
};

/// Books with browsable names and subjects.
pub(crate) static BOOK: Kind = Kind {
    search: Search::Exact,
    lists: &[
        Listing { name: "names", entries: |body, visit| entries(body, "names", visit) },
        Listing { name: "subjects", entries: |body, visit| entries(body, "subjects", visit) },
    ],
    ..Kind::named("book")
};

/// Passes on the entries of a list, written as `Text|apart|gathered|traits`.
fn entries(body: &Value, list: &str, visit: &mut dyn FnMut(ListEntry)) {
    for text in body[list].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let mut parts = text.split('|').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        let (key, apart, gathered, traits) = (fold(&part()), part(), part(), part());
        visit(ListEntry { key, apart, traits, gathered });
    }
}

/// Kinds that are joined: boxes, of which folders name one and leaves name a folder.
pub(crate) static BOX: Kind =
    Kind { id_path: Some("id"), search: Search::Folded, joins: &["id", "size"], ..Kind::named("box") };
pub(crate) static FOLDER: Kind =
    Kind { id_path: Some("id"), search: Search::Folded, joins: &["id", "boxId"], ..Kind::named("folder") };
pub(crate) static LEAF: Kind =
    Kind { search: Search::Folded, joins: &["folderId", "n"], ..Kind::named("leaf") };

/// A kind with unique values.
pub(crate) static USER: Kind = Kind {
    columns: &[Column::one("username", Type::Text), Column::one("badge", Type::Integer)],
    indexes: &[Index::unique(&["username"]), Index::unique(&["badge"])],
    ..Kind::named("user")
};

/// A kind of which only one record per book may be open at a time.
pub(crate) static LOAN: Kind = Kind {
    columns: &[Column::one("book", Type::Text), Column::at("state", "status.name", Type::Text)],
    indexes: &[Index::unique_among("state", "Open", &["book"]), Index::on(&["book"])],
    ..Kind::named("loan")
};

/// The kinds on which queries are compared with their meaning.
pub(crate) static COMPARED: &[&Kind] = &[&ITEM, &SLIM, &LEAN];

/// The kinds with which most tests open a catalogue.
pub(crate) static ALL: &[&Kind] = &[&PLAIN, &ITEM, &USER, &LOAN];

fn keys(fields: &pinakes_store::Fields<'_>, into: &mut pinakes_store::Texts) {
    fields.iter().for_each(|(name, _)| into.push(name));
}
