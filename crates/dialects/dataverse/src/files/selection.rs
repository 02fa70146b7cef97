//! The files of a version that a request selects: pages of them in any order, counts and sizes, read from the search
//! index (section 4.3 of the contract).

use std::cell::OnceCell;
use std::collections::BTreeMap;

use pinakes_store::{Direction, End, Expr, JoinKeys, Pattern, Query, Value, View};

use super::kinds::{DATA_FILE, DataFile, ROW, Row};
use super::rows;
use crate::app::Call;
use crate::datasets::Version;
use crate::error::ApiError;
use crate::{clock, stored};

/// Who may download a file, by its row and its dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody.
    Public,
    /// Holders of a permission.
    Restricted,
    /// Nobody until the embargo ends, then holders of a permission.
    EmbargoedThenRestricted,
    /// Nobody until the embargo ends, then everybody.
    EmbargoedThenPublic,
    /// Nobody any more.
    RetentionPeriodExpired,
}

impl Access {
    /// All, with the most frequent first.
    const ALL: [Self; 5] = [
        Self::Public,
        Self::Restricted,
        Self::EmbargoedThenRestricted,
        Self::EmbargoedThenPublic,
        Self::RetentionPeriodExpired,
    ];

    /// Returns the name in JSON.
    pub(super) fn name(self) -> String {
        format!("{self:?}")
    }

    fn named(name: &str) -> Result<Self, ApiError> {
        let found = Self::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| ApiError::bad_request(format!("Invalid access status: {name}")))
    }

    /// Returns the condition on rows.
    fn of_rows(self) -> Expr {
        let is_restricted = |it: bool| Expr::Is("restricted".into(), it.into());
        match self {
            Self::Public | Self::EmbargoedThenPublic => is_restricted(false),
            Self::Restricted | Self::EmbargoedThenRestricted => is_restricted(true),
            Self::RetentionPeriodExpired => Expr::All,
        }
    }

    /// Returns the condition on data files.
    fn of_files(self, today: &str) -> Expr {
        let not = |it: Expr| Expr::Not(Box::new(it));
        let is_embargoed = Expr::Range("embargo.date".into(), End::Excluded(today.into()), End::Open);
        let is_over = Expr::Range("retention.date".into(), End::Open, End::Excluded(today.into()));
        match self {
            Self::Public | Self::Restricted => not(is_over).and(not(is_embargoed)),
            Self::EmbargoedThenPublic | Self::EmbargoedThenRestricted => not(is_over).and(is_embargoed),
            Self::RetentionPeriodExpired => is_over,
        }
    }
}

/// An order of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    NameAZ,
    NameZA,
    Newest,
    Oldest,
    Size,
    Type,
}

impl Order {
    /// Reads the parameter `orderCriteria`. Errors: 400 for any other name.
    pub(super) fn of(call: &Call) -> Result<Self, ApiError> {
        match call.query.filled("orderCriteria").unwrap_or("NameAZ") {
            "NameAZ" => Ok(Self::NameAZ),
            "NameZA" => Ok(Self::NameZA),
            "Newest" => Ok(Self::Newest),
            "Oldest" => Ok(Self::Oldest),
            "Size" => Ok(Self::Size),
            "Type" => Ok(Self::Type),
            other => Err(ApiError::bad_request(format!("Invalid order criteria: {other}"))),
        }
    }
}

/// What a caller asks of files.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    content_type: Option<String>,
    access: Option<Access>,
    category: Option<String>,
    tag: Option<String>,
    text: Option<Pattern>,
    today: String,
}

impl Filter {
    /// Reads the parameters `contentType`, `accessStatus`, `categoryName`, `tabularTagName` and `searchText`. Errors: 400
    /// for an unknown access status, or a text that is too long to be searched for.
    pub(super) fn of(call: &Call) -> Result<Self, ApiError> {
        let text = |name: &str| call.query.filled(name).map(str::to_owned);
        let pattern = |text: &str| Pattern::new(&regex::escape(text), "i");
        Ok(Self {
            content_type: text("contentType"),
            access: call.query.filled("accessStatus").map(Access::named).transpose()?,
            category: text("categoryName"),
            tag: text("tabularTagName"),
            text: call.query.filled("searchText").map(pattern).transpose()?,
            ..Self::all(clock::date(call.app.now_ms()))
        })
    }

