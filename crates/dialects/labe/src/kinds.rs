//! The dialect's kind of record.

use pinakes_store::{Identifier, Kind};

/// A catalogue document by its local id. Its body is an envelope, see `envelope.rs`: the text to be sent, and
/// beside it what is looked up without reading the text.
///
/// Institutions are the class: the few different lists are kept once, so that a filter asks a list, not a body.
pub static DOCUMENT: Kind = Kind {
    class_fields: &["institution"],
    identifiers: &[Identifier { scheme: "doi", path: "doi" }],
    ..Kind::named("labe_document")
};

/// Every kind of the dialect.
pub static KINDS: &[&Kind] = &[&DOCUMENT];
