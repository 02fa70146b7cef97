//! The Atom entry of a deposit: its Dublin Core terms, and what they are as fields of a version.

use serde_json::{Value, json};

use crate::blocks::Registry;
use crate::error::ApiError;
use crate::xml_tree::Element;

/// The Dublin Core terms of an Atom entry: (term, text, attributes).
pub(crate) type Terms = Vec<Term>;
pub(crate) type Term = (String, String, Vec<(String, String)>);

/// Errors: 400 for what is no XML.
pub(crate) fn terms(bytes: &[u8]) -> Result<Terms, ApiError> {
    let entry = Element::read(bytes)
        .map_err(|fault| ApiError::bad_request(format!("problem with the XML of the entry: {fault}")))?;
    let mut list = Vec::new();
    entry.walk(&mut |it| {
        if it.children.is_empty() && !it.text.trim().is_empty() {
            list.push((it.name.clone(), it.text.clone(), it.attributes.clone()));
        }
    });
    Ok(list)
}

/// What an entry says, as the fields of a version and its terms.
pub(crate) fn fields(terms: &Terms, email: &str) -> Result<(Value, Value), ApiError> {
    let all = |name: &'static str| terms.iter().filter(move |it| it.0 == name);
    let texts = |name: &'static str| -> Vec<&str> { all(name).map(|it| it.1.trim()).collect() };
    let one = |name: &str, value: &str| json!({"typeName": name, "value": value});
    let child = |pairs: &[(&str, &str)]| -> Value {
        let kept = pairs.iter().filter(|it| !it.1.is_empty());
        kept.map(|(name, value)| ((*name).to_owned(), one(name, value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let mut list = Vec::new();
    if let Some(title) = texts("title").first() {
        list.push(one("title", title));
    }
    let mut compound = |name: &str, values: Vec<Value>| {
        if !values.is_empty() {
            list.push(json!({"typeName": name, "value": values}));
        }
    };
    let attribute = |it: &(String, String, Vec<(String, String)>), name: &str| {
        it.2.iter().find(|(key, _)| key == name).map(|it| it.1.clone()).unwrap_or_default()
    };
    let authors = all("creator").map(|it| {
        child(&[("authorName", it.1.trim()), ("authorAffiliation", &attribute(it, "affiliation"))])
    });
    compound("author", authors.collect());
    compound("datasetContact", vec![child(&[("datasetContactEmail", email)])]);
    compound(
        "dsDescription",
        texts("description")
            .iter()
            .chain(&texts("abstract"))
            .map(|it| child(&[("dsDescriptionValue", it)]))
            .collect(),
    );
    let vocabulary = Registry::shipped();
    let is_subject = |text: &str| vocabulary.field("subject").is_some_and(|it| it.term(text).is_some());
    let subjects: Vec<&str> = texts("subject").into_iter().filter(|it| is_subject(it)).collect();
    compound(
        "keyword",
        texts("subject")
            .iter()
            .filter(|it| !is_subject(it))
            .map(|it| child(&[("keywordValue", it)]))
            .collect(),
    );
    compound("producer", texts("publisher").iter().map(|it| child(&[("producerName", it)])).collect());
    compound(
        "contributor",
        texts("contributor").iter().map(|it| child(&[("contributorName", it)])).collect(),
    );
    compound(
        "publication",
        all("isReferencedBy")
            .map(|it| {
                child(&[
                    ("publicationCitation", it.1.trim()),
                    ("publicationIDType", &attribute(it, "agency").to_lowercase()),
                    ("publicationIDNumber", &attribute(it, "IDNo")),
                    ("publicationURL", &attribute(it, "holdingsURI")),
                ])
            })
            .collect(),
    );
    compound(
        "geographicCoverage",
        texts("coverage").iter().map(|it| child(&[("otherGeographicCoverage", it)])).collect(),
    );
    list.push(json!({"typeName": "subject", "value": if subjects.is_empty() { vec!["N/A"] } else { subjects.clone() }}));
    if subjects.is_empty() {
        list.pop();
    }
    if let Some(date) = texts("date").first() {
        list.push(one("productionDate", date));
    }
    for (term, field) in [
        ("type", "kindOfData"),
        ("source", "dataSources"),
        ("relation", "relatedDatasets"),
        ("alternative", "alternativeTitle"),
    ] {
        let values = texts(term);
        if !values.is_empty() {
            list.push(json!({"typeName": field, "value": values}));
        }
    }
    let (license, rights) = (texts("license"), texts("rights"));
    let terms = match (license.first(), rights.first()) {
        (Some(license), None) => json!({"license": license}),
        (Some(license), Some(_)) if !license.is_empty() => {
            return Err(ApiError::bad_request(
                "Rights (Terms of Use) can not be specified together with a license.",
            ));
        }
        (_, Some(rights)) => json!({"termsOfUse": rights}),
        _ => json!({}),
    };
    Ok((json!({"fields": list}), terms))
}
