//! The number of datasets of a proposal.

use std::collections::BTreeSet;

use pinakes_store::Txn;
use serde_json::{Map, Value};

use crate::documents::object;
use crate::error::ScicatError;
use crate::kinds::PROPOSAL;

/// Changes `numberOfDatasets` of the proposals that a dataset names by `difference`. Proposals that do not
/// exist here are skipped.
pub(crate) fn count_datasets(
    txn: &mut Txn<'_>,
    named: &BTreeSet<String>,
    difference: i64,
) -> Result<(), ScicatError> {
    for id in named {
        let Some(record) = txn.get(&PROPOSAL, id)? else { continue };
        let mut proposal = object(&record)?;
        let before = proposal.get(N_DATASETS).and_then(Value::as_i64).unwrap_or(0);
        proposal.insert(N_DATASETS.to_owned(), before.saturating_add(difference).max(0).into());
        txn.update(&PROPOSAL, id, &Value::Object(proposal))?;
    }
    Ok(())
}

pub(crate) const N_DATASETS: &str = "numberOfDatasets";

/// Returns the distinct proposals that a dataset names.
pub(crate) fn named_by(dataset: &Map<String, Value>) -> BTreeSet<String> {
    let ids = dataset.get("proposalIds").and_then(Value::as_array);
    ids.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
