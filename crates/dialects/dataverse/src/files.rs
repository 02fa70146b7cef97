//! Files of datasets: storage, upload, changes and removal (section 6 of the contract).
//!
//! | file | what |
//! |---|---|
//! | `kinds.rs`, `rows.rs` | records, and which files a version has |
//! | `types.rs` | media types |
//! | `receive.rs`, `unzip.rs`, `room.rs` | receiving bytes, and limits on them |
//! | `add.rs`, `direct.rs` | adding and replacing, by upload and by signed URLs |
//! | `edit.rs`, `availability.rs` | changing and deleting, embargoes and retention |
//! | `ingest.rs`, `headers.rs` | reading tables, and the headers of FITS, NetCDF and HDF5 |
//! | `selection.rs`, `listing.rs`, `downloadable.rs` | the files of a version: pages, counts, sizes |
//! | `show.rs`, `json.rs` | output |

pub(crate) mod add;
pub(crate) mod availability;
pub(crate) mod checksum;
pub(crate) mod described;
pub(crate) mod direct;
mod downloadable;
pub(crate) mod draft;
pub(crate) mod edit;
pub(crate) mod findings;
pub(crate) mod headers;
pub(crate) mod incoming;
pub(crate) mod ingest;
pub(crate) mod json;
pub(crate) mod kinds;
pub(crate) mod listing;
pub(crate) mod receive;
pub(crate) mod replace;
pub(crate) mod room;
pub(crate) mod rows;
mod selection;
pub(crate) mod show;
pub(crate) mod side;
pub(crate) mod summing;
pub(crate) mod types;
pub(crate) mod unzip;
pub(crate) mod variables;

use pinakes_store::{Expr, Txn, View};
use serde_json::Value;

use crate::asker::Asker;
use crate::collections::visibility;
use crate::datasets::{self, Dataset, Version, version, wanted};
use crate::error::ApiError;
use crate::grants::{Permission, Place};
use crate::name::{Name, Thing};
use crate::{permissions, stored};
use kinds::{DATA_FILE, ROW};

pub(crate) use add::{add_all, add_archive};
pub(crate) use edit::{delete_one, remove_from_draft};
pub(crate) use incoming::of_version_json;
pub(crate) use json::{Around, dataset_of, file_json};
pub(crate) use kinds::{DataFile, Row};

/// The file that a path names: by number, or by `:persistentId` with the parameter `persistentId`.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    name: Name,
    /// The caller, from whom a file may be hidden; `None` if the server itself looks it up.
    asker: Option<Asker>,
}

impl Wanted {
    /// Reads the path's parameter `id`. Errors: 400 for text that is not a number.
    pub(crate) fn of(call: &crate::app::Call) -> Result<Self, ApiError> {
        let pid = call.query.filled("persistentId").map(datasets::canonical_pid);
        let name = Name::parse(Thing::File, call.param("id"), pid)?;
        Ok(Self { name, asker: Some(call.asker.clone()) })
    }

    /// Reads the query of a page: `fileId`, or `persistentId`. Errors: 400 for text that is not a number.
    pub(crate) fn of_page(call: &crate::app::Call) -> Result<Self, ApiError> {
        let pid = call.query.filled("persistentId").map(datasets::canonical_pid);
        let name = Name::parse(Thing::File, call.query.filled("fileId").unwrap_or(":persistentId"), pid)?;
        Ok(Self { name, asker: Some(call.asker.clone()) })
    }

    /// Selects by number, without a check of visibility.
    pub(crate) fn number(id: i64) -> Self {
        Self { name: Name::Number(id), asker: None }
    }

    /// Returns the file. Errors: 404, also if it is hidden from the caller.
    pub(crate) fn find(&self, view: &mut View<'_>) -> Result<DataFile, ApiError> {
        let found: Option<DataFile> = match &self.name {
            Name::Number(id) => rows::data_file(view, *id)?,
            Name::Pid(pid) => {
                let value = pinakes_store::Value::Folded(pid.clone());
                let found = view.first(&DATA_FILE, Expr::Is("pid".into(), value))?;
                found.as_ref().map(stored::parsed).transpose()?
            }
        };
        let missing = || self.name.missing(Thing::File);
        let file = found.ok_or_else(missing)?;
        if let Some(asker) = &self.asker
            && visibility::is_any(view)?
        {
            let dataset = dataset_of(view, &file)?;
            if wanted::is_dataset_kept_from(view, asker, &dataset)? {
                return Err(missing());
            }
        }
        Ok(file)
    }
}

/// A file with its dataset and its rows.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) file: DataFile,
    pub(crate) dataset: Dataset,
    pub(crate) rows: Vec<Row>,
    /// Ordinals of the versions that are published and not deaccessioned.
    pub(crate) released: Vec<i64>,
}

