//! Registers DOIs at DataCite, through its REST API: `PUT {register_doi_uri}/{doi}` creates or changes one. Without an
//! address in the settings nothing is sent.

use std::time::Duration;

use base64::Engine as _;
use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::documents::text;
use crate::error::ScicatError;
use crate::outgoing::Outgoing;
use crate::settings::Settings;

/// Media type of JSON:API.
const JSON_API: &str = "application/vnd.api+json";
/// Maximum length of the suffix of a DOI, in bytes.
const MAX_SUFFIX_BYTES: usize = 200;
/// Characters that are escaped when a DOI is part of a path.
const IN_PATH: &percent_encoding::AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// Says whether the site registers DOIs.
pub(super) fn is_configured(settings: &Settings) -> bool {
    !settings.register_doi_uri.is_empty()
}

/// Makes the DOI of a publication findable with its metadata, or updates DataCite's copy of the metadata.
///
/// Errors: 502 in shape E1 with DataCite's message.
pub(super) async fn register(
    settings: &Settings,
    publication: &Map<String, Value>,
) -> Result<(), ScicatError> {
    if !is_configured(settings) {
        return Ok(());
    }
    require_own_prefix(settings, text(publication, "doi"))?;
    let doi = utf8_percent_encode(text(publication, "doi"), IN_PATH);
    let credentials = format!("{}:{}", settings.doi_username, settings.doi_password.reveal());
    let credentials = base64::engine::general_purpose::STANDARD.encode(credentials);
    let request = Outgoing {
        method: Method::PUT,
        url: format!("{}/{doi}", settings.register_doi_uri.trim_end_matches('/')),
        headers: vec![
            ("content-type".to_owned(), JSON_API.to_owned()),
            ("accept".to_owned(), JSON_API.to_owned()),
            ("authorization".to_owned(), format!("Basic {credentials}")),
        ],
        body: body(settings, publication).to_string(),
    };
    request.send(Duration::from_millis(settings.outgoing_timeout_ms)).await.map_err(|error| {
        tracing::warn!(%error, doi = text(publication, "doi"), "DOI not registered");
        ScicatError::with(StatusCode::BAD_GATEWAY, format!("The DOI could not be registered: {error}"))
    })
}

/// Refuses a DOI that is not the site's own: its prefix, one slash, and a suffix of letters, digits and `-._;()`, as
/// DataCite recommends. Other DOIs would be registered, or changed, with the site's credentials.
///
/// Errors: 400 in shape E1.
pub(super) fn require_own_prefix(settings: &Settings, doi: &str) -> Result<(), ScicatError> {
    let prefix = settings.doi_prefix.trim_end_matches('/');
    let suffix = doi.strip_prefix(prefix).and_then(|it| it.strip_prefix('/'));
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._;()".contains(it);
    let is_suffix = |it: &str| {
        it.chars().all(is_plain)
            && it.contains(|it: char| it.is_ascii_alphanumeric())
            && it.len() <= MAX_SUFFIX_BYTES
    };
    if suffix.is_some_and(is_suffix) {
        return Ok(());
    }
    Err(ScicatError::bad_request(format!(
        "the DOI {doi:?} is none of this site: expected {prefix}/ and a suffix of letters, digits and -._;()"
    )))
}

/// Returns DataCite's description of a publication (metadata schema 4).
fn body(settings: &Settings, publication: &Map<String, Value>) -> Value {
    let empty = Map::new();
    let metadata = publication.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let doi = text(publication, "doi");
    let mut attributes = Map::new();
    for (name, value) in [
        ("doi", json!(doi)),
        ("event", json!("publish")),
        ("url", json!(landing_page(settings, doi, metadata))),
        ("titles", json!([{"title": text(publication, "title")}])),
        ("descriptions", descriptions(publication, metadata)),
        ("creators", people(metadata.get("creators"))),
        // As it was given: DataCite accepts a name, or a name with its identifier and language.
        ("publisher", metadata.get("publisher").cloned().unwrap_or_default()),
        ("publicationYear", metadata.get("publicationYear").cloned().unwrap_or_default()),
        ("types", types(metadata)),
    ] {
        attributes.insert(name.to_owned(), value);
    }
    if let Some(contributors) = metadata.get("contributors").filter(|it| it.is_array()) {
        attributes.insert("contributors".to_owned(), people(Some(contributors)));
    }
    // Values that a site's own form has collected under DataCite's names are sent unchanged.
    for name in [
        "subjects",
        "dates",
        "language",
        "relatedIdentifiers",
        "relatedItems",
        "rightsList",
        "fundingReferences",
        "version",
        "sizes",
        "formats",
        "geoLocations",
        "alternateIdentifiers",
        "titles",
    ] {
        let Some(value) = metadata.get(name) else { continue };
        match (attributes.get_mut(name), value) {
            // The publication's own title comes first.
            (Some(Value::Array(own)), Value::Array(more)) => own.extend(more.iter().cloned()),
            _ => {
                attributes.insert(name.to_owned(), value.clone());
            }
        }
    }
    json!({"data": {"id": doi, "type": "dois", "attributes": attributes}})
}

