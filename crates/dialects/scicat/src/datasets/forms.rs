//! The forms in which versions 3 and 4 of the API show a dataset, and the form in which it is stored.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Map, Value};

use crate::fullquery::Search;
use crate::kinds::DATASET;

/// How datasets are searched.
pub(crate) static SEARCH: Search =
    Search { kind: &DATASET, quantities: "scientificMetadata", quantity_key: "scientific" };

/// The scalars of v3 and the lists whose first elements they show.
pub(crate) const SCALARS: [(&str, &str); 5] = [
    ("proposalId", "proposalIds"),
    ("sampleId", "sampleIds"),
    ("instrumentId", "instrumentIds"),
    ("principalInvestigator", "principalInvestigators"),
    ("investigator", "principalInvestigators"),
];

/// Start of the part that only v3 shows. No JSON string can contain it, as its quotes would be escaped there.
pub(crate) const CORE_END: &[u8] = br#","__v":"#;

/// Turns the scalars of a v3 body into the lists that are stored. A scalar that was not sent leaves an empty list.
pub(crate) fn scalars_to_lists(body: &mut Map<String, Value>) {
    for (scalar, list) in SCALARS {
        match body.shift_remove(scalar) {
            Some(Value::Null) | None => {}
            Some(value) => {
                body.insert(list.to_owned(), Value::Array(vec![value]));
            }
        }
    }
}

/// Moves the last members of a stored body to its end: `__v`, then the scalars of v3.
pub(crate) fn seal(body: &mut Map<String, Value>) {
    let version = body.shift_remove("__v").unwrap_or_else(|| Value::from(0));
    for (scalar, _) in SCALARS {
        body.shift_remove(scalar);
    }
    body.insert("__v".to_owned(), version);
    let is_raw = body.get("type").and_then(Value::as_str) == Some("raw");
    for (scalar, list) in SCALARS {
        // Raw datasets have no `investigator`, only a principal one.
        if is_raw && scalar == "investigator" {
            continue;
        }
        let first = body.get(list).and_then(Value::as_array).and_then(|it| it.first());
        if let Some(first @ Value::String(_)) = first {
            let first = first.clone();
            body.insert(scalar.to_owned(), first);
        }
    }
}

/// Returns a stored body as v4 shows it.
pub(crate) fn v4_bytes(body: &Bytes) -> Bytes {
    let Some(at) = memchr::memmem::rfind(body, CORE_END) else { return body.clone() };
    let after = &body[at + CORE_END.len()..];
    let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let end = at + CORE_END.len() + digits;
    if body.get(end) == Some(&b'}') {
        return body.clone();
    }
    let mut core = BytesMut::with_capacity(end + 1);
    core.put_slice(&body[..end]);
    core.put_u8(b'}');
    core.freeze()
}

/// Returns a stored body as v3's read by pid shows it.
pub(crate) fn with_history(body: &Bytes) -> Bytes {
    const HISTORY: &[u8] = br#","history":[]}"#;
    let end = body.len().saturating_sub(1);
    let mut whole = BytesMut::with_capacity(end + HISTORY.len());
    whole.put_slice(&body[..end]);
    whole.put_slice(HISTORY);
    whole.freeze()
}

/// The version of the API that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    V3,
    V4,
}

impl Api {
    /// Returns the `version` that is set in a dataset created through this version of the API.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::V3 => "3",
            Self::V4 => "4",
        }
    }

    /// Returns a stored body as this version shows it in lists.
    pub(crate) fn bytes(self, body: &Bytes) -> Bytes {
        match self {
            Self::V3 => body.clone(),
            Self::V4 => v4_bytes(body),
        }
    }
}
