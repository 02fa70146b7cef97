//! Rows of files: the files of each version, and their changes.

use std::collections::HashSet;

use pinakes_store::{Direction, End, Expr, Kind, Query, Txn, View};
use serde_json::Value;

use super::kinds::{AUXILIARY, DATA_FILE, DataFile, PENDING, PROVENANCE, REQUEST, ROW, Row, TABLE};
use crate::error::ApiError;
use crate::stored;

/// Numbers that are given to files of the same name lie below this.
const NAMES: u32 = 100_000;
/// Numbers that are looked up one by one, before all names are read.
const TRIED_SINGLY: u32 = 16;
/// Files that are read in one step.
pub(crate) const STEP_FILES: usize = 512;

/// Returns the condition of the rows of a version.
pub(crate) fn in_version(dataset: i64, ordinal: i64) -> Expr {
    let upto = Expr::Range("since".into(), End::Open, End::Included(ordinal.into()));
    let ended = Expr::Range("until".into(), End::Open, End::Included(ordinal.into()));
    Expr::Is("dataset".into(), dataset.into()).and(upto).and(Expr::Not(Box::new(ended)))
}

/// Returns the rows of a version, ordered by name.
pub(crate) fn of_version(view: &mut View<'_>, dataset: i64, ordinal: i64) -> Result<Vec<Row>, ApiError> {
    by_name(view, in_version(dataset, ordinal))
}

/// Returns the rows that only the older of two versions has, and those that only the newer one has, each ordered by name.
pub(crate) fn differing(
    view: &mut View<'_>,
    dataset: i64,
    old: i64,
    new: i64,
) -> Result<(Vec<Row>, Vec<Row>), ApiError> {
    let between =
        |column: &str| Expr::Range(column.into(), End::Excluded(old.into()), End::Included(new.into()));
    let ended = by_name(view, in_version(dataset, old).and(between("until")))?;
    let begun = by_name(view, in_version(dataset, new).and(between("since")))?;
    Ok((ended, begun))
}

fn by_name(view: &mut View<'_>, filter: Expr) -> Result<Vec<Row>, ApiError> {
    let mut rows = Vec::new();
    each(view, filter, |row| rows.push(row))?;
    rows.sort_by(|a, b| (&a.label, a.file).cmp(&(&b.label, b.file)));
    Ok(rows)
}

/// Passes the rows of a version to `visit`, in no particular order: there may be more than a page holds.
pub(crate) fn each_of_version(
    view: &mut View<'_>,
    dataset: i64,
    ordinal: i64,
    visit: impl FnMut(Row),
) -> Result<(), ApiError> {
    each(view, in_version(dataset, ordinal), visit)
}

fn each(view: &mut View<'_>, filter: Expr, mut visit: impl FnMut(Row)) -> Result<(), ApiError> {
    view.try_for_each(&ROW, &Query::filter(filter), |record| {
        visit(stored::parsed::<Row>(&record)?);
        Ok(())
    })
}

/// Returns a page of the rows of a version, ordered by name.
pub(crate) fn page_of_version(
    view: &mut View<'_>,
    dataset: i64,
    ordinal: i64,
    skip: u64,
    limit: u64,
) -> Result<Vec<Row>, ApiError> {
    let query =
        Query::filter(in_version(dataset, ordinal)).sorted("label", Direction::Ascending).window(skip, limit);
    stored::find(view, &ROW, &query)
}

/// Returns all rows of a file, oldest first.
pub(crate) fn of_file(view: &mut View<'_>, file: i64) -> Result<Vec<Row>, ApiError> {
    let mut rows: Vec<Row> = stored::find_by(view, &ROW, "file", file)?;
    rows.sort_by_key(|it| it.since);
    Ok(rows)
}

/// Returns the data file with that number.
pub(crate) fn data_file(view: &mut View<'_>, id: i64) -> Result<Option<DataFile>, ApiError> {
    stored::get(view, &DATA_FILE, &id.to_string())
}

