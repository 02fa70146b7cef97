//! The kinds of records: topics and their revisions.

use pinakes_store::{Column, Identifier, Index, Kind, Link, Search, Text, Type};

/// Separates the parts of a composed value; no part may contain it.
pub(crate) const UNIT: char = '\u{1F}';
/// Relation of the links that arcs produce.
pub(crate) const POINTS: &str = "points";
/// Relation of the links that the arcs of topics with a timestamp produce in addition ([`crate::dated`]).
pub(crate) const DATED: &str = "dated";
/// Scheme of arc ids that do not begin with the id of their topic.
pub(crate) const ARC: &str = "conclave-arc";
/// Schemes of the three kinds of identities; the value is the map and the IRI.
pub(crate) const SUBJECT_IDENTIFIER: &str = "conclave-si";
/// See [`SUBJECT_IDENTIFIER`].
pub(crate) const SUBJECT_LOCATOR: &str = "conclave-sl";
/// See [`SUBJECT_IDENTIFIER`].
pub(crate) const ITEM_IDENTIFIER: &str = "conclave-ii";

/// A topic with all its members: one record, so that a page is one read. Its id is `{map}/{id}`.
///
/// Its arcs are links whose target is `{map}/{reference}`, type, role and scope, so that the topics pointing at a topic
/// are a range of the links, whichever of the three a request filters by.
pub static TOPIC: Kind = Kind {
    id_path: Some("key"),
    columns: &[
        Column::one("map", Type::Text),
        Column::one("label", Type::Folded),
        Column::one("draw", Type::Integer),
    ],
    indexes: &[Index::on(&["map", "label"]), Index::on(&["map", "draw"])],
    text: Text::At(&["label", "metadata.value", "occurrences.data"]),
    search: Search::Declared,
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
    links: &[
        Link { relation: POINTS, path: POINTS, to: "conclave_topic" },
        Link { relation: DATED, path: DATED, to: "conclave_topic" },
    ],
    ..Kind::named("conclave_topic")
};

/// Exclusive upper bound of the numbers by which topics are drawn.
pub(crate) const DRAW_END: i64 = 1 << 40;

/// Returns the number by which a topic is drawn at random. It is derived from the key and evenly distributed.
pub(crate) fn draw_of(key: &str) -> i64 {
    // A second mixing step, since neighbouring keys differ only in their last characters.
    let hash = crate::text::hash(key.as_bytes());
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    i64::try_from(mixed >> 24).unwrap_or_default()
}

/// A topic as it was before an edit. Its id is that of the topic, a unit separator, the sequence in 16 digits, a dash and
/// the version.
pub static REVISION: Kind = Kind {
    id_path: Some("key"),
    columns: &[Column::one("topic", Type::Text)],
    indexes: &[Index::on(&["topic"])],
    ..Kind::named("conclave_revision")
};

/// Statements about a map itself: its reifier and item identifiers. Its id is the name of the map; most maps have no
/// such record.
pub static MAP: Kind = Kind { id_path: Some("key"), ..Kind::named("conclave_map") };

/// Every kind of the dialect.
pub const KINDS: &[&Kind] = &[&TOPIC, &REVISION, &MAP];
