//! Reading datasets through v4, and the public routes for anonymous callers (section 4.8 of the contract).

use axum::extract::State;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_http::etag::Tag;
use pinakes_store::{Expr, Value as Condition, Weight};

use super::shape::Shape;
use super::{facets, include, read};
use crate::app::{Asker, Path, QueryText, Scicat};
use crate::datasets::forms::{Api, SEARCH, v4_bytes};
use crate::dto::dataset as dto;
use crate::error::{Answer, ScicatError};
use crate::filter::Filter;
use crate::fullquery;
use crate::kinds::DATASET;
use crate::projection::Projection;
use crate::strict;

/// Fields that a filter may name in addition to those that a create may set.
const SET_BY_SERVER: [&str; 10] = [
    "_id",
    "id",
    "createdAt",
    "updatedAt",
    "createdBy",
    "updatedBy",
    "__v",
    "version",
    "history",
    "lifecycle",
];

fn filter(query: &QueryText) -> Result<Filter, ScicatError> {
    let mut known: Vec<&str> = dto::v4().fields.iter().map(|it| it.name).collect();
    known.extend(SET_BY_SERVER);
    known.extend(["proposals", "samples", "instruments", "attachments", "origdatablocks", "datablocks"]);
    let filter = strict::parse(query, &DATASET, &known)?;
    include::refuse_collision(&filter)?;
    Ok(filter)
}

fn published() -> Expr {
    Expr::Is("isPublished".into(), Condition::Boolean(true))
}

fn require_user(asker: &Asker) -> Result<(), ScicatError> {
    if asker.caller().is_anonymous() { Err(ScicatError::forbidden("Unauthorized access")) } else { Ok(()) }
}

pub(crate) async fn list(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    require_user(&asker)?;
    read::answer_list(&asker, &filter(&query)?, asker.rights.visible(), Api::V4).await
}

pub(crate) async fn list_public(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    read::answer_list(&asker, &filter(&query)?, published(), Api::V4).await
}

pub(crate) async fn find_one(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    require_user(&asker)?;
    read::answer_first(&asker, filter(&query)?, asker.rights.visible(), Api::V4).await
}

pub(crate) async fn find_one_public(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    read::answer_first(&asker, filter(&query)?, published(), Api::V4).await
}

pub(crate) async fn count(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    require_user(&asker)?;
    read::answer_count(&asker, asker.rights.visible().and(filter(&query)?.condition)).await
}

pub(crate) async fn count_public(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    read::answer_count(&asker, published().and(filter(&query)?.condition)).await
}

pub(crate) async fn full_facet(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    require_user(&asker)?;
    let fields = crate::app::object_parameter(&query, "fields")?;
    let found = fullquery::parse(&fields, &SEARCH, &asker.rights)?;
    facets::answer_facets(&asker, &query, &DATASET, found.condition).await
}

pub(crate) async fn full_facet_public(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let fields = crate::app::object_parameter(&query, "fields")?;
    let found = fullquery::parse(&fields, &SEARCH, &asker.rights)?;
    facets::answer_facets(&asker, &query, &DATASET, published().and(found.condition)).await
}

pub(crate) async fn metadata_keys(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    require_user(&asker)?;
    facets::metadata_keys(app, asker, query).await
}

pub(crate) async fn metadata_keys_public(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let fields = crate::app::object_parameter(&query, "fields")?;
    facets::answer_metadata_keys(&app, &asker, &DATASET, &fields, published()).await
}

/// `GET /api/v4/datasets/{pid}?include=attachments&include=origdatablocks`.
pub(crate) async fn by_pid(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    query: QueryText,
    headers: HeaderMap,
) -> Answer {
    require_user(&asker)?;
    let record = read::readable(&app, &asker, &pid).await?;
    let filter = filter(&query)?;
    if filter.include.is_empty() && filter.fields == Projection::Everything {
        let tag = Tag::of_record(record.version, record.sequence);
        if tag.is_known_to(&headers) {
            return Ok(tag.not_modified());
        }
        let mut response = answer::stored_json(StatusCode::OK, v4_bytes(&record.body));
        tag.put(response.headers_mut());
        return Ok(response);
    }
    Shape::of(&asker, &filter, Api::V4)?.answer_one(&asker, record).await
}

/// Answers as `by_pid` does, without login: an empty answer for a dataset that is missing or private.
pub(crate) async fn by_pid_public(
    _: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    query: QueryText,
) -> Answer {
    let filter = filter(&query)?;
    let record = asker
        .db
        .read(Weight::Point, move |view| {
            let Some(record) = view.get(&DATASET, &pid)? else { return Ok::<_, ScicatError>(None) };
            let class = view.class(&DATASET, record.class)?;
            let is_published = class.get("isPublished").and_then(serde_json::Value::as_bool) == Some(true);
            Ok(is_published.then_some(record))
        })
        .await?;
    let Some(record) = record else { return Ok(read::nothing()) };
    Shape::of(&asker, &filter, Api::V4)?.answer_one(&asker, record).await
}
