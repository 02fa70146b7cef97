//! The kinds of records: topics, and what they were before they were edited.

use pinakes_store::{Column, Identifier, Index, Kind, Link, Text, Type};

/// Between the parts of a composed value; no part may hold it.
pub(crate) const UNIT: char = '\u{1F}';
/// Relation of the links that arcs are.
pub(crate) const POINTS: &str = "points";
/// Scheme of arc ids that do not begin with the id of their topic.
pub(crate) const ARC: &str = "conclave-arc";
/// Schemes of the three kinds of identities, with the map before the IRI.
pub(crate) const SUBJECT_IDENTIFIER: &str = "conclave-si";
/// See [`SUBJECT_IDENTIFIER`].
pub(crate) const SUBJECT_LOCATOR: &str = "conclave-sl";
/// See [`SUBJECT_IDENTIFIER`].
pub(crate) const ITEM_IDENTIFIER: &str = "conclave-ii";

/// A topic with all it owns: one record, so that a page is one read. Its id is `{map}/{id}`.
///
/// Its arcs are links: the target is `{map}/{reference}`, type, role and scope, so that who points at a topic is
/// a range of the links, whatever of the three is asked for.
pub static TOPIC: Kind = Kind {
    id_path: Some("key"),
    columns: &[
        Column::one("map", Type::Text),
        Column::one("label", Type::Folded),
        Column::one("draw", Type::Integer),
    ],
    indexes: &[Index::on(&["map", "label"]), Index::on(&["map", "draw"])],
    text: Text::At(&["label", "metadata.value", "occurrences.data"]),
    identifiers: &[
        Identifier { scheme: ARC, path: "arc_ids" },
        Identifier { scheme: SUBJECT_IDENTIFIER, path: "si" },
        Identifier { scheme: SUBJECT_LOCATOR, path: "sl" },
        Identifier { scheme: ITEM_IDENTIFIER, path: "ii" },
        Identifier { scheme: "doi", path: "subjects.doi" },
        Identifier { scheme: "orcid", path: "subjects.orcid" },
        Identifier { scheme: "pid", path: "subjects.pid" },
        Identifier { scheme: "proposal", path: "subjects.proposal" },
        Identifier { scheme: "sample", path: "subjects.sample" },
        Identifier { scheme: "isbn", path: "subjects.isbn" },
        Identifier { scheme: "issn", path: "subjects.issn" },
    ],
    links: &[Link { relation: POINTS, path: POINTS, to: "conclave_topic" }],
    ..Kind::named("conclave_topic")
};

/// End of the numbers that topics are drawn by.
pub(crate) const DRAW_END: i64 = 1 << 40;

/// The number that a topic is drawn by when one is chosen at random: it follows from its key, evenly over all numbers.
pub(crate) fn draw_of(key: &str) -> i64 {
    // Mixed once more: keys of neighbours differ in their last letters alone.
    let hash = crate::text::hash(key.as_bytes());
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    i64::try_from(mixed >> 24).unwrap_or_default()
}

/// A topic as it was before an edit. Its id is that of the topic, a unit separator and the version in ten digits.
pub static REVISION: Kind = Kind {
    id_path: Some("key"),
    columns: &[Column::one("topic", Type::Text)],
    indexes: &[Index::on(&["topic"])],
    ..Kind::named("conclave_revision")
};

/// What is said of a map itself: its reifier and item identifiers. Its id is the name of the map; most maps have none.
pub static MAP: Kind = Kind { id_path: Some("key"), ..Kind::named("conclave_map") };

/// Every kind of the dialect.
pub const KINDS: &[&Kind] = &[&TOPIC, &REVISION, &MAP];
