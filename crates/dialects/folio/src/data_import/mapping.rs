//! From MARC to records: FOLIO's mapping rules as data, and their interpreter (section 7 of the contract).
//!
//! The default rules lie in `data/mapping/*.json`, in the format in which `GET /mapping-rules/{type}` gives them.
//! [`Rules`] is such a document, checked; [`map`] turns a MARC record into the properties of an instance, an
//! authority or a holdings record. Names that the rules look up (types, locations) come from a [`Reference`].

mod authority;
mod evaluate;
mod fields;
mod functions;
mod holdings;
mod instance;
mod reference;
pub(crate) mod routes;
mod rules;

pub(crate) use authority::{add_related, authority};
pub(crate) use evaluate::map;
pub(crate) use holdings::holdings;
pub(crate) use instance::instance;
pub(crate) use reference::{Reference, TABLES};
pub(crate) use rules::{RuleSet, Rules};

/// Kinds of this part.
pub(crate) static KINDS: [&pinakes_store::Kind; 1] = [&crate::data_import::mapping::stored::MAPPING_RULES];

pub(crate) mod stored;
#[cfg(test)]
mod tests;
