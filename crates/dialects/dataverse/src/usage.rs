//! Usage reports of Make Data Count (SUSHI, COUNTER code of practice for research data): import of reports, usage
//! counts, and the progress of the programs that write the reports.

use std::collections::BTreeMap;

use pinakes_store::{Column, End, Expr, Index, Kind, Query, Search, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::Call;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, DATASET, Dataset};
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{clock, envelope, stored};

/// Usage reports by month: body `{"yearMonth", "state", "server", "stateChangeTimestamp"}`.
pub(crate) static USAGE_REPORT: Kind = Kind::named("dataverse_usage_report");

/// Counts by `{dataset}/{month}/{country}`: body is a [`Usage`].
pub(crate) static USAGE: Kind = Kind {
    columns: &[
        Column::one("dataset", Type::Integer),
        Column::one("month", Type::Text),
        Column::one("country", Type::Text),
        Column::at("views_total_regular", "counts.viewsTotalRegular", Type::Integer),
        Column::at("views_total_machine", "counts.viewsTotalMachine", Type::Integer),
        Column::at("views_unique_regular", "counts.viewsUniqueRegular", Type::Integer),
        Column::at("views_unique_machine", "counts.viewsUniqueMachine", Type::Integer),
        Column::at("downloads_total_regular", "counts.downloadsTotalRegular", Type::Integer),
        Column::at("downloads_total_machine", "counts.downloadsTotalMachine", Type::Integer),
        Column::at("downloads_unique_regular", "counts.downloadsUniqueRegular", Type::Integer),
        Column::at("downloads_unique_machine", "counts.downloadsUniqueMachine", Type::Integer),
    ],
    indexes: &[Index::on(&["dataset"])],
    search: Search::Declared,
    joins: &["dataset"],
    ..Kind::named("dataverse_usage")
};

/// Maximum size of a report, in bytes.
const REPORT_BYTES: u64 = 64 << 20;

/// Usage of a dataset in a month, from one country.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Usage {
    /// The dataset.
    dataset: i64,
    /// `2026-01`.
    month: String,
    /// `us`; empty for reports without countries.
    country: String,
    /// Counts by name: `viewsTotalRegular`, …
    counts: BTreeMap<String, u64>,
}

/// Supported metrics.
const METRICS: [&str; 13] = [
    "viewsTotal",
    "viewsTotalRegular",
    "viewsTotalMachine",
    "viewsUnique",
    "viewsUniqueRegular",
    "viewsUniqueMachine",
    "downloadsTotal",
    "downloadsTotalRegular",
    "downloadsTotalMachine",
    "downloadsUnique",
    "downloadsUniqueRegular",
    "downloadsUniqueMachine",
    "citations",
];

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/admin/makeDataCount/sendToHub", sent)
        .post("/admin/makeDataCount/downloadFromHub/{metric}", no_hub)
        .post("/admin/makeDataCount/addUsageMetricsFromSushiReport", take_in)
        .post("/admin/makeDataCount/{id}/addUsageMetricsFromSushiReport", take_in)
        .post("/admin/makeDataCount/{id}/updateCitationsForDataset", no_citations)
        .get("/admin/makeDataCount/{id}/processingState", show_report)
        .post("/admin/makeDataCount/{id}/processingState", set_report)
        .delete("/admin/makeDataCount/{id}/processingState", delete_report)
        .get("/datasets/{id}/makeDataCount/{metric}", of_dataset)
        .get("/datasets/{id}/makeDataCount/{metric}/{month}", of_dataset)
        .get("/info/metrics/makeDataCount/{metric}", of_all)
        .get("/info/metrics/makeDataCount/{metric}/monthly", by_month)
        .get("/info/metrics/makeDataCount/{metric}/toMonth", of_all)
        .get("/info/metrics/makeDataCount/{metric}/toMonth/{month}", of_all)
        .get("/metrics/makeDataCount/{metric}", of_all)
        .get("/metrics/makeDataCount/{metric}/monthly", by_month)
}

