//! Conversion of a provider's record into a dataset: published, without files, and changed only by its client.

use std::sync::Arc;

use pinakes_http::Db;
use pinakes_store::Txn;
use serde_json::{Map, Value, json};

use super::{Client, fetch};
use crate::app::Dataverse;
use crate::blocks::fields::Reading;
use crate::blocks::{Fields, Registry};
use crate::datasets::{self, Dataset, Numbered, State, Version, canonical_pid, create, ddi, version};
use crate::error::ApiError;
use crate::ids::Ids;
use crate::sword::atom;
use crate::xml_tree::Element;
use crate::{changes, stored};

/// A record from a provider.
pub(super) struct Record {
    /// The provider's identifier for it.
    pub identifier: String,
    /// When it changed, `2026-01-31T10:20:30Z` or `2026-01-31`.
    pub datestamp: String,
    /// Whether it was deleted.
    pub is_deleted: bool,
    /// Its metadata; `None` for deleted records.
    metadata: Option<Element>,
    /// URL of its metadata in JSON.
    api_call: Option<String>,
}

impl Record {
    /// Parses an element `record`; `None` for one without an identifier.
    pub(super) fn of(record: &Element) -> Option<Self> {
        let headers = record.all("header");
        let header = headers.first()?;
        let text = |name: &str| header.all(name).first().map(|it| it.plain()).unwrap_or_default();
        let metadata = record.all("metadata").first().copied();
        let api_call =
            metadata.map(|it| it.attribute("directApiCall").to_owned()).filter(|it| !it.is_empty());
        let identifier = text("identifier");
        (!identifier.is_empty()).then(|| Self {
            identifier,
            datestamp: text("datestamp"),
            is_deleted: header.attribute("status") == "deleted",
            metadata: metadata.and_then(|it| it.children().next()).cloned(),
            api_call,
        })
    }
}

/// The contents of a record.
struct Described {
    pid: Option<String>,
    fields: Fields,
    /// Terms, in the form of a version's JSON.
    terms: Map<String, Value>,
    /// Date of its publication at the source.
    date: Option<String>,
}

/// Stores a record, or removes the dataset of a deleted one. Returns whether anything changed.
///
/// Errors: a record that cannot be read, has no identifier, or has the identifier of a dataset that is not from this
/// client.
pub(super) async fn take(
    app: &Dataverse,
    db: &Db,
    client: &Client,
    record: Record,
) -> Result<bool, ApiError> {
    let client = client.clone();
    let app = app.clone();
    if record.is_deleted {
        let write = move |txn: &mut Txn<'_>| remove(txn, &app, &client, &record.identifier);
        return db.write(write).await;
    }
    let registry = app.registry(db).await?;
    let described = described(&app, &registry, &client, &record).await?;
    let own = described.pid.clone().or_else(|| {
        let by_header = pid_in(&record.identifier);
        by_header.filter(|_| client.use_oai_identifiers_as_pids || record.identifier.contains(':'))
    });
    let without =
        || ApiError::bad_request(format!("the record {} has no persistent identifier", record.identifier));
    let pid = own.ok_or_else(without)?;
    let ids = app.ids(db, 2).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<bool, ApiError> {
        put(txn, &app, &registry, &client, &pid, &described, &record, ids)?;
        Ok(true)
    };
    db.write(write).await
}

fn is_of(dataset: &Dataset, client: &Client) -> bool {
    dataset.harvested_by.as_deref() == Some(client.nick_name.as_str())
}

fn remove(txn: &mut Txn<'_>, app: &Dataverse, client: &Client, identifier: &str) -> Result<bool, ApiError> {
    let filter = pinakes_store::Expr::Is("harvestedBy".into(), client.nick_name.as_str().into())
        .and(pinakes_store::Expr::Is("harvestId".into(), identifier.into()));
    let query = pinakes_store::Query::filter(filter).window(0, 1);
    let found: Vec<Dataset> = stored::find(txn, &datasets::DATASET, &query)?;
    let Some(dataset) = found.first() else { return Ok(false) };
    datasets::remove::remove(txn, app, dataset)?;
    Ok(true)
}

