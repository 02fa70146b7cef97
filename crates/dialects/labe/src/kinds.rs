//! The dialect's kind of record.

use pinakes_store::{Identifier, Kind};

/// A catalogue document, by its local id. Its body is an envelope, see `envelope.rs`: the text that is sent,
/// and the members that are queried without reading the text.
///
/// Institutions are the class: the few distinct lists are stored once, so that a filter looks at a list, not at
/// a body.
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
/// Scheme of the authors of a work: `orcid:0000-…`, `omid:ra/06…`.
pub(crate) const AUTHOR_SCHEME: &str = "labe-author";
/// Scheme of the editors of a work, in the same form.
pub(crate) const EDITOR_SCHEME: &str = "labe-editor";

/// Scheme of other identifiers of works: `isbn:978…`, `openalex:w…`, `pmcid:pmc…`.
pub(crate) const WORK_SCHEME: &str = "labe-work";

/// Every kind of the dialect.
pub static KINDS: &[&Kind] = &[&DOCUMENT];
