//! Mapping MARC to records: FOLIO's mapping rules as data, and their interpreter (section 7 of the contract).
//!
//! The default rules are in `data/mapping/*.json`, in the format of `GET /mapping-rules/{type}`. [`Rules`] is a
//! validated document of this format; [`map`] turns a MARC record into the properties of an instance, an authority or a
//! holdings record. Names that the rules look up (types, locations) come from a [`Reference`].

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

/// The kinds of this module.
pub(crate) static KINDS: [&pinakes_store::Kind; 1] = [&crate::data_import::mapping::stored::MAPPING_RULES];

pub(crate) mod stored;
#[cfg(test)]
mod tests;
