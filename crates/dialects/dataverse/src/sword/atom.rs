//! The Atom entry of a deposit: its Dublin Core terms, and their conversion to fields and terms of a version.

use serde_json::{Map, Value};

use crate::blocks::{Fields, Gathered, Registry};
use crate::error::ApiError;
use crate::xml_tree::Element;

/// Dublin Core terms that become text fields; for the first two, only the first value counts.
const TEXTS: [(&str, &str); 6] = [
    ("title", "title"),
    ("date", "productionDate"),
    ("type", "kindOfData"),
    ("source", "dataSources"),
    ("relation", "relatedDatasets"),
    ("alternative", "alternativeTitle"),
];
/// Dublin Core terms that become compound values: (term, field, child).
const COMPOUNDS: [(&str, &str, &str); 5] = [
    ("description", "dsDescription", "dsDescriptionValue"),
    ("abstract", "dsDescription", "dsDescriptionValue"),
    ("publisher", "producer", "producerName"),
    ("contributor", "contributor", "contributorName"),
    ("coverage", "geographicCoverage", "otherGeographicCoverage"),
];

/// Parses an entry into the fields of a version and its terms.
///
/// Errors: 400 for invalid XML, for values that a field cannot have, and for rights together with a licence.
pub(crate) fn read(
    registry: &Registry,
    bytes: &[u8],
    email: &str,
) -> Result<(Fields, Map<String, Value>), ApiError> {
    let entry = Element::read(bytes)
        .map_err(|fault| ApiError::bad_request(format!("problem with the XML of the entry: {fault}")))?;
    read_element(registry, &entry, email)
}

/// Parses an element whose leaves are the terms; without an address no contact is added.
pub(crate) fn read_element(
    registry: &Registry,
    entry: &Element,
    email: &str,
) -> Result<(Fields, Map<String, Value>), ApiError> {
    let mut leaves = Vec::new();
    entry.leaves(&mut leaves);
    let terms: Vec<(&Element, String)> = leaves
        .into_iter()
        .map(|it| (it, it.text().trim().to_owned()))
        .filter(|it| !it.1.is_empty())
        .collect();
    let all = |name: &'static str| terms.iter().filter(move |it| it.0.name == name);
    let first = |name: &'static str| all(name).map(|it| it.1.as_str()).next();

    let mut found = Gathered::new(registry);
    for (term, field) in TEXTS {
        let is_single = registry.field(field).is_some_and(|it| !it.is_multiple);
        all(term).take(if is_single { 1 } else { usize::MAX }).for_each(|it| found.text(field, &it.1));
    }
    for (term, field, child) in COMPOUNDS {
        all(term).for_each(|it| found.compound(field, &[(child, &it.1)]));
    }
    for (it, name) in all("creator") {
        let affiliation = it.attribute("affiliation");
        found.compound("author", &[("authorName", name), ("authorAffiliation", affiliation)]);
    }
    found.compound("datasetContact", &[("datasetContactEmail", email)]);
    for (_, text) in all("subject") {
        match found.is_term("subject", text) {
            true => found.text("subject", text),
            false => found.compound("keyword", &[("keywordValue", text)]),
        }
    }
    for (it, citation) in all("isReferencedBy") {
        found.compound(
            "publication",
            &[
                ("publicationCitation", citation),
                ("publicationIDType", it.attribute("agency")),
                ("publicationIDNumber", it.attribute("IDNo")),
                ("publicationURL", it.attribute("holdingsURI")),
            ],
        );
    }
    let terms = match (first("license"), first("rights")) {
        (Some(_), Some(_)) => {
            let message = "Rights (Terms of Use) can not be specified together with a license.";
            return Err(ApiError::bad_request(message));
        }
        (Some(license), None) => Map::from_iter([("license".to_owned(), license.into())]),
        (None, Some(rights)) => Map::from_iter([("termsOfUse".to_owned(), rights.into())]),
        (None, None) => Map::new(),
    };
    Ok((found.into_fields().map_err(ApiError::bad_request)?, terms))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::blocks::fields::Metadata;

    fn entry(terms: &str) -> Result<(Value, Map<String, Value>), String> {
        let registry = Registry::shipped();
        let text = format!(
            "<entry xmlns='http://www.w3.org/2005/Atom' xmlns:dcterms='http://purl.org/dc/terms/'>{terms}</entry>"
        );
        let read = read(&registry, text.as_bytes(), "fiona@example.org").map_err(|error| error.message)?;
        Ok((read.0.to_json(&registry), read.1))
    }

    #[test]
    fn terms_become_fields() {
        let (blocks, rights) = entry(
            "<dcterms:title>Tides &amp; mar&#233;es</dcterms:title><dcterms:title>second</dcterms:title>\
             <dcterms:creator affiliation='Birds &amp; Co.'>Finch, Fiona</dcterms:creator>\
             <dcterms:subject>Law</dcterms:subject><dcterms:subject>tides</dcterms:subject>\
             <dcterms:abstract>a</dcterms:abstract><dcterms:description>d</dcterms:description>\
             <dcterms:isReferencedBy agency='ARXIV' IDNo='7'>cited</dcterms:isReferencedBy>\
             <dcterms:type>one</dcterms:type><dcterms:type>two</dcterms:type><dcterms:rights>ask</dcterms:rights>",
        )
        .unwrap();
        let metadata = Metadata(&blocks);
        assert_eq!(metadata.one("title"), Some("Tides & mar\u{e9}es"));
        assert_eq!(metadata.children("author", "authorAffiliation"), ["Birds & Co."]);
        assert_eq!(metadata.many("subject"), ["Law"]);
        assert_eq!(metadata.children("keyword", "keywordValue"), ["tides"]);
        assert_eq!(metadata.children("dsDescription", "dsDescriptionValue"), ["d", "a"]);
        assert_eq!(metadata.children("publication", "publicationIDType"), ["arXiv"]);
        assert_eq!(metadata.many("kindOfData"), ["one", "two"]);
        assert_eq!(metadata.children("datasetContact", "datasetContactEmail"), ["fiona@example.org"]);
        assert_eq!(json!(rights), json!({"termsOfUse": "ask"}));
    }

    #[test]
    fn wrong_entries_are_refused() {
        for (terms, part) in [
            ("<dcterms:title>", "XML of the entry"),
            (
                "<dcterms:license>CC0 1.0</dcterms:license><dcterms:rights>ask</dcterms:rights>",
                "together with",
            ),
            ("<dcterms:isReferencedBy agency='none'>x</dcterms:isReferencedBy>", "'none' does not exist"),
        ] {
            let fault = entry(terms).unwrap_err();
            assert!(fault.contains(part), "{terms}: {fault}");
        }
    }
}
