//! The dialect's kind of record.

use pinakes_store::{Identifier, Kind};

/// A catalogue document by its local id. Its body is an envelope, see `envelope.rs`: the text to be sent, and
/// beside it what is looked up without reading the text.
///
/// Institutions are the class: the few different lists are kept once, so that a filter asks a list, not a body.
pub static DOCUMENT: Kind = Kind {
    class_fields: &["institution"],
    identifiers: &[
        Identifier { scheme: "doi", path: "doi" },
        Identifier { scheme: "doi", path: "exact_doi" },
        Identifier { scheme: ISSN_SCHEME, path: "issn" },
        Identifier { scheme: AUTHOR_SCHEME, path: "author_ids" },
        Identifier { scheme: EDITOR_SCHEME, path: "editor_ids" },
        Identifier { scheme: WORK_SCHEME, path: "work_ids" },
    ],
    ..Kind::named("labe_document")
};

/// Scheme of the venues that documents name.
pub(crate) const ISSN_SCHEME: &str = "issn";
/// Scheme of the persons who wrote a work: `orcid:0000-…`, `omid:ra/06…`.
pub(crate) const AUTHOR_SCHEME: &str = "labe-author";
/// Scheme of the persons who edited a work, likewise.
pub(crate) const EDITOR_SCHEME: &str = "labe-editor";

/// Scheme of what else works are called: `isbn:978…`, `openalex:w…`, `pmcid:pmc…`.
pub(crate) const WORK_SCHEME: &str = "labe-work";

/// Every kind of the dialect.
pub static KINDS: &[&Kind] = &[&DOCUMENT];