    /// Returns the filter that takes every file.
    pub(super) fn all(today: String) -> Self {
        Self { today, ..Self::default() }
    }

    /// Returns, for each access of the files that it takes, the filter of these.
    pub(super) fn by_access(&self) -> impl Iterator<Item = (Access, Self)> {
        let accesses = Access::ALL.into_iter().filter(|it| self.access.is_none_or(|access| access == *it));
        accesses.map(|it| (it, Self { access: Some(it), ..self.clone() }))
    }

    fn of_rows(&self) -> Expr {
        let mut all = Expr::All;
        if let Some(access) = self.access {
            all = all.and(access.of_rows());
        }
        if let Some(category) = &self.category {
            all = all.and(Expr::Is("categories".into(), category.as_str().into()));
        }
        if let Some(text) = &self.text {
            let contains = |path: &str| Expr::Regex(path.into(), text.clone());
            all = all.and(Expr::Or(vec![contains("label"), contains("description")]));
        }
        all
    }

    fn of_files(&self) -> Expr {
        let mut all = Expr::All;
        if let Some(access) = self.access {
            all = all.and(access.of_files(&self.today));
        }
        if let Some(content_type) = &self.content_type {
            all = all.and(Expr::Is("contentType".into(), content_type.as_str().into()));
        }
        if let Some(tag) = &self.tag {
            all = all.and(Expr::Is("tags".into(), tag.as_str().into()));
        }
        all
    }
}

/// The files of a version that a filter takes. A file has one row in each version that contains it, so that there are as
/// many rows as data files.
pub(super) struct Selection {
    in_version: Expr,
    /// The condition on rows.
    rows: Expr,
    of_dataset: Expr,
    /// The condition on data files, once it was asked for.
    files: OnceCell<Expr>,
}

impl Selection {
    pub(super) fn of(view: &mut View<'_>, version: &Version, filter: &Filter) -> Result<Self, ApiError> {
        let in_version = rows::in_version(version.dataset, version.ordinal);
        let of_dataset = Expr::Is("dataset".into(), version.dataset.into());
        let mut rows = in_version.clone().and(filter.of_rows());
        if filter.of_files() != Expr::All {
            let files = of_dataset.clone().and(filter.of_files());
            rows = rows.and(Expr::Joined("file".into(), view.join_keys(&DATA_FILE, &files, &"id".into())?));
        }
        Ok(Self { in_version, rows, of_dataset, files: OnceCell::new() })
    }

    /// Returns the condition on data files.
    fn files(&self, view: &mut View<'_>) -> Result<Expr, ApiError> {
        if let Some(files) = self.files.get() {
            return Ok(files.clone());
        }
        let of_rows = view.join_keys(&ROW, &self.rows, &"file".into())?;
        let files = self.of_dataset.clone().and(Expr::Joined("id".into(), of_rows));
        Ok(self.files.get_or_init(|| files).clone())
    }

    /// Returns the number of files.
    pub(super) fn count(&self, view: &mut View<'_>) -> Result<u64, ApiError> {
        Ok(view.count(&ROW, &self.rows)?)
    }

    /// Returns a page of rows with their data files; without a limit, all.
    pub(super) fn page(
        &self,
        view: &mut View<'_>,
        order: Order,
        skip: u64,
        limit: Option<u64>,
    ) -> Result<Vec<(Row, DataFile)>, ApiError> {
        let (path, direction) = match order {
            Order::NameAZ => return by_name(view, &self.rows, Direction::Ascending, skip, limit),
            Order::NameZA => return by_name(view, &self.rows, Direction::Descending, skip, limit),
            Order::Type => return self.by_type(view, skip, limit),
            Order::Newest => ("createdMs", Direction::Descending),
            Order::Oldest => ("createdMs", Direction::Ascending),
            Order::Size => ("size", Direction::Ascending),
        };
        let query = Query::filter(self.files(view)?).sorted(path, direction);
        self.with_rows(view, &Query { skip, limit, ..query })
    }