/// Does nothing: this server sends nothing to Make Data Count.
async fn sent(_: Call) -> Answer {
    envelope::message("Data has been sent to Make Data Count")
}

async fn no_hub(call: Call) -> Answer {
    metric_named(call.param("metric"))?;
    envelope::message("There is no hub from which data could be downloaded.")
}

/// Answers without citations: they come from DataCite, which this server does not query.
async fn no_citations(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    call.db().read(Weight::Point, move |view| wanted.find(view)).await?;
    Err(ApiError::bad_request("No service that tells citations of datasets is configured."))
}

/// Returns a metric by its name, or by one that older clients use. Errors: 400 with the supported ones.
fn metric_named(name: &str) -> Result<&'static str, ApiError> {
    let name = match name {
        "viewCount" => "viewsTotal",
        "uniqueViewCount" => "viewsUnique",
        "downloadCount" => "downloadsTotal",
        "uniqueDownloadCount" => "downloadsUnique",
        other => other,
    };
    METRICS.into_iter().find(|it| *it == name).ok_or_else(|| {
        ApiError::bad_request(format!("MetricType must be one of these values: [{}].", METRICS.join(", ")))
    })
}

/// Returns the names of the counts of which a metric is the sum: totals include regular and machine access.
fn counts_of(metric: &str) -> Vec<String> {
    match metric {
        "viewsTotal" | "viewsUnique" | "downloadsTotal" | "downloadsUnique" => {
            ["Regular", "Machine"].map(|by| format!("{metric}{by}")).into()
        }
        "citations" => Vec::new(),
        other => vec![other.to_owned()],
    }
}

impl Usage {
    /// Returns one metric.
    fn count(&self, metric: &str) -> u64 {
        let counts = counts_of(metric).into_iter().filter_map(|name| self.counts.get(&name));
        counts.fold(0, |sum, it| sum.saturating_add(*it))
    }
}

/// Returns the metric for a metric type and access method: `viewsTotalRegular` for `total-dataset-investigations` by
/// `regular`; `None` if it is not supported.
fn count_name(metric: &str, method: &str) -> Option<String> {
    let start = match metric {
        "total-dataset-investigations" => "viewsTotal",
        "unique-dataset-investigations" => "viewsUnique",
        "total-dataset-requests" => "downloadsTotal",
        "unique-dataset-requests" => "downloadsUnique",
        _ => return None,
    };
    let end = match method {
        "regular" => "Regular",
        "machine" => "Machine",
        _ => return None,
    };
    Some(format!("{start}{end}"))
}

/// Counts of one dataset in a report, by month and country.
type Counts = BTreeMap<(String, String), BTreeMap<String, u64>>;

/// Parses a report into one entry per dataset: (identifiers, counts).
fn read(report: &Value) -> Result<Vec<(Vec<String>, Counts)>, String> {
    // The second spelling is that of Counter Processor.
    let datasets = report["report_datasets"].as_array().or_else(|| report["report-datasets"].as_array());
    let datasets = datasets.ok_or("the report has no list report_datasets or report-datasets")?;
    let mut list = Vec::new();
    for dataset in datasets {
        let ids = dataset["dataset-id"].as_array().into_iter().flatten();
        let ids = ids.filter_map(|it| it["value"].as_str()).map(str::to_owned).collect();
        let mut counts = Counts::new();
        for performance in dataset["performance"].as_array().into_iter().flatten() {
            let begin = performance["period"]["begin-date"].as_str().unwrap_or_default();
            let month = begin.get(..7).filter(|it| is_month(it));
            let month = month.ok_or_else(|| format!("the begin-date {begin:?} is no date"))?;
            for instance in performance["instance"].as_array().into_iter().flatten() {
                let text = |name: &str| instance[name].as_str().unwrap_or_default().to_lowercase();
                let Some(name) = count_name(&text("metric-type"), &text("access-method")) else { continue };
                let mut add = |country: &str, n: u64| {
                    let of_country = counts.entry((month.to_owned(), country.to_lowercase())).or_default();
                    let count = of_country.entry(name.clone()).or_default();
                    *count = count.saturating_add(n);
                };
                match instance["country-counts"].as_object().filter(|it| !it.is_empty()) {
                    Some(countries) => {
                        for (country, n) in countries {
                            add(country, n.as_u64().unwrap_or_default());
                        }
                    }
                    None => add("", instance["count"].as_u64().unwrap_or_default()),
                }
            }
        }
        list.push((ids, counts));
    }
    Ok(list)
}