/// Returns `doi:10.5072/FK2/X` for a text that is, or contains, a DOI or a handle.
fn pid_in(text: &str) -> Option<String> {
    let pid = canonical_pid(text);
    let is_pid = create::parts_of_pid(&pid).is_ok();
    if is_pid {
        return Some(pid);
    }
    // Matches `oai:host:10.5072/FK2/X`, and DOIs without a scheme.
    let at = pid.find("10.").filter(|at| *at == 0 || pid.as_bytes()[at - 1] == b':')?;
    let pid = format!("doi:{}", &pid[at..]);
    create::parts_of_pid(&pid).is_ok().then_some(pid)
}

async fn described(
    app: &Dataverse,
    registry: &Arc<Registry>,
    client: &Client,
    record: &Record,
) -> Result<Described, ApiError> {
    let unreadable = |fault: String| ApiError::bad_request(format!("{}: {fault}", record.identifier));
    if let Some(url) = &record.api_call {
        if super::origin(url) != super::origin(&client.harvest_url) {
            return Err(unreadable("its description lies on another server".to_owned()));
        }
        let bytes = fetch::get(url, &[], client.custom_headers.as_deref()).await.map_err(unreadable)?;
        return native(registry, client, &bytes).map_err(unreadable);
    }
    let metadata = record.metadata.as_ref().ok_or_else(|| unreadable("it has no metadata".to_owned()))?;
    match metadata.name.as_str() {
        "codeBook" => {
            let is_pid = |it: &str| pid_in(it).is_some();
            let study = ddi::read_element(registry, metadata, is_pid).map_err(unreadable)?;
            Ok(Described {
                pid: study.pid.as_deref().and_then(pid_in),
                fields: study.fields,
                terms: study.version,
                date: None,
            })
        }
        "dc" => dublin_core(app, registry, metadata).map_err(|error| unreadable(error.message)),
        other => Err(unreadable(format!("metadata of {other} is not read here"))),
    }
}

/// Parses Simple Dublin Core: the terms of a deposit's entry, and the identifier.
fn dublin_core(app: &Dataverse, registry: &Registry, metadata: &Element) -> Result<Described, ApiError> {
    let (fields, mut terms) = atom::read_element(registry, metadata, &app.settings.system_email)?;
    terms.remove("license");
    let all = metadata.all("identifier");
    let pid = all.iter().find_map(|it| pid_in(&it.plain()));
    let date = metadata.all("date").first().map(|it| it.plain());
    Ok(Described { pid, fields, terms, date })
}

/// Parses Dataverse's own JSON.
fn native(registry: &Registry, client: &Client, bytes: &[u8]) -> Result<Described, String> {
    let json: Value = serde_json::from_slice(bytes).map_err(|error| format!("no JSON: {error}"))?;
    let mut version = json["datasetVersion"].as_object().cloned().ok_or("it has no datasetVersion")?;
    let mut blocks = version.remove("metadataBlocks").unwrap_or_default();
    if client.allow_missing_terms {
        drop_unknown_terms(registry, &mut blocks);
    }
    let fields = Fields::read(registry, &blocks, Reading::Declared)?;
    let text = |name: &str| json[name].as_str();
    let pid = match (text("protocol"), text("authority"), text("identifier")) {
        (Some(protocol), Some(authority), Some(identifier)) => {
            pid_in(&format!("{protocol}:{authority}/{identifier}"))
        }
        _ => None,
    };
    let date = text("publicationDate").map(str::to_owned);
    version.retain(|name, _| crate::datasets::terms::CUSTOM.contains(&name.as_str()));
    Ok(Described { pid, fields, terms: version, date })
}

/// Removes values that are not in the vocabularies of this installation.
fn drop_unknown_terms(registry: &Registry, value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|it| drop_unknown_terms(registry, it)),
        Value::Object(map) => {
            let field = map.get("typeName").and_then(Value::as_str).and_then(|it| registry.field(it));
            if let Some(field) = field.filter(|it| it.is_controlled)
                && let Some(Value::Array(terms)) = map.get_mut("value")
            {
                terms.retain(|it| it.as_str().is_some_and(|it| field.term(it).is_some()));
                return;
            }
            map.values_mut().for_each(|it| drop_unknown_terms(registry, it));
        }
        _ => {}
    }
}