fn landing_page(settings: &Settings, doi: &str, metadata: &Map<String, Value>) -> String {
    match text(metadata, "landingPage") {
        "" => format!("{}{}", settings.public_url_prefix, utf8_percent_encode(doi, NON_ALPHANUMERIC)),
        page if page.contains("://") => page.to_owned(),
        page => format!("https://{page}/{}", utf8_percent_encode(doi, NON_ALPHANUMERIC)),
    }
}

fn descriptions(publication: &Map<String, Value>, metadata: &Map<String, Value>) -> Value {
    let mut list = vec![json!({"description": text(publication, "abstract"), "descriptionType": "Abstract"})];
    list.extend(metadata.get("descriptions").and_then(Value::as_array).into_iter().flatten().cloned());
    let of_data = text(metadata, "dataDescription");
    if !of_data.is_empty() {
        list.push(json!({"description": of_data, "descriptionType": "TechnicalInfo"}));
    }
    Value::Array(list)
}

/// Returns the people that have a name; plain texts are names.
fn people(list: Option<&Value>) -> Value {
    let person = |it: &Value| match it {
        Value::String(name) => json!({"name": name}),
        other => other.clone(),
    };
    list.and_then(Value::as_array).into_iter().flatten().map(person).collect()
}

fn types(metadata: &Map<String, Value>) -> Value {
    let general = match text(metadata, "resourceTypeGeneral") {
        "" => "Dataset",
        general => general,
    };
    json!({"resourceTypeGeneral": general, "resourceType": text(metadata, "resourceType")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dois_of_the_site_are_registered() {
        let settings = Settings { doi_prefix: "10.1234/".to_owned(), ..Settings::default() };
        for doi in ["10.1234/a", "10.1234/01a20553-5db1-4f38-bea8-cb9fb43e8004", "10.1234/psi.2026_(1);2"] {
            assert!(require_own_prefix(&settings, doi).is_ok(), "{doi}");
        }
        for doi in [
            "10.9999/a",
            "10.1234",
            "10.1234/",
            "10.1234/..",
            "10.1234/../clients/x",
            "../clients/x",
            "10.1234/a/b",
            "10.1234/a?b",
            "10.1234/a#b",
            "10.1234/a%2f",
            "10.12345/a",
            "10.1234/a b",
            "10.1234/a\r\nX: y",
        ] {
            assert!(require_own_prefix(&settings, doi).is_err(), "{doi}");
        }
    }

    #[test]
    fn publications_are_described() {
        let Value::Object(publication) = json!({
            "doi": "10.1234/a b", "title": "T", "abstract": "A",
            "metadata": {
                "creators": [{"name": "N"}, "M"], "publisher": {"name": "P"}, "publicationYear": 2026,
                "resourceType": "raw", "dataDescription": "D", "subjects": [{"subject": "s"}],
            },
        }) else {
            unreachable!("an object")
        };
        let settings = Settings { public_url_prefix: "https://doi.site/".to_owned(), ..Settings::default() };
        assert_eq!(
            body(&settings, &publication),
            json!({"data": {"id": "10.1234/a b", "type": "dois", "attributes": {
                "doi": "10.1234/a b", "event": "publish", "url": "https://doi.site/10%2E1234%2Fa%20b",
                "titles": [{"title": "T"}],
                "descriptions": [
                    {"description": "A", "descriptionType": "Abstract"},
                    {"description": "D", "descriptionType": "TechnicalInfo"},
                ],
                "creators": [{"name": "N"}, {"name": "M"}], "publisher": {"name": "P"}, "publicationYear": 2026,
                "types": {"resourceTypeGeneral": "Dataset", "resourceType": "raw"},
                "subjects": [{"subject": "s"}],
            }}})
        );
    }
}
