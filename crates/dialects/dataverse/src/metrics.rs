//! Numbers of collections, datasets, files, downloads and accounts: `/api/info/metrics` (section 11 of the contract).
//!
//! Only published objects count. The numbers are computed from the records on request.

pub(crate) mod downloads;

use std::collections::{BTreeMap, BTreeSet};

use http::{HeaderValue, StatusCode};
use pinakes_store::{End, Expr, Query, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::asker::Asker;
use crate::collections::{self, COLLECTION, Collection, visibility};
use crate::datasets::DATASET;
use crate::error::{Answer, ApiError};
use crate::files::kinds::DATA_FILE;
use crate::files::rows;
use crate::guestbooks::ENTRY;
use crate::routing::Routes;
use crate::search::document::DOCUMENT;
use crate::search::index::is_public_dataset;
use crate::users::USER;
use crate::{clock, envelope, stored};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/info/metrics/{of}", total)
        .get("/info/metrics/{of}/toMonth", total)
        .get("/info/metrics/{of}/toMonth/{month}", total)
        .get("/info/metrics/{of}/pastDays/{days}", total)
        .get("/info/metrics/{of}/monthly", monthly)
        .get("/info/metrics/{of}/bySubject", by_subject)
        .get("/info/metrics/{of}/bySubject/toMonth", by_subject)
        .get("/info/metrics/{of}/bySubject/toMonth/{month}", by_subject)
        .get("/info/metrics/{of}/byCategory", by_category)
        .get("/info/metrics/{of}/byType", by_type)
        .get("/info/metrics/{of}/byType/monthly", by_type_and_month)
        .get("/info/metrics/tree", tree)
        .get("/info/metrics/tree/toMonth", tree)
        .get("/info/metrics/tree/toMonth/{month}", tree)
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Collections,
    Datasets,
    Files,
    Downloads,
    Accounts,
}

/// Parameters of a request.
struct Asked {
    counted: Counted,
    parent: Option<String>,
    /// Last month that counts, `2026-01`.
    month: Option<String>,
    /// First day that counts, `2026-01-31`.
    since: Option<String>,
    /// Whether local datasets count.
    counts_local: bool,
    /// Whether harvested datasets count.
    counts_remote: bool,
}

impl Asked {
    fn of(call: &Call) -> Result<Self, ApiError> {
        let counted = match call.param("of") {
            "dataverses" => Counted::Collections,
            "datasets" => Counted::Datasets,
            "files" => Counted::Files,
            "downloads" => Counted::Downloads,
            "accounts" => Counted::Accounts,
            other => return Err(ApiError::not_found(format!("There are no metrics of {other}"))),
        };
        let location = call.query.filled("dataLocation");
        if location.is_some() && counted != Counted::Datasets {
            return Err(ApiError::bad_request("queryParameter dataLocation not supported for this endpoint"));
        }
        if !matches!(location, None | Some("local" | "remote" | "all")) {
            return Err(ApiError::bad_request("Data location must be local, remote or all"));
        }
        let month = asked_month(call)?;
        let since = match call.param("days") {
            "" => None,
            text => {
                let days = text.parse::<i64>().ok().filter(|it| 0 < *it);
                let days =
                    days.ok_or_else(|| ApiError::bad_request("Days must be a whole number above 0"))?;
                Some(clock::date(call.app.now_ms() - days.saturating_mul(24 * 3600 * 1000)))
            }
        };
        let parent = call.query.filled("parentAlias").map(str::to_owned);
        let counts_local = location != Some("remote");
        let counts_remote = matches!(location, Some("remote" | "all"));
        Ok(Self { counted, parent, month, since, counts_local, counts_remote })
    }

    /// Returns the condition that the date at a path counts.
    fn counts_on(&self, path: &str) -> Expr {
        let from = self.since.as_deref().map_or(End::Open, |it| End::Included(it.into()));
        // No day is behind it.
        let upto = self.month.as_ref().map_or(End::Open, |it| End::Excluded(format!("{it}~").into()));
        if from == End::Open && upto == End::Open { Expr::All } else { Expr::Range(path.into(), from, upto) }
    }

    /// Returns whether something with that date counts.
    fn takes(&self, day: &str) -> bool {
        let month = day.get(..7).unwrap_or(day);
        self.month.as_deref().is_none_or(|it| month <= it) && self.since.as_deref().is_none_or(|it| it <= day)
    }

