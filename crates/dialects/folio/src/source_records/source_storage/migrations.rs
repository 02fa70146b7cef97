//! `/source-storage/migrations/jobs` and `/source-storage/populate-test-marc-records`: mod-source-record-storage's
//! routes for maintenance and for testing.
//!
//! Values that records are matched on are columns of the records themselves and written with them: there is no separate
//! index to migrate, so a job is finished when it starts.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_marc::{Encoding, Format, RawRecord};
use pinakes_store::{Kind, Txn, Weight};
use serde_json::{Value, json};

use super::{access, insert, put_snapshot, records};
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};
use crate::source_records::marc;

/// Migration jobs.
pub(crate) static MIGRATION: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_source_migration") };

/// FOLIO's migrations.
const MIGRATIONS: [&str; 1] = ["marcIndexersVersionMigration"];
/// The snapshot of test records.
const TEST_SNAPSHOT: &str = "00000000-0000-0000-0000-000000000000";

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .post("/source-storage/migrations/jobs", access("source-storage.migrations.post"), begin)
        .get("/source-storage/migrations/jobs/{id}", access("source-storage.migrations.item.get"), show)
        .post(
            "/source-storage/populate-test-marc-records",
            access("source-storage.records.populate.collection.post"),
            populate,
        )
}

/// Starts a migration and returns the job: `{"migrations":["marcIndexersVersionMigration"]}`.
///
/// Errors: 400 for an unknown migration; 422 if none is given.
async fn begin(mut call: Call) -> Answer {
    let body = call.object().await?;
    let names = body.get("migrations").and_then(Value::as_array).cloned().unwrap_or_default();
    if names.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("migrations")));
    }
    if let Some(other) = names.iter().filter_map(Value::as_str).find(|it| !MIGRATIONS.contains(it)) {
        let known = MIGRATIONS.join(", ");
        let message = format!("Unknown migration {other}; there are {known}");
        return Err(FolioError::bad_request(message));
    }
    let (id, now) = (call.app.new_uuid(), dates::rmb(call.app.now_ms()));
    let job = json!({
        "id": id, "migrations": names, "status": "COMPLETED", "startedDate": now, "completedDate": now,
    });
    let stored = job.clone();
    call.db().write(move |txn| txn.insert(&MIGRATION, &id, &stored).map(drop)).await?;
    Ok(json_answer(StatusCode::ACCEPTED, &job))
}

async fn show(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let wanted = id.clone();
    let found = call.db().read(Weight::Point, move |view| view.get(&MIGRATION, &wanted)).await?;
    let missing = || FolioError::not_found(format!("AsyncMigrationJob with id '{id}' was not found"));
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(missing)?.json()?))
}

/// Stores `{"rawRecords":[{"id","content"}]}` as source records, from ISO 2709, MARCXML or MARC-in-JSON.
///
/// Errors: 422 if one cannot be read; then none is stored.
async fn populate(mut call: Call) -> Answer {
    let body = call.object().await?;
    let Some(raw) = body.get("rawRecords").and_then(Value::as_array).cloned() else {
        return Err(FolioError::unprocessable(Fault::missing("rawRecords")));
    };
    let mut bodies = Vec::with_capacity(raw.len());
    for (n, record) in raw.iter().enumerate() {
        let text = record.get("content").and_then(Value::as_str).unwrap_or_default();
        let format = pinakes_marc::sniff(text.as_bytes()).unwrap_or(Format::Iso2709);
        let parsed = pinakes_marc::parse(format, Encoding::Utf8, RawRecord::alone(text.as_bytes())).record;
        let Some(parsed) = parsed else {
            let fault = Fault::new(format!("rawRecords[{n}].content is no MARC record"));
            return Err(FolioError::unprocessable(fault));
        };
        let given = record.get("id").and_then(Value::as_str).and_then(parse_uuid);
        let id = given.unwrap_or_else(|| call.app.new_uuid());
        let hrid = parsed.control("001").unwrap_or_default().to_owned();
        let kind = match parsed.leader.kind() {
            pinakes_marc::RecordKind::Authority => "MARC_AUTHORITY",
            pinakes_marc::RecordKind::Holdings => "MARC_HOLDING",
            _ => "MARC_BIB",
        };
        let holder = match kind {
            "MARC_AUTHORITY" => json!({"authorityId": call.app.new_uuid(), "authorityHrid": hrid}),
            "MARC_HOLDING" => json!({"holdingsId": call.app.new_uuid(), "holdingsHrid": hrid}),
            _ => json!({"instanceId": call.app.new_uuid(), "instanceHrid": hrid}),
        };
        bodies.push(json!({
            "id": id, "matchedId": id, "snapshotId": TEST_SNAPSHOT, "recordType": kind, "order": n,
            "rawRecord": {"id": id, "content": text},
            "parsedRecord": {"id": id, "content": marc::to_value(&parsed)}, "externalIdsHolder": holder,
        }));
    }
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        put_snapshot(txn, TEST_SNAPSHOT, "PARSING_IN_PROGRESS", writer.now_ms)?;
        for body in &bodies {
            let whole = records::complete(txn, &writer, body.as_object().cloned().unwrap_or_default())?;
            insert(txn, &whole).map_err(records::taken)?;
        }
        put_snapshot(txn, TEST_SNAPSHOT, "COMMITTED", writer.now_ms).map_err(FolioError::from)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
