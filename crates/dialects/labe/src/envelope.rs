//! A catalogue document as stored: `{"text":"…","institution":[…],"doi":"…","spelled":"…"}`.
//!
//! The store keeps bodies as parsed JSON, which would change long numbers, duplicate keys and escapes of a document
//! that must be sent exactly as it was received. So the document's text, compacted and escaped, is a string of the
//! body, the first one; extracting it is a copy that drops backslashes. The other members are what is queried without
//! reading the text: institutions (the record's class), the normalised DOI (an identifier), and the DOI's spelling if
//! that differs; ISSNs, the identifiers of authors and editors, and other identifiers of the work, if it has any.

use pinakes_citations::Doi;
use serde_json::{Map, Value};

use crate::doi::exact_of;

/// Start of every body that has a text.
const BEFORE_TEXT: &[u8] = b"{\"text\":\"";

/// Builds the body of a document.
pub(crate) fn body(text: String, document: &Map<String, Value>) -> Value {
    let mut body = Map::new();
    body.insert("text".to_owned(), Value::String(text));
    if let Some(institution) = institution(document) {
        body.insert("institution".to_owned(), institution.clone());
    }
    if let Some((doi, spelled)) = first_doi(document) {
        if doi.as_str() != spelled {
            body.insert("spelled".to_owned(), Value::from(spelled));
        }
        body.insert("doi".to_owned(), Value::from(doi.as_str()));
        // Trailing punctuation may be part of the DOI.
        if let Some(exact) = exact_of(spelled).filter(|it| it != doi.as_str()) {
            body.insert("exact_doi".to_owned(), Value::from(exact));
        }
    }
    let of_venue = texts(document, "venue").flat_map(bracketed).filter_map(|it| it.strip_prefix("issn:"));
    let mut issns: Vec<String> = texts(document, "issn").chain(of_venue).filter_map(issn).collect();
    issns.dedup();
    let persons = |field| texts(document, field).flat_map(person_ids).map(str::to_lowercase).collect();
    for (name, found) in [
        ("issn", issns),
        ("author_ids", persons("author")),
        ("editor_ids", persons("editor")),
        ("work_ids", work_ids(document)),
    ] {
        if !found.is_empty() {
            body.insert(name.to_owned(), Value::from(found));
        }
    }
    Value::Object(body)
}

/// Returns the list of institutions; the key may be in any case, and the last one counts; `null` means no institution.
fn institution(document: &Map<String, Value>) -> Option<&Value> {
    let found = document.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case("institution"));
    found.map(|(_, value)| value).filter(|value| !value.is_null())
}

/// Returns the first DOI of `doi_str_mv`, a list or a string, and its spelling there.
fn first_doi(document: &Map<String, Value>) -> Option<(Doi, &str)> {
    let listed = texts(document, "doi_str_mv").map(str::trim);
    let dumped = tokens(document).filter_map(|it| it.strip_prefix("doi:"));
    listed.chain(dumped).find_map(|text| Some((Doi::parse_dirty(text).ok()?, text)))
}

/// Returns the identifiers of a row of the Meta dump: `omid:br/… doi:… isbn:…` in the field `id`.
fn tokens(document: &Map<String, Value>) -> impl Iterator<Item = &str> {
    texts(document, "id").flat_map(str::split_ascii_whitespace).filter(|it| it.contains(':'))
}

/// Returns the other identifiers of a work: `isbn:9780306406157`, `openalex:w2741809807`, `pmcid:pmc5334499`.
pub(crate) fn work_ids(document: &Map<String, Value>) -> Vec<String> {
    let fields = [("isbn", "isbn"), ("openalex", "openalex"), ("pmcid", "pmcid")];
    let of_fields = fields
        .into_iter()
        .flat_map(|(field, scheme)| texts(document, field).filter_map(move |it| work_id(scheme, it)));
    let dumped = tokens(document).filter_map(|it| {
        let (scheme, value) = it.split_once(':')?;
        work_id(scheme, value)
    });
    let mut found: Vec<String> = Vec::new();
    for id in of_fields.chain(dumped) {
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

/// Normalises an identifier for comparison: ISBNs to 13 digits, letters to lower case; `None` for an unknown scheme or
/// an invalid value.
pub(crate) fn work_id(scheme: &str, value: &str) -> Option<String> {
    let value = value.trim().to_lowercase();
    let digits_behind = |prefix: &str| {
        let digits = value.strip_prefix(prefix)?;
        let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
        is_number.then_some(digits)
    };
    match scheme {
        "isbn" => isbn_13(&value).map(|it| format!("isbn:{it}")),
        "openalex" => {
            let bare = value.rsplit('/').next().unwrap_or_default();
            let is_id = bare.len() > 1 && bare[1..].bytes().all(|it| it.is_ascii_digit());
            (bare.starts_with('w') && is_id).then(|| format!("openalex:{bare}"))
        }
        "pmcid" => {
            let digits = digits_behind("pmc").or_else(|| digits_behind(""))?;
            Some(format!("pmcid:pmc{digits}"))
        }
        _ => None,
    }
}

/// Returns an ISBN's 13 digits; an ISBN of ten digits gets the prefix 978 and its check digit (ISO 2108).
fn isbn_13(text: &str) -> Option<String> {
    let bare: String = text.chars().filter(|it| !matches!(it, '-' | ' ')).collect();
    // VuFind appends notes: `9780306406157 (pbk.)`.
    let bare = bare.split(|it: char| !it.is_ascii_digit() && it != 'x').next().unwrap_or_default();
    let is_digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    match bare.len() {
        13 if is_digits(bare) => Some(bare.to_owned()),
        10 if is_digits(&bare[..9]) => {
            let stem = format!("978{}", &bare[..9]);
            let weighted = stem.bytes().zip([1, 3].into_iter().cycle());
            let sum: u32 = weighted.map(|(digit, weight)| u32::from(digit - b'0') * weight).sum();
            Some(format!("{stem}{}", (10 - sum % 10) % 10))
        }
        _ => None,
    }
}

/// Returns the words in the last brackets of a text: `Title [issn:… omid:br/…]`.
fn bracketed(text: &str) -> impl Iterator<Item = &str> {
    let within = text.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(ids, _)| ids);
    within.split_ascii_whitespace()
}

/// Returns the strings of a field, which is a list or a single string.
pub(crate) fn texts<'a>(document: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a str> {
    let values = match document.get(name) {
        Some(Value::Array(list)) => list.as_slice(),
        Some(single) => std::slice::from_ref(single),
        None => &[],
    };
    values.iter().filter_map(Value::as_str)
}

