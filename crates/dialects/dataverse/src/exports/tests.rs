//! One dataset in every format, and what no format may contain.

use serde_json::json;

use super::source::{Owner, is_organization, person, plain};
use super::*;
use crate::blocks::Registry;

fn dataset() -> Value {
    let primitive = |name: &str, value: Value| json!({"typeName": name, "multiple": value.is_array(), "typeClass": "primitive", "value": value});
    let compound = |name: &str, children: &[(&str, &str)]| {
        let map: Map<String, Value> =
            children.iter().map(|(key, value)| ((*key).to_owned(), primitive(key, json!(value)))).collect();
        json!({"typeName": name, "multiple": true, "typeClass": "compound", "value": [map]})
    };
    json!({
        "id": 43, "identifier": "FK2/AB12CD", "protocol": "doi", "authority": "10.5072",
        "persistentUrl": "https://doi.org/10.5072/FK2/AB12CD", "publicationDate": "2026-01-31", "datasetType": "dataset",
        "datasetVersion": {
            "versionNumber": 1, "versionMinorNumber": 0, "versionState": "RELEASED",
            "releaseTime": "2026-01-31T10:20:30Z", "lastUpdateTime": "2026-01-31T10:20:30Z",
            "license": {"name": "CC0 1.0", "uri": "http://creativecommons.org/publicdomain/zero/1.0"},
            "citation": "Finch, Fiona, 2026, \"Tides & <winds>\", https://doi.org/10.5072/FK2/AB12CD, Root, V1",
            "metadataBlocks": {"citation": {"fields": [
                primitive("title", json!("Tides & <winds>")),
                compound("author", &[("authorName", "Finch, Fiona"), ("authorAffiliation", "Birds Inc."),
                    ("authorIdentifierScheme", "ORCID"), ("authorIdentifier", "0000-0001")]),
                compound("dsDescription", &[("dsDescriptionValue", "Hourly <b>readings</b> < 5")]),
                primitive("subject", json!(["Other"])),
                primitive("dateOfDeposit", json!("1999-12-31")),
            ]}},
            "files": [{"label": "tides.tab", "restricted": false, "directoryLabel": "raw",
                "description": "Text ending with <",
                "dataFile": {"id": 44, "contentType": "text/tab-separated-values", "filesize": 12, "UNF": "UNF:6:x",
                    "checksum": {"type": "MD5", "value": "ab"}}}],
        },
    })
}

fn written(name: &str) -> String {
    written_of(name, &dataset())
}

fn written_of(name: &str, dataset: &Value) -> String {
    let registry = Registry::shipped();
    let table = json!([{"varQuantity": 1, "caseQuantity": 2, "dataVariables": [
        {"id": 1, "name": "height", "label": "Height", "variableFormatType": "NUMERIC", "variableIntervalType": "contin",
         "UNF": "UNF:6:y", "summaryStatistics": {"mean": "3.5"}}]}]);
    let tables = Map::from_iter([("44".to_owned(), table)]);
    let owner = |alias: &str, name: &str| Owner {
        alias: alias.to_owned(),
        name: name.to_owned(),
        description: String::new(),
    };
    let owners = [owner("birds", "Birds"), owner("root", "Root")];
    let source = Source {
        dataset,
        registry: &registry,
        site_url: "https://x.org",
        publisher: "Root",
        owners: &owners,
        license_text: "",
        tables: &tables,
        today: "2026-02-01",
    };
    (exporter(name).unwrap().write)(&source)
}

fn check(name: &str, parts: &[&str]) {
    let text = written(name);
    for part in parts {
        assert!(text.contains(part), "{name} lacks {part}:\n{text}");
    }
}

#[test]
fn xml_formats() {
    check(
        "ddi",
        &[
            "<titl>Tides &amp; &lt;winds&gt;</titl>",
            "<IDNo agency=\"DOI\">doi:10.5072/FK2/AB12CD</IDNo>",
            "<version date=\"2026-01-31\" type=\"RELEASED\">1</version>",
            "<fileDscr ID=\"f44\" URI=\"https://x.org/api/access/datafile/44\">",
            "<var ID=\"v1\" name=\"height\" intrvl=\"contin\">",
            "<sumStat type=\"mean\">3.5</sumStat>",
        ],
    );
    assert!(!written("oai_ddi").contains("<var "));
    check(
        "oai_dc",
        &[
            "<dc:creator>Finch, Fiona</dc:creator>",
            "<dc:date>2026-01-31</dc:date>",
            "<dc:type>Dataset</dc:type>",
        ],
    );
    check(
        "dcterms",
        &[
            "<dcterms:dateSubmitted>1999-12-31</dcterms:dateSubmitted>",
            "<dcterms:license>CC0 1.0</dcterms:license>",
        ],
    );
    check(
        "Datacite",
        &[
            "<identifier identifierType=\"DOI\">10.5072/FK2/AB12CD</identifier>",
            "<givenName>Fiona</givenName><familyName>Finch</familyName>",
            "https://orcid.org/0000-0001",
            "<dates><date dateType=\"Submitted\">1999-12-31</date><date dateType=\"Available\">2026-01-31</date></dates>",
            "<description descriptionType=\"Abstract\">Hourly readings &lt; 5</description>",
            "<version>1.0</version>",
        ],
    );
    check(
        "oai_datacite",
        &["<date dateType=\"Updated\">2026-01-31</date>", "<publicationYear>2026</publicationYear>"],
    );
    check("html", &["<title>Tides &amp; &lt;winds&gt;</title>"]);
}

