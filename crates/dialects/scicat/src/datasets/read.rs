//! Reading datasets: one by pid, lists by filter, counts, `fullquery` (sections 4.1 to 4.3 of the contract).

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_http::etag::Tag;
use pinakes_store::{Expr, Query, Record, Value as Condition, Weight};
use serde_json::{Value, json};

use super::shape::Shape;
use crate::app::{Asker, Path, QueryText, Scicat, json_parameter, object_parameter};
use crate::datasets::forms::{Api, SEARCH, with_history};
use crate::error::{Answer, ScicatError};
use crate::filter::{self, Filter};
use crate::kinds::{ATTACHMENT, DATASET};
use crate::tracking::Tracking;
use crate::{fullquery, scientific};

/// Returns a dataset that the caller may read.
///
/// Errors: 404 if it does not exist, 403 if the caller may not read it.
pub(crate) async fn readable(_: &Scicat, asker: &Asker, pid: &str) -> Result<Record, ScicatError> {
    let (id, rights) = (pid.to_owned(), asker.rights.clone());
    asker
        .db
        .read(Weight::Point, move |view| {
            let Some(record) = view.get(&DATASET, &id)? else {
                return Err(ScicatError::not_found(format!("dataset: {id} not found")));
            };
            if !rights.sees_all() && !rights.may_read(&*view.class(&DATASET, record.class)?) {
                return Err(ScicatError::forbidden("Unauthorized access"));
            }
            Ok(record)
        })
        .await
}

/// `GET /datasets/{pid}`: the stored bytes, with the `history` that v3 adds.
pub(crate) async fn by_pid(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    query: QueryText,
    headers: HeaderMap,
) -> Answer {
    let record = readable(&app, &asker, &pid).await?;
    let tag = Tag::of_record(record.version, record.sequence);
    let Some(text) = filter::text("filter", &query, &headers)? else {
        if tag.is_known_to(&headers) {
            return Ok(tag.not_modified());
        }
        let mut response = match asker.tracking(&DATASET) {
            Tracking::Off => answer::stored_json(StatusCode::OK, with_history(&record.body)),
            tracking => {
                let shape = Shape::of(&asker, &Filter::default(), Api::V3)?.with_history(tracking);
                shape.answer_one(&asker, record).await?
            }
        };
        tag.put(response.headers_mut());
        return Ok(response);
    };
    let filter = filter::parse(Some(text), &DATASET)?;
    let is_list_of_fields =
        serde_json::from_str::<Value>(text).is_ok_and(|it| it.get("fields").is_some_and(Value::is_array));
    let mut shape = Shape::of(&asker, &filter, Api::V3)?;
    if !is_list_of_fields {
        shape = shape.with_history(asker.tracking(&DATASET));
    }
    shape.answer_one(&asker, record).await
}

/// `GET /datasets?filter=`.
pub(crate) async fn list(_: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let filter = filter::parse(filter::text("filter", &query, &headers)?, &DATASET)?;
    answer_list(&asker, &filter, asker.rights.visible(), Api::V3).await
}

/// `GET /datasets/findOne?filter=`: the first row, or an empty answer.
pub(crate) async fn find_one(_: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let filter = filter::parse(filter::text("filter", &query, &headers)?, &DATASET)?;
    answer_first(&asker, filter, asker.rights.visible(), Api::V3).await
}

/// `GET /datasets/count?filter=` (also `where=`, which older clients use).
pub(crate) async fn count(_: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let filter = match (filter::text("filter", &query, &headers)?, query.get("where")) {
        (None, Some(condition)) => {
            filter::from_value(&json!({"where": json_parameter("where", condition)?}), &DATASET)?
        }
        (text, _) => filter::parse(text, &DATASET)?,
    };
    answer_count(&asker, asker.rights.visible().and(filter.condition)).await
}

