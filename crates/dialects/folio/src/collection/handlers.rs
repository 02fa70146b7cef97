//! A collection over HTTP: lists, single records, deleting by query.

use std::ops::ControlFlow;

use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer::{self, JoinedBodies};
use pinakes_http::{Gone, Sink};
use pinakes_store::{Expr, Order, Query, Record, StoreError, View, Weight};
use std::borrow::Cow;

use super::{Collection, Lock, Missing, Writer, delete, insert, put};
use crate::app::Call;
use crate::cql::{self, Bounds, Cql};
use crate::error::{Answer, FolioError};
use crate::permissions::Access;
use crate::routes::Routes;
use crate::settings::Settings;

/// `application/json` as FOLIO sends it.
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Records of a list that are collected before they are sent; longer lists are streamed.
const INLINE_RECORDS: u64 = 1_000;
/// Records of a list when no limit is given.
const DEFAULT_LIMIT: u64 = 10;

/// The routes of a collection.
pub fn routes(routes: Routes, collection: &'static Collection) -> Routes {
    let path = collection.path;
    let item = format!("{path}/{{id}}");
    let to = |end: &str| Access::Permission(Cow::Owned(format!("{}.{end}", collection.permission)));
    routes
        .get(path, to("collection.get"), move |call| list(call, collection))
        .post(path, to("item.post"), move |call| create(call, collection))
        .delete(path, to("collection.delete"), move |call| remove_by_query(call, collection))
        .get(&item, to("item.get"), move |call| by_id(call, collection))
        .put(&item, to("item.put"), move |call| replace(call, collection))
        .delete(&item, to("item.delete"), move |call| remove(call, collection))
}

async fn list(call: Call, collection: &'static Collection) -> Answer {
    let page = Page::of(&call)?;
    answer_list(&call, collection, page).await
}

/// What a list request asks for.
#[derive(Debug, Clone)]
pub struct Page {
    /// The query.
    pub cql: Cql,
    /// Records to pass over.
    pub offset: u64,
    /// Records to give at most; 0 for the count alone.
    pub limit: u64,
}

impl Page {
    /// From `query`, `offset` and `limit`.
    ///
    /// Errors: 400 for what is not CQL, or no number.
    pub fn of(call: &Call) -> Result<Self, FolioError> {
        let cql = parsed(&call.app.settings, call.query.get("query").unwrap_or_default())?;
        let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", DEFAULT_LIMIT)?);
        Ok(Self { cql, offset, limit })
    }
}

/// A query read within the site's bounds. Errors: 400 in plain text.
pub fn parsed(settings: &Settings, text: &str) -> Result<Cql, FolioError> {
    let Settings { cql_bytes: length_bytes, cql_depth: depth, cql_clauses: clauses, .. } = *settings;
    Ok(cql::parse(text, Bounds { length_bytes, depth, clauses })?)
}

