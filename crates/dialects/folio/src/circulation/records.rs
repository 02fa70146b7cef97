//! The records that one request needs: each is read once, many at a time where possible.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pinakes_store::{Expr, Record, StoreError, Value as Wanted, View};
use serde_json::{Map, Value};

use crate::platform::collection::Collection;
use crate::platform::json::text_at;

/// Records read so far, including the misses.
#[derive(Debug, Default)]
pub(crate) struct Records(HashMap<(&'static str, String), Option<Arc<Value>>>);

impl Records {
    /// Returns a record of a collection; `None` if it does not exist or the id is empty.
    pub(crate) fn get(
        &mut self,
        view: &mut View<'_>,
        collection: &'static Collection,
        id: &str,
    ) -> Result<Option<Arc<Value>>, StoreError> {
        if id.is_empty() {
            return Ok(None);
        }
        let key = (collection.kind.name, id.to_owned());
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        let found = view.get(&collection.kind, id)?.map(|it| it.json()).transpose()?.map(Arc::new);
        self.0.insert(key, found.clone());
        Ok(found)
    }

    /// Returns the record whose id is in `field` of another record.
    pub(crate) fn at(
        &mut self,
        view: &mut View<'_>,
        collection: &'static Collection,
        body: &Value,
        field: &str,
    ) -> Result<Option<Arc<Value>>, StoreError> {
        self.get(view, collection, text_at(body, field).unwrap_or_default())
    }

    /// Reads the records with these ids together.
    pub(crate) fn load<'a>(
        &mut self,
        view: &mut View<'_>,
        collection: &'static Collection,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Arc<Value>>, StoreError> {
        let name = collection.kind.name;
        let mut seen = HashSet::new();
        let ids: Vec<String> =
            ids.into_iter().filter(|id| !id.is_empty() && seen.insert(*id)).map(str::to_owned).collect();
        let unknown: Vec<String> =
            ids.iter().filter(|id| !self.0.contains_key(&(name, (*id).clone()))).cloned().collect();
        for (id, found) in unknown.iter().zip(view.get_many(&collection.kind, &unknown)?) {
            let found = found.map(|it| it.json()).transpose()?.map(Arc::new);
            self.0.insert((name, id.clone()), found);
        }
        Ok(ids.into_iter().filter_map(|id| self.0.get(&(name, id)).cloned().flatten()).collect())
    }

    /// Replaces the cached state of a record.
    pub(crate) fn put(&mut self, collection: &'static Collection, body: Value) {
        let id = text_at(&body, "id").unwrap_or_default().to_owned();
        self.0.insert((collection.kind.name, id), Some(Arc::new(body)));
    }
}

/// Returns the record with a barcode.
pub(crate) fn by_barcode(
    view: &mut View<'_>,
    collection: &'static Collection,
    barcode: &str,
) -> Result<Option<Record>, StoreError> {
    if barcode.is_empty() {
        return Ok(None);
    }
    view.first(&collection.kind, Expr::Is("barcode".into(), Wanted::Folded(barcode.to_owned())))
}

/// Returns the fields of an object; an empty map for anything else.
pub(crate) fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Returns the text of a field; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    text_at(value, path).unwrap_or_default()
}

/// Copies the fields that are present.
pub(crate) fn copy(from: &Value, names: &[&str], to: &mut Map<String, Value>) {
    for name in names {
        if let Some(value) = from.get(*name).filter(|it| !it.is_null()) {
            to.insert((*name).to_owned(), value.clone());
        }
    }
}