impl Found {
    pub(crate) fn of(view: &mut View<'_>, file: DataFile) -> Result<Self, ApiError> {
        let dataset = dataset_of(view, &file)?;
        let rows = rows::of_file(view, file.id)?;
        let released = version::released_ordinals(view, &dataset)?;
        Ok(Self { file, dataset, rows, released })
    }

    /// Returns the row of the newest published version that contains the file.
    pub(crate) fn published_row(&self) -> Option<&Row> {
        self.released.iter().find_map(|ordinal| self.rows.iter().find(|it| it.is_in(*ordinal)))
    }

    /// Returns the newest row.
    pub(crate) fn newest_row(&self) -> Option<&Row> {
        self.rows.last()
    }

    /// Returns the row in the draft, if that contains the file.
    pub(crate) fn open_row(&self) -> Option<&Row> {
        self.rows.iter().find(|it| it.until.is_none())
    }

    /// Returns the place at which roles on it apply.
    pub(crate) fn place(&self) -> Place {
        Place::file(self.file.id, self.dataset.id, self.dataset.owner)
    }

    /// Returns whether users who may see it may download it without a role: it is neither restricted, nor under
    /// embargo, nor past its retention period.
    pub(crate) fn is_open(&self, today: &str) -> bool {
        let row = self.published_row().or_else(|| self.newest_row());
        row.is_some_and(|it| !it.restricted) && !is_held_back(&self.file, today)
    }

    /// Returns whether the caller may download it.
    pub(crate) fn may_download(
        &self,
        view: &mut View<'_>,
        asker: &Asker,
        today: &str,
    ) -> Result<bool, ApiError> {
        if wanted::is_dataset_kept_from(view, asker, &self.dataset)? {
            return Ok(false);
        }
        if let Some(preview) = asker.preview.filter(|it| it.dataset == self.dataset.id) {
            return Ok(!preview.anonymized || self.is_open(today));
        }
        let is_published = self.published_row().is_some();
        if is_published && self.is_open(today) {
            return Ok(true);
        }
        let held = permissions::held(view, asker, self.place())?;
        if self.file.retention.as_ref().is_some_and(|it| it.date.as_str() < today) {
            return Ok(held.contains(&Permission::EditDataset));
        }
        if is_published {
            return Ok(held.contains(&Permission::DownloadFile) || held.contains(&Permission::EditDataset));
        }
        Ok(held.contains(&Permission::ViewUnpublishedDataset)
            && (self.is_open(today) || held.contains(&Permission::DownloadFile)))
    }

    /// Returns whether the caller may know of its existence.
    pub(crate) fn may_see(&self, view: &mut View<'_>, asker: &Asker) -> Result<bool, ApiError> {
        if wanted::is_dataset_kept_from(view, asker, &self.dataset)? {
            return Ok(false);
        }
        if self.published_row().is_some() || asker.preview.is_some_and(|it| it.dataset == self.dataset.id) {
            return Ok(true);
        }
        permissions::may(view, asker, self.place(), Permission::ViewUnpublishedDataset)
    }
}

/// Returns whether a file is under embargo or past its retention period.
pub(crate) fn is_held_back(file: &DataFile, today: &str) -> bool {
    file.embargo.as_ref().is_some_and(|it| today < it.date.as_str())
        || file.retention.as_ref().is_some_and(|it| it.date.as_str() < today)
}

/// Undoes the changes of files in a draft that is being deleted. `ordinal` is the draft's.
pub(crate) fn discard_draft(txn: &mut Txn<'_>, dataset: i64, ordinal: i64) -> Result<(), ApiError> {
    let of = |column: &str| {
        Expr::Is("dataset".into(), dataset.into()).and(Expr::Is(column.into(), ordinal.into()))
    };
    let born = rows::ids_of(txn, &ROW, of("since"))?;
    for id in born {
        let Some(record) = txn.delete(&ROW, &id)? else { continue };
        let row: Row = stored::parsed(&record)?;
        crate::search::document::forget(txn, &format!("datafile_{}_draft", row.file))?;
        if rows::of_file(txn, row.file)?.is_empty() {
            rows::forget_file(txn, row.file)?;
        }
    }
    for id in rows::ids_of(txn, &ROW, of("until"))? {
        let Some(mut row) = stored::get::<Row>(txn, &ROW, &id)? else { continue };
        let checksum = rows::data_file(txn, row.file)?.map(|it| it.checksum).unwrap_or_default();
        row.until = None;
        rows::put_row(txn, row, &checksum)?;
    }
    Ok(())
}

/// Removes all files of a dataset that is being deleted.
pub(crate) fn remove_all(txn: &mut Txn<'_>, dataset: i64) -> Result<(), ApiError> {
    let of = || Expr::Is("dataset".into(), dataset.into());
    for id in rows::ids_of(txn, &ROW, of())? {
        txn.delete(&ROW, &id)?;
    }
    for id in rows::ids_of(txn, &DATA_FILE, of())? {
        rows::forget_file(txn, id.parse().unwrap_or_default())?;
    }
    txn.delete(&kinds::LOGO, &dataset.to_string())?;
    Ok(())
}