/// `GET /datasets/fullquery?fields=&limits=`.
pub(crate) async fn full_query(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let fields = object_parameter(&query, "fields")?;
    let found = fullquery::parse(&fields, &SEARCH, &asker.rights)?;
    let limits =
        query.get("limits").filter(|it| !it.is_empty()).map(|it| json_parameter("limits", it)).transpose()?;
    let window = filter::window(limits.as_ref(), &DATASET)?;
    let rows = Query {
        filter: found.condition,
        order: window.order,
        skip: window.skip,
        limit: Some(window.limit),
        after: None,
    };
    let records = find(&asker, rows).await?;
    if found.units.is_empty() {
        return Ok(answer::json_array(StatusCode::OK, bodies(records, Api::V3)));
    }
    let shown: Result<Vec<Value>, ScicatError> =
        records.iter().map(|it| in_units(it, &found.units)).collect();
    Ok(answer::json(StatusCode::OK, &shown?))
}

/// Returns a dataset with the quantities that were searched for converted to the requested units.
fn in_units(record: &Record, units: &[(String, String)]) -> Result<Value, ScicatError> {
    let mut body = record.json()?;
    if let Some(Value::Object(metadata)) = body.get_mut("scientificMetadata") {
        for (key, unit) in units {
            scientific::show_in_unit(metadata, key, unit);
        }
    }
    Ok(body)
}

/// `GET /datasets/{pid}/thumbnail`: the first attachment that has one.
pub(crate) async fn thumbnail(app: State<Scicat>, asker: Asker, Path(pid): Path<String>) -> Answer {
    readable(&app, &asker, &pid).await?;
    let attached = Expr::Is("relationships.targetId".into(), Condition::Text(pid));
    let attachments = asker
        .db
        .read(Weight::Scan, move |view| view.find(&ATTACHMENT, &Query::filter(attached.clone())))
        .await?;
    for attachment in attachments {
        if let Some(thumbnail) = attachment.json()?.get("thumbnail").filter(|it| it.is_string()) {
            return Ok(answer::json(StatusCode::OK, &json!({"thumbnail": thumbnail})));
        }
    }
    Ok(answer::json(StatusCode::OK, &json!({})))
}

/// Answers with the rows of a filter, as the version of the API shows them.
pub(crate) async fn answer_list(asker: &Asker, filter: &Filter, visible: Expr, api: Api) -> Answer {
    let query = filter.query(visible);
    if filter.fields.is_everything() && filter.include.is_empty() {
        return Ok(answer::json_array(StatusCode::OK, bodies(find(asker, query).await?, api)));
    }
    Shape::of(asker, filter, api)?.answer_list(asker, query).await
}

/// Answers with the first row of a filter, or 200 with an empty body.
pub(crate) async fn answer_first(asker: &Asker, filter: Filter, visible: Expr, api: Api) -> Answer {
    let mut query = filter.query(visible);
    query.limit = Some(1);
    let shape = Shape::of(asker, &filter, api)?;
    match find(asker, query).await?.into_iter().next() {
        Some(record) => shape.answer_one(asker, record).await,
        None => Ok(answer::empty(StatusCode::OK)),
    }
}

/// Answers with `{"count":n}`.
pub(crate) async fn answer_count(asker: &Asker, condition: Expr) -> Answer {
    let count = asker.db.read(Weight::Scan, move |view| view.count(&DATASET, &condition)).await;
    let count: u64 = count.map_err(|error: pinakes_store::StoreError| ScicatError::from(error))?;
    Ok(answer::json(StatusCode::OK, &json!({"count": count})))
}

/// Returns the records of a query, read on a reading thread.
pub(crate) async fn find(asker: &Asker, query: Query) -> Result<Vec<Record>, ScicatError> {
    let records = asker.db.read(Weight::Scan, move |view| view.find(&DATASET, &query)).await;
    records.map_err(|error: pinakes_store::StoreError| error.into())
}

fn bodies(records: Vec<Record>, api: Api) -> Vec<Bytes> {
    records.into_iter().map(|it| api.bytes(&it.body)).collect()
}

/// Returns the empty answer for a search without results.
pub(crate) fn nothing() -> Response {
    answer::empty(StatusCode::OK)
}