    /// Returns how many objects count on each day.
    fn days(&self, view: &mut View<'_>) -> Result<Vec<(String, u64)>, ApiError> {
        let (kind, facet, filter) = match self.counted {
            Counted::Datasets => (&DATASET, "publicationDate", self.datasets(view)?),
            Counted::Downloads => (&ENTRY, "time", self.downloads(view)?),
            Counted::Accounts => (&USER, "createdTime", Expr::All),
            Counted::Collections => {
                let below = below(view, self.parent.as_deref())?;
                let ids = |it: Vec<i64>| Expr::Ids(it.iter().map(i64::to_string).collect());
                (&COLLECTION, "publicationDate", below.map_or(Expr::All, ids))
            }
            Counted::Files => {
                let filter = self.files(view)?;
                return Ok(view
                    .count_texts(&DOCUMENT, &filter, &PUBLISHED.into())?
                    .n_records
                    .into_iter()
                    .collect());
            }
        };
        let counts = view.facets(kind, &filter, &[facet])?;
        let days = counts.into_iter().flatten().map(|it| (it.value, it.n_records));
        Ok(days.filter(|it| self.takes(&it.0)).collect())
    }

    /// Returns the condition on the search's documents of files that count: those of released versions.
    fn files(&self, view: &mut View<'_>) -> Result<Expr, ApiError> {
        let public = Expr::Is("type".into(), "files".into()).and(Expr::Is("public".into(), true.into()));
        let within = match &self.parent {
            Some(alias) => match collections::find(view, alias)?.id {
                collections::ROOT => Expr::All,
                id => Expr::Is("above".into(), id.into()),
            },
            None => Expr::All,
        };
        Ok(public.and(within).and(self.counts_on(PUBLISHED)))
    }

    /// Returns the condition on datasets that count, whatever their date.
    fn datasets(&self, view: &mut View<'_>) -> Result<Expr, ApiError> {
        let published = Expr::Exists("publicationDate".into()).and(Expr::Exists("released.ordinal".into()));
        let harvested = Expr::Exists("harvestedBy".into());
        let located = match (self.counts_local, self.counts_remote) {
            (true, true) => Expr::All,
            (true, false) => Expr::Not(Box::new(harvested)),
            (false, _) => harvested,
        };
        let within = self.within(view)?.unwrap_or(Expr::All);
        Ok(published.and(located).and(within))
    }

    /// Returns the condition on datasets below the parent, `None` without one.
    fn within(&self, view: &mut View<'_>) -> Result<Option<Expr>, ApiError> {
        let owners = below(view, self.parent.as_deref())?;
        Ok(owners.map(|it| Expr::In("owner".into(), it.into_iter().map(Into::into).collect())))
    }

    /// Returns the condition on entries of guestbooks that are downloads.
    fn downloads(&self, view: &mut View<'_>) -> Result<Expr, ApiError> {
        let downloads = Expr::Not(Box::new(Expr::Is("isRequest".into(), true.into())));
        let Some(within) = self.within(view)? else { return Ok(downloads) };
        let ids = rows::ids_of(view, &DATASET, within)?;
        let datasets = ids.iter().filter_map(|it| it.parse::<i64>().ok()).map(Into::into).collect();
        Ok(downloads.and(Expr::In("dataset".into(), datasets)))
    }

    /// Returns the collections that count.
    fn collections(&self, view: &mut View<'_>) -> Result<Vec<Collection>, ApiError> {
        let below = below(view, self.parent.as_deref())?;
        let mut found = Vec::new();
        view.try_for_each(&COLLECTION, &Query::filter(Expr::All), |record| {
            let it: Collection = stored::parsed(&record)?;
            let day = it.publication_date.as_deref().map(|day| day.get(..DAY_LENGTH).unwrap_or(day));
            let is_below = below.as_ref().is_none_or(|below| below.contains(&it.id));
            if is_below && day.is_some_and(|day| self.takes(day)) {
                found.push(it);
            }
            Ok::<_, ApiError>(())
        })?;
        Ok(found)
    }

    /// Checks that what is counted is counted in some way. Errors: 404.
    fn require(&self, counted: &[Counted], way: &str) -> Result<(), ApiError> {
        if counted.contains(&self.counted) {
            return Ok(());
        }
        Err(ApiError::not_found(format!("These metrics are not given {way}")))
    }
}

/// The path of the date on which a file was published, in the search's documents.
const PUBLISHED: &str = "published";

/// Length of `2026-01-31`.
const DAY_LENGTH: usize = 10;

/// Returns the last month to count, from the path. Errors: 400 for text that is not a month, and for a future month.
fn asked_month(call: &Call) -> Result<Option<String>, ApiError> {
    let Some(text) = Some(call.param("month")).filter(|it| !it.is_empty()) else { return Ok(None) };
    if !clock::is_day(&format!("{text}-01")) {
        let what = format!("Text '{text}' could not be parsed");
        return Err(ApiError::bad_request(format!(
            "The expected format is YYYY-MM but an exception was thrown: {what}"
        )));
    }
    if clock::date(call.app.now_ms()).get(..7).is_some_and(|now| now < text) {
        return Err(ApiError::bad_request("The requested date is set past the current month."));
    }
    Ok(Some(text.to_owned()))
}