#[allow(clippy::too_many_arguments, reason = "one call, of what one record brings")]
fn put(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    registry: &Registry,
    client: &Client,
    pid: &str,
    described: &Described,
    record: &Record,
    mut ids: Ids,
) -> Result<(), ApiError> {
    let now = app.now();
    let blocks = match described.fields.to_json(registry) {
        Value::Object(blocks) => blocks,
        _ => Map::new(),
    };
    let before = datasets::by_pid(txn, pid)?;
    if before.as_ref().is_some_and(|it| !is_of(it, client)) {
        return Err(ApiError::conflict(format!(
            "a dataset {pid} is here already, and is not of this client"
        )));
    }
    let stamp = Some(record.datestamp.as_str()).filter(|it| 10 <= it.len()).unwrap_or(&now);
    let released = if stamp.len() == 10 { format!("{stamp}T00:00:00Z") } else { stamp.to_owned() };
    if let Some(mut dataset) = before {
        let Some(shown) = dataset.released.clone() else { return Ok(()) };
        let mut kept = version::of_dataset(txn, &dataset, shown.version)?;
        (kept.metadata_blocks, kept.terms) = (blocks, described.terms.clone());
        kept.last_update_time.clone_from(&now);
        kept.internal += 1;
        version::put(txn, &kept)?;
        dataset.harvest_id = Some(record.identifier.clone());
        datasets::put(txn, &dataset)?;
        return changes::dataset(txn, app, dataset.id);
    }
    let (protocol, authority, identifier) = create::parts_of_pid(pid)?;
    let id = ids.next()?;
    let first = Numbered { version: ids.next()?, ordinal: 1, number: 1, minor: 0 };
    let kept = Version {
        id: first.version,
        dataset: id,
        ordinal: 1,
        state: State::Released,
        number: Some(1),
        minor: Some(0),
        internal: 1,
        create_time: now.clone(),
        last_update_time: now.clone(),
        release_time: Some(released.clone()),
        metadata_blocks: blocks,
        terms: described.terms.clone(),
        ..Version::default()
    };
    let date = described.date.as_deref().and_then(|it| it.get(..10)).unwrap_or(&released[..10]);
    let dataset = Dataset {
        id,
        owner: client.collection,
        doi: (protocol == "doi").then(|| format!("{authority}/{identifier}")),
        storage_identifier: format!("harvested://{authority}/{identifier}"),
        pid: pid.to_owned(),
        protocol,
        authority,
        identifier,
        creator: client.creator,
        create_time: now.clone(),
        publication_date: Some(date.to_owned()),
        dataset_type: "dataset".to_owned(),
        released: Some(first.clone()),
        last: Some(first),
        last_ordinal: 1,
        harvested_by: Some(client.nick_name.clone()),
        harvest_source: Some(client.source().to_owned()),
        harvest_id: Some(record.identifier.clone()),
        ..Dataset::default()
    };
    txn.insert(&datasets::DATASET, &id.to_string(), &json!(dataset))?;
    version::put(txn, &kept)?;
    changes::dataset(txn, app, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_found() {
        for (text, pid) in [
            ("doi:10.5072/FK2/X", Some("doi:10.5072/FK2/X")),
            ("https://doi.org/10.5072/FK2/X", Some("doi:10.5072/FK2/X")),
            ("10.5072/FK2/X", Some("doi:10.5072/FK2/X")),
            ("oai:zenodo.example:10.5072/x", Some("doi:10.5072/x")),
            ("hdl:1902.1/111", Some("hdl:1902.1/111")),
            ("https://example.org/item/10.5", None),
            ("oai:example:7", None),
            ("", None),
        ] {
            assert_eq!(pid_in(text).as_deref(), pid, "{text}");
        }
    }

    #[test]
    fn dublin_core_has_an_identifier_and_terms() {
        let registry = Registry::shipped();
        let element = Element::read(
            b"<dc><title>Tides</title><creator>Finch</creator><identifier>x</identifier>\
              <identifier>https://doi.org/10.1/A</identifier><subject>Law</subject><date>2001-02-03</date></dc>",
        )
        .unwrap();
        let (fields, _) = atom::read_element(&registry, &element, "a@example.org").unwrap();
        let json = fields.to_json(&registry);
        let metadata = crate::blocks::fields::Metadata(&json);
        assert_eq!(metadata.one("title"), Some("Tides"));
        assert_eq!(metadata.many("subject"), ["Law"]);
    }
}
