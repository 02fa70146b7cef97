//! What the fuzz targets of this crate (`fuzz/`) may call; in no build but theirs and that of the tests, which run them too.

use pinakes_marc::{Encoding, Format, parse, records};

use crate::circulation::rules::{Facts, Rules as CirculationRules};
use crate::data_import::mapping::{Reference, Rules, authority, holdings, instance};

/// Reads a text of circulation rules and asks it about a loan of unknown things.
pub fn circulation_rules(text: &str) {
    if let Ok(rules) = CirculationRules::parse(text) {
        let _ = rules.best(&Facts::default());
    }
}

/// Reads mapping rules and makes all that they can make of each record of a file in ISO 2709.
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

#[cfg(test)]
mod tests;