fn is_month(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 7
        && bytes.iter().enumerate().all(|(at, it)| if at == 4 { *it == b'-' } else { it.is_ascii_digit() })
}

/// Returns the report in the body, or in the file on the server's machine that `reportOnDisk` names.
///
/// Errors: 400 for a file that does not exist, is too long, or is not JSON.
async fn report(call: &mut Call) -> Result<Value, ApiError> {
    let Some(path) = call.query.filled("reportOnDisk").map(str::to_owned) else {
        return call.json().await;
    };
    let missing = || ApiError::bad_request(format!("File not found at {path}"));
    let found = tokio::fs::metadata(&path).await.map_err(|_| missing())?;
    if !found.is_file() || REPORT_BYTES < found.len() {
        return Err(ApiError::bad_request(format!("{path} is no file of at most {REPORT_BYTES} bytes")));
    }
    let bytes = tokio::fs::read(&path).await.map_err(|_| missing())?;
    serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::bad_request(format!("{path} is no JSON report: {error}")))
}

/// Imports a report: for the dataset of the path, whatever the report calls it, or for all datasets that it names.
/// Replaces the counts of earlier reports for the same month and country.
async fn take_in(mut call: Call) -> Answer {
    let report = report(&mut call).await?;
    let entries = read(&report).map_err(|fault| ApiError::bad_request(format!("Invalid report: {fault}")))?;
    let id = call.param("id").to_owned();
    let wanted = if id.is_empty() { None } else { Some(Wanted::of(&call)?) };
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        for (ids, counts) in &entries {
            let dataset = match &wanted {
                Some(wanted) => Some(wanted.find(txn)?),
                None => named(txn, ids)?,
            };
            let Some(dataset) = dataset else { continue };
            for ((month, country), counts) in counts {
                let usage = Usage {
                    dataset: dataset.id,
                    month: month.clone(),
                    country: country.clone(),
                    counts: counts.clone(),
                };
                stored::put(txn, &USAGE, &format!("{}/{month}/{country}", dataset.id), &usage)?;
            }
        }
        Ok(())
    };
    call.db().write(write).await?;
    if id.is_empty() {
        let path = call.query.get("reportOnDisk").unwrap_or("the request");
        return envelope::message(format!(
            "Usage Metrics Data has been added to all datasets from file  {path}"
        ));
    }
    envelope::message(format!("Dummy Data has been added to dataset {id}"))
}

/// Returns the dataset that a report names by `10.5072/FK2/AB12CD`, with or without `doi:`.
fn named(view: &mut View<'_>, ids: &[String]) -> Result<Option<Dataset>, ApiError> {
    for id in ids {
        for pid in [id.clone(), format!("doi:{id}")] {
            if let Some(dataset) = datasets::by_pid(view, &pid)? {
                return Ok(Some(dataset));
            }
        }
    }
    Ok(None)
}

/// Removes the counts of a dataset that is being deleted.
pub(crate) fn remove_of_dataset(txn: &mut Txn<'_>, id: i64) -> Result<(), ApiError> {
    for record in txn.find(&USAGE, &Query::filter(Expr::Is("dataset".into(), id.into())))? {
        txn.delete(&USAGE, &record.id)?;
    }
    Ok(())
}