    /// Returns a page in the order of types, those of one type by name.
    fn by_type(
        &self,
        view: &mut View<'_>,
        mut skip: u64,
        limit: Option<u64>,
    ) -> Result<Vec<(Row, DataFile)>, ApiError> {
        let mut page = Vec::new();
        for (content_type, n) in self.content_types(view)? {
            let left = limit.map(|it| it.saturating_sub(page.len() as u64));
            if left == Some(0) {
                break;
            }
            if n <= skip {
                skip -= n;
                continue;
            }
            let of_type = self.files(view)?.and(Expr::Is("contentType".into(), content_type.into()));
            let of_type = view.join_keys(&DATA_FILE, &of_type, &"id".into())?;
            let rows = self.in_version.clone().and(Expr::Joined("file".into(), of_type));
            page.extend(by_name(view, &rows, Direction::Ascending, skip, left)?);
            skip = 0;
        }
        Ok(page)
    }

    /// Returns the data files of a query with their rows, in order.
    fn with_rows(&self, view: &mut View<'_>, query: &Query) -> Result<Vec<(Row, DataFile)>, ApiError> {
        let mut files: Vec<DataFile> = Vec::new();
        view.try_for_each(&DATA_FILE, query, |record| {
            files.push(stored::parsed(&record)?);
            Ok::<_, ApiError>(())
        })?;
        let mut rows: BTreeMap<i64, Row> = BTreeMap::new();
        for some in files.chunks(rows::STEP_FILES) {
            let ids = some.iter().map(|it| it.id.into()).collect();
            let of_files = self.in_version.clone().and(Expr::In("file".into(), ids));
            view.try_for_each(&ROW, &Query::filter(of_files), |record| {
                let row: Row = stored::parsed(&record)?;
                rows.insert(row.file, row);
                Ok::<_, ApiError>(())
            })?;
        }
        Ok(files.into_iter().filter_map(|file| Some((rows.remove(&file.id)?, file))).collect())
    }

    /// Returns the media types in order, with the number of files of each.
    pub(super) fn content_types(&self, view: &mut View<'_>) -> Result<BTreeMap<String, u64>, ApiError> {
        let files = self.files(view)?;
        Ok(view.count_texts(&DATA_FILE, &files, &"contentType".into())?.n_records)
    }

    /// Returns the tags of tables in order, with the number of files of each.
    pub(super) fn tags(&self, view: &mut View<'_>) -> Result<BTreeMap<String, u64>, ApiError> {
        let files = self.files(view)?;
        Ok(view.count_texts(&DATA_FILE, &files, &"tags".into())?.n_records)
    }

    /// Returns the categories in order, with the number of files of each.
    pub(super) fn categories(&self, view: &mut View<'_>) -> Result<BTreeMap<String, u64>, ApiError> {
        Ok(view.count_texts(&ROW, &self.rows, &"categories".into())?.n_records)
    }

    /// Returns the folders in order, with the number of files directly in each; files without a folder do not count.
    pub(super) fn directories(&self, view: &mut View<'_>) -> Result<BTreeMap<String, u64>, ApiError> {
        Ok(view.count_texts(&ROW, &self.rows, &"directory".into())?.n_records)
    }

    /// Returns the files directly in a folder, by name; in none, if its name is empty.
    pub(super) fn in_directory(
        &self,
        view: &mut View<'_>,
        directory: &str,
    ) -> Result<Vec<(Row, DataFile)>, ApiError> {
        let wanted = if directory.is_empty() { Value::Null } else { directory.into() };
        let rows = self.rows.clone().and(Expr::Is("directory".into(), wanted));
        by_name(view, &rows, Direction::Ascending, 0, None)
    }