impl From<cql::CqlError> for FolioError {
    fn from(error: cql::CqlError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// The condition and the order of a query on a collection.
pub fn expr_of(
    view: &mut View<'_>,
    collection: &'static Collection,
    cql: &Cql,
) -> Result<(Expr, Vec<Order>), FolioError> {
    let foreign = collection.hooks.foreign;
    let expr = cql::meaning(&cql.condition, &collection.kind, &collection.names, &mut |clause| {
        foreign(view, clause)
    })?;
    Ok((expr, cql::order(cql, &collection.names)))
}

/// The records of a page and how many there are in all.
pub fn page_of(
    view: &mut View<'_>,
    collection: &'static Collection,
    page: &Page,
) -> Result<(Vec<Record>, u64), FolioError> {
    let (filter, order) = expr_of(view, collection, &page.cql)?;
    let query = Query { filter, order, skip: page.offset, limit: Some(page.limit), after: None };
    let records = if page.limit == 0 { Vec::new() } else { view.find(&collection.kind, &query)? };
    let total = total(view, collection, &query, records.len() as u64)?;
    Ok((records, total))
}

/// How many records satisfy the query; counted only when the page does not tell.
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

/// The answer to a list request.
pub async fn answer_list(call: &Call, collection: &'static Collection, page: Page) -> Answer {
    let head = format!("{{\"{}\" : [", collection.list);
    if INLINE_RECORDS < page.limit {
        return streamed(call, collection, page, head).await;
    }
    let read = move |view: &mut View<'_>| page_of(view, collection, &page);
    let (records, total) = call.db().read(Weight::Scan, read).await?;
    let bodies = records.into_iter().map(|it| it.body).collect();
    Ok(answer::with_body(StatusCode::OK, JSON, JoinedBodies::new(head, bodies, tail(total)).into_body()))
}

fn tail(total: u64) -> String {
    format!(
        "],\"totalRecords\" : {total},\"resultInfo\" : {{\"totalRecords\" : {total},\"facets\" : [],\"diagnostics\" : []}}}}"
    )
}

async fn streamed(call: &Call, collection: &'static Collection, page: Page, head: String) -> Answer {
    let limits = call.app.context.limits();
    let produce = move |view: &mut View<'_>, sink: &mut Sink| -> Result<(), FolioError> {
        let (filter, order) = expr_of(view, collection, &page.cql)?;
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
        // Who left needs no end.
        let _ = sink.push(tail(total).as_bytes());
        Ok(())
    };
    let body = call.db().stream(limits, produce).await?;
    Ok(answer::with_body(StatusCode::OK, JSON, body))
}

/// `GET …/{id}`.
pub async fn by_id(call: Call, collection: &'static Collection) -> Answer {
    let id = call.uuid_param("id")?;
    let wanted = id.clone();
    let found = call.db().read(Weight::Point, move |view| view.get(&collection.kind, &wanted)).await?;
    let record = found.ok_or_else(|| collection.not_found(&id))?;
    Ok(answer::bytes(StatusCode::OK, JSON, record.body))
}

/// `POST …`.
pub async fn create(mut call: Call, collection: &'static Collection) -> Answer {
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let stored = call.db().write(move |txn| insert(txn, &writer(), collection, body.clone())).await?;
    Ok(created(collection, &stored.id, stored.bytes))
}

/// 201 with the body and where it is.
pub fn created(collection: &Collection, id: &str, body: bytes::Bytes) -> Response {
    let location = format!("{}/{id}", collection.path);
    answer::with_header(answer::bytes(StatusCode::CREATED, JSON, body), LOCATION, &location)
}

/// `PUT …/{id}`.
pub async fn replace(mut call: Call, collection: &'static Collection) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut pinakes_store::Txn<'_>| {
        put(txn, &writer(), collection, &id, body.clone(), Missing::Refuse, Lock::Checked).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// `DELETE …/{id}`.
pub async fn remove(call: Call, collection: &'static Collection) -> Answer {
    let id = call.uuid_param("id")?;
    let writer = Writer::of(&call);
    call.db().write(move |txn| delete(txn, &writer(), collection, &id).map(drop)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// `DELETE …?query=`: all that fit, or none if one of them must stay.
pub async fn remove_by_query(call: Call, collection: &'static Collection) -> Answer {
    let text = call.query.get("query").unwrap_or_default();
    if text.trim().is_empty() {
        return Err(FolioError::bad_request("expected CQL but query parameter is empty"));
    }
    let cql = parsed(&call.app.settings, text)?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut pinakes_store::Txn<'_>| -> Result<(), FolioError> {
        let (filter, _) = expr_of(txn, collection, &cql)?;
        let mut ids = Vec::new();
        txn.for_each(&collection.kind, &Query::filter(filter), |record| {
            ids.push(record.id);
            ControlFlow::Continue(())
        })?;
        let writer = writer();
        ids.iter().try_for_each(|id| delete(txn, &writer, collection, id).map(drop))
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
