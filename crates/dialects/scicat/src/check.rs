//! Consistency checks between the dialect's records, which `pinakes check` runs after the store's own checks.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use pinakes_store::{Expr, Kind, Query, StoreError, Tenant, Value as Condition, View};
use serde_json::Value;

use crate::kinds::DATASET;
use crate::kinds::PROPOSAL;
use crate::kinds::{DATABLOCK, ORIG_DATABLOCK};

/// Maximum number of findings that are listed; further ones are only counted.
const LISTED: usize = 20;

/// Sums over the blocks of a dataset.
#[derive(Default)]
struct Sums {
    n_files: u64,
    n_blocks: u64,
}

/// Finds inconsistencies in one snapshot: blocks without a dataset, datasets that claim fewer files than their
/// blocks hold (a client may claim more, for files that are in no block), and proposals with a wrong number of
/// datasets. Returns an empty list when everything is consistent.
pub fn findings(tenant: &Tenant) -> Result<Vec<String>, StoreError> {
    let mut found = tenant.read_blocking(|view| {
        let mut found = Vec::new();
        check_blocks(view, &ORIG_DATABLOCK, "numberOfFiles", &mut found)?;
        check_blocks(view, &DATABLOCK, "numberOfFilesArchived", &mut found)?;
        check_proposals(view, &mut found)?;
        Ok::<_, StoreError>(found)
    })?;
    let n_more = found.len().saturating_sub(LISTED);
    found.truncate(LISTED);
    if 0 < n_more {
        found.push(format!("scicat: {n_more} more"));
    }
    Ok(found)
}

fn check_blocks(
    view: &mut View<'_>,
    kind: &'static Kind,
    claim: &str,
    found: &mut Vec<String>,
) -> Result<(), StoreError> {
    for (pid, sums) in sums_by_dataset(view, kind)? {
        let Some(dataset) = view.get(&DATASET, &pid)? else {
            found.push(format!("{}: {} of dataset {pid:?}, which is not there", kind.name, sums.n_blocks));
            continue;
        };
        let claimed = dataset.json()?.get(claim).and_then(Value::as_u64).unwrap_or(0);
        if claimed < sums.n_files {
            let n_files = sums.n_files;
            found.push(format!("{}: {pid:?}: {claim} is {claimed}, its blocks hold {n_files}", DATASET.name));
        }
    }
    Ok(())
}

fn sums_by_dataset(view: &mut View<'_>, kind: &'static Kind) -> Result<BTreeMap<String, Sums>, StoreError> {
    let (mut all, mut damage) = (BTreeMap::<String, Sums>::new(), None);
    view.for_each(kind, &Query::filter(Expr::All), |block| match block.json() {
        Ok(body) => {
            let pid = body.get("datasetId").and_then(Value::as_str).unwrap_or_default();
            let sums = all.entry(pid.to_owned()).or_default();
            sums.n_files += block.n_members;
            sums.n_blocks += 1;
            ControlFlow::Continue(())
        }
        Err(error) => {
            damage = Some(error);
            ControlFlow::Break(())
        }
    })?;
    damage.map_or(Ok(all), Err)
}

fn check_proposals(view: &mut View<'_>, found: &mut Vec<String>) -> Result<(), StoreError> {
    let mut claims = Vec::new();
    view.for_each(&PROPOSAL, &Query::filter(Expr::All), |proposal| {
        let claimed = proposal.json().ok().and_then(|it| it.get("numberOfDatasets").and_then(Value::as_u64));
        claims.push((proposal.id, claimed.unwrap_or(0)));
        ControlFlow::Continue(())
    })?;
    for (id, claimed) in claims {
        let n = view.count(&DATASET, &Expr::Is("proposalIds".into(), Condition::Text(id.clone())))?;
        if n != claimed {
            found.push(format!("{}: {id:?}: numberOfDatasets is {claimed}, it has {n}", PROPOSAL.name));
        }
    }
    Ok(())
}
