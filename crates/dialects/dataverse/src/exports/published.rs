//! Exports of datasets against documents that Dataverse itself wrote or that its own tests expect: see
//! `tests/data/published/README.md`.

use std::path::PathBuf;

use super::source::Owner;
use super::*;
use crate::blocks::Registry;

fn read(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/published").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads a dataset. Some of the JSONs key the parts of a value otherwise than by `typeName`, which counts.
fn dataset(name: &str) -> Value {
    let mut dataset: Value = serde_json::from_str(&read(&format!("{name}.json"))).unwrap();
    for (_, block) in dataset["datasetVersion"]["metadataBlocks"].as_object_mut().unwrap() {
        for field in block["fields"].as_array_mut().unwrap() {
            let Some(values) = field["value"].as_array_mut() else { continue };
            for value in values.iter_mut().filter(|it| it.is_object()) {
                let parts = value.as_object_mut().unwrap().values();
                *value = parts.map(|it| (it["typeName"].as_str().unwrap().to_owned(), it.clone())).collect();
            }
        }
    }
    dataset
}

struct Place<'a> {
    site_url: &'a str,
    publisher: &'a str,
    owners: &'a [Owner],
}

fn written(name: &str, format: &str, place: &Place<'_>) -> String {
    let dataset = dataset(name);
    let license = dataset["datasetVersion"]["license"]["name"].as_str();
    let source = Source {
        dataset: &dataset,
        registry: &Registry::shipped(),
        site_url: place.site_url,
        publisher: place.publisher,
        owners: place.owners,
        license_text: match license {
            Some("CC0 1.0") => "Creative Commons CC0 1.0 Universal Public Domain Dedication.",
            _ => "",
        },
        tables: &Map::new(),
        today: "2026-02-01",
    };
    (exporter(format).unwrap().write)(&source)
}

/// Removes what differs from server to server and from day to day.
fn without_occasion(ore: &mut Value) {
    for name in ["dvcore:generatedBy", "schema:additionalType", "dcterms:modified"] {
        ore.as_object_mut().unwrap().remove(name).unwrap();
    }
    ore["ore:describes"].as_object_mut().unwrap().remove("schema:dateModified").unwrap();
}

fn check_ore(name: &str, site_url: &str, nearest: [&str; 3]) {
    let owners = [nearest, ["root", "Root", "The root dataverse."]].map(|[alias, name, description]| Owner {
        alias: alias.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
    });
    let place = Place { site_url, publisher: "Root", owners: &owners };
    let mut found: Value = serde_json::from_str(&written(name, "OAI_ORE", &place)).unwrap();
    let mut expected: Value = serde_json::from_str(&read(&format!("{name}.ore.json"))).unwrap();
    without_occasion(&mut found);
    without_occasion(&mut expected);
    assert_eq!(found, expected, "{name}: {found:#}");
}

#[test]
fn resource_maps() {
    let (beta, local) = ("https://beta.dataverse.org", "http://localhost:8080");
    check_ore("minimal", beta, ["pdurbin", "Philip Durbin Dataverse", ""]);
    check_ore("max", beta, ["pdurbin", "Philip Durbin Dataverse", ""]);
    check_ore("cars", local, ["cars", "Cars", "Data about cars."]);
    check_ore("restricted", local, ["cars", "Cars", "Data about cars."]);
    check_ore("draft", local, ["draft", "Draft Collection", ""]);
}

/// Returns the elements of a document, each with its attributes and the text after its tag.
fn elements(xml: &str) -> Vec<String> {
    let parts = xml.split('<').filter(|it| !it.is_empty() && !it.starts_with('/'));
    let element = |part: &str| {
        let (tag, text) = part.split_once('>').unwrap_or((part, ""));
        format!(
            "{} {}",
            tag.trim_end_matches('/'),
            text.trim().replace("&quot;", "\"").replace("&apos;", "'")
        )
    };
    parts.map(element).collect()
}

fn check_xml(found: &str, expected: &str) {
    assert_eq!(elements(found), elements(expected), "{found}");
}

#[test]
fn xml_documents() {
    let nobody = Place { site_url: "https://x.org", publisher: "", owners: &[] };
    check_xml(&written("finch", "dcterms", &nobody), &read("finch.dcterms.xml"));
    check_xml(&written("finch-terms", "ddi", &nobody), &read("finch-terms.ddi.xml"));
    let root = Place { publisher: "Root", ..nobody };
    // The published document lists a file that the JSON does not have, doubles commas between the parts of a place, and takes
    // an institute for a person.
    let expected = read("max.datacite.xml")
        .replace("<size>21865</size>", "")
        .replacen("<format>text/tab-separated-values</format>", "", 1)
        .replace("MA,, Cambridge,, Harvard Square,", "MA, Cambridge, Harvard Square")
        .replace("\"Personal\">IQSS", "\"Organizational\">IQSS");
    check_xml(&written("max", "Datacite", &root), &expected);
}
