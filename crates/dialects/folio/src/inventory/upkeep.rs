//! Maintenance routes of mod-inventory-storage: migrations of stored records, publishing records again for an index,
//! settings, instances from a file.
//!
//! Records are stored here in one form and the index never lags behind, so migrations and publications have nothing to
//! change: their jobs are finished when they start, and report the number of records.

use http::{Method, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Kind, Query, Txn, Type, View, Weight};
use serde_json::{Value, json};

use super::holdings::HOLDINGS;
use super::instances::INSTANCES;
use super::items::ITEMS;
use crate::authorities::bulk;
use crate::platform::app::Call;
use crate::platform::collection::Collection;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};

/// Migration jobs.
pub(crate) static MIGRATION: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("submittedDate", Type::Instant)],
    ..Kind::named("folio_migration_job")
};
/// Settings, by key: `{id, key, value}`.
pub(crate) static SETTING: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_inventory_setting") };

/// FOLIO's migrations, with the type of records that each covers.
const MIGRATIONS: [(&str, &str); 4] = [
    ("publicationPeriodMigration", "INSTANCE"),
    ("subjectSeriesMigration", "INSTANCE"),
    ("itemShelvingOrderMigration", "ITEM"),
    ("itemOrderMigration", "ITEM"),
];

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let jobs = "/inventory-storage/migrations/jobs";
    let setting = "/inventory-settings/{key}";
    routes
        .post("/instance-storage/instances/bulk", to("inventory-storage.instances.bulk.post"), |call| {
            bulk::load(call, &INSTANCES)
        })
        .get("/inventory-storage/migrations", to("inventory-storage.migration.item.get"), migrations)
        .get(jobs, to("inventory-storage.migration.job.collection.get"), jobs_of)
        .post(jobs, to("inventory-storage.migration.job.post"), migrate)
        .get(&format!("{jobs}/{{id}}"), to("inventory-storage.migration.job.item.get"), job)
        .delete(&format!("{jobs}/{{id}}"), to("inventory-storage.migration.job.item.delete"), cancel)
        .post(
            "/inventory-reindex-records/publish",
            to("inventory-storage.reindex-records.publish.post"),
            tell,
        )
        .post("/inventory-reindex-records/export", to("inventory-storage.reindex-records.export.post"), tell)
        .get(setting, to("inventory-storage.settings.item.get"), setting_of)
        .on(Method::PATCH, setting, to("inventory-storage.settings.item.patch"), set)
}

fn records_of(name: &str) -> Option<&'static Collection> {
    match name.to_lowercase().as_str() {
        "instance" => Some(&INSTANCES),
        "holdings" => Some(&HOLDINGS),
        "item" => Some(&ITEMS),
        _ => None,
    }
}

async fn migrations(_: Call) -> Answer {
    let list: Vec<Value> =
        MIGRATIONS.iter().map(|(name, about)| json!({"name": name, "affectedEntities": [about]})).collect();
    Ok(json_answer(StatusCode::OK, &json!({"migrations": list, "totalRecords": MIGRATIONS.len()})))
}

/// Starts a migration and returns the job:
/// `{"migrations":["publicationPeriodMigration"],"affectedEntities":["INSTANCE"]}`.
///
/// Errors: 400 for an unknown migration.
async fn migrate(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    let names = body.get("migrations").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut wanted = Vec::new();
    for name in names.iter().filter_map(Value::as_str) {
        let known = MIGRATIONS.iter().find(|it| it.0 == name).copied();
        wanted.push(known.ok_or_else(|| {
            let known: Vec<&str> = MIGRATIONS.iter().map(|it| it.0).collect();
            FolioError::bad_request(format!("Unknown migration {name}; there are {}", known.join(", ")))
        })?);
    }
    if wanted.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("migrations")));
    }
    let (id, now_ms) = (call.app.new_uuid(), call.app.now_ms());
    let now = dates::rmb(now_ms);
    for (name, value) in [
        ("id", id.as_str()),
        ("jobStatus", "Completed"),
        ("submittedDate", now.as_str()),
        ("finishedDate", now.as_str()),
    ] {
        body.insert(name.into(), value.into());
    }
    let about = wanted.iter().map(|it| Value::from(it.1));
    body.entry("affectedEntities").or_insert(about.collect());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let mut counts = Vec::new();
        for (name, about) in &wanted {
            let n = match records_of(about) {
                Some(collection) => txn.count(&collection.kind, &Expr::All)?,
                None => 0,
            };
            counts.push(json!({"migrationName": name, "count": n}));
        }
        let mut job = Value::Object(body.clone());
        job["published"] = counts.clone().into();
        job["processed"] = counts.into();
        txn.insert(&MIGRATION, &id, &job)?;
        Ok(job)
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

async fn jobs_of(call: Call) -> Answer {
    let (skip, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let newest = Query::filter(Expr::All).sorted("submittedDate", pinakes_store::Direction::Descending);
        let page = view.find(&MIGRATION, &newest.window(skip, limit))?;
        let page = page.iter().map(pinakes_store::Record::json).collect::<Result<Vec<_>, _>>()?;
        let total = view.count(&MIGRATION, &Expr::All)?;
        Ok(json!({"jobs": page, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn found(call: &Call) -> Result<Value, FolioError> {
    let id = call.uuid_param("id")?;
    let found = call.db().read(Weight::Point, move |view| view.get(&MIGRATION, &id)).await?;
    Ok(found.ok_or_else(|| FolioError::not_found("Not found"))?.json()?)
}

async fn job(call: Call) -> Answer {
    Ok(json_answer(StatusCode::OK, &found(&call).await?))
}

/// Accepts the request to cancel a job; a finished job cannot be stopped.
async fn cancel(call: Call) -> Answer {
    found(&call).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Accepts `{"id","recordType":"instance","recordIdsRange":{"from","to"}}`; there is no program to publish the records
/// to.
///
/// Errors: 422 for an unknown record type.
async fn tell(mut call: Call) -> Answer {
    let body = call.object().await?;
    required_text(&body, "id")?;
    let sort = required_text(&body, "recordType")?;
    if records_of(sort).is_none() {
        let fault = Fault::new("recordType must be one of: instance, holdings, item");
        return Err(FolioError::unprocessable(fault.with("recordType", sort)));
    }
    Ok(answer::empty(StatusCode::CREATED))
}

async fn setting_of(call: Call) -> Answer {
    let key = call.param("key").to_owned();
    let wanted = key.clone();
    let found = call.db().read(Weight::Point, move |view| view.get(&SETTING, &wanted)).await?;
    let missing = || FolioError::not_found(format!("Setting with key {key} was not found"));
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(missing)?.json()?))
}

/// Changes a setting: `{"value"}`.
async fn set(mut call: Call) -> Answer {
    let key = call.param("key").to_owned();
    let body = call.object().await?;
    let Some(value) = body.get("value").filter(|it| !it.is_null()).cloned() else {
        return Err(FolioError::unprocessable(Fault::missing("value")));
    };
    let now = dates::rmb(call.app.now_ms());
    let setting = json!({
        "id": key, "key": key, "value": value,
        "metadata": {"updatedDate": now, "updatedByUserId": call.asker.user_id()},
    });
    call.db().write(move |txn| txn.put(&SETTING, &key, &setting).map(drop)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