/// Returns rows with their data files, in order; a row without data file is left out.
pub(crate) fn with_files(view: &mut View<'_>, rows: Vec<Row>) -> Result<Vec<(Row, DataFile)>, ApiError> {
    let mut all = Vec::with_capacity(rows.len());
    for some in rows.chunks(STEP_FILES) {
        let ids: Vec<String> = some.iter().map(|it| it.file.to_string()).collect();
        for (row, record) in some.iter().zip(view.get_many(&DATA_FILE, &ids)?) {
            if let Some(record) = record {
                all.push((row.clone(), stored::parsed(&record)?));
            }
        }
    }
    Ok(all)
}

/// Returns the variables of a file's table.
pub(crate) fn tables(view: &mut View<'_>, file: i64) -> Result<Option<Value>, ApiError> {
    let record = view.get(&TABLE, &file.to_string())?;
    Ok(match record {
        Some(record) => Some(record.json()?["tables"].take()),
        None => None,
    })
}

/// Stores a data file.
pub(crate) fn put_file(txn: &mut Txn<'_>, file: &DataFile) -> Result<(), ApiError> {
    stored::put(txn, &DATA_FILE, &file.id.to_string(), file)
}

/// Stores a row, with its look-up keys while it is open.
pub(crate) fn put_row(txn: &mut Txn<'_>, mut row: Row, checksum: &str) -> Result<Row, ApiError> {
    let is_open = row.until.is_none();
    row.open_path = is_open.then(|| format!("{}/{}", row.dataset, row.path()));
    row.open_sum = is_open.then(|| format!("{}/{checksum}", row.dataset));
    stored::put(txn, &ROW, &row.id.to_string(), &row)?;
    Ok(row)
}

/// Returns whether an open row of the dataset has that path.
pub(crate) fn is_taken(view: &mut View<'_>, dataset: i64, path: &str) -> Result<bool, ApiError> {
    let wanted = format!("{dataset}/{path}");
    Ok(view.first(&ROW, Expr::Is("openPath".into(), wanted.into()))?.is_some())
}

/// Returns the name, or the first of `name-1.ext`, `name-2.ext`, … that no open row in the folder has. A name that ends
/// in such a number already is counted on from there: `name-1.ext` becomes `name-2.ext`.
pub(crate) fn free_label(
    view: &mut View<'_>,
    dataset: i64,
    directory: &str,
    label: &str,
) -> Result<String, ApiError> {
    let folder = if directory.is_empty() { String::new() } else { format!("{directory}/") };
    if !is_taken(view, dataset, &format!("{folder}{label}"))? {
        return Ok(label.to_owned());
    }
    let (stem, extension) = match label.rfind('.').filter(|at| 0 < *at) {
        Some(at) => label.split_at(at),
        None => (label, ""),
    };
    let (stem, first) = numbered(stem);
    for n in first..first + TRIED_SINGLY {
        if !is_taken(view, dataset, &format!("{folder}{stem}-{n}{extension}"))? {
            return Ok(format!("{stem}-{n}{extension}"));
        }
    }
    let taken = numbers(view, dataset, &format!("{folder}{stem}-"), extension)?;
    let free = (first + TRIED_SINGLY..NAMES).find(|n| !taken.contains(n));
    let free = free.ok_or_else(|| {
        ApiError::bad_request(format!("There are too many files named {label} in the dataset."))
    })?;
    Ok(format!("{stem}-{free}{extension}"))
}

/// Returns a stem without its number, and the number that follows: 1 if it has none.
fn numbered(stem: &str) -> (&str, u32) {
    let parts = stem.rsplit_once('-').filter(|(before, _)| !before.is_empty());
    let number = |digits: &str| match digits.bytes().all(|it| it.is_ascii_digit()) {
        true => digits.parse::<u32>().ok().filter(|it| *it < NAMES),
        false => None,
    };
    match parts.and_then(|(before, digits)| Some((before, number(digits)?))) {
        Some((before, number)) => (before, number + 1),
        None => (stem, 1),
    }
}

