//! Embargoes and retention periods: files that are not available before a date, or after one.

use pinakes_store::{Txn, Weight};
use serde_json::{Map, Value, json};

use super::edit::Editor;
use super::kinds::Until;
use super::{Found, Wanted, rows};
use crate::app::Call;
use crate::datasets::wanted;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{envelope, site_settings};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/datasets/{id}/files/actions/:set-embargo", set_embargo)
        .post("/datasets/{id}/files/actions/:unset-embargo", unset_embargo)
        .post("/datasets/{id}/files/actions/:set-retention", set_retention)
        .post("/datasets/{id}/files/actions/:unset-retention", unset_retention)
}

/// Returns the files that a body names under `fileIds`. Errors: 400.
fn file_ids(body: &Map<String, Value>) -> Result<Vec<i64>, ApiError> {
    let list = body.get("fileIds").and_then(Value::as_array);
    let ids: Option<Vec<i64>> = list.and_then(|it| it.iter().map(Value::as_i64).collect());
    ids.filter(|it| !it.is_empty()).ok_or_else(|| ApiError::bad_request("No fileIds were given."))
}

/// Returns a date in a body. Errors: 400.
fn day(body: &Map<String, Value>, name: &str) -> Result<String, ApiError> {
    let text = body.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_day = text.len() == 10 && crate::clock::parse(&format!("{text}T00:00:00Z")).is_some();
    match is_day {
        true => Ok(text.to_owned()),
        false => Err(ApiError::bad_request(format!("{name} is {text:?}; expected a date as 2027-01-31."))),
    }
}

/// A period that is set for, or removed from, many files at once.
#[derive(Clone)]
enum Period {
    Embargo(Option<Until>),
    Retention(Option<Until>),
}

async fn set(call: Call, files: Vec<i64>, period: Period) -> Result<(), ApiError> {
    let wanted = wanted::Wanted::of(&call)?;
    let editor = Editor::of(&call);
    let write = move |txn: &mut Txn<'_>| {
        let dataset = wanted.find(txn)?;
        let held = crate::permissions::held(txn, &editor.asker, dataset.place())?;
        if !held.contains(&crate::grants::Permission::EditDataset) {
            return Err(crate::permissions::refusal(&editor.asker));
        }
        for id in &files {
            let file = Wanted::number(*id).find(txn)?;
            if file.dataset != dataset.id {
                return Err(ApiError::bad_request(format!("The file {id} is not in the dataset.")));
            }
            let mut found = Found::of(txn, file)?;
            if !editor.asker.is_superuser() && !found.released.is_empty() && found.published_row().is_some() {
                let what = if matches!(period, Period::Embargo(_)) { "embargo" } else { "retention" };
                return Err(ApiError::bad_request(format!(
                    "The {what} of a published file cannot be changed: {id}."
                )));
            }
            match &period {
                Period::Embargo(it) => found.file.embargo.clone_from(it),
                Period::Retention(it) => found.file.retention.clone_from(it),
            }
            rows::put_file(txn, &found.file)?;
            crate::search::index_file(txn, &editor.app, &found.dataset, &found.file)?;
        }
        Ok(())
    };
    call.db().write(write).await
}

/// Returns the number of months in a setting. Without the setting it is 0, which allows no period; -1 means no limit.
async fn months(call: &Call, setting: &'static str) -> Result<i64, ApiError> {
    let value = call.db().read(Weight::Point, move |view| site_settings::get(view, setting)).await?;
    Ok(value.and_then(|it| it.trim().parse().ok()).unwrap_or(0))
}

async fn set_embargo(mut call: Call) -> Answer {
    let months = months(&call, ":MaxEmbargoDurationInMonths").await?;
    if months == 0 {
        return Err(ApiError::bad_request("No Embargoes allowed"));
    }
    let body = call.object().await?;
    let date = day(&body, "dateAvailable")?;
    let today = crate::clock::date(call.app.now_ms());
    if date <= today {
        return Err(ApiError::bad_request("Date available can not be in the past"));
    }
    let last = crate::clock::date(call.app.now_ms() + months.max(0) * 31 * 86_400_000);
    if 0 < months && last < date {
        return Err(ApiError::bad_request(
            "Date available can not exceed MaxEmbargoDurationInMonths: ".to_owned() + &months.to_string(),
        ));
    }
    let reason = body.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    let files = file_ids(&body)?;
    set(call, files, Period::Embargo(Some(Until { date, reason }))).await?;
    envelope::message("FileIds were given embargo.")
}

async fn unset_embargo(mut call: Call) -> Answer {
    let body = call.object().await?;
    let files = file_ids(&body)?;
    set(call, files, Period::Embargo(None)).await?;
    envelope::message("Embargo(es) removed from files")
}

async fn set_retention(mut call: Call) -> Answer {
    let months = months(&call, ":MinRetentionDurationInMonths").await?;
    if months == 0 {
        return Err(ApiError::bad_request("No Retention periods allowed"));
    }
    let body = call.object().await?;
    if body.is_empty() {
        return Err(ApiError::bad_request("No JSON provided"));
    }
    let date = day(&body, "dateUnavailable")?;
    let first = crate::clock::date(call.app.now_ms() + months.max(0) * 30 * 86_400_000);
    if date <= crate::clock::date(call.app.now_ms()) {
        return Err(ApiError::bad_request("Date unavailable can not be in the past"));
    }
    if 0 < months && date < first {
        return Err(ApiError::bad_request(format!(
            "Date unavailable can not be earlier than MinRetentionDurationInMonths: {months} from now"
        )));
    }
    let reason = body.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    let files = file_ids(&body)?;
    set(call, files, Period::Retention(Some(Until { date, reason }))).await?;
    envelope::message("FileIds were given retention period.")
}

async fn unset_retention(mut call: Call) -> Answer {
    let body = call.object().await?;
    let files = file_ids(&body)?;
    set(call, files, Period::Retention(None)).await?;
    envelope::ok(json!({"message": "Retention periods(s) removed from files"}))
}
