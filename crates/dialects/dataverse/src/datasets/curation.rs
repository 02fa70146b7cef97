//! Curation labels: site-defined labels for the state of a draft (section T3 of the contract).

use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::datasets::show::text_answer;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, DATASET, Dataset};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{changes, collections, envelope, permissions, site_settings, stored};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}/curationStatus", show_status)
        .put("/datasets/{id}/curationStatus", set_status)
        .delete("/datasets/{id}/curationStatus", delete_status)
        .get("/datasets/{id}/curationLabelSet", show_set)
        .put("/datasets/{id}/curationLabelSet", set_set)
        .delete("/datasets/{id}/curationLabelSet", set_set)
        .get("/datasets/{id}/allowedCurationLabels", allowed)
        .get("/datasets/listCurationStates", list_states)
}

/// Setting of a dataset: the history of its status, newest last.
pub(crate) const STATUS: &str = "curationStatus";
/// Setting of a dataset or collection: its label set.
const LABEL_SET: &str = "curationLabelSet";
/// The label set that stands for the parent's.
const DEFAULT_SET: &str = "DEFAULT";
/// The label set that disables labels.
const DISABLED: &str = "DISABLED";

/// Returns the label sets that the site defines, by name.
pub(crate) fn label_sets(view: &mut View<'_>) -> Result<Map<String, Value>, ApiError> {
    let text = site_settings::get(view, ":AllowedCurationLabels")?.unwrap_or_default();
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// Returns whether a label set may be chosen.
pub(crate) fn is_label_set(view: &mut View<'_>, name: &str) -> Result<bool, ApiError> {
    Ok(matches!(name, DEFAULT_SET | DISABLED) || label_sets(view)?.contains_key(name))
}

/// Returns the label set in effect for a dataset: its own, or that of the nearest collection with one. Without any,
/// labels are disabled.
fn set_of(view: &mut View<'_>, dataset: &Dataset) -> Result<String, ApiError> {
    let named = |more: &Map<String, Value>| {
        more.get(LABEL_SET).and_then(Value::as_str).filter(|it| *it != DEFAULT_SET).map(str::to_owned)
    };
    if let Some(name) = named(&dataset.more) {
        return Ok(name);
    }
    let owner = collections::named_by_record(view, dataset.owner)?;
    let above = collections::with_owners(view, owner)?;
    Ok(above.iter().find_map(|it| named(&it.more)).unwrap_or_else(|| DISABLED.to_owned()))
}

fn labels_of(view: &mut View<'_>, dataset: &Dataset) -> Result<Vec<String>, ApiError> {
    let (name, sets) = (set_of(view, dataset)?, label_sets(view)?);
    let labels = sets.get(&name).and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(labels.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn publishable(
    view: &mut View<'_>,
    asker: &crate::asker::Asker,
    wanted: &Wanted,
) -> Result<Dataset, ApiError> {
    let dataset = wanted.find(view)?;
    permissions::require(view, asker, dataset.place(), Permission::PublishDataset)?;
    Ok(dataset)
}

async fn show_status(call: Call) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let with_history = call.query.is_true("includeHistory");
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let dataset = wanted.find(view)?;
        permissions::require(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        let mut all = dataset.more.get(STATUS).and_then(Value::as_array).cloned().unwrap_or_default();
        all.reverse();
        Ok(match with_history {
            true => Value::Array(all),
            false => all.into_iter().next().unwrap_or_else(|| json!({})),
        })
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// Returns the current label of a dataset; empty if it has none.
fn newest(dataset: &Dataset) -> &str {
    let list = dataset.more.get(STATUS).and_then(Value::as_array);
    list.and_then(|it| it.last()).and_then(|it| it["label"].as_str()).unwrap_or_default()
}

fn failed(why: &str) -> ApiError {
    ApiError::bad_request(format!("Status update failed - {why}"))
}

/// Turns an error into a 400: the status of every refusal to set a curation status.
fn as_unusable(mut error: ApiError) -> ApiError {
    error.status = http::StatusCode::BAD_REQUEST;
    error
}

async fn change_status(call: &Call, label: Option<String>) -> Result<(), ApiError> {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut dataset = publishable(txn, &asker, &wanted).map_err(as_unusable)?;
        if set_of(txn, &dataset)? == DISABLED {
            return Err(failed("Status labeling disabled for this dataset"));
        }
        if dataset.draft.is_none() {
            return Err(ApiError::bad_request(
                "Latest version of dataset is already released. Status can only be set on draft versions",
            ));
        }
        if let Some(label) = &label
            && !labels_of(txn, &dataset)?.contains(label)
        {
            return Err(failed("label not allowed"));
        }
        if newest(&dataset) == label.as_deref().unwrap_or_default() {
            return Err(failed("the dataset already has this status"));
        }
        let entry = json!({
            "label": label.clone().unwrap_or_default(),
            "createTime": app.now(),
            "assigner": asker.identifier().trim_start_matches('@'),
        });
        if let Some(list) = dataset.more.entry(STATUS).or_insert_with(|| json!([])).as_array_mut() {
            list.push(entry);
        }
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)
    };
    call.db().write(write).await
}

async fn set_status(call: Call) -> Answer {
    let label = call.query.filled("label").map(str::to_owned);
    let label = label.ok_or_else(|| ApiError::bad_request("A label is missing"))?;
    change_status(&call, Some(label.clone())).await?;
    envelope::message("Curation Status updated")
}

async fn delete_status(call: Call) -> Answer {
    change_status(&call, None).await?;
    envelope::message("Curation Status deleted")
}

async fn show_set(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let wanted = Wanted::of(&call)?;
    let find = move |view: &mut View<'_>| -> Result<String, ApiError> {
        let dataset = wanted.find(view)?;
        set_of(view, &dataset)
    };
    envelope::message(call.db().read(Weight::Point, find).await?)
}

async fn set_set(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let (wanted, name) = (Wanted::of(&call)?, call.query.filled("name").map(str::to_owned));
    let shown = name.clone().unwrap_or_else(|| DEFAULT_SET.to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut dataset = wanted.find(txn)?;
        match &name {
            Some(name) if is_label_set(txn, name)? => {
                dataset.more.insert(LABEL_SET.into(), name.as_str().into());
            }
            Some(_) => return Err(ApiError::bad_request("No such Curation Label Set")),
            None => drop(dataset.more.remove(LABEL_SET)),
        }
        datasets::put(txn, &dataset)
    };
    call.db().write(write).await?;
    envelope::message(format!("Curation Label Set Name set to: {shown}"))
}

async fn allowed(call: Call) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let find = move |view: &mut View<'_>| -> Result<Vec<String>, ApiError> {
        let dataset = publishable(view, &asker, &wanted)?;
        labels_of(view, &dataset)
    };
    let labels = call.db().read(Weight::Point, find).await?;
    envelope::message(labels.join(","))
}