/// Returns the files of a version by name, as JSON for `files`.
pub(crate) fn list_json(view: &mut View<'_>, dataset: i64, around: &Around) -> Result<Vec<Value>, ApiError> {
    let rows = rows::of_version(view, dataset, around.version.ordinal)?;
    let files = rows::with_files(view, rows)?;
    Ok(files.iter().map(|(row, file)| file_json(row, file, around)).collect())
}

/// Returns the files that only the older of two versions has as they are there, and those of the newer one: by name, as
/// JSON for `files`.
pub(crate) fn differing_json(
    view: &mut View<'_>,
    dataset: &Dataset,
    old: i64,
    new: i64,
) -> Result<(Vec<Value>, Vec<Value>), ApiError> {
    let (before, after) = rows::differing(view, dataset.id, old, new)?;
    let mut json = |rows: Vec<Row>, ordinal: i64| -> Result<Vec<Value>, ApiError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let around = Around::of(view, dataset, ordinal)?;
        let files = rows::with_files(view, rows)?;
        Ok(files.iter().map(|(row, file)| file_json(row, file, &around)).collect())
    };
    Ok((json(before, old)?, json(after, new)?))
}

/// Returns the number of files in a version.
pub(crate) fn n_files(view: &mut View<'_>, dataset: i64, ordinal: i64) -> Result<u64, ApiError> {
    Ok(view.count(&ROW, &rows::in_version(dataset, ordinal))?)
}

/// Returns whether files were added, removed or replaced in the version with that ordinal.
pub(crate) fn changed(view: &mut View<'_>, dataset: i64, ordinal: i64) -> Result<bool, ApiError> {
    let of = |column: &str| {
        Expr::Is("dataset".into(), dataset.into()).and(Expr::Is(column.into(), ordinal.into()))
    };
    let files = |view: &mut View<'_>, column: &str| -> Result<std::collections::BTreeSet<i64>, ApiError> {
        let mut files = std::collections::BTreeSet::new();
        for id in rows::ids_of(view, &ROW, of(column))? {
            files.extend(stored::get::<Row>(view, &ROW, &id)?.map(|it| it.file));
        }
        Ok(files)
    };
    Ok(files(view, "since")? != files(view, "until")?)
}

/// Returns whether a version has restricted files.
pub(crate) fn has_restricted(view: &mut View<'_>, dataset: i64, ordinal: i64) -> Result<bool, ApiError> {
    let restricted = rows::in_version(dataset, ordinal).and(Expr::Is("restricted".into(), true.into()));
    Ok(view.first(&ROW, restricted)?.is_some())
}

/// Returns the size of all files of a dataset in bytes, including the originals of tables.
pub(crate) fn used_bytes(view: &mut View<'_>, dataset: i64) -> Result<u64, ApiError> {
    bytes_of(view, &Expr::Is("dataset".into(), dataset.into()))
}

/// Returns the size of the data files that satisfy a condition in bytes, including the originals of tables.
pub(crate) fn bytes_of(view: &mut View<'_>, filter: &Expr) -> Result<u64, ApiError> {
    let of_files = view.sum(&DATA_FILE, filter, &"size".into())?;
    let of_originals = view.sum(&DATA_FILE, filter, &"original.size".into())?;
    Ok(of_files.saturating_add(of_originals).unsigned_abs())
}

/// Assigns the changes of a draft, which replaces the current release, to the ordinal of that release.
pub(crate) fn merge_draft(txn: &mut Txn<'_>, dataset: i64, current: i64, draft: i64) -> Result<(), ApiError> {
    let of =
        |column: &str| Expr::Is("dataset".into(), dataset.into()).and(Expr::Is(column.into(), draft.into()));
    for id in rows::ids_of(txn, &ROW, of("until"))? {
        let Some(mut row) = stored::get::<Row>(txn, &ROW, &id)? else { continue };
        if row.since == current {
            txn.delete(&ROW, &id)?;
            continue;
        }
        row.until = Some(current);
        rows::put_row(txn, row, "")?;
    }
    for id in rows::ids_of(txn, &ROW, of("since"))? {
        let Some(mut row) = stored::get::<Row>(txn, &ROW, &id)? else { continue };
        let file = rows::data_file(txn, row.file)?;
        row.since = current;
        rows::put_row(txn, row, &file.as_ref().map(|it| it.checksum.clone()).unwrap_or_default())?;
        if let Some(mut file) = file.filter(|it| it.first == draft) {
            file.first = current;
            rows::put_file(txn, &file)?;
        }
    }
    Ok(())
}

/// Returns the rows and data files of a version, by name.
pub(crate) fn all_of(view: &mut View<'_>, version: &Version) -> Result<Vec<(Row, DataFile)>, ApiError> {
    let rows = rows::of_version(view, version.dataset, version.ordinal)?;
    rows::with_files(view, rows)
}