/// Returns the month that a path or parameter asks for. Errors: 400.
fn month_of(call: &Call) -> Result<Option<String>, ApiError> {
    let month = call.param("month");
    match month {
        "" => Ok(None),
        it if is_month(it) => Ok(Some(it.to_owned())),
        it => Err(ApiError::bad_request(format!(
            "The expected format is YYYY-MM but an exception was thrown trying to parse {it}"
        ))),
    }
}

/// Returns the requested country. Errors: 400 for text that is not a code of two letters.
fn country_of(call: &Call) -> Result<Option<String>, ApiError> {
    let Some(country) = call.query.filled("country").map(str::to_lowercase) else { return Ok(None) };
    if country.len() != 2 || !country.bytes().all(|it| it.is_ascii_lowercase()) {
        return Err(ApiError::bad_request("Country must be one of the ISO 1366 Country Codes"));
    }
    Ok(Some(country))
}

/// Answers with one metric of one dataset.
async fn of_dataset(call: Call) -> Answer {
    let (metric, month, country) =
        (metric_named(call.param("metric"))?, month_of(&call)?, country_of(&call)?);
    let (wanted, of_month, of_country) = (Wanted::of(&call)?, month.clone(), country.clone());
    let find = move |view: &mut View<'_>| -> Result<(i64, Vec<Usage>), ApiError> {
        let dataset = wanted.find(view)?;
        let mut all: Vec<Usage> = stored::find_by(view, &USAGE, "dataset", dataset.id)?;
        all.retain(|it| of_month.as_ref().is_none_or(|month| it.month == *month));
        all.retain(|it| of_country.as_ref().is_none_or(|country| it.country == *country));
        Ok((dataset.id, all))
    };
    let (id, all) = call.db().read(Weight::Scan, find).await?;
    if metric == "citations" {
        return envelope::ok(Vec::<Value>::new());
    }
    if all.iter().all(|it| it.count("viewsTotal") + it.count("downloadsTotal") == 0) {
        let (month, country) = (month.as_deref().unwrap_or("null"), country.as_deref().unwrap_or("null"));
        return envelope::message(format!(
            "No metrics available for dataset {id} for {month} for country code {country}."
        ));
    }
    envelope::ok(json!({ metric: sum(&all, metric) }))
}

fn sum(all: &[Usage], metric: &str) -> u64 {
    all.iter().fold(0, |sum, it| sum.saturating_add(it.count(metric)))
}

/// Returns the condition on public counts: those of published datasets.
fn public(view: &mut View<'_>, country: Option<&str>) -> Result<Expr, ApiError> {
    let published = view.join_keys(&DATASET, &Expr::Exists("released.ordinal".into()), &"id".into())?;
    let all = Expr::Joined("dataset".into(), published);
    Ok(all.and(country.map_or(Expr::All, |it| Expr::Is("country".into(), it.into()))))
}

/// Returns the sum of a metric over the counts that satisfy a condition.
fn total(view: &mut View<'_>, filter: &Expr, metric: &str) -> Result<u64, ApiError> {
    let mut total = 0_u64;
    for name in counts_of(metric) {
        let n = view.sum(&USAGE, filter, &format!("counts.{name}").as_str().into())?;
        total = total.saturating_add(n.unsigned_abs());
    }
    Ok(total)
}

async fn of_all(call: Call) -> Answer {
    let (metric, month) = (metric_named(call.param("metric"))?, month_of(&call)?);
    let country = country_of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<u64, ApiError> {
        let upto = |it: &str| Expr::Range("month".into(), End::Open, End::Included(it.into()));
        let filter = public(view, country.as_deref())?.and(month.as_deref().map_or(Expr::All, upto));
        total(view, &filter, metric)
    };
    envelope::ok(json!({"count": call.db().read(Weight::Scan, read).await?}))
}