#[test]
fn json_formats() {
    let parsed = |name: &str| serde_json::from_str::<Value>(&written(name)).unwrap();
    let schema = parsed("schema.org");
    assert_eq!(schema["version"], "1");
    assert_eq!(schema["author"][0]["familyName"], "Finch");
    assert_eq!(schema["distribution"][0]["description"], "Text ending with <");
    assert_eq!(schema["description"], "Hourly readings < 5");
    let ore = parsed("OAI_ORE");
    assert_eq!(ore["ore:describes"]["author"]["citation:authorName"], "Finch, Fiona");
    assert_eq!(ore["ore:describes"]["subject"], "Other");
    assert_eq!(ore["ore:describes"]["schema:isPartOf"]["schema:isPartOf"]["schema:name"], "Root");
    assert_eq!(ore["ore:describes"]["ore:aggregates"][0]["schema:name"], "tides.tab");
    let croissant = parsed("croissant");
    assert_eq!(croissant["recordSet"][0]["field"][0]["dataType"], "sc:Float");
    assert_eq!(croissant["distribution"][0]["@id"], "raw/tides.tab");
    assert!(parsed("croissantSlim")["recordSet"].is_null());
    assert_eq!(formats_json()["oai_dc"]["isHarvestable"], true);
}

#[test]
fn tags_go_and_other_angles_stay() {
    assert_eq!(plain("a <b>c</b> < 5 and <CSP data, <img tag"), "a c < 5 and <CSP data, <img tag");
    assert_eq!(person("University of X, Dept."), None);
    assert_eq!(person("Finch, Fiona"), Some(("Finch", "Fiona")));
}

/// Names in Dataverse's own test data.
#[test]
fn names_of_persons_and_organisations() {
    for name in [
        "Digital Archive of Massachusetts Anti-Slavery and Anti-Segregation Petitions, Massachusetts Archives, Boston MA",
        "Geographic Data Technology, Inc. (GDT)",
        "Harvard Map Collection, Harvard College Library",
        "IBM",
        "Michael J. Fox Foundation for Parkinson's Research",
        "The Ford Foundation",
        "U.S. Department of Commerce, Bureau of the Census, Geography Division",
        "United Nations Economic and Social Commission for Asia and the Pacific (UNESCAP)",
    ] {
        assert!(is_organization(name), "{name}");
    }
    for name in ["Dennis", "Juan Pablo Tosca Villanueva", "Privileged, Pete", "Poe, Edgar Allen"] {
        assert!(!is_organization(name), "{name}");
    }
}

#[test]
fn variables_are_told_of_files_that_may_be_had_today() {
    let told = |what: &str, key: &str, date: &str| {
        let mut dataset = dataset();
        let files = dataset["datasetVersion"]["files"].as_array_mut().unwrap();
        let file = files.iter_mut().find(|it| it["dataFile"]["id"] == 44).unwrap();
        file["dataFile"][what] = json!({key: date});
        written_of("ddi", &dataset).contains("name=\"height\"")
    };
    assert!(written("ddi").contains("name=\"height\""));
    assert!(!told("embargo", "dateAvailable", "2026-02-02"));
    assert!(told("embargo", "dateAvailable", "2026-02-01"));
    assert!(!told("embargo", "dateAvailable", ""));
    assert!(told("retention", "dateUnavailable", "2026-02-01"));
    assert!(!told("retention", "dateUnavailable", "2026-01-31"));
}

#[test]
fn custom_terms_are_named_by_their_url() {
    let mut dataset = dataset();
    dataset["datasetVersion"]["license"] = Value::Null;
    dataset["datasetVersion"]["termsOfUse"] = json!("Ask first.");
    let versions = "https://x.org/api/datasets/:persistentId/versions";
    let url = format!("{versions}/1.0/customlicense?persistentId=doi:10.5072/FK2/AB12CD");
    let shown = written_of("schema.org", &dataset);
    assert!(shown.contains(&format!("\"license\":\"{url}\"")), "{shown}");
}
