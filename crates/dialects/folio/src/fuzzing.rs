//! Entry points for the fuzz targets of this crate (`fuzz/`); compiled only for them and for the tests, which run them
//! too.

use pinakes_marc::{Encoding, Format, parse, records};

use crate::circulation::rules::{Facts, Rules as CirculationRules};
use crate::data_import::mapping::{Reference, Rules, authority, holdings, instance};
use crate::source_records::source_storage::expression;

/// Parses a text of circulation rules and applies it to a loan with unknown ids.
pub fn circulation_rules(text: &str) {
    if let Ok(rules) = CirculationRules::parse(text) {
        let _ = rules.best(&Facts::default());
    }
}

/// Parses mapping rules and applies all of them to each record of a file in ISO 2709.
pub fn mapping_rules(text: &str, file: &[u8]) {
    let Ok(rules) = Rules::parse(text) else { return };
    let reference = Reference::default();
    for raw in records(Format::Iso2709, file) {
        if let Some(record) = parse(Format::Iso2709, Encoding::Leader, raw).record {
            let _ = instance(&rules, &record, &reference);
            let _ = holdings(&rules, &record, &reference);
            let _ = authority(&rules, &record, &reference, &[]);
        }
    }
}

/// Parses a text as expressions that search MARC records, and evaluates them on a record in JSON.
pub fn marc_expressions(text: &str, record: &str) {
    let Ok(record) = serde_json::from_str(record) else { return };
    expression::try_on(text, &record);
}

#[cfg(test)]
mod tests;
