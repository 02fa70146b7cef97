//! `/entity-types` and `/query`: queries on records by their fields, used by lists and bulk edit (mod-fqm-manager). A
//! query is finished when it is answered: the ids that it found are stored with it.
//!
//! | file | what |
//! |---|---|
//! | `types.rs` | the record types that can be queried, and their fields |
//! | `fql.rs` | the query language |

pub(crate) mod fql;
pub(crate) mod types;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Path, Query, Txn, Type, View, Weight};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::{at, text_at};
use crate::platform::limits::{QUERY_IDS, QUERY_KEPT_MS, QUERY_VALUES};
use crate::platform::permissions::{self, Access};
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};
use types::{EntityType, TYPES};

/// Queries: `{id, entityTypeId, fqlQuery, fields, userId, startDate, ids}`.
pub(crate) static QUERY: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("startDate", Type::Instant)],
    indexes: &[Index::on(&["startDate"])],
    ..Kind::named("folio_query")
};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get("/entity-types", to("fqm.entityTypes.collection.get"), list)
        .get("/entity-types/{id}", to("fqm.entityTypes.item.get"), show)
        .get(
            "/entity-types/{id}/columns/{column}/values",
            to("fqm.entityTypes.item.columnValues.get"),
            column_values,
        )
        .get("/entity-types/{id}/field-values", to("fqm.entityTypes.item.columnValues.get"), column_values)
        .get("/query", to("fqm.query.sync.get"), at_once)
        .post("/query", to("fqm.query.async.post"), submit)
        .post("/query/contents", to("fqm.query.async.results.get"), contents)
        .get("/query/{id}", to("fqm.query.async.results.get"), results)
        .delete("/query/{id}", to("fqm.query.async.delete"), drop_query)
        .get("/query/{id}/sortedIds", to("fqm.query.async.results.sorted-ids.get"), sorted_ids)
        .post("/query/purge", to("fqm.query.purge.post"), purge)
}

/// Returns the type that a request names, if the caller may read such records.
///
/// Errors: 404; 403.
pub(crate) fn entity(call: &Call, id: &str) -> Result<&'static EntityType, FolioError> {
    let missing = || {
        let fault =
            Fault::new(format!("Entity type with ID {id} does not exist")).code("entity.type.not-found");
        FolioError::faults(StatusCode::NOT_FOUND, vec![fault])
    };
    let found = EntityType::of(id).ok_or_else(missing)?;
    let default_tenant = &call.app.context.tenants().default;
    let (caller, access) = (&call.asker.caller, Access::to(found.permission()));
    permissions::check(&call.app.settings, caller, call.asker.tenant(), default_tenant, &access)?;
    Ok(found)
}

fn may_read(call: &Call, it: &EntityType) -> bool {
    permissions::holds(&call.app.settings, &call.asker.caller, it.permission())
}

/// Lists the types that the caller may query, limited to `?ids=`.
async fn list(call: Call) -> Answer {
    let ids: Vec<String> = call.query.all("ids").map(str::to_lowercase).collect();
    let shown: Vec<Value> = TYPES
        .iter()
        .filter(|it| may_read(&call, it) && (ids.is_empty() || ids.iter().any(|id| id == it.id)))
        .map(EntityType::summary)
        .collect();
    Ok(json_answer(StatusCode::OK, &json!({"entityTypes": shown, "_version": "1"})))
}

async fn show(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    Ok(json_answer(StatusCode::OK, &entity(&call, &id)?.shown()))
}

/// Lists the different values of a field, limited to those that contain `?search=`, in order. The field is part of the
/// path, or `?field=`.
///
/// Errors: 404 for a field that the type does not have.
async fn column_values(call: Call) -> Answer {
    let of = entity(&call, &call.uuid_param("id")?)?;
    let name = match call.param("column") {
        "" => call.query.get("field").unwrap_or_default(),
        name => name,
    };
    let Some((_, path, _)) = of.field(name) else {
        let fault = Fault::new(format!("Field {name} does not exist in entity type {}", of.name));
        return Err(FolioError::faults(StatusCode::NOT_FOUND, vec![fault.code("field.not-found")]));
    };
    let wanted = call.query.get("search").unwrap_or_default().to_lowercase();
    let read = move |view: &mut View<'_>| -> Result<BTreeSet<String>, FolioError> {
        let kind = &of.collection.kind;
        let fits = |text: &str| text.to_lowercase().contains(&wanted);
        Ok(view.distinct_values(kind, &Path::dotted(path), QUERY_VALUES, &fits)?)
    };
    let found = call.db().read(Weight::Scan, read).await?;
    let content: Vec<Value> = found.iter().map(|it| json!({"value": it, "label": it})).collect();
    Ok(json_answer(StatusCode::OK, &json!({"content": content})))
}