/// Normalises an ISSN to `1234-567X`; `None` if the text is not an ISSN.
pub(crate) fn issn(text: &str) -> Option<String> {
    let letters: String = text.trim().to_uppercase().chars().filter(|it| *it != '-').collect();
    let is_issn = letters.len() == 8
        && letters.bytes().take(7).all(|it| it.is_ascii_digit())
        && letters.bytes().skip(7).all(|it| it.is_ascii_digit() || it == b'X');
    is_issn.then(|| format!("{}-{}", &letters[..4], &letters[4..]))
}

/// Returns the identifiers of persons that OpenCitations writes after their names: `Family, Given [orcid:… omid:ra/…];
/// …`.
fn person_ids(text: &str) -> impl Iterator<Item = &str> {
    let ids = text.split("; ").flat_map(bracketed);
    ids.filter(|it| it.starts_with("orcid:") || it.starts_with("omid:ra/"))
}

/// Appends the text of a stored body; returns `false` and appends nothing if it has none.
pub(crate) fn push_text(body: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(mut rest) = body.strip_prefix(BEFORE_TEXT) else { return false };
    let start = out.len();
    out.reserve(rest.len());
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        if rest[at] == b'"' {
            return true;
        }
        // A compacted text contains quotes and backslashes to escape, but no control characters.
        let Some(&escaped) = rest.get(at + 1).filter(|it| matches!(it, b'"' | b'\\')) else { break };
        out.push(escaped);
        rest = &rest[at + 2..];
    }
    out.truncate(start);
    false
}

/// Returns the DOI of a stored body in normalised form and in its spelling.
pub(crate) fn doi_of(body: &Value) -> Option<(String, String)> {
    let doi = body.get("doi")?.as_str()?;
    let spelled = body.get("spelled").and_then(Value::as_str).unwrap_or(doi);
    Some((doi.to_owned(), spelled.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(document: &Value) -> (String, Vec<u8>, Value) {
        let text = crate::json_text::compact(document.to_string().as_bytes()).unwrap_or_default();
        let body = body(text.clone(), document.as_object().unwrap_or(&Map::new()));
        (text, serde_json::to_vec(&body).unwrap_or_default(), body)
    }

    #[test]
    fn what_is_asked_stands_beside() {
        let document =
            serde_json::json!({"INSTITUTION": ["DE-14"], "doi_str_mv": ["no", " 10.1/A "], "id": "x"});
        let (_, _, body) = stored(&document);
        assert_eq!(body["institution"], serde_json::json!(["DE-14"]));
        assert_eq!(doi_of(&body), Some(("10.1/a".to_owned(), "10.1/A".to_owned())));
        assert_eq!(doi_of(&stored(&serde_json::json!({"doi_str_mv": []})).2), None);
        let document = serde_json::json!({
            "issn": ["0138-9130", "1588286x", "no", 7],
            "author": ["Peroni, Silvio [orcid:0000-0003-0530-4305 omid:ra/0612046435]", "Nobody", "X [y"],
            "editor": "Shotton, David [omid:ra/0621010775]",
        });
        let (_, _, body) = stored(&document);
        assert_eq!(body["issn"], serde_json::json!(["0138-9130", "1588-286X"]));
        assert_eq!(
            body["author_ids"],
            serde_json::json!(["orcid:0000-0003-0530-4305", "omid:ra/0612046435"])
        );
        assert_eq!(body["editor_ids"], serde_json::json!(["omid:ra/0621010775"]));
    }

    proptest! {
        #[test]
        fn the_text_comes_back(value in "\\PC{0,30}[\"\\\\\n<]{0,4}") {
            let (text, body, _) = stored(&serde_json::json!({"title": value}));
            let mut out = b"x".to_vec();
            prop_assert!(push_text(&body, &mut out));
            prop_assert_eq!(&out[1..], text.as_bytes());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let body = [BEFORE_TEXT, &bytes].concat();
            let _ = push_text(&body, &mut Vec::new());
            prop_assert!(!push_text(&bytes, &mut Vec::new()) || bytes.starts_with(BEFORE_TEXT));
        }
    }
}
