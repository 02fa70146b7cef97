//! A collection over HTTP: lists, single records, deleting by query.

use std::borrow::Cow;
use std::ops::ControlFlow;

use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer::{self, JoinedBodies};
use pinakes_http::{Gone, Sink};
use pinakes_store::{Expr, Order, Query, Record, StoreError, View, Weight};
use serde_json::{Map, Value};

use super::manner::in_manner;
use super::{Lock, Missing, delete, insert, put};
use crate::platform::app::Call;
use crate::platform::collection::declared::{Collection, Collections, Shown, Writer};
use crate::platform::cql::{self, Bounds, Cql, Names, Node};
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::settings::Settings;
use crate::platform::{collection, json};

/// `application/json` as FOLIO sends it.
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Maximum number of records of a list that are collected before sending; longer lists are streamed.
const INLINE_RECORDS: u64 = 1_000;
/// Number of records that are checked again together before they are deleted.
const REMOVED_RECORDS: usize = 500;
/// Default number of records in a list.
const DEFAULT_LIMIT: u64 = 10;

/// Adds the routes of a collection.
pub fn routes(routes: Routes, collection: &'static Collection) -> Routes {
    routes_at(routes, collection, collection.path, collection.permission)
}

/// Adds the same routes at another path, for a module that serves another one's records; `permission` is the prefix of
/// its permissions.
pub fn routes_at(
    routes: Routes,
    collection: &'static Collection,
    path: &str,
    permission: &'static str,
) -> Routes {
    let item = format!("{path}/{{id}}");
    let to = |end: &str| Access::Permission(Cow::Owned(format!("{permission}.{end}")));
    routes
        .get(path, to("collection.get"), move |call| {
            in_manner(call, collection, false, move |call| list(call, collection))
        })
        .post(path, to("item.post"), move |call| {
            in_manner(call, collection, true, move |call| create(call, collection))
        })
        .delete(path, to("collection.delete"), move |call| {
            in_manner(call, collection, false, move |call| remove_by_query(call, collection))
        })
        .get(&item, to("item.get"), move |call| {
            in_manner(call, collection, false, move |call| by_id(call, collection))
        })
        .put(&item, to("item.put"), move |call| {
            in_manner(call, collection, true, move |call| replace(call, collection))
        })
        .delete(&item, to("item.delete"), move |call| {
            in_manner(call, collection, false, move |call| remove(call, collection))
        })
}

async fn list(call: Call, collection: &'static Collection) -> Answer {
    let mut page = Page::of(&call)?;
    if let Some(rule) = collection.unless_asked
        && !rule.parameters.iter().any(|it| call.query.is_true(it))
    {
        page.cql.leave_out(rule.hidden);
    }
    answer_list(&call, collection, page).await
}

/// The parameters of a list request.
#[derive(Debug, Clone)]
pub struct Page {
    /// The query.
    pub cql: Cql,
    /// Number of records to skip.
    pub offset: u64,
    /// Maximum number of records; 0 for the count alone.
    pub limit: u64,
    /// All collections: a condition may be about records of other collections.
    pub collections: Collections,
}

impl Page {
    /// Parses `query`, `offset` and `limit`.
    ///
    /// Errors: 400 for invalid CQL or an invalid number.
    pub fn of(call: &Call) -> Result<Self, FolioError> {
        let cql = parsed(&call.app.settings, call.query.get("query").unwrap_or_default())?;
        let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", DEFAULT_LIMIT)?);
        Ok(Self { cql, offset, limit, collections: call.app.collections })
    }
}

/// Parses a query within the site's limits. Errors: 400 in plain text.
pub fn parsed(settings: &Settings, text: &str) -> Result<Cql, FolioError> {
    let Settings {
        cql_bytes: length_bytes, cql_depth: depth, cql_clauses: clauses, cql_words: words, ..
    } = *settings;
    Ok(cql::parse(text, Bounds { length_bytes, depth, clauses, words })?)
}

