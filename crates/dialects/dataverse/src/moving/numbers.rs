//! Mapping of numbers and names of an export to those of the importing tenant.

use std::collections::HashMap;
use std::sync::Arc;

use pinakes_store::{Expr, Tenant, Txn, View};
use serde_json::{Value, json};

use super::shape::{self, Leaf, Shape};
use super::{Manifest, MovingError};
use crate::collections::{self, COLLECTION, ROOT};
use crate::datasets::DATASET;
use crate::error::ApiError;
use crate::groups::explicit;
use crate::ids::{self, FIRST, SEQUENCE};
use crate::{licenses, roles, users};

/// Mapping of an export's names and numbers. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Inward {
    /// The record of the import.
    key: String,
    /// Distance by which numbers are shifted.
    distance: i64,
    /// The range of valid numbers in the export.
    numbers: (i64, i64),
    /// Whether the tenant contained nothing but its root collection when the import began.
    pub(super) is_new: bool,
    /// Numbers of the imported collections, by their short names in the export.
    pub(super) collections: Arc<HashMap<String, i64>>,
}

impl Inward {
    /// Reads or creates the mapping for an export. It stays the same when the import is run again, so that an import
    /// that was killed can continue.
    ///
    /// Errors: the store; invalid numbers.
    pub(super) fn of(tenant: &Tenant, manifest: &Manifest) -> Result<Self, MovingError> {
        let key = format!("import/{}", manifest.id);
        let (numbers, id) = (manifest.numbers, key.clone());
        let begin = move |txn: &mut Txn<'_>| -> Result<(i64, bool), ApiError> {
            if let Some(record) = txn.get(&SEQUENCE, &id)? {
                let begun = record.json()?;
                return Ok((begun["distance"].as_i64().unwrap_or_default(), begun["isNew"] == true));
            }
            let n_objects = txn.count(&COLLECTION, &Expr::All)? + txn.count(&DATASET, &Expr::All)?;
            let distance = numbers.map_or(Ok(0), |span| ids::span_set_aside(txn, span))?;
            let is_new = n_objects <= 1;
            txn.put(&SEQUENCE, &id, &json!({"distance": distance, "isNew": is_new}))?;
            Ok((distance, is_new))
        };
        let (distance, is_new) = tenant.write_blocking(begin)?;
        let collections = Arc::new(HashMap::from([(manifest.root.clone(), ROOT)]));
        Ok(Self { key, distance, numbers: numbers.unwrap_or((FIRST, FIRST)), is_new, collections })
    }

    /// Returns whether the root collection has taken the contents of the exported root.
    pub(super) fn has_root(&self, view: &mut View<'_>) -> Result<bool, ApiError> {
        let begun = view.get(&SEQUENCE, &self.key)?;
        Ok(begun.is_some_and(|it| it.json().is_ok_and(|it| it["root"] == true)))
    }

    /// Records that it has.
    pub(super) fn root_came(&self, txn: &mut Txn<'_>) -> Result<(), ApiError> {
        if let Some(record) = txn.get(&SEQUENCE, &self.key)? {
            let mut begun = record.json()?;
            begun["root"] = true.into();
            txn.put(&SEQUENCE, &self.key, &begun)?;
        }
        Ok(())
    }

    /// Returns the local number of an object; the first few are the same everywhere.
    ///
    /// Errors: 400 for a number that is not in the export.
    pub(super) fn number(&self, number: i64) -> Result<i64, ApiError> {
        if (0..FIRST).contains(&number) {
            return Ok(number);
        }
        let (low, high) = self.numbers;
        if !(low..=high).contains(&number) {
            return Err(ApiError::bad_request(format!(
                "the number {number} is none of this export, whose numbers go from {low} to {high}"
            )));
        }
        Ok(number + self.distance)
    }

    /// Returns the local number of an object that the export contains.
    ///
    /// Errors: also 400 for numbers that every server assigns itself.
    pub(super) fn own(&self, number: i64) -> Result<i64, ApiError> {
        match number {
            ..FIRST => Err(ApiError::bad_request(format!(
                "the number {number} is none of an object; expected one from {FIRST} on"
            ))),
            _ => self.number(number),
        }
    }

    /// Returns the number of a collection by its short name in the export.
    ///
    /// Errors: 400 for one that is neither in the export nor in this tenant.
    pub(super) fn collection(&self, view: &mut View<'_>, alias: &str) -> Result<i64, ApiError> {
        if let Some(id) = self.collections.get(alias) {
            return Ok(*id);
        }
        let found = collections::by_alias(view, alias)?;
        let missing = || ApiError::bad_request(format!("the collection {alias} is not here"));
        found.map(|it| it.id).ok_or_else(missing)
    }

    /// Returns an assignee in the form of this tenant. A group of a collection that does not exist here keeps its name:
    /// nobody is in it.
    pub(super) fn assignee(&self, view: &mut View<'_>, text: &str) -> Result<String, ApiError> {
        let group = text.strip_prefix("&explicit/").and_then(|it| it.split_once('/'));
        let Some((owner, alias)) = group else { return Ok(text.to_owned()) };
        Ok(match self.collection(view, owner) {
            Ok(owner) => explicit::identifier(owner, alias),
            Err(_) => text.to_owned(),
        })
    }

    /// Replaces names in a record by numbers of this tenant.
    ///
    /// Errors: 400 with the name of an object that does not exist here.
    pub(super) fn numbered(
        &self,
        view: &mut View<'_>,
        mut value: Value,
        shape: Shape,
    ) -> Result<Value, ApiError> {
        shape::each(&mut value, shape, &mut |leaf, it| self.leaf(view, leaf, it))?;
        Ok(value)
    }

    fn leaf(&self, view: &mut View<'_>, leaf: Leaf, value: &mut Value) -> Result<(), ApiError> {
        if let Some(number) = value.as_i64() {
            if leaf == Leaf::Number {
                *value = self.number(number)?.into();
                return Ok(());
            }
            // 0 stands for no user or no role.
            if number == 0 && matches!(leaf, Leaf::User | Leaf::Role) {
                return Ok(());
            }
        }
        let unreadable = format!("{value:.60} stands where {leaf:?} was expected");
        let Some(text) = value.as_str() else { return Err(ApiError::bad_request(unreadable)) };
        let missing = |what: &str| ApiError::bad_request(format!("{what} {text} is not here"));
        *value = match leaf {
            Leaf::Number => return Err(ApiError::bad_request(unreadable)),
            Leaf::User => users::by_name(view, text)?.ok_or_else(|| missing("the user"))?.id.into(),
            Leaf::Role => roles::by_alias(view, text)?.ok_or_else(|| missing("the role"))?.id.into(),
            Leaf::License => licenses::by_name(view, text)?.ok_or_else(|| missing("the licence"))?.id.into(),
            Leaf::Collection => self.collection(view, text)?.into(),
            Leaf::Assignee => self.assignee(view, text)?.into(),
            // Bytes are imported before the records are written (`bytes.rs`).
            Leaf::Blob => return Ok(()),
        };
        Ok(())
    }
}
