//! Lists of resources whose records are one JSON document each: filtered, counted, searched, or one by id.
//!
//! Stored bytes are sent as they are, unless the requested form or fields differ from what is stored.

use axum::response::Response;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_http::etag::Tag;
use pinakes_store::{Expr, Kind, Query, Record, StoreError, Weight};
use serde_json::{Map, Value, json};

use crate::app::object_parameter;
use crate::app::{Asker, QueryText, json_parameter};
use crate::datasets::facets::answer_facets;
use crate::documents::object;
use crate::error::{Answer, ScicatError};
use crate::filter::{self, Filter};
use crate::fullquery::{self, Search};
use crate::rights::Rights;
use crate::scientific;

/// A kind and the form in which its records are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing {
    /// The kind.
    pub(crate) kind: &'static Kind,
    /// Converts a stored document to the form that is shown; `None` if that is the stored one.
    pub(crate) form: Option<fn(&mut Map<String, Value>)>,
}

impl Listing {
    /// Creates a listing of a kind that is shown as it is stored.
    pub(crate) const fn stored(kind: &'static Kind) -> Self {
        Self { kind, form: None }
    }

    /// Answers with the rows of a filter.
    pub(crate) async fn list(&self, asker: &Asker, filter: &Filter, visible: Expr) -> Answer {
        let records = find(asker, self.kind, filter.query(visible)).await?;
        if self.form.is_none() && filter.fields.is_everything() {
            return Ok(stored_rows(records));
        }
        let rows: Result<Vec<_>, _> = records.iter().map(|it| self.chosen(it, filter)).collect();
        Ok(answer::json(StatusCode::OK, &rows?))
    }

    /// Answers with the first row of a filter, or 200 with an empty body.
    pub(crate) async fn first(&self, asker: &Asker, filter: &Filter, visible: Expr) -> Answer {
        let query = Query { limit: Some(1), ..filter.query(visible) };
        match find(asker, self.kind, query).await?.first() {
            Some(record) => Ok(answer::json(StatusCode::OK, &self.chosen(record, filter)?)),
            None => Ok(answer::empty(StatusCode::OK)),
        }
    }

    /// Answers with `{"count":n}`.
    pub(crate) async fn count(&self, asker: &Asker, condition: Expr) -> Answer {
        let kind = self.kind;
        let count = asker.db.read(Weight::Scan, move |view| view.count(kind, &condition)).await;
        let count: u64 = count.map_err(|error: StoreError| ScicatError::from(error))?;
        Ok(answer::json(StatusCode::OK, &json!({"count": count})))
    }

    /// Answers `fullquery?fields=&limits=` over what `rights` lets the caller find.
    pub(crate) async fn full_query(
        &self,
        asker: &Asker,
        query: &QueryText,
        search: &Search,
        rights: &Rights,
    ) -> Answer {
        let found = fullquery::parse(&object_parameter(query, "fields")?, search, rights)?;
        let records = find(asker, self.kind, windowed(query, found.condition, self.kind)?).await?;
        if self.form.is_none() && found.units.is_empty() {
            return Ok(stored_rows(records));
        }
        let row = |record: &Record| {
            let mut row = self.shown(record)?;
            if let Some(Value::Object(quantities)) = row.get_mut(search.quantities) {
                found.units.iter().for_each(|(key, unit)| scientific::show_in_unit(quantities, key, unit));
            }
            Ok(row)
        };
        let rows: Result<Vec<_>, ScicatError> = records.iter().map(row).collect();
        Ok(answer::json(StatusCode::OK, &rows?))
    }

    /// Answers `fullfacet?fields=&facets=` over the same records.
    pub(crate) async fn full_facet(
        &self,
        asker: &Asker,
        query: &QueryText,
        search: &Search,
        rights: &Rights,
    ) -> Answer {
        let found = fullquery::parse(&object_parameter(query, "fields")?, search, rights)?;
        answer_facets(asker, query, self.kind, found.condition).await
    }

    /// Answers with one record and its entity tag, or 304 if the client already has it.
    pub(crate) fn one(&self, record: Record, headers: &HeaderMap) -> Answer {
        let tag = Tag::of_record(record.version, record.sequence);
        if tag.is_known_to(headers) {
            return Ok(tag.not_modified());
        }
        let mut response = match self.form {
            None => answer::stored_json(StatusCode::OK, record.body),
            Some(_) => answer::json(StatusCode::OK, &self.shown(&record)?),
        };
        tag.put(response.headers_mut());
        Ok(response)
    }

    /// Returns a record in the form that is shown.
    pub(crate) fn shown(&self, record: &Record) -> Result<Map<String, Value>, ScicatError> {
        let mut row = object(record)?;
        if let Some(form) = self.form {
            form(&mut row);
        }
        Ok(row)
    }

    /// Returns what a filter selects of a record.
    pub(crate) fn chosen(&self, record: &Record, filter: &Filter) -> Result<Map<String, Value>, ScicatError> {
        let mut row = self.shown(record)?;
        filter.fields.apply(&mut row);
        Ok(row)
    }
}

/// Answers with stored bodies as a list.
fn stored_rows(records: Vec<Record>) -> Response {
    answer::json_array(StatusCode::OK, records.into_iter().map(|it| it.body).collect())
}

/// Returns the query for a condition and the window that `limits` names.
pub(crate) fn windowed(query: &QueryText, condition: Expr, kind: &Kind) -> Result<Query, ScicatError> {
    let limits = query.get("limits").filter(|it| !it.is_empty());
    let limits = limits.map(|it| json_parameter("limits", it)).transpose()?;
    let window = filter::window(limits.as_ref(), kind)?;
    Ok(Query {
        filter: condition,
        order: window.order,
        skip: window.skip,
        limit: Some(window.limit),
        after: None,
    })
}

/// Returns the records of a query.
pub(crate) async fn find(
    asker: &Asker,
    kind: &'static Kind,
    query: Query,
) -> Result<Vec<Record>, ScicatError> {
    let records = asker.db.read(Weight::Scan, move |view| view.find(kind, &query)).await;
    records.map_err(|error: StoreError| error.into())
}

/// Returns the record with an id.
pub(crate) async fn get(asker: &Asker, kind: &'static Kind, id: &str) -> Result<Option<Record>, ScicatError> {
    let id = id.to_owned();
    let record = asker.db.read(Weight::Point, move |view| view.get(kind, &id)).await;
    record.map_err(|error: StoreError| error.into())
}

/// Returns the record with an id and the values of its class fields.
pub(crate) async fn with_class(
    asker: &Asker,
    kind: &'static Kind,
    id: &str,
) -> Result<Option<(Record, std::sync::Arc<Value>)>, ScicatError> {
    let id = id.to_owned();
    asker
        .db
        .read(Weight::Point, move |view| {
            let Some(record) = view.get(kind, &id)? else { return Ok(None) };
            let class = view.class(kind, record.class)?;
            Ok::<_, ScicatError>(Some((record, class)))
        })
        .await
}
