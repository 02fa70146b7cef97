//! Whether a caller may download any file of a version.

use pinakes_store::View;

use super::selection::{Access, Filter, Selection};
use crate::asker::Asker;
use crate::datasets::{Dataset, Version, wanted};
use crate::error::ApiError;
use crate::grants::Permission;
use crate::permissions;

/// Returns whether the caller may download any file of the newest released version: whether
/// [`may_download`](super::Found::may_download) holds for one of them, without reading them. `None` for other versions,
/// in which that depends on each file's rows in newer ones.
pub(super) fn any_of_newest(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
    version: &Version,
    today: &str,
) -> Result<Option<bool>, ApiError> {
    let is_newest = dataset.released.as_ref().is_some_and(|it| it.ordinal == version.ordinal);
    if !is_newest || asker.preview.is_some_and(|it| it.dataset == dataset.id) {
        return Ok(None);
    }
    if wanted::is_dataset_kept_from(view, asker, dataset)? {
        return Ok(Some(false));
    }
    let held = permissions::held(view, asker, dataset.place())?;
    for (access, filter) in Filter::all(today.to_owned()).by_access() {
        let files = Selection::of(view, version, &filter)?;
        let needed: &[Permission] = match access {
            Access::Public => &[],
            Access::RetentionPeriodExpired => &[Permission::EditDataset],
            _ => &[Permission::DownloadFile, Permission::EditDataset],
        };
        let may_all = needed.is_empty() || needed.iter().any(|it| held.contains(it));
        let may_any = if may_all {
            files.count(view)? != 0
        } else {
            let granted = permissions::objects_with(view, asker, needed)?;
            files.is_any_of(view, granted)?
        };
        if may_any {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}