/// Lists drafts with their labels and their users' roles, as CSV; superusers only.
async fn list_states(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let with_history = call.query.is_true("includeHistory");
    let find = move |view: &mut View<'_>| -> Result<String, ApiError> {
        let query = pinakes_store::Query::filter(pinakes_store::Expr::Exists("draft".into()));
        let mut csv = String::from(
            "Dataset,Date Created,Last Modified Date,Curation Status,Status Set Time,Status Set By\n",
        );
        for dataset in stored::find::<Dataset>(view, &DATASET, &query)? {
            let list = dataset.more.get(STATUS).and_then(Value::as_array).map(Vec::as_slice);
            let none = [Value::Null];
            // Newest first; a draft without a status also gets a line.
            let statuses = list.filter(|it| !it.is_empty()).unwrap_or(&none).iter().rev();
            let changed = dataset.draft.as_ref().map(|it| it.last_update_time.clone()).unwrap_or_default();
            for status in statuses.take(if with_history { usize::MAX } else { 1 }) {
                let text = |name: &str| status[name].as_str().unwrap_or_default();
                csv.push_str(&format!(
                    "{},{},{changed},{},{},{}\n",
                    dataset.pid,
                    dataset.create_time,
                    text("label"),
                    text("createTime"),
                    text("assigner")
                ));
            }
        }
        Ok(csv)
    };
    text_answer("text/csv", call.db().read(Weight::Scan, find).await?)
}
