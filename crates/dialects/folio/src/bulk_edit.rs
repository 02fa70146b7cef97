//! `/bulk-operations`: applies the same changes to many users, items, holdings records or instances
//! (mod-bulk-operations): a list of identifiers or a query, the records found, rules or an edited table, a preview of
//! the result, the changes.
//!
//! | file | what |
//! |---|---|
//! | `profiles.rs` | rules kept under a name |
//! | `rules.rs`, `marc.rs` | applying a rule to a record, or to its MARC record |
//! | `steps.rs` | finding, previewing and writing, record by record |
//! | `table.rs` | the columns in which records are shown, and CSV |

mod marc;
pub(crate) mod operations;
pub(crate) mod profiles;
mod rules;
mod steps;
mod table;

use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use pinakes_http::{answer, body};
use pinakes_store::{Expr, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::bulk_edit::operations::{OPERATIONS, ROW, in_states, operation, refused, rows};
use crate::platform::app::Call;
use crate::platform::collection::{self, Page};
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::limits::{BULK_EDIT_BYTES, BULK_EDIT_RECORDS};
use crate::platform::permissions::{self, Access};
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};
use crate::queries;
use table::Entity;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let item = "/bulk-operations/{id}";
    let below = |end: &str| format!("{item}/{end}");
    routes
        .get("/bulk-operations", to("bulk-operations.collection.get"), |call| async move {
            let page = Page::of(&call)?;
            collection::answer_list(&call, &OPERATIONS, page).await
        })
        .post("/bulk-operations/upload", to("bulk-operations.upload.post"), upload)
        .post("/bulk-operations/query", to("bulk-operations.item.query.post"), by_query)
        .get("/bulk-operations/list-users", to("bulk-operations.list-users.get"), users)
        .with(profiles::routes)
        .get(item, to("bulk-operations.item.get"), |call| collection::by_id(call, &OPERATIONS))
        .post(&below("start"), to("bulk-operations.item.start.post"), start)
        .post(&below("cancel"), to("bulk-operations.item.cancel.post"), cancel)
        .post(&below("content-update"), to("bulk-operations.item.content-update.post"), set_rules)
        .post(
            &below("marc-content-update"),
            to("bulk-operations.item.marc-content-update.post"),
            set_marc_rules,
        )
        .get(&below("preview"), to("bulk-operations.item.preview.get"), preview)
        .get(&below("errors"), to("bulk-operations.item.errors.get"), errors)
        .get(&below("download"), to("bulk-operations.download.item.get"), download)
}

/// Returns the text of a list: the body itself, or the part `file` of a form.
async fn list_of(call: &mut Call) -> Result<String, FolioError> {
    let limits = call.app.context.limits().clone();
    let incoming = call.take_body();
    let bytes = body::receive(&call.headers, incoming, BULK_EDIT_BYTES, &limits).await?;
    let content_type = call.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let bytes = match multer::parse_boundary(content_type) {
        Err(_) => bytes,
        Ok(boundary) => {
            let unreadable = |error: multer::Error| FolioError::bad_request(format!("the form: {error}"));
            let mut parts = multer::Multipart::new(Body::from(bytes).into_data_stream(), boundary);
            let Some(part) = parts.next_field().await.map_err(unreadable)? else {
                return Err(FolioError::bad_request("the form has no part with a file"));
            };
            part.bytes().await.map_err(unreadable)?
        }
    };
    String::from_utf8(bytes.to_vec())
        .map_err(|error| FolioError::bad_request(format!("the list is not UTF-8: {error}")))
}

