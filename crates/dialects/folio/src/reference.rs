//! The initial data of a tenant (section 14 of the contract): `reference/*.json`, one file per collection, FOLIO's own
//! records with their ids (see `reference/README.md`).
//!
//! It is loaded when a tenant is created through this dialect, otherwise at the tenant's first request to it, so that
//! tenants that never use the dialect do not contain it. The loaded collections are recorded: records that a site
//! deletes do not come back, and those added by a later version of the program are loaded.

use pinakes_accounts::Entropy;
use pinakes_store::{Expr, StoreError, Txn, Type, View, fold};
use serde_json::{Map, Value, json};

use crate::platform::collection::{self, Collection, Collections, Writer};
use crate::platform::error::FolioError;
use crate::platform::meta::META;
use crate::platform::settings::Settings;

/// Id of the record that lists what was loaded.
const NOTE: &str = "reference";

/// FOLIO's sample data: only part of a new tenant if `folio.sample_locations` is set.
const SAMPLES: [&str; 4] = ["folio_institution", "folio_campus", "folio_library", "folio_location"];

fn with_data(settings: &Settings, collections: Collections) -> impl Iterator<Item = &'static Collection> {
    let with_samples = settings.sample_locations;
    collections
        .iter()
        .copied()
        .filter(|it| !it.reference_data.is_empty())
        .filter(move |it| with_samples || !SAMPLES.contains(&it.kind.name))
}

fn loaded(view: &mut View<'_>) -> Result<Map<String, Value>, StoreError> {
    let note = view.get(&META, NOTE)?.map(|it| it.json()).transpose()?;
    Ok(note.and_then(|it| it.get("loaded").and_then(Value::as_object).cloned()).unwrap_or_default())
}

/// Checks whether all of it is loaded in the tenant.
pub fn is_loaded(
    view: &mut View<'_>,
    settings: &Settings,
    collections: Collections,
) -> Result<bool, FolioError> {
    let loaded = loaded(view)?;
    Ok(with_data(settings, collections).all(|it| loaded.contains_key(it.kind.name)))
}

/// Checks whether a record of the tenant has a unique value of one to be loaded.
fn is_taken(
    txn: &mut Txn<'_>,
    collection: &'static Collection,
    record: &Map<String, Value>,
) -> Result<bool, StoreError> {
    for unique in collection.unique {
        let column = collection.kind.columns.iter().find(|it| it.name == unique.column);
        let Some(column) = column.filter(|it| it.ty == Type::Folded) else { continue };
        let Some(text) = record.get(column.path).and_then(Value::as_str) else { continue };
        let has_it = Expr::Is(column.path.into(), pinakes_store::Value::Folded(fold(text)));
        if txn.first(&collection.kind, has_it)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Loads what has not been loaded yet. A record is left out if the tenant has one with its id or its name.
pub fn load(
    txn: &mut Txn<'_>,
    settings: &Settings,
    now_ms: i64,
    collections: Collections,
) -> Result<(), FolioError> {
    let mut loaded = loaded(txn)?;
    let writer = Writer::new(now_ms, None, Entropy::System, collections);
    for collection in
        with_data(settings, collections).filter(|it| !loaded.contains_key(it.kind.name)).collect::<Vec<_>>()
    {
        let damaged =
            |reason: String| StoreError::Damaged(format!("reference data of {}: {reason}", collection.path));
        let records: Vec<Map<String, Value>> =
            serde_json::from_str(collection.reference_data).map_err(|error| damaged(error.to_string()))?;
        for record in records {
            let id = record.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            if txn.has(&collection.kind, &id)? || is_taken(txn, collection, &record)? {
                continue;
            }
            collection::insert(txn, &writer, collection, record)
                .map_err(|error| damaged(format!("{id}: {error}")))?;
        }
        loaded.insert(collection.kind.name.to_owned(), 1.into());
    }
    txn.put(&META, NOTE, &json!({"id": NOTE, "loaded": loaded}))?;
    Ok(())
}
