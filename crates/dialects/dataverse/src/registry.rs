//! The metadata blocks of a tenant: the shipped ones, and those loaded since.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pinakes_http::Db;
use pinakes_store::{Direction, Expr, Kind, Query, View, Weight};
use serde_json::Value;

use crate::blocks::Registry;
use crate::error::ApiError;

/// Changes of the metadata blocks, by number: body `{"order": 11, "tsv": "…"}` for a table, `{"order": 12, "field":
/// "astroInstrument", "displayOnCreate": true}` for one property of a field.
pub(crate) static BLOCK_SOURCE: Kind = Kind::named("dataverse_block_source");

/// The registries cached by this process, by tenant, each with the number of its last change.
#[derive(Clone, Default)]
pub(crate) struct Registries(Arc<Mutex<HashMap<String, Kept>>>);

#[derive(Clone)]
struct Kept {
    sequence: u64,
    registry: Arc<Registry>,
}

impl Registries {
    /// Returns the registry of a tenant; one read of a number shows whether the cached one is current.
    pub(crate) async fn of(&self, db: &Db) -> Result<Arc<Registry>, ApiError> {
        let name = db.tenant().name().to_owned();
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        let held = kept.as_ref().map(|it| it.sequence);
        let read = move |view: &mut View<'_>| -> Result<(u64, Option<Vec<Value>>), ApiError> {
            let sequence = view.kind_sequence(&BLOCK_SOURCE)?;
            Ok((sequence, if held == Some(sequence) { None } else { Some(sources(view)?) }))
        };
        match (db.read(Weight::Point, read).await?, kept) {
            ((_, None), Some(kept)) => Ok(kept.registry),
            ((sequence, sources), _) => {
                let registry = Arc::new(built(&sources.unwrap_or_default()));
                let kept = Kept { sequence, registry: Arc::clone(&registry) };
                self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, kept);
                Ok(registry)
            }
        }
    }
}

/// Returns the registry that a snapshot has: the shipped blocks and those loaded since.
pub(crate) fn of_view(view: &mut View<'_>) -> Result<Arc<Registry>, ApiError> {
    static SHIPPED: LazyLock<Arc<Registry>> = LazyLock::new(|| Arc::new(Registry::shipped()));
    // For the most recently used tables, so that a deposit need not parse all of them again.
    static LAST: Mutex<Option<Loaded>> = Mutex::new(None);
    let sources = sources(view)?;
    if sources.is_empty() {
        return Ok(Arc::clone(&SHIPPED));
    }
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(it) = last.as_ref().filter(|it| it.sources == sources) {
        return Ok(Arc::clone(&it.registry));
    }
    let registry = Arc::new(built(&sources));
    *last = Some(Loaded { sources, registry: Arc::clone(&registry) });
    Ok(registry)
}

/// The registry of a list of loaded tables.
struct Loaded {
    sources: Vec<Value>,
    registry: Arc<Registry>,
}

fn sources(view: &mut View<'_>) -> Result<Vec<Value>, ApiError> {
    let query = Query::filter(Expr::All).sorted("order", Direction::Ascending);
    let mut all = Vec::new();
    for record in view.find(&BLOCK_SOURCE, &query)? {
        all.push(record.json()?);
    }
    Ok(all)
}

fn built(sources: &[Value]) -> Registry {
    let mut registry = Registry::shipped();
    for change in sources {
        if let Some(field) = change["field"].as_str() {
            registry.set_on_create(field, change["displayOnCreate"] == true);
            continue;
        }
        if let Err(error) = registry.load(change["tsv"].as_str().unwrap_or_default()) {
            tracing::error!(%error, "a table of metadata blocks that was loaded earlier can no longer be read");
        }
    }
    registry
}