impl From<crate::platform::cql::CqlError> for FolioError {
    fn from(error: crate::platform::cql::CqlError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// Returns the condition and the order of a query on a collection.
pub fn expr_of(
    view: &mut View<'_>,
    collections: Collections,
    collection: &'static Collection,
    cql: &Cql,
) -> Result<(Expr, Vec<Order>), FolioError> {
    let expr = condition_of(view, collections, collection, &collection.names, &cql.condition)?;
    Ok((expr, cql::order(cql, &collection.names)))
}

/// Translates a condition on a collection, with names given by the caller.
///
/// Errors: 400 for a field that the records do not have, and for whatever else is not supported.
pub fn condition_of(
    view: &mut View<'_>,
    collections: Collections,
    collection: &'static Collection,
    names: &Names,
    condition: &Node,
) -> Result<Expr, FolioError> {
    let foreign = collection.hooks.foreign;
    cql::meaning(
        condition,
        &collection.kind,
        names,
        &mut |clause| match foreign(view, collections, clause)? {
            Some(expr) => Ok(Some(expr)),
            None => check_index(view, collection, names, &clause.index).map(|()| None),
        },
    )
}

/// Refuses the name of a field that the records of a collection do not have: an empty list caused by a typing error
/// would be taken for a result.
///
/// Valid names are those that the collection declares and, if the declaration is not complete, those of properties that
/// a record has.
fn check_index(
    view: &mut View<'_>,
    collection: &'static Collection,
    names: &Names,
    index: &str,
) -> Result<(), FolioError> {
    let unknown = || {
        let message = format!("CQLParseException: {} have no field {index:?} to search in", collection.list);
        FolioError::bad_request(message)
    };
    if index.eq_ignore_ascii_case("cql.serverChoice") || index.eq_ignore_ascii_case("keyword") {
        return if names.anywhere.is_empty() { Err(unknown()) } else { Ok(()) };
    }
    if index.starts_with("cql.") || collection.declares(names, index) {
        return Ok(());
    }
    let path = pinakes_store::Path::from(names.path(index));
    if view.first(&collection.kind, Expr::Exists(path))?.is_some() {
        return Ok(());
    }
    // Without any records nothing can be said, unless every property is declared.
    let is_whole = !collection.schema.known.is_empty() || !names.fields.is_empty();
    if is_whole || view.first(&collection.kind, Expr::All)?.is_some() { Err(unknown()) } else { Ok(()) }
}

/// Returns the records of a page and the total count.
pub fn page_of(
    view: &mut View<'_>,
    collection: &'static Collection,
    page: &Page,
) -> Result<(Vec<Record>, u64), FolioError> {
    let (filter, order) = expr_of(view, page.collections, collection, &page.cql)?;
    let query = Query { filter, order, skip: page.offset, limit: Some(page.limit), after: None };
    let records = if page.limit == 0 { Vec::new() } else { view.find(&collection.kind, &query)? };
    let total = total(view, collection, &query, records.len() as u64)?;
    Ok((records, total))
}

/// Returns the number of records that satisfy the query; counts only if the page does not reveal it.
fn total(
    view: &mut View<'_>,
    collection: &'static Collection,
    query: &Query,
    n_found: u64,
) -> Result<u64, StoreError> {
    let limit = query.limit.unwrap_or(0);
    if n_found < limit && (0 < n_found || query.skip == 0) {
        return Ok(query.skip + n_found);
    }
    view.count(&collection.kind, &query.filter)
}

/// Answers a list request.
pub async fn answer_list(call: &Call, collection: &'static Collection, page: Page) -> Answer {
    let head = format!("{{\"{}\" : [", collection.list);
    if let Some(shown) = collection.hooks.shown {
        let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
            let (records, total) = page_of(view, collection, &page)?;
            Ok((completed(view, shown, &records)?, total))
        };
        let (bodies, total) = call.db().read(Weight::Scan, read).await?;
        let bodies = bodies.iter().map(json::bytes).collect();
        let body = JoinedBodies::new(head, bodies, tail(collection, total)).into_body();
        return Ok(answer::with_body(StatusCode::OK, JSON, body));
    }
    if INLINE_RECORDS < page.limit {
        return streamed(call, collection, page, head).await;
    }
    let read = move |view: &mut View<'_>| page_of(view, collection, &page);
    let (records, total) = call.db().read(Weight::Scan, read).await?;
    let bodies = records.into_iter().map(|it| it.body).collect();
    Ok(answer::with_body(
        StatusCode::OK,
        JSON,
        JoinedBodies::new(head, bodies, tail(collection, total)).into_body(),
    ))
}

/// Returns records in the form shown.
fn completed(view: &mut View<'_>, shown: Shown, records: &[Record]) -> Result<Vec<Value>, FolioError> {
    let mut bodies = records.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?;
    shown(view, &mut bodies)?;
    Ok(bodies)
}

fn tail(collection: &Collection, total: u64) -> String {
    if !collection.has_result_info {
        return format!("],\"totalRecords\" : {total}}}");
    }
    format!(
        "],\"totalRecords\" : {total},\"resultInfo\" : {{\"totalRecords\" : {total},\"facets\" : [],\"diagnostics\" : []}}}}"
    )
}

async fn streamed(call: &Call, collection: &'static Collection, page: Page, head: String) -> Answer {
    let limits = call.app.context.limits();
    let produce = move |view: &mut View<'_>, sink: &mut Sink| -> Result<(), FolioError> {
        let (filter, order) = expr_of(view, page.collections, collection, &page.cql)?;
        let query = Query { filter, order, skip: page.offset, limit: Some(page.limit), after: None };
        let mut n_found = 0;
        let mut sent = sink.push(head.as_bytes());
        view.for_each(&collection.kind, &query, |record| {
            let comma: &[u8] = if n_found == 0 { b"" } else { b"," };
            n_found += 1;
            sent = sent.and_then(|()| sink.push(comma)).and_then(|()| sink.push(&record.body));
            if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if sent == Err(Gone) {
            return Ok(());
        }
        let total = total(view, collection, &query, n_found)?;
        // If the client has disconnected, the end of the list is not needed.
        let _ = sink.push(tail(collection, total).as_bytes());
        Ok(())
    };
    let body = call.db().stream(limits, produce).await?;
    Ok(answer::with_body(StatusCode::OK, JSON, body))
}

/// `GET …/{id}`.
pub async fn by_id(call: Call, collection: &'static Collection) -> Answer {
    let id = call.uuid_param("id")?;
    let wanted = id.clone();
    if let Some(shown) = collection.hooks.shown {
        let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
            let Some(record) = view.get(&collection.kind, &wanted)? else { return Ok(None) };
            Ok(completed(view, shown, &[record])?.pop())
        };
        let found = call.db().read(Weight::Scan, read).await?;
        return Ok(crate::platform::values::json_answer(
            StatusCode::OK,
            &found.ok_or_else(|| collection.not_found(&id))?,
        ));
    }
    let found = call.db().read(Weight::Point, move |view| view.get(&collection.kind, &wanted)).await?;
    let record = found.ok_or_else(|| collection.not_found(&id))?;
    Ok(answer::bytes(StatusCode::OK, JSON, record.body))
}

/// `POST …`.
pub async fn create(mut call: Call, collection: &'static Collection) -> Answer {
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut pinakes_store::Txn<'_>| -> Result<_, FolioError> {
        let mut stored = insert(txn, &writer(), collection, body.clone())?;
        if let Some(shown) = collection.hooks.shown {
            shown(txn, std::slice::from_mut(&mut stored.body))?;
            stored.bytes = json::bytes(&stored.body);
        }
        Ok(stored)
    };
    let stored = call.db().write(write).await?;
    Ok(created(collection, &stored.id, stored.bytes))
}