/// Creates an operation: `?entityType=&identifierType=` with a list of identifiers, one per line.
///
/// Errors: 422 for a record type that cannot be edited in bulk; 413 for a list that is too long.
async fn upload(mut call: Call) -> Answer {
    if call.query.is_true("manual") {
        return upload_edited(call).await;
    }
    let entity = call.query.get("entityType").unwrap_or_default().to_owned();
    let by = call.query.get("identifierType").unwrap_or_default().to_owned();
    let Some(known) = Entity::named(&entity) else {
        return Err(refused(
            "entityType must be USER, ITEM, HOLDINGS_RECORD or INSTANCE",
            "entityType",
            &entity,
        ));
    };
    admit(&call, known)?;
    if known.identified_by(&by).is_none() {
        return Err(refused(format!("{entity} is not found by {by}"), "identifierType", &by));
    }
    let text = list_of(&mut call).await?;
    let identifiers: Vec<String> = text
        .trim_start_matches('\u{feff}')
        .lines()
        .map(|it| it.trim().trim_matches('"').trim().to_owned())
        .filter(|it| !it.is_empty())
        .collect();
    if BULK_EDIT_RECORDS < identifiers.len() {
        let message =
            format!("at most {BULK_EDIT_RECORDS} identifiers are taken, {} came", identifiers.len());
        return Err(FolioError::text(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let new = NewOperation { entity, by, approach: "IN_APP", query: None };
    let made = begin(&call, new, identifiers).await?;
    Ok(json_answer(StatusCode::OK, &made))
}

/// The initial data of an operation.
struct NewOperation {
    entity: String,
    by: String,
    approach: &'static str,
    query: Option<(String, String)>,
}

/// Creates an operation for a list of identifiers.
async fn begin(call: &Call, new: NewOperation, identifiers: Vec<String>) -> Result<Value, FolioError> {
    let (id, now_ms, user) = (call.app.new_uuid(), call.app.now_ms(), call.asker.user_id());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        for (n, identifier) in identifiers.iter().enumerate() {
            let row_id = format!("{id}/{n:06}");
            let row = json!({
                "id": row_id, "operation": id, "n": n, "identifier": identifier, "state": "new",
            });
            txn.insert(&ROW, &row_id, &row)?;
        }
        let mut operation = json!({
            "id": id, "userId": user, "operationType": "UPDATE", "entityType": new.entity,
            "identifierType": new.by, "status": "NEW", "approach": new.approach, "startTime": dates::rmb(now_ms),
            "totalNumOfRecords": identifiers.len(), "processedNumOfRecords": 0, "matchedNumOfRecords": 0,
            "matchedNumOfErrors": 0, "committedNumOfRecords": 0, "committedNumOfErrors": 0,
            "linkToTriggeringCsvFile": format!("{id}/identifiers.csv"),
        });
        if let Some((entity_type, text)) = &new.query {
            operation["entityTypeId"] = entity_type.as_str().into();
            operation["fqlQuery"] = text.as_str().into();
        }
        txn.insert(&OPERATIONS.kind, &id, &operation)?;
        Ok(operation)
    };
    call.db().write(write).await
}

/// Creates an operation on the records that a query finds: `{"entityTypeId","fqlQuery"}` or `{"queryId"}`.
///
/// Errors: 422 for an invalid query, and for record types that cannot be edited in bulk; 404 for an unknown query.
async fn by_query(mut call: Call) -> Answer {
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let query_id = match text("queryId") {
        Some(id) if text("fqlQuery").is_none() => id.to_owned(),
        _ => {
            let of = queries::entity(&call, required_text(&body, "entityTypeId")?)?;
            let query = required_text(&body, "fqlQuery")?;
            queries::keep(&call, of, query, Vec::new()).await?
        }
    };
    let (query, of) = queries::kept(&call, &query_id).await?;
    let Some(known) = Entity::named(of.edited_as) else {
        return Err(refused("such records are not edited in bulk", "entityTypeId", of.id));
    };
    admit(&call, known)?;
    let ids: Vec<String> =
        query["ids"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let new = NewOperation {
        entity: of.edited_as.to_owned(),
        by: "ID".to_owned(),
        approach: "QUERY",
        query: Some((of.id.to_owned(), text_at(&query, "fqlQuery").unwrap_or_default().to_owned())),
    };
    let made = begin(&call, new, ids).await?;
    let id = text_at(&made, "id").unwrap_or_default().to_owned();
    Ok(json_answer(StatusCode::CREATED, &steps::find(&call, &id).await?))
}

/// Takes the edited table of the records found: `?manual=true&operationId=`, the approach `MANUAL`.
///
/// Errors: 422 for a table without the id column, or with an unknown column; 404.
async fn upload_edited(mut call: Call) -> Answer {
    let id = call.query.get("operationId").unwrap_or_default().to_owned();
    let entity = entity_of(&call, &id).await?;
    let text = list_of(&mut call).await?;
    let lines = table::lines(&text).map_err(|error| refused(error, "file", ""))?;
    let Some((header, lines)) = lines.split_first() else {
        return Err(refused("the table is empty", "file", ""));
    };
    let columns = entity.columns();
    if let Some(other) = header.iter().find(|name| !columns.iter().any(|it| it.0 == name.trim())) {
        return Err(refused("there is no such column", "file", other));
    }
    let id_column = columns.iter().find(|it| it.1 == "id").map_or("", |it| it.0);
    let Some(id_at) = header.iter().position(|it| it.trim() == id_column) else {
        return Err(refused(format!("the table must have the column {id_column}"), "file", ""));
    };
    if BULK_EDIT_RECORDS < lines.len() {
        let message = format!("at most {BULK_EDIT_RECORDS} lines are taken, {} came", lines.len());
        return Err(FolioError::text(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let mut edited = Vec::with_capacity(lines.len());
    for cells in lines {
        let record = cells.get(id_at).map(|it| it.trim().to_lowercase()).unwrap_or_default();
        let row: Map<String, Value> = header
            .iter()
            .zip(cells)
            .map(|(name, cell)| (name.trim().to_owned(), cell.as_str().into()))
            .collect();
        edited.push((record, Value::Object(row)));
    }
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let mut found = operation(txn, &id)?;
        for (record, cells) in &edited {
            let is_it = Expr::Is("operation".into(), id.as_str().into())
                .and(Expr::Is("recordId".into(), record.as_str().into()));
            let Some(row) = txn.first(&ROW, is_it)? else { continue };
            let mut body = row.json()?;
            body["cells"] = cells.clone();
            txn.update(&ROW, &row.id, &body)?;
        }
        found.insert("approach".into(), "MANUAL".into());
        found.insert("linkToModifiedRecordsCsvFile".into(), format!("{id}/modified.csv").into());
        let changed = Value::Object(found);
        txn.update(&OPERATIONS.kind, &id, &changed)?;
        Ok(changed)
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

/// Replaces the rules for MARC records: `{"bulkOperationMarcRules":[…]}`.
///
/// Errors: 422 for a rule that cannot be applied, and for records without a MARC record.
async fn set_marc_rules(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let given = body.get("bulkOperationMarcRules").cloned().unwrap_or_default();
    if entity_of(&call, &id).await? != Entity::Instance {
        return Err(refused("only instances have MARC records that are edited in bulk", "id", &id));
    }
    marc::read(&given)?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut found = operation(txn, &id)?;
        found.insert("_marcRules".into(), given.clone());
        txn.update(&OPERATIONS.kind, &id, &Value::Object(found))?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &Value::Object(body)))
}

/// Refuses callers who may not change a single record of this type.
fn admit(call: &Call, entity: Entity) -> Result<(), FolioError> {
    let default_tenant = &call.app.context.tenants().default;
    let (caller, access) = (&call.asker.caller, Access::to(entity.permission()));
    permissions::check(&call.app.settings, caller, call.asker.tenant(), default_tenant, &access)
}

/// Returns the record type of an operation, if the caller may change such records.
///
/// Errors: 404; 403.
async fn entity_of(call: &Call, id: &str) -> Result<Entity, FolioError> {
    let id = id.to_owned();
    let read = move |view: &mut View<'_>| -> Result<Option<Entity>, FolioError> {
        Ok(operation(view, &id)?.get("entityType").and_then(Value::as_str).and_then(Entity::named))
    };
    let entity = call.db().read(Weight::Point, read).await?;
    let entity = entity.ok_or_else(|| FolioError::not_found("the operation has no known type"))?;
    admit(call, entity)?;
    Ok(entity)
}

/// Performs a step, `{"step":"UPLOAD"|"EDIT"|"COMMIT"}`, and answers when it is done.
async fn start(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let step = body.get("step").and_then(Value::as_str).unwrap_or_default();
    let approach = body.get("approach").and_then(Value::as_str).unwrap_or("IN_APP");
    if !matches!(approach, "IN_APP" | "MANUAL" | "QUERY") {
        let message = format!("approach {approach} is not known: IN_APP, MANUAL or QUERY is");
        return Err(refused(message, "approach", approach));
    }
    entity_of(&call, &id).await?;
    let done = match step {
        "UPLOAD" => steps::find(&call, &id).await?,
        "EDIT" => steps::try_out(&call, &id).await?,
        "COMMIT" => steps::commit(&call, &id).await?,
        _ => return Err(refused("step must be UPLOAD, EDIT or COMMIT", "step", step)),
    };
    Ok(json_answer(StatusCode::OK, &done))
}

async fn cancel(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    entity_of(&call, &id).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut found = operation(txn, &id)?;
        found.insert("status".into(), "CANCELLED".into());
        found.insert("endTime".into(), dates::rmb(now_ms).into());
        txn.update(&OPERATIONS.kind, &id, &Value::Object(found))?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::OK))
}

/// Replaces the rules:
/// `{"bulkOperationRules":[{"rule_details":{"option","actions":[{"type","initial","updated","parameters"}]}}]}`.
///
/// Errors: 422 for a rule that cannot be applied to these records.
async fn set_rules(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let given = body.get("bulkOperationRules").cloned().unwrap_or_default();
    let entity = entity_of(&call, &id).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut found = operation(txn, &id)?;
        rules::read(entity, &given)?;
        found.insert("_rules".into(), given.clone());
        txn.update(&OPERATIONS.kind, &id, &Value::Object(found))?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &Value::Object(body)))
}