    /// Returns the size of the files in bytes: of tables as stored, as deposited, or both.
    pub(super) fn bytes(&self, view: &mut View<'_>, of: Bytes) -> Result<u64, ApiError> {
        let files = self.files(view)?;
        let stored = match of {
            Bytes::Original => files.clone().and(Expr::Is("original.size".into(), Value::Null)),
            Bytes::All | Bytes::Archival => files.clone(),
        };
        let mut sum = view.sum(&DATA_FILE, &stored, &"size".into())?;
        if of != Bytes::Archival {
            sum = sum.saturating_add(view.sum(&DATA_FILE, &files, &"original.size".into())?);
        }
        Ok(sum.unsigned_abs())
    }

    /// Returns the number of downloads of the files.
    pub(super) fn downloads(&self, view: &mut View<'_>) -> Result<u64, ApiError> {
        let files = self.files(view)?;
        Ok(view.sum(&DATA_FILE, &files, &"downloads".into())?.unsigned_abs())
    }

    /// Returns whether any of the files is among these.
    pub(super) fn is_any_of(&self, view: &mut View<'_>, files: JoinKeys) -> Result<bool, ApiError> {
        let both = self.rows.clone().and(Expr::Joined("file".into(), files));
        Ok(view.first(&ROW, both)?.is_some())
    }
}

/// Which of a table's two forms count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    All,
    Original,
    Archival,
}

impl Bytes {
    /// Reads the parameter `mode`. Errors: 400 for any other name.
    pub(super) fn of(call: &Call) -> Result<Self, ApiError> {
        match call.query.filled("mode").unwrap_or("All") {
            "All" => Ok(Self::All),
            "Original" => Ok(Self::Original),
            "Archival" => Ok(Self::Archival),
            other => Err(ApiError::bad_request(format!("Invalid mode: {other}"))),
        }
    }
}

/// Returns a page of the rows that satisfy a condition with their data files, by name; without a limit, all.
fn by_name(
    view: &mut View<'_>,
    filter: &Expr,
    direction: Direction,
    skip: u64,
    limit: Option<u64>,
) -> Result<Vec<(Row, DataFile)>, ApiError> {
    let all = Query::filter(filter.clone());
    // All rows are read faster in the order in which they are stored.
    let query = if limit.is_some() { Query { skip, limit, ..all.sorted("label", direction) } } else { all };
    let mut rows: Vec<Row> = Vec::new();
    view.try_for_each(&ROW, &query, |record| {
        rows.push(stored::parsed(&record)?);
        Ok::<_, ApiError>(())
    })?;
    if limit.is_none() {
        rows.sort_by(|a, b| match direction {
            Direction::Ascending => a.label.cmp(&b.label),
            Direction::Descending => b.label.cmp(&a.label),
        });
        rows.drain(..rows.len().min(usize::try_from(skip).unwrap_or(usize::MAX)));
    }
    rows::with_files(view, rows)
}

#[cfg(test)]
mod tests {
    use pinakes_store::matches;
    use serde_json::{Value as Json, json};

    use super::*;

    /// Checks that of all accesses only this one is that of a file.
    fn check(expected: Access, restricted: bool, dates: (Option<&str>, Option<&str>)) {
        let until = |date: Option<&str>| date.map_or(Json::Null, |it| json!({"date": it, "reason": ""}));
        let file = json!({"embargo": until(dates.0), "retention": until(dates.1)});
        let row = json!({"restricted": restricted});
        let holds = |it: &Access| matches(&it.of_rows(), &row) && matches(&it.of_files("2026-02-01"), &file);
        let found: Vec<Access> = Access::ALL.into_iter().filter(holds).collect();
        assert_eq!(found, [expected], "{row} {file}");
    }

    #[test]
    fn a_file_has_one_access() {
        check(Access::Public, false, (None, None));
        check(Access::Restricted, true, (None, None));
        check(Access::Public, false, (Some("2026-02-01"), Some("2026-02-01")));
        check(Access::EmbargoedThenPublic, false, (Some("2026-02-02"), None));
        check(Access::EmbargoedThenRestricted, true, (Some("2026-02-02"), Some("2027-01-01")));
        check(Access::RetentionPeriodExpired, true, (None, Some("2026-01-31")));
        check(Access::RetentionPeriodExpired, false, (Some("2026-02-02"), Some("2026-01-31")));
    }
}
