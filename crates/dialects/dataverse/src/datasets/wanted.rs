//! The dataset that a path names, and whether it is hidden from the caller.

use pinakes_store::View;

use crate::app::Call;
use crate::asker::Asker;
use crate::collections::{self, visibility};
use crate::datasets::{self, Dataset};
use crate::error::ApiError;
use crate::name::{Name, Thing};

/// Returns whether a dataset is in a collection that is hidden from the caller.
pub(crate) fn is_dataset_kept_from(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
) -> Result<bool, ApiError> {
    if asker.is_superuser() || !visibility::is_any(view)? {
        return Ok(false);
    }
    let owner = collections::named_by_record(view, dataset.owner)?;
    visibility::is_kept_from(view, asker, &owner)
}

/// The requested dataset: by number, or by `:persistentId` with the parameter `persistentId`.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    name: Name,
    /// The caller, from whom a dataset may be hidden; `None` if the server itself looks it up.
    asker: Option<Asker>,
}

impl Wanted {
    /// Reads the path's parameter `id`.
    ///
    /// Errors: 400 for text that is not a number, and without `persistentId`.
    pub(crate) fn of(call: &Call) -> Result<Self, ApiError> {
        Self::parse(call.param("id"), call.query.filled("persistentId"), &call.asker)
    }

    /// Selects by number, without a check of visibility.
    pub(crate) fn number(id: i64) -> Self {
        Self { name: Name::Number(id), asker: None }
    }

    /// Selects by persistent identifier, without a check of visibility.
    pub(crate) fn pid(pid: &str) -> Self {
        Self { name: Name::Pid(pid.to_owned()), asker: None }
    }

    /// Parses the parts of a request.
    pub(crate) fn parse(id: &str, pid: Option<&str>, asker: &Asker) -> Result<Self, ApiError> {
        let name = match Name::parse(Thing::Dataset, id, pid.map(str::to_owned))? {
            // Some scripts send the number in this parameter.
            Name::Pid(pid) => pid.parse().map_or(Name::Pid(pid), Name::Number),
            number => number,
        };
        Ok(Self { name, asker: Some(asker.clone()) })
    }

    /// Returns the dataset. Errors: 404, also if it is hidden from the caller.
    pub(crate) fn find(&self, view: &mut View<'_>) -> Result<Dataset, ApiError> {
        let found = match &self.name {
            Name::Number(id) => datasets::by_id(view, *id)?,
            Name::Pid(pid) => datasets::by_pid(view, pid)?,
        };
        let missing = || self.name.missing(Thing::Dataset);
        let dataset = found.ok_or_else(missing)?;
        match &self.asker {
            Some(asker) if is_dataset_kept_from(view, asker, &dataset)? => Err(missing()),
            _ => Ok(dataset),
        }
    }
}

/// Refuses a dataset in a collection that is hidden from the caller, as if it did not exist. Errors: 404.
pub(crate) fn require_not_kept(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
) -> Result<(), ApiError> {
    if is_dataset_kept_from(view, asker, dataset)? {
        return Err(Name::Pid(dataset.pid.clone()).missing(Thing::Dataset));
    }
    Ok(())
}