/// Returns the ids of the records that a query finds, the oldest first.
///
/// Errors: 422 if there are too many.
pub(crate) fn found_ids(
    view: &mut View<'_>,
    of: &'static EntityType,
    filter: Expr,
) -> Result<Vec<String>, FolioError> {
    let mut ids = Vec::new();
    view.for_each(&of.collection.kind, &Query::filter(filter), |record| {
        ids.push(record.id);
        if ids.len() <= QUERY_IDS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if QUERY_IDS < ids.len() {
        let fault = Fault::new(format!("the query finds more than {QUERY_IDS} records; narrow it"));
        return Err(FolioError::unprocessable(fault.code("MAX_SIZE_EXCEEDED")));
    }
    Ok(ids)
}

/// Returns the requested fields of records; the id is always included.
fn rows(
    view: &mut View<'_>,
    of: &'static EntityType,
    ids: &[String],
    fields: &[String],
) -> Result<Vec<Value>, FolioError> {
    let mut rows = Vec::with_capacity(ids.len());
    for record in view.get_many(&of.collection.kind, ids)?.into_iter().flatten() {
        let body = record.json()?;
        let mut row = Map::new();
        row.insert(format!("{}.id", of.alias), body["id"].clone());
        for name in fields {
            let Some((_, path, _)) = of.field(name) else { continue };
            let value = values(&body, path);
            if !value.is_null() {
                row.insert(name.clone(), value);
            }
        }
        rows.push(Value::Object(row));
    }
    Ok(rows)
}

/// Returns the value at a path; for a list of objects, the list of their values.
fn values(body: &Value, path: &str) -> Value {
    if let Some(value) = at(body, path) {
        return value.clone();
    }
    let Some((list, name)) = path.split_once('.') else { return Value::Null };
    match body.get(list).and_then(Value::as_array) {
        Some(list) => list.iter().filter_map(|it| it.get(name)).cloned().collect(),
        None => Value::Null,
    }
}

fn fields_of(of: &EntityType, given: Option<&Value>) -> Vec<String> {
    let named: Vec<String> = given
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    match named.is_empty() {
        true => of.fields.iter().map(|it| format!("{}.{}", of.alias, it.0)).collect(),
        false => named,
    }
}

/// Runs a query and returns the records: `?entityTypeId=&query=&fields=&limit=`.
async fn at_once(call: Call) -> Answer {
    let of = entity(&call, call.query.get("entityTypeId").unwrap_or_default())?;
    let filter = fql::read(of, call.query.get("query").unwrap_or_default())?;
    let asked: Vec<Value> = call
        .query
        .all("fields")
        .flat_map(|it| it.split(','))
        .filter(|it| !it.is_empty())
        .map(Value::from)
        .collect();
    let fields = fields_of(of, Some(&asked.into()));
    let limit = call.query.number("limit", 100)?;
    let after = call.query.all("afterId").next().and_then(parse_uuid);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let total = view.count(&of.collection.kind, &filter)?;
        let mut ids = found_ids(view, of, filter.clone())?;
        if let Some(after) = &after {
            let at = ids.iter().position(|it| it == after).map_or(0, |it| it + 1);
            ids.drain(..at);
        }
        ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(json!({"content": rows(view, of, &ids, &fields)?, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Stores the result of a query and returns its id.
pub(crate) async fn keep(
    call: &Call,
    of: &'static EntityType,
    text: &str,
    fields: Vec<String>,
) -> Result<String, FolioError> {
    let filter = fql::read(of, text)?;
    let ids = call.db().read(Weight::Scan, move |view| found_ids(view, of, filter.clone())).await?;
    let (id, now_ms) = (call.app.new_uuid(), call.app.now_ms());
    let query = json!({
        "id": id, "entityTypeId": of.id, "fqlQuery": text, "fields": fields, "userId": call.asker.user_id(),
        "startDate": dates::rmb(now_ms), "ids": ids,
    });
    let key = id.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        forget_old(txn, now_ms)?;
        txn.insert(&QUERY, &key, &query)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(id)
}

/// Deletes expired queries and returns their number.
fn forget_old(txn: &mut Txn<'_>, now_ms: i64) -> Result<usize, FolioError> {
    use pinakes_store::{End, Value as StoreValue};
    let until = End::Excluded(StoreValue::Instant(now_ms - QUERY_KEPT_MS));
    let old = Query::filter(Expr::Range("startDate".into(), End::Open, until)).window(0, 100);
    let found = txn.find(&QUERY, &old)?;
    for query in &found {
        txn.delete(&QUERY, &query.id)?;
    }
    Ok(found.len())
}

/// Runs a query and stores its result: `{"entityTypeId","fqlQuery","fields"}`.
async fn submit(mut call: Call) -> Answer {
    let body = call.object().await?;
    let of = entity(&call, required_text(&body, "entityTypeId")?)?;
    let text = required_text(&body, "fqlQuery")?.to_owned();
    let fields = fields_of(of, body.get("fields"));
    let id = keep(&call, of, &text, fields).await?;
    Ok(json_answer(StatusCode::CREATED, &json!({"queryId": id})))
}

/// Returns a stored query. Errors: 404.
pub(crate) async fn kept(call: &Call, id: &str) -> Result<(Value, &'static EntityType), FolioError> {
    let wanted = id.to_owned();
    let found = call.db().read(Weight::Point, move |view| view.get(&QUERY, &wanted)).await?;
    let missing = || {
        let fault = Fault::new(format!("Query with id {id} not found")).code("query.not-found");
        FolioError::faults(StatusCode::NOT_FOUND, vec![fault])
    };
    let query = found.ok_or_else(missing)?.json()?;
    let of = entity(call, text_at(&query, "entityTypeId").unwrap_or_default())?;
    Ok((query, of))
}

fn ids_of(query: &Value) -> Vec<String> {
    let ids = query["ids"].as_array().into_iter().flatten();
    ids.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns a stored query with its results: `?includeResults=true&offset&limit`.
async fn results(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let (query, of) = kept(&call, &id).await?;
    let ids = ids_of(&query);
    let mut shown = json!({
        "queryId": id, "entityTypeId": of.id, "fqlQuery": query["fqlQuery"], "fields": query["fields"],
        "status": "SUCCESS", "startDate": query["startDate"], "endDate": query["startDate"],
        "totalRecords": ids.len(),
    });
    if call.query.is_true("includeResults") {
        let fields = fields_of(of, query.get("fields"));
        let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (skip, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 100)?);
        let page: Vec<String> = ids.into_iter().skip(at(skip)).take(at(limit)).collect();
        let read = move |view: &mut View<'_>| rows(view, of, &page, &fields);
        shown["content"] = call.db().read(Weight::Scan, read).await?.into();
    }
    Ok(json_answer(StatusCode::OK, &shown))
}

/// Returns the ids found, each as a list of one: `?offset&limit`.
async fn sorted_ids(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let (query, _) = kept(&call, &id).await?;
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (skip, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 100)?);
    let page: Vec<Value> =
        ids_of(&query).into_iter().skip(at(skip)).take(at(limit)).map(|it| json!([it])).collect();
    Ok(json_answer(StatusCode::OK, &page.into()))
}

/// Returns fields of some records: `{"entityTypeId","fields","ids":[["…"]]}`.
async fn contents(mut call: Call) -> Answer {
    let body = call.object().await?;
    let of = entity(&call, required_text(&body, "entityTypeId")?)?;
    let fields = fields_of(of, body.get("fields"));
    let given = body.get("ids").and_then(Value::as_array).cloned().unwrap_or_default();
    let ids: Vec<String> = given
        .iter()
        .filter_map(|it| it.as_str().or_else(|| it.get(0)?.as_str()))
        .filter_map(parse_uuid)
        .take(QUERY_IDS)
        .collect();
    let read = move |view: &mut View<'_>| rows(view, of, &ids, &fields);
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?.into()))
}

async fn drop_query(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    kept(&call, &id).await?;
    call.db().write(move |txn| txn.delete(&QUERY, &id).map(drop)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Deletes expired queries.
async fn purge(call: Call) -> Answer {
    let now_ms = call.app.now_ms();
    let n = call.db().write(move |txn| forget_old(txn, now_ms)).await?;
    Ok(json_answer(StatusCode::OK, &json!({"deletedQueryIds": [], "count": n})))
}