/// Answers 201 with the body and its location.
pub fn created(collection: &Collection, id: &str, body: bytes::Bytes) -> Response {
    let location = format!("{}/{id}", collection.path);
    answer::with_header(answer::bytes(StatusCode::CREATED, JSON, body), LOCATION, &location)
}

/// `PUT …/{id}`.
pub async fn replace(mut call: Call, collection: &'static Collection) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    if let Some(text) = collection.other_id
        && body.get("id").and_then(Value::as_str).is_some_and(|it| !it.eq_ignore_ascii_case(&id))
    {
        return Err(FolioError::bad_request(text));
    }
    let writer = Writer::of(&call);
    let write = move |txn: &mut pinakes_store::Txn<'_>| {
        keep_hrid(txn, collection, &id, &body)?;
        put(txn, &writer(), collection, &id, body.clone(), Missing::Refuse, Lock::Checked).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Refuses a body that leaves out the human-readable id of the record it replaces. Another id is refused when it is
/// written.
fn keep_hrid(
    view: &mut View<'_>,
    collection: &'static Collection,
    id: &str,
    body: &Map<String, Value>,
) -> Result<(), FolioError> {
    if collection.numbered.is_none() || body.get("hrid").is_some_and(|it| !it.is_null()) {
        return Ok(());
    }
    let old = view.get(&collection.kind, id)?.map(|it| it.json()).transpose()?;
    match old.as_ref().and_then(|it| json::text_at(it, "hrid")) {
        Some(old) => {
            Err(FolioError::bad_request(format!("The hrid field cannot be changed: new=null, old={old}")))
        }
        None => Ok(()),
    }
}

/// `DELETE …/{id}`.
pub async fn remove(call: Call, collection: &'static Collection) -> Answer {
    let id = call.uuid_param("id")?;
    let writer = Writer::of(&call);
    call.db().write(move |txn| delete(txn, &writer(), collection, &id).map(drop)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// `DELETE …?query=`: deletes all matching records, or none if one of them may not be deleted.
pub async fn remove_by_query(call: Call, collection: &'static Collection) -> Answer {
    let text = call.query.get("query").unwrap_or_default();
    if text.trim().is_empty() {
        return Err(FolioError::bad_request("expected CQL but query parameter is empty"));
    }
    let cql = parsed(&call.app.settings, text)?;
    let (writer, collections) = (Writer::of(&call), call.app.collections);
    // The query is evaluated outside the transaction, because it may take long and would block all writers.
    let find = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let (filter, _) = expr_of(view, collections, collection, &cql)?;
        let mut ids = Vec::new();
        view.for_each(&collection.kind, &Query::filter(filter.clone()), |record| {
            ids.push(record.id);
            ControlFlow::Continue(())
        })?;
        Ok((filter, ids))
    };
    let (filter, ids) = call.db().read(Weight::Scan, find).await?;
    let write = move |txn: &mut pinakes_store::Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        for some in ids.chunks(REMOVED_RECORDS) {
            // Of the records found, keep those that still exist and match.
            let fitting = filter.clone().and(Expr::Ids(some.to_vec()));
            for record in txn.find(&collection.kind, &Query::filter(fitting))? {
                delete(txn, &writer, collection, &record.id)?;
            }
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

impl Writer {
    /// Returns a factory of the writers for a caller's transactions.
    pub fn of(call: &Call) -> impl Fn() -> Self + Clone + Send + Sync + 'static {
        let (now_ms, user) = (call.app.now_ms(), call.asker.user_id());
        let (entropy, collections) = (call.app.context.entropy().clone(), call.app.collections);
        move || Self::new(now_ms, user.clone(), entropy.clone(), collections)
    }
}

impl Routes {
    /// Adds the routes of a collection.
    pub fn collection(self, collection: &'static crate::platform::collection::declared::Collection) -> Self {
        collection::routes(self, collection)
    }
}
