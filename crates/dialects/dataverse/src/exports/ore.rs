//! OAI-ORE as JSON-LD: a map that describes the dataset and aggregates its files.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::blocks::fields::Compound;
use crate::blocks::{FieldType, Registry};
use crate::exports::source::{Owner, Source, text};

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
pub(crate) struct Context {
    names: BTreeMap<String, Value>,
    site_url: String,
}

impl Context {
    /// Begins a context of a server that is reached at `site_url`.
    pub(crate) fn new(site_url: &str) -> Self {
        let names = PREFIXES.into_iter().map(|(name, uri)| (name.to_owned(), uri.into())).collect();
        Self { names, site_url: site_url.to_owned() }
    }

    /// Returns the name of a field in the map: its own name if it has a URI, otherwise with its block as in
    /// `citation:name`.
    pub(crate) fn label(&mut self, registry: &Registry, field: &FieldType) -> String {
        if !field.uri.is_empty() {
            self.names.insert(field.name.clone(), field.uri.as_str().into());
            return field.name.clone();
        }
        let block = registry.block_of(field);
        let uri = match block.uri.as_str() {
            "" => format!("{}/schema/{}#", self.site_url, block.name),
            uri => uri.to_owned(),
        };
        self.names.insert(block.name.clone(), uri.into());
        format!("{}:{}", block.name, field.name)
    }

    pub(crate) fn into_json(self) -> Value {
        Value::Object(self.names.into_iter().collect())
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
    let owner = |inner: Value, owner: &Owner| {
        let mut json = json!({"schema:name": owner.name, "@id": format!("{}/dataverse/{}", source.site_url, owner.alias)});
        if !owner.description.is_empty() {
            json["schema:description"] = owner.description.as_str().into();
        }
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
    let mut context = Context::new(source.site_url);
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

/// Describes a file. A table that was read is described as it was deposited.
fn aggregated(source: &Source<'_>, file: &Value) -> Value {
    let data_file = &file["dataFile"];
    let (id, mut same_as) = match text(data_file, "pidURL") {
        "" => (
            format!("{}/file.xhtml?fileId={}", source.site_url, data_file["id"]),
            format!("{}/api/access/datafile/{}", source.site_url, data_file["id"]),
        ),
        url => {
            let pid = text(data_file, "persistentId");
            let access = format!("{}/api/access/datafile/:persistentId?persistentId={pid}", source.site_url);
            (url.to_owned(), access)
        }
    };
    let is_table = data_file["originalFileFormat"].is_string();
    if is_table {
        same_as.push_str(if same_as.contains('?') { "&format=original" } else { "?format=original" });
    }
    let original = |name: &str, own: &Value| match &data_file[name] {
        Value::Null => own.clone(),
        original => original.clone(),
    };
    let checksum = &data_file["checksum"];
    let members = [
        ("schema:description", file["description"].clone()),
        ("schema:name", original("originalFileName", &file["label"])),
        ("dvcore:restricted", (file["restricted"].as_bool() == Some(true)).into()),
        ("dvcore:directoryLabel", file["directoryLabel"].clone()),
        ("schema:version", file["version"].clone()),
        ("dvcore:datasetVersionId", file["datasetVersionId"].clone()),
        ("dvcore:categories", file["categories"].clone()),
        ("@id", id.into()),
        ("schema:sameAs", same_as.into()),
        ("@type", "ore:AggregatedResource".into()),
        ("schema:fileFormat", original("originalFileFormat", &data_file["contentType"])),
        ("dvcore:filesize", original("originalFileSize", &data_file["filesize"])),
        ("dvcore:storageIdentifier", data_file["storageIdentifier"].clone()),
        ("dvcore:currentIngestedName", if is_table { file["label"].clone() } else { Value::Null }),
        ("dvcore:UNF", data_file["UNF"].clone()),
        ("dvcore:rootDataFileId", data_file["rootDataFileId"].clone()),
        ("dvcore:previousDataFileId", data_file["previousDataFileId"].clone()),
        ("dvcore:checksum", json!({"@type": checksum["type"], "@value": checksum["value"]})),
    ];
    members.into_iter().filter(|it| !it.1.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}