/// Returns the numbers between `prefix` and `extension` in the paths of the dataset's open rows.
fn numbers(
    view: &mut View<'_>,
    dataset: i64,
    prefix: &str,
    extension: &str,
) -> Result<HashSet<u32>, ApiError> {
    let prefix = format!("{dataset}/{prefix}");
    // A digit follows the prefix, and `:` follows the digits.
    let from = End::Included(format!("{prefix}0").into());
    let end = End::Excluded(format!("{prefix}:").into());
    let mut taken = HashSet::new();
    view.for_each(&ROW, &Query::filter(Expr::Range("openPath".into(), from, end)), |record| {
        if let Ok(row) = stored::parsed::<Row>(&record) {
            let path = row.open_path.unwrap_or_default();
            let number = path.strip_prefix(&prefix).and_then(|it| it.strip_suffix(extension));
            taken.extend(number.and_then(|it| it.parse::<u32>().ok()));
        }
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(taken)
}

/// Returns the row of a file in the dataset with the same contents.
pub(crate) fn same_content(
    view: &mut View<'_>,
    dataset: i64,
    checksum: &str,
) -> Result<Option<Row>, ApiError> {
    let wanted = format!("{dataset}/{checksum}");
    let found = view.first(&ROW, Expr::Is("openSum".into(), wanted.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Changes the open row of a file in the draft with that ordinal: in place if the row begins there, otherwise as a new
/// row that replaces it. `id` is the number of the new row.
pub(crate) fn change(
    txn: &mut Txn<'_>,
    row: Row,
    ordinal: i64,
    id: i64,
    checksum: &str,
    edit: impl FnOnce(&mut Row),
) -> Result<Row, ApiError> {
    let mut next = row.clone();
    edit(&mut next);
    if row.since != ordinal {
        close(txn, row, ordinal)?;
        next.id = id;
        next.since = ordinal;
    }
    put_row(txn, next, checksum)
}

/// Ends a row before the version with that ordinal; deletes a row that begins there. Returns whether it was deleted.
pub(crate) fn close(txn: &mut Txn<'_>, mut row: Row, ordinal: i64) -> Result<bool, ApiError> {
    if row.since == ordinal {
        txn.delete(&ROW, &row.id.to_string())?;
        return Ok(true);
    }
    row.until = Some(ordinal);
    put_row(txn, row, "")?;
    Ok(false)
}

/// Removes a file that no row refers to, with everything that belongs to it.
pub(crate) fn forget_file(txn: &mut Txn<'_>, file: i64) -> Result<(), ApiError> {
    let id = file.to_string();
    for kind in [&DATA_FILE, &TABLE, &PENDING, &PROVENANCE] {
        txn.delete(kind, &id)?;
    }
    remove_where(txn, &AUXILIARY, "file", file)?;
    remove_where(txn, &REQUEST, "file", file)?;
    crate::search::document::forget(txn, &format!("datafile_{file}"))?;
    crate::search::document::forget(txn, &format!("datafile_{file}_draft"))
}

/// Removes the records of a kind whose `column` is `number`.
fn remove_where(txn: &mut Txn<'_>, kind: &'static Kind, column: &str, number: i64) -> Result<(), ApiError> {
    let query = Query::filter(Expr::Is(column.into(), number.into()));
    for record in txn.find(kind, &query)? {
        txn.delete(kind, &record.id)?;
    }
    Ok(())
}

/// Returns the ids of all records that match a filter.
pub(crate) fn ids_of(
    view: &mut View<'_>,
    kind: &'static Kind,
    filter: Expr,
) -> Result<Vec<String>, ApiError> {
    let mut ids = Vec::new();
    view.for_each(kind, &Query::filter(filter), |record| {
        ids.push(record.id);
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(ids)
}