async fn by_month(call: Call) -> Answer {
    let (metric, country) = (metric_named(call.param("metric"))?, country_of(&call)?);
    let read = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let filter = public(view, country.as_deref())?;
        let mut list = Vec::new();
        for month in view.count_texts(&USAGE, &filter, &"month".into())?.n_records.into_keys() {
            let of_month = filter.clone().and(Expr::Is("month".into(), month.as_str().into()));
            list.push(json!({"date": month, "count": total(view, &of_month, metric)?}));
        }
        Ok(list)
    };
    envelope::ok(call.db().read(Weight::Scan, read).await?)
}

async fn show_report(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let found =
        call.db().read(Weight::Point, move |view| stored::get::<Value>(view, &USAGE_REPORT, &id)).await?;
    let missing =
        || ApiError::not_found(format!("Could not find an existing process state for {}", call.param("id")));
    envelope::ok(found.ok_or_else(missing)?)
}

async fn set_report(call: Call) -> Answer {
    let state = call.query.get("state").unwrap_or_default().to_uppercase();
    if !["NEW", "DONE", "SKIP", "PROCESSING", "FAILED"].contains(&state.as_str()) {
        return Err(ApiError::bad_request(format!(
            "State {state} is not one of NEW, DONE, SKIP, PROCESSING, FAILED"
        )));
    }
    let server = call.query.filled("server").map(str::to_owned);
    let (id, now_ms) = (call.param("id").to_owned(), call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let before: Option<Value> = stored::get(txn, &USAGE_REPORT, &id)?;
        let kept = before.and_then(|it| it["server"].as_str().map(str::to_owned)).or_else(|| server.clone());
        let body = json!({
            "yearMonth": id, "state": state, "server": kept,
            "stateChangeTimestamp": clock::precise(now_ms),
        });
        let body = Value::Object(envelope::object(body));
        txn.put(&USAGE_REPORT, &id, &body)?;
        Ok(body)
    };
    envelope::ok(call.db().write(write).await?)
}

async fn delete_report(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let gone =
        call.db().write(move |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.delete(&USAGE_REPORT, &id)?)).await?;
    match gone {
        Some(_) => envelope::message(format!("Processing State deleted for {}", call.param("id"))),
        None => Err(ApiError::not_found(format!("Processing State not found for {}", call.param("id")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_summed_by_month_and_country() {
        let instance = |metric: &str, method: &str, counts: Value| json!({"metric-type": metric, "access-method": method, "count": 9, "country-counts": counts});
        let report = json!({"report-datasets": [{
            "dataset-id": [{"type": "doi", "value": "10.5072/FK2/X"}],
            "performance": [{"period": {"begin-date": "2026-01-03"}, "instance": [
                instance("total-dataset-investigations", "regular", json!({"US": 3, "de": 2})),
                instance("total-dataset-investigations", "machine", json!({"us": 1})),
                instance("unique-dataset-requests", "regular", json!({})),
                instance("something-else", "regular", json!({"us": 5})),
            ]}],
        }]});
        let found = read(&report).unwrap();
        let [(ids, counts)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(ids, &["10.5072/FK2/X"]);
        let all: Vec<Usage> = counts
            .iter()
            .map(|((month, country), counts)| Usage {
                dataset: 1,
                month: month.clone(),
                country: country.clone(),
                counts: counts.clone(),
            })
            .collect();
        assert_eq!((sum(&all, "viewsTotal"), sum(&all, "viewsTotalRegular")), (6, 5));
        assert_eq!((sum(&all, "downloadsUnique"), sum(&all, "downloadsTotal")), (9, 0));
        let months: Vec<(&str, &str)> =
            all.iter().map(|it| (it.month.as_str(), it.country.as_str())).collect();
        assert_eq!(months, [("2026-01", ""), ("2026-01", "de"), ("2026-01", "us")]);
    }

    #[test]
    fn reports_that_are_none_are_refused() {
        for (report, part) in [
            (json!({}), "no list report_datasets"),
            (json!({"report_datasets": [{"performance": [{"period": {"begin-date": "May"}}]}]}), "\"May\""),
        ] {
            assert!(read(&report).unwrap_err().contains(part), "{report}");
        }
    }
}