/// Returns `alias` and all collections below it; `None` for all collections, such as those below the root.
fn below(view: &mut View<'_>, alias: Option<&str>) -> Result<Option<Vec<i64>>, ApiError> {
    let Some(alias) = alias else { return Ok(None) };
    let top = collections::find(view, alias)?;
    if top.id == collections::ROOT {
        return Ok(None);
    }
    Ok(Some(collections::below(view, top)?.into_iter().map(|it| it.id).collect()))
}

async fn total(call: Call) -> Answer {
    let asked = Asked::of(&call)?;
    let find = move |view: &mut View<'_>| -> Result<u64, ApiError> {
        if asked.counted == Counted::Files {
            let files = asked.files(view)?;
            return Ok(view.count(&DOCUMENT, &files)?);
        }
        Ok(asked.days(view)?.iter().map(|it| it.1).sum())
    };
    envelope::ok(json!({"count": call.db().read(Weight::Scan, find).await?}))
}

/// Returns a value as a table cell.
fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        other => other.to_string(),
    }
}

/// Answers with rows as JSON, or as CSV for clients that accept it.
fn table<const N: usize>(call: &Call, columns: [&str; N], rows: Vec<[Value; N]>) -> Answer {
    let wants_csv = call.header("accept").is_some_and(|it| it.contains("text/csv"));
    if wants_csv {
        let mut csv = format!("{}\n", columns.join(","));
        for row in &rows {
            csv.push_str(&format!("{}\n", row.each_ref().map(cell).join(",")));
        }
        return Ok(pinakes_http::answer::bytes(StatusCode::OK, HeaderValue::from_static("text/csv"), csv));
    }
    let object = |row: [Value; N]| Value::Object(columns.map(str::to_owned).into_iter().zip(row).collect());
    envelope::ok(rows.into_iter().map(object).collect::<Vec<Value>>())
}

/// Answers with the cumulative number at the end of each month.
async fn monthly(call: Call) -> Answer {
    let asked = Asked::of(&call)?;
    let find = move |view: &mut View<'_>| -> Result<Vec<[Value; 2]>, ApiError> {
        let mut by_month: BTreeMap<String, u64> = BTreeMap::new();
        for (day, n) in asked.days(view)? {
            *by_month.entry(day.get(..7).unwrap_or_default().to_owned()).or_default() += n;
        }
        let mut sum = 0;
        Ok(by_month
            .into_iter()
            .map(|(month, n)| {
                sum += n;
                [month.into(), sum.into()]
            })
            .collect())
    };
    let rows = call.db().read(Weight::Scan, find).await?;
    table(&call, ["date", "count"], rows)
}

/// Returns names with their counts, the largest first.
fn sorted(counts: BTreeMap<String, u64>) -> Vec<[Value; 2]> {
    let mut rows: Vec<(String, u64)> = counts.into_iter().collect();
    rows.sort_by_key(|it| std::cmp::Reverse(it.1));
    rows.into_iter().map(|(name, n)| [name.into(), n.into()]).collect()
}

async fn by_subject(call: Call) -> Answer {
    let asked = Asked::of(&call)?;
    asked.require(&[Counted::Collections, Counted::Datasets], "by subject")?;
    let find = move |view: &mut View<'_>| -> Result<Vec<[Value; 2]>, ApiError> {
        if asked.counted == Counted::Datasets {
            let datasets = asked.datasets(view)?.and(asked.counts_on("publicationDate"));
            let datasets = view.join_keys(&DATASET, &datasets, &"id".into())?;
            let documents = is_public_dataset().and(Expr::Joined("entity".into(), datasets));
            return Ok(sorted(view.count_texts(&DOCUMENT, &documents, &"fields.subject".into())?.n_records));
        }
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for subject in asked.collections(view)?.into_iter().flat_map(|it| it.subjects) {
            *counts.entry(subject).or_default() += 1;
        }
        Ok(sorted(counts))
    };
    let rows = call.db().read(Weight::Scan, find).await?;
    table(&call, ["subject", "count"], rows)
}

/// Returns the display name of a type of collections.
fn category(ty: &str) -> String {
    let words: Vec<String> = ty
        .split('_')
        .map(|word| {
            let lower = word.to_lowercase();
            let mut letters = lower.chars();
            letters.next().map_or_else(String::new, |it| it.to_uppercase().chain(letters).collect())
        })
        .collect();
    words.join(" ")
}

