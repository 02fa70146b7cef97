//! Croissant: dataset descriptions for machine-learning tools. The slim form omits the columns of tables.

use serde_json::{Map, Value, json};

use super::schema_org;
use crate::exports::source::{Source, text};

/// Writes the format `croissant`.
pub fn croissant(source: &Source<'_>) -> String {
    described(source, true)
}

/// Writes the format `croissantSlim`.
pub fn slim(source: &Source<'_>) -> String {
    described(source, false)
}

fn described(source: &Source<'_>, with_columns: bool) -> String {
    let base = schema_org::json(source);
    let mut map = Map::new();
    map.insert("@context".into(), context());
    map.insert("@type".into(), "sc:Dataset".into());
    map.insert("conformsTo".into(), "http://mlcommons.org/croissant/1.0".into());
    for name in ["name", "creator", "description", "keywords", "license", "datePublished", "dateModified"] {
        if let Some(value) = base.get(name) {
            map.insert(name.into(), value.clone());
        }
    }
    map.insert("url".into(), source.pid_url().into());
    map.insert("includedInDataCatalog".into(), base["includedInDataCatalog"].clone());
    map.insert("publisher".into(), base["publisher"].clone());
    let number = if source.is_draft() { "DRAFT".to_owned() } else { format!("{}.0", source.number()) };
    map.insert("version".into(), number.into());
    map.insert("citeAs".into(), source.citation().into());
    map.insert("distribution".into(), source.files().iter().map(|it| object(source, it)).collect());
    let sets: Vec<Value> = source.files().iter().filter_map(|it| record_set(source, it)).collect();
    if with_columns {
        map.insert("recordSet".into(), sets.into());
    }
    Value::Object(map).to_string()
}

fn context() -> Value {
    json!({
        "@language": "en",
        "@vocab": "https://schema.org/",
        "citeAs": "cr:citeAs",
        "column": "cr:column",
        "conformsTo": "dct:conformsTo",
        "cr": "http://mlcommons.org/croissant/",
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "dct": "http://purl.org/dc/terms/",
        "extract": "cr:extract",
        "field": "cr:field",
        "fileObject": "cr:fileObject",
        "md5": "cr:md5",
        "recordSet": "cr:recordSet",
        "sc": "https://schema.org/",
        "source": "cr:source",
        "wd": "https://www.wikidata.org/wiki/",
    })
}

/// Returns the path of a file in its dataset, which identifies it in the document.
fn path(file: &Value) -> String {
    match text(file, "directoryLabel") {
        "" => text(file, "label").to_owned(),
        folder => format!("{folder}/{}", text(file, "label")),
    }
}

fn object(source: &Source<'_>, file: &Value) -> Value {
    let data_file = &file["dataFile"];
    let mut json = json!({
        "@type": "cr:FileObject",
        "@id": path(file),
        "name": file["label"],
        "encodingFormat": data_file["contentType"],
        "contentSize": data_file["filesize"].to_string(),
        "description": text(file, "description"),
        "contentUrl": format!("{}/api/access/datafile/{}", source.site_url, data_file["id"]),
    });
    let checksum = &data_file["checksum"];
    if let (Some(kind), Some(value)) = (checksum["type"].as_str(), checksum["value"].as_str()) {
        json[kind.to_lowercase().replace('-', "")] = value.into();
    }
    json
}

fn record_set(source: &Source<'_>, file: &Value) -> Option<Value> {
    let id = file["dataFile"]["id"].to_string();
    let tables = source.tables.get(&id).filter(|_| source.is_open(file))?;
    let field = |variable: &Value| {
        let name = text(variable, "name");
        let is_number = text(variable, "variableFormatType") == "NUMERIC";
        let kind = match (is_number, text(variable, "variableIntervalType")) {
            (true, "discrete") => "sc:Integer",
            (true, _) => "sc:Float",
            _ => "sc:Text",
        };
        json!({
            "@type": "cr:Field",
            "name": name,
            "description": text(variable, "label"),
            "dataType": kind,
            "source": {"@id": variable["id"].to_string(), "fileObject": {"@id": path(file)}, "extract": {"column": name}},
        })
    };
    let variables = tables.as_array().into_iter().flatten().flat_map(|it| it["dataVariables"].as_array());
    let fields: Vec<Value> = variables.flatten().map(field).collect();
    Some(json!({"@type": "cr:RecordSet", "field": fields}))
}
