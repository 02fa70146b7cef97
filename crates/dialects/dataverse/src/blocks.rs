//! Metadata blocks: the fields of datasets, and how they are parsed, checked, changed and written.
//!
//! This code does no storage. [`Registry`] holds the definitions, read from the tables that Dataverse publishes
//! ([`tsv`]); [`Fields`] holds the values of one version; [`mod@validate`] finds what is missing or wrong; [`edit`]
//! implements changes to single fields.

pub mod definition;
pub mod edit;
pub mod fields;
mod gathered;
pub mod registry;
pub mod show;
pub mod tsv;
pub mod validate;

pub use definition::{Block, FieldKind, FieldType, Term};
pub use fields::{Content, Field, Fields};
pub(crate) use gathered::Gathered;
pub use registry::Registry;
pub use validate::{Fault, Levels, validate, validation_message};

/// The blocks of a new server, in the order in which they are loaded: (file, table).
pub const SHIPPED: [(&str, &str); 7] = [
    ("citation", include_str!("../data/metadatablocks/citation.tsv")),
    ("geospatial", include_str!("../data/metadatablocks/geospatial.tsv")),
    ("social_science", include_str!("../data/metadatablocks/social_science.tsv")),
    ("astrophysics", include_str!("../data/metadatablocks/astrophysics.tsv")),
    ("biomedical", include_str!("../data/metadatablocks/biomedical.tsv")),
    ("journals", include_str!("../data/metadatablocks/journals.tsv")),
    ("3d_objects", include_str!("../data/metadatablocks/3d_objects.tsv")),
];