async fn by_category(call: Call) -> Answer {
    let asked = Asked::of(&call)?;
    asked.require(&[Counted::Collections], "by category")?;
    let find = move |view: &mut View<'_>| -> Result<Vec<[Value; 2]>, ApiError> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for it in asked.collections(view)? {
            *counts.entry(category(&it.dataverse_type)).or_default() += 1;
        }
        Ok(sorted(counts))
    };
    let rows = call.db().read(Weight::Scan, find).await?;
    table(&call, ["category", "count"], rows)
}

/// The number of files by content type, and their size in bytes.
type ByType = BTreeMap<String, (u64, i64)>;

/// Adds the files of some of the search's documents.
fn add_types(view: &mut View<'_>, documents: &Expr, types: &mut ByType) -> Result<(), ApiError> {
    let files = view.join_keys(&DOCUMENT, documents, &"entity".into())?;
    let files = Expr::Joined("id".into(), files);
    for (content_type, n) in view.count_texts(&DATA_FILE, &files, &"contentType".into())?.n_records {
        let of_type = files.clone().and(Expr::Is("contentType".into(), content_type.as_str().into()));
        let sums = types.entry(content_type).or_default();
        sums.0 += n;
        sums.1 = sums.1.saturating_add(view.sum(&DATA_FILE, &of_type, &"size".into())?);
    }
    Ok(())
}

/// Answers with the files of released versions by content type, with their number and size.
async fn by_type(call: Call) -> Answer {
    let asked = Asked::of(&call)?;
    asked.require(&[Counted::Files], "by type")?;
    let find = move |view: &mut View<'_>| -> Result<ByType, ApiError> {
        let mut types = ByType::new();
        let files = asked.files(view)?;
        add_types(view, &files, &mut types)?;
        Ok(types)
    };
    let types = call.db().read(Weight::Scan, find).await?.into_iter();
    let rows = types.map(|(content_type, (n, size))| [content_type.into(), n.into(), size.into()]);
    table(&call, ["contenttype", "count", "size"], rows.collect())
}

/// Answers with the same at the end of each month in which files were published.
async fn by_type_and_month(call: Call) -> Answer {
    let asked = Asked::of(&call)?;
    asked.require(&[Counted::Files], "by type")?;
    let find = move |view: &mut View<'_>| -> Result<Vec<[Value; 4]>, ApiError> {
        let files = asked.files(view)?;
        let days = view.count_texts(&DOCUMENT, &files, &PUBLISHED.into())?.n_records.into_keys();
        let months: BTreeSet<String> = days.filter_map(|it| Some(it.get(..7)?.to_owned())).collect();
        let (mut types, mut rows) = (ByType::new(), Vec::new());
        for month in months {
            let of_month = files.clone().and(Expr::Prefix(PUBLISHED.into(), month.clone()));
            add_types(view, &of_month, &mut types)?;
            let row = |(content_type, sums): (&String, &(u64, i64))| {
                [month.as_str().into(), content_type.as_str().into(), sums.0.into(), sums.1.into()]
            };
            rows.extend(types.iter().map(row));
        }
        Ok(rows)
    };
    let rows = call.db().read(Weight::Scan, find).await?;
    table(&call, ["date", "contenttype", "count", "size"], rows)
}

/// Answers with the tree of published collections, without those hidden from the caller.
async fn tree(call: Call) -> Answer {
    let parent = call.query.filled("parentAlias").unwrap_or(":root").to_owned();
    let (asker, month) = (call.asker.clone(), asked_month(&call)?);
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let top = collections::find(view, &parent)?;
        visibility::require_visible(view, &asker, &top)?;
        branch(view, &asker, &top, 0, month.as_deref())
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

fn branch(
    view: &mut View<'_>,
    asker: &Asker,
    at: &Collection,
    depth: usize,
    month: Option<&str>,
) -> Result<Value, ApiError> {
    let mut children = Vec::new();
    if depth < collections::DEPTH {
        for child in collections::children(view, at.id)? {
            let published = child.publication_date.as_deref().and_then(|it| it.get(..7));
            let is_asked = published.is_some_and(|it| month.is_none_or(|month| it <= month));
            if is_asked && !visibility::is_kept_from(view, asker, &child)? {
                children.push(branch(view, asker, &child, depth + 1, month)?);
            }
        }
    }
    let mut json = json!({
        "id": at.id, "ownerId": at.parent, "alias": at.alias, "depth": depth + 1, "name": at.name,
    });
    if !children.is_empty() {
        json["children"] = children.into();
    }
    Ok(json)
}
