//! The data of its tenant that a job needs, read once when it starts.

use std::ops::ControlFlow;
use std::sync::Arc;

use pinakes_store::{Expr, Query, StoreError, View};
use serde_json::Value;

use super::engine::Setup;
use super::job::Job;
use super::tree::Tree;
use crate::data_import::imports::Parts;
use crate::data_import::mapping::{Reference, RuleSet, Rules, TABLES};
use crate::data_import::profiles::{self, PROFILE_SNAPSHOT};
use crate::platform::collection::{Collections, by_list};

/// Why a job cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    /// Its profile cannot be run.
    #[error("{0}")]
    Profile(String),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the setup of a job that has a profile.
pub(crate) fn setup(view: &mut View<'_>, job: &Job, parts: &Parts) -> Result<Setup, SetupError> {
    let snapshot = job.work("snapshot").as_str().unwrap_or_default();
    let snapshot = view
        .get(&PROFILE_SNAPSHOT, snapshot)?
        .ok_or_else(|| SetupError::Profile("no job profile was chosen for this job".to_owned()))?
        .json()?;
    let tree = Tree::read(&snapshot).map_err(SetupError::Profile)?;
    let (authority_rules, is_extended) = authority_rules(view, parts.settings.authority_extended)?;
    Ok(Setup {
        job_id: job.id().to_owned(),
        user_id: Some(job.text("userId").to_owned()).filter(|it| !it.is_empty()),
        tree,
        bib_rules: Arc::new(rules(view, RuleSet::Bib)?),
        authority_rules: Arc::new(authority_rules),
        holdings_rules: Arc::new(rules(view, RuleSet::Holdings)?),
        is_extended,
        reference: reference(view, parts.collections)?,
        source_files: source_files(view, parts.collections)?,
        protections: profiles::protections(view)?,
        accepts_instance_id: job.work("acceptInstanceId").as_bool().unwrap_or(false),
        entropy: parts.entropy.clone(),
        most_unreadable: parts.settings.import_unreadable_records.max(1),
    })
}

/// Returns the rules for authorities, and whether they are those of the extended mode, which the server's or the
/// tenant's settings can ask for.
pub(super) fn authority_rules(view: &mut View<'_>, is_extended: bool) -> Result<(Rules, bool), SetupError> {
    let of_tenant = crate::authorities::authority::setting(view, "mapping.extended")?;
    let is_extended = is_extended || of_tenant == serde_json::Value::Bool(true);
    let rules = rules(view, RuleSet::Authority)?;
    Ok((if is_extended { rules.with_subdivisions() } else { rules }, is_extended))
}

pub(super) fn rules(view: &mut View<'_>, set: RuleSet) -> Result<Rules, SetupError> {
    let text = crate::data_import::mapping::stored::stored_rules(view, set)?;
    Rules::parse(&text)
        .map_err(|error| SetupError::Profile(format!("the mapping rules {}: {error}", set.name())))
}

/// Reads the tenant's types, formats and locations.
pub(crate) fn reference(view: &mut View<'_>, collections: Collections) -> Result<Reference, StoreError> {
    let mut reference = Reference::default();
    for table in TABLES {
        each(view, (collections, table), |entry| reference.add(table, entry))?;
    }
    Ok(reference)
}

/// Returns (id, codes) of the authority source files.
pub(super) fn source_files(
    view: &mut View<'_>,
    collections: Collections,
) -> Result<Vec<(String, Vec<String>)>, StoreError> {
    let mut files = Vec::new();
    each(view, (collections, "authoritySourceFiles"), |entry| {
        let codes = entry.get("codes").and_then(Value::as_array).into_iter().flatten();
        let codes: Vec<String> = codes.filter_map(Value::as_str).map(str::to_owned).collect();
        if let Some(id) = entry.get("id").and_then(Value::as_str) {
            files.push((id.to_owned(), codes));
        }
    })?;
    Ok(files)
}

/// Visits the records of the collection whose list has that name.
fn each(
    view: &mut View<'_>,
    (collections, list): (Collections, &str),
    mut visit: impl FnMut(Value),
) -> Result<(), StoreError> {
    let Some(collection) = by_list(collections, list) else { return Ok(()) };
    view.for_each(&collection.kind, &Query::filter(Expr::All), |record| {
        match record.json() {
            Ok(body) => visit(body),
            Err(error) => tracing::warn!(%error, id = record.id, list, "an entry cannot be read"),
        }
        ControlFlow::Continue(())
    })
}