/// Returns a table of records as they were, would be, or are: `?step=UPLOAD|EDIT|COMMIT&limit&offset`.
async fn preview(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let entity = entity_of(&call, &id).await?;
    let step = call.query.get("step").unwrap_or("UPLOAD").to_owned();
    let window = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (states, side) = steps::shown(&step)
            .ok_or_else(|| refused("step must be UPLOAD, EDIT or COMMIT", "step", &step))?;
        let mut lines = Vec::new();
        for row in rows(view, &id, states, window)? {
            lines.push(json!({"row": table::cells(view, entity, &row[side])?}));
        }
        Ok(json!({"header": table::header(entity), "rows": lines}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Lists the errors, each with its identifier.
async fn errors(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let window = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    entity_of(&call, &id).await?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let page: Vec<Value> = rows(view, &id, &steps::FAILED, window)?.iter().map(fault).collect();
        let total = view.count(&ROW, &in_states(&id, &steps::FAILED))?;
        Ok(json!({"errors": page, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn fault(row: &Value) -> Value {
    json!({
        "message": row["error"], "type": "ERROR",
        "parameters": [{"key": "IDENTIFIER", "value": row["identifier"]}],
    })
}

/// Returns a file as CSV, chosen by `?fileContentType=`: the uploaded list, the records as they were, would be or are,
/// or the errors.
async fn download(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let entity = entity_of(&call, &id).await?;
    let sort = call.query.get("fileContentType").unwrap_or_default().to_owned();
    let read = move |view: &mut View<'_>| -> Result<String, FolioError> {
        let everything = (0, u64::MAX);
        let mut csv = String::new();
        match sort.as_str() {
            "TRIGGERING_FILE" => {
                for row in rows(view, &id, &steps::ALL, everything)? {
                    table::line(&mut csv, [text_at(&row, "identifier").unwrap_or_default()]);
                }
            }
            "RECORD_MATCHING_ERROR_FILE" | "COMMITTING_CHANGES_ERROR_FILE" => {
                let states: &[&str] = match sort.starts_with("RECORD") {
                    true => &[steps::UNMATCHED],
                    false => &[steps::UNCHANGED],
                };
                for row in rows(view, &id, states, everything)? {
                    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
                    table::line(&mut csv, ["ERROR".to_owned(), text("identifier"), text("error")]);
                }
            }
            other => {
                let step = match other {
                    "MATCHED_RECORDS_FILE" => "UPLOAD",
                    "PROPOSED_CHANGES_FILE" => "EDIT",
                    "COMMITTED_RECORDS_FILE" => "COMMIT",
                    _ => return Err(refused("there is no such file", "fileContentType", other)),
                };
                table::line(&mut csv, entity.columns().iter().map(|it| it.0));
                let Some((states, side)) = steps::shown(step) else { return Ok(csv) };
                for row in rows(view, &id, states, everything)? {
                    table::line(&mut csv, table::cells(view, entity, &row[side])?);
                }
            }
        }
        Ok(csv)
    };
    let csv = call.db().read(Weight::Scan, read).await?;
    Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static("text/csv; charset=utf-8"), csv))
}

/// Lists the users who have started bulk operations.
async fn users(call: Call) -> Answer {
    let read = |view: &mut View<'_>| -> Result<Value, FolioError> {
        let counts = view.count_texts(&OPERATIONS.kind, &Expr::All, &"userId".into())?;
        let ids: Vec<String> = counts.n_records.into_keys().collect();
        let mut list = Vec::new();
        for record in view.get_many(&crate::users::user::USERS.kind, &ids)?.iter().flatten() {
            let user = record.json()?;
            list.push(json!({
                "id": record.id, "firstName": text_at(&user, "personal.firstName"),
                "lastName": text_at(&user, "personal.lastName"),
            }));
        }
        Ok(json!({"users": list, "totalRecords": list.len()}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
