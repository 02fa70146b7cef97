//! Information from the header of a file, and its transfer to the dataset.

use std::sync::Arc;

use pinakes_store::Txn;

use crate::app::Dataverse;
use crate::blocks::edit;
use crate::blocks::fields::Fields;
use crate::blocks::registry::Registry;
use crate::datasets::version::{self, Version};
use crate::datasets::{Dataset, schema};
use crate::error::ApiError;
use crate::files::kinds::{self, AUXILIARY, Auxiliary};
use crate::{changes, collections, stored};

/// Information from the header of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Description, used if the depositor gives none.
    pub(crate) description: Option<String>,
    pub(super) registry: Arc<Registry>,
    pub(super) fields: Fields,
    /// The NcML, without its file's number.
    pub(super) beside: Option<Auxiliary>,
}

impl Found {
    /// Stores the auxiliary file.
    pub(crate) fn put_beside(&self, txn: &mut Txn<'_>, file: i64) -> Result<(), ApiError> {
        let Some(it) = &self.beside else { return Ok(()) };
        let it = Auxiliary { file, ..it.clone() };
        stored::put(txn, &AUXILIARY, &kinds::auxiliary_id(file, &it.format_tag, &it.format_version), &it)
    }

    /// Adds the fields to the draft, as far as the collection uses their blocks.
    pub(crate) fn put_fields(
        &self,
        txn: &mut Txn<'_>,
        app: &Dataverse,
        dataset: &Dataset,
        draft: &mut Version,
    ) -> Result<(), ApiError> {
        let collection = collections::named_by_record(txn, dataset.owner)?;
        let (blocks, _) = collections::structure::rules_of(txn, &self.registry, &collection)?;
        let mut update = self.fields.clone();
        update.0.retain(|it| blocks.contains(&self.registry.at(it.at).block));
        if update.0.is_empty() {
            return Ok(());
        }
        let there = serde_json::Value::Object(draft.metadata_blocks.clone());
        let before = Fields::stored(&self.registry, &there);
        let mut fields = before.clone();
        edit::add(&self.registry, &mut fields, update);
        let is_valid = schema::check_fields(txn, &self.registry, &collection, &fields).is_ok();
        if fields == before || !is_valid {
            return Ok(());
        }
        if let serde_json::Value::Object(blocks) = fields.to_json(&self.registry) {
            draft.metadata_blocks = blocks;
        }
        version::put(txn, draft)?;
        changes::dataset(txn, app, dataset.id)
    }
}
