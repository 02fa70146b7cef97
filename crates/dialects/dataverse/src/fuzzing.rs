//! Entry points of the fuzz targets of this crate (`fuzz/`); compiled only for them and for the tests, which run them,
//! too.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::blocks::fields::Reading;
use crate::blocks::{Fields, Registry};
use crate::datasets::{ddi, jsonld};
use crate::search::query;
use crate::sword::atom;

static SHIPPED: LazyLock<Registry> = LazyLock::new(Registry::shipped);

/// Parses the parameter `q`.
pub fn search(text: &str) {
    let _ = query::parse(text, 0);
}

/// Loads a table of metadata blocks over those of a new server, and parses its own field JSON with it.
pub fn blocks(text: &str) {
    let mut registry = SHIPPED.clone();
    if registry.load(text).is_ok() {
        let title = json!({"citation": {"fields": [{"typeName": "title", "value": "T"}]}});
        let _ = Fields::read(&registry, &title, Reading::Lenient);
    }
}

/// Parses the metadata of a version as JSON and as JSON-LD.
///
/// # Panics
/// Writing the metadata and parsing it again gives a different result.
pub fn metadata(bytes: &[u8]) {
    let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Ok(fields) = Fields::read(&SHIPPED, &Value::Object(body.clone()), Reading::Declared) {
        is_kept(&fields);
    }
    if let Ok(said) = jsonld::read(&SHIPPED, &body) {
        is_kept(&said.fields);
    }
}

/// Parses a DDI codebook.
///
/// # Panics
/// Writing the codebook and parsing it again gives a different result.
pub fn codebook(bytes: &[u8]) {
    if let Ok(study) = ddi::read(&SHIPPED, bytes, |it| it.starts_with("doi:")) {
        is_kept(&study.fields);
    }
}

/// Parses an Atom entry of SWORD.
///
/// # Panics
/// Writing the entry and parsing it again gives a different result.
pub fn entry(bytes: &[u8]) {
    if let Ok((fields, _)) = atom::read(&SHIPPED, bytes, "a@example.org") {
        is_kept(&fields);
    }
}

fn is_kept(fields: &Fields) {
    assert_eq!(&Fields::stored(&SHIPPED, &fields.to_json(&SHIPPED)), fields);
}

#[cfg(test)]
mod tests;
