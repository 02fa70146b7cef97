//! JSON as this dialect writes it: `"id" : "…"`, a blank on both sides of the colon.
//!
//! FOLIO's modules print so, and load scripts look for the very text `"id" :` (section 1.1 of the contract). It is
//! the form in which bodies are stored, so that what is stored can be sent.

use std::io;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Blanks around colons, nothing else.
struct Spaced;

impl Formatter for Spaced {
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }
}

/// The bytes of a value.
pub fn bytes(value: &impl Serialize) -> Bytes {
    let mut out = Vec::with_capacity(256);
    // Writing JSON values into memory does not fail.
    if value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)).is_err() {
        return Bytes::from_static(b"null");
    }
    out.into()
}

/// The text of a value.
pub fn text(value: &Value) -> String {
    String::from_utf8_lossy(&bytes(value)).into_owned()
}

/// The value at a dotted path, objects only.
pub fn at<'a>(value: &'a Value, dotted: &str) -> Option<&'a Value> {
    dotted.split('.').try_fold(value, |at, step| at.get(step))
}

/// The text at a dotted path.
pub fn text_at<'a>(value: &'a Value, dotted: &str) -> Option<&'a str> {
    at(value, dotted)?.as_str()
}

/// An id that follows from a name (FNV-1a, 128 bits), in the form of a UUID of version 4.
pub(crate) fn id_of_name(text: &str) -> String {
    let hash = text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    uuid::Builder::from_random_bytes(hash.to_be_bytes()).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn colons_stand_between_blanks() {
        let value = json!({"id": "x", "list": [1, {"a:b": null}], "none": []});
        assert_eq!(text(&value), r#"{"id" : "x","list" : [1,{"a:b" : null}],"none" : []}"#);
    }
}
