//! OAI-ORE as JSON-LD: a map that describes the dataset and aggregates its files.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::blocks::fields::Compound;
use crate::blocks::{FieldType, Registry};
use crate::exports::source::{Source, text};

/// Prefixes in every map.
const PREFIXES: [(&str, &str); 4] = [
    ("dcterms", "http://purl.org/dc/terms/"),
    ("dvcore", "https://dataverse.org/schema/core#"),
    ("ore", "http://www.openarchives.org/ore/terms/"),
    ("schema", "http://schema.org/"),
];

/// Writes the format `OAI_ORE`.
pub fn ore(source: &Source<'_>) -> String {
    json(source).to_string()
}

/// The names of fields in a map, collected while it is written.
pub(crate) struct Context(BTreeMap<String, Value>);

impl Context {
    pub(crate) fn new() -> Self {
        Self(PREFIXES.into_iter().map(|(name, uri)| (name.to_owned(), uri.into())).collect())
    }

    /// Returns the name of a field in the map: its own name if it has a URI, otherwise with its block as in
    /// `citation:name`.
    pub(crate) fn label(&mut self, registry: &Registry, field: &FieldType) -> String {
        if !field.uri.is_empty() {
            self.0.insert(field.name.clone(), field.uri.as_str().into());
            return field.name.clone();
        }
        let block = registry.block_of(field);
        let uri = match block.uri.as_str() {
            "" => format!("https://dataverse.org/schema/{}/", block.name),
            uri => uri.to_owned(),
        };
        self.0.insert(block.name.clone(), uri.into());
        format!("{}:{}", block.name, field.name)
    }

    pub(crate) fn into_json(self) -> Value {
        Value::Object(self.0.into_iter().collect())
    }
}

/// Returns a single value as it is, several as a list.
fn one_or_many(mut list: Vec<Value>) -> Value {
    if list.len() == 1 { list.remove(0) } else { list.into() }
}

/// Returns the metadata of a version as members of a map.
pub(crate) fn described(source: &Source<'_>, context: &mut Context) -> Map<String, Value> {
    let mut map = Map::new();
    for (_, fields) in source.metadata().blocks() {
        for field in fields {
            let name = text(field, "typeName");
            let Some(ty) = source.registry.field(name) else { continue };
            let label = context.label(source.registry, ty);
            let value = match ty.is_compound() {
                false => match &field["value"] {
                    Value::Array(list) => one_or_many(list.clone()),
                    one => one.clone(),
                },
                true => {
                    let values = source.metadata().compounds(name);
                    one_or_many(values.iter().map(|it| compound(source.registry, it, context)).collect())
                }
            };
            map.insert(label, value);
        }
    }
    map
}

fn compound(registry: &Registry, value: &Compound<'_>, context: &mut Context) -> Value {
    let mut map = Map::new();
    for (name, texts) in value.children() {
        if let Some(ty) = registry.field(name) {
            let label = context.label(registry, ty);
            map.insert(label, one_or_many(texts.into_iter().map(Value::from).collect()));
        }
    }
    map.into()
}

fn owners(source: &Source<'_>) -> Value {
    let owner = |inner: Value, (alias, name): &(String, String)| {
        let mut json = json!({"schema:name": name, "@id": format!("{}/dataverse/{alias}", source.site_url)});
        if !inner.is_null() {
            json["schema:isPartOf"] = inner;
        }
        json
    };
    source.owners.iter().rev().fold(Value::Null, owner)
}

/// Returns the map.
pub fn json(source: &Source<'_>) -> Value {
    let version = source.version();
    let mut context = Context::new();
    let mut describes = described(source, &mut context);
    let mut put = |name: &str, value: Value| {
        if !value.is_null() && value.as_str() != Some("") {
            describes.insert(name.to_owned(), value);
        }
    };
    put("@id", source.pid_url().into());
    put("@type", json!(["ore:Aggregation", "schema:Dataset"]));
    put("schema:version", source.number().into());
    put("schema:name", source.title().into());
    let changed = text(version, "lastUpdateTime");
    let changed_ms = crate::clock::parse(changed).unwrap_or_default();
    let modified =
        if source.is_draft() { crate::clock::long(changed_ms) } else { crate::clock::precise(changed_ms) };
    put("schema:dateModified", modified.into());
    put("schema:datePublished", source.publication_date().into());
    put("schema:creativeWorkStatus", source.state().into());
    match source.license() {
        Some((_, uri)) => put("schema:license", uri.into()),
        None => put("dvcore:termsOfUse", version["termsOfUse"].clone()),
    }
    let mut access =
        json!({"dvcore:fileRequestAccess": version["fileAccessRequest"].as_bool() == Some(true)});
    for name in crate::datasets::terms::ACCESS {
        if let Some(terms) = version[name].as_str() {
            access[format!("dvcore:{name}")] = terms.into();
        }
    }
    put("dvcore:fileTermsOfAccess", access);
    put("schema:includedInDataCatalog", source.publisher.into());
    put("schema:isPartOf", owners(source));
    let files: Vec<Value> = source.files().iter().map(|it| aggregated(source, it)).collect();
    let parts: Vec<Value> = files.iter().map(|it| it["@id"].clone()).collect();
    put("ore:aggregates", files.into());
    put("schema:hasPart", parts.into());
    let id =
        format!("{}/api/datasets/export?exporter=OAI_ORE&persistentId={}", source.site_url, source.pid_url());
    let today = if source.release_date().is_empty() {
        changed.get(..10).unwrap_or_default()
    } else {
        source.release_date()
    };
    json!({
        "dcterms:modified": today,
        "dcterms:creator": source.publisher,
        "@type": "ore:ResourceMap",
        "schema:additionalType": "Dataverse OREMap Format v1.0.2",
        "dvcore:generatedBy": {
            "@type": "schema:SoftwareApplication",
            "schema:name": "Pinakes",
            "schema:version": env!("CARGO_PKG_VERSION"),
        },
        "@id": id,
        "ore:describes": describes,
        "@context": context.into_json(),
    })
}

fn aggregated(source: &Source<'_>, file: &Value) -> Value {
    let data_file = &file["dataFile"];
    let id = format!("{}/api/access/datafile/{}", source.site_url, data_file["id"]);
    let mut json = json!({
        "schema:description": text(file, "description"),
        "schema:name": file["label"],
        "dvcore:restricted": file["restricted"].as_bool() == Some(true),
        "schema:version": file["version"],
        "dvcore:datasetVersionId": file["datasetVersionId"],
        "@id": id,
        "schema:sameAs": id,
        "@type": "ore:AggregatedResource",
        "schema:fileFormat": data_file["contentType"],
        "dvcore:filesize": data_file["filesize"],
        "dvcore:storageIdentifier": data_file["storageIdentifier"],
        "dvcore:rootDataFileId": data_file["rootDataFileId"],
        "dvcore:checksum": {"@type": data_file["checksum"]["type"], "@value": data_file["checksum"]["value"]},
    });
    for (name, value) in [
        ("dvcore:directoryLabel", &file["directoryLabel"]),
        ("dvcore:categories", &file["categories"]),
        ("dvcore:originalFileFormat", &data_file["originalFileFormat"]),
        ("dvcore:originalFormatLabel", &data_file["originalFormatLabel"]),
        ("dvcore:UNF", &data_file["UNF"]),
        ("dvcore:previousDataFileId", &data_file["previousDataFileId"]),
    ] {
        if !value.is_null() {
            json[name] = value.clone();
        }
    }
    json
}
