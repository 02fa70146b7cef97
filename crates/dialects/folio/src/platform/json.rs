//! JSON as this dialect writes it: `"id" : "…"`, a blank on both sides of the colon.
//!
//! FOLIO's modules format JSON this way, and load scripts search for the literal text `"id" :` (section 1.1 of the
//! contract). Bodies are stored in this form, so that the stored bytes can be sent.

use std::io;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// A formatter with blanks around colons and nothing else.
struct Spaced;

impl Formatter for Spaced {
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }
}

/// Serialises a value to bytes.
pub fn bytes(value: &impl Serialize) -> Bytes {
    let mut out = Vec::with_capacity(256);
    // Serialising JSON values into memory cannot fail.
    if value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)).is_err() {
        return Bytes::from_static(b"null");
    }
    out.into()
}

/// Serialises a value to text.
pub fn text(value: &Value) -> String {
    String::from_utf8_lossy(&bytes(value)).into_owned()
}

/// Returns the value at a dotted path through objects.
pub fn at<'a>(value: &'a Value, dotted: &str) -> Option<&'a Value> {
    dotted.split('.').try_fold(value, |at, step| at.get(step))
}

/// Returns the text at a dotted path.
pub fn text_at<'a>(value: &'a Value, dotted: &str) -> Option<&'a str> {
    at(value, dotted)?.as_str()
}

/// Derives an id from a name (FNV-1a, 128 bits), in the form of a UUID of version 4.
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
