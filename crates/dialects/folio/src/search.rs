//! Search: instances, holdings, items and authorities by words, with facets (section 12 of the contract; mod-search).
//!
//! A search sees everything committed before it; the store guarantees that.

pub(crate) mod browse;
pub(crate) mod config;
mod facets;
mod index_jobs;
mod options;
mod refusals;
mod rows;

use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_store::{Expr, Kind, Query, Record, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::authorities::authority::AUTHORITIES;
use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::platform::app::Call;
use crate::platform::collection::{Collection, Collections, Page, condition_of, parsed};
use crate::platform::cql::{self, Cql, Names, Node};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Default number of rows in an answer.
const DEFAULT_LIMIT: u64 = 100;

/// The meaning of names in searches for instances.
const INSTANCE_NAMES: Names = Names {
    aliases: &[
        ("isbn", "identifiers"),
        ("issn", "identifiers"),
        ("oclc", "identifiers"),
        ("lccn", "identifiers"),
        ("canceledLccn", "identifiers"),
        ("identifiers.all", "identifiers"),
        ("contributors.name", "contributors"),
        ("contributorNames", "contributors"),
        ("subjects.value", "subjects"),
        ("subject", "subjects"),
        ("statisticalCodes", "statisticalCodeIds"),
        ("instanceFormatId", "instanceFormatIds"),
        ("instanceTags", "tags.tagList"),
        ("plain_title", "title"),
        ("publisher", "publication.publisher"),
        ("publicationDate", "publication.dateOfPublication"),
        ("note", "notes"),
        ("classificationNumber", "classifications"),
        ("normalizedClassificationNumber", "classifications"),
        ("normalizedDate1", "dates.date1"),
        ("date1", "dates.date1"),
    ],
    fields: &[
        "contributors.authorityId",
        "contributors.contributorTypeId",
        "subjects.authorityId",
        "subjects.sourceId",
        "subjects.typeId",
        "alternativeTitles.authorityId",
        "alternativeTitles.alternativeTitleTypeId",
        "series.authorityId",
        "publication.role",
        "electronicAccess.linkText",
        "electronicAccess.publicNote",
        "electronicAccess.materialsSpecification",
        "electronicAccess.relationshipId",
        "dates.date1",
        "dates.date2",
        "dates.dateTypeId",
    ],
    ..INSTANCES.names
};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let mut routes = routes.get("/search/instances", to("search.instances.collection.get"), instances).get(
        "/search/authorities",
        to("search.authorities.collection.get"),
        authorities,
    );
    for (name, collection, permission) in [
        ("instances", &INSTANCES, "search.instances.facets.collection.get"),
        ("holdings", &HOLDINGS, "search.holdings.facets.collection.get"),
        ("items", &ITEMS, "search.items.facets.collection.get"),
        ("authorities", &AUTHORITIES, "search.authorities.facets.collection.get"),
    ] {
        routes = routes
            .get(&format!("/search/{name}/facets"), to(permission), move |call| facets(call, collection));
    }
    for (name, collection, permission) in [
        ("instances", &INSTANCES, "search.instances.ids.collection.get"),
        ("holdings", &HOLDINGS, "search.holdings.ids.collection.get"),
        ("authorities", &AUTHORITIES, "search.authorities.ids.collection.get"),
    ] {
        routes =
            routes.get(&format!("/search/{name}/ids"), to(permission), move |call| ids(call, collection));
    }
    for facets in &browse::ENTRY_FACETS {
        let path = format!("/search/{}/facets", facets.name);
        routes = routes.get(&path, to(facets.permission), move |call| entry_facets(call, facets));
    }
    routes.with(resource_routes).with(config::routes).with(index_jobs::routes)
}

/// Requested lists of ids: `{id, query, entityType, status, createdDate}`. The list itself is read when it is fetched.
pub(crate) static RESOURCE_JOB: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_search_job") };

fn resource_routes(routes: Routes) -> Routes {
    let to = Access::to;
    let item = "/search/resources/jobs/{id}";
    routes
        .post("/search/resources/jobs", to("search.resources.ids.jobs.item.post"), make_job)
        .get(item, to("search.resources.ids.jobs.item.get"), show_job)
        .get(&format!("{item}/ids"), to("search.resources.ids.collection.get"), ids_of_job)
}

/// Returns the collection that a job lists.
fn collection_of(entity: &str) -> Option<&'static Collection> {
    match entity {
        "INSTANCE" => Some(&INSTANCES),
        "HOLDINGS" => Some(&HOLDINGS),
        "ITEM" => Some(&ITEMS),
        "AUTHORITY" => Some(&AUTHORITIES),
        _ => None,
    }
}

/// Creates a job for a list of ids, `{query, entityType}`, to be fetched from `/search/resources/jobs/{id}/ids`.
/// Nothing has to be prepared, so the job is finished at once; an invalid query is refused here.
async fn make_job(mut call: Call) -> Answer {
    let body = call.object().await?;
    let text = crate::platform::values::required_text(&body, "query")?.to_owned();
    let entity = body.get("entityType").and_then(Value::as_str).unwrap_or("INSTANCE").to_owned();
    let Some(collection) = collection_of(&entity) else {
        let message = format!("entityType is {entity:?}, expected INSTANCE, HOLDINGS, ITEM or AUTHORITY");
        return Err(FolioError::unprocessable(Fault::new(message).with("entityType", &entity)));
    };
    let (cql, collections) = (parsed(&call.app.settings, &text)?, call.app.collections);
    let id = call.app.new_uuid();
    let job = json!({
        "id": id, "query": text, "entityType": entity, "status": "COMPLETED",
        "createdDate": crate::platform::dates::rmb(call.app.now_ms()),
    });
    let stored = job.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        condition(txn, collections, collection, &names_of(collection), &cql.condition)?;
        txn.insert(&RESOURCE_JOB, &id, &stored)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &job))
}

fn job_of(view: &mut View<'_>, id: &str) -> Result<Value, FolioError> {
    let missing = || FolioError::not_found(format!("Job with id {id} is not found"));
    Ok(view.get(&RESOURCE_JOB, id)?.ok_or_else(missing)?.json()?)
}

async fn show_job(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let job = call.db().read(Weight::Point, move |view: &mut View<'_>| job_of(view, &id)).await?;
    Ok(json_answer(StatusCode::OK, &job))
}

async fn ids_of_job(call: Call) -> Answer {
    let (id, app) = (call.uuid_param("id")?, call.app.clone());
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let job = job_of(view, &id)?;
        let text = |name: &str| job.get(name).and_then(Value::as_str).unwrap_or_default();
        let collection = collection_of(text("entityType")).unwrap_or(&INSTANCES);
        let cql = parsed(&app.settings, text("query"))?;
        let filter = condition(view, app.collections, collection, &names_of(collection), &cql.condition)?;
        list_of_ids(view, collection, &Query::filter(filter))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn list_of_ids(
    view: &mut View<'_>,
    collection: &'static Collection,
    query: &Query,
) -> Result<Value, FolioError> {
    let mut list = Vec::new();
    view.for_each(&collection.kind, query, |record| {
        list.push(json!({"id": record.id}));
        ControlFlow::Continue(())
    })?;
    Ok(json!({"totalRecords": list.len(), "ids": list}))
}

fn page(call: &Call) -> Result<Page, FolioError> {
    let text = call.query.get("query").unwrap_or_default();
    if text.trim().is_empty() {
        return Err(refusals::no_query());
    }
    let cql = parsed(&call.app.settings, text)?;
    Ok(Page {
        cql,
        offset: call.query.number("offset", 0)?,
        limit: call.query.number("limit", DEFAULT_LIMIT)?,
        collections: call.app.collections,
    })
}

/// Translates the condition of a search, with the options that instances are searched by.
fn condition(
    view: &mut View<'_>,
    collections: Collections,
    collection: &'static Collection,
    names: &Names,
    node: &Node,
) -> Result<Expr, FolioError> {
    let resolved =
        if std::ptr::eq(collection, &INSTANCES) { options::resolved(node.clone()) } else { node.clone() };
    condition_of(view, collections, collection, names, &resolved).map_err(refusals::unknown_field)
}

/// Returns the condition of a search, with the names used in searches.
fn filter_of(
    view: &mut View<'_>,
    collection: &'static Collection,
    names: &Names,
    page: &Page,
) -> Result<Query, FolioError> {
    let filter = condition(view, page.collections, collection, names, &page.cql.condition)?;
    let order = cql::order(&page.cql, names);
    Ok(Query { filter, order, skip: page.offset, limit: Some(page.limit), after: None })
}

/// Properties of an instance that are shown unless `expandAll` asks for all.
const SHOWN: [&str; 10] = [
    "id",
    "hrid",
    "title",
    "contributors",
    "publication",
    "source",
    "instanceTypeId",
    "staffSuppress",
    "discoverySuppress",
    "metadata",
];

async fn instances(call: Call) -> Answer {
    let page = page(&call)?;
    let is_whole = call.query.is_true("expandAll");
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let query = filter_of(view, &INSTANCES, &INSTANCE_NAMES, &page)?;
        let found = if page.limit == 0 { Vec::new() } else { view.find(&INSTANCES.kind, &query)? };
        let total = view.count(&INSTANCES.kind, &query.filter)?;
        let shown =
            found.iter().map(|it| shown_instance(view, it, is_whole)).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({"totalRecords": total, "instances": shown}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn shown_instance(view: &mut View<'_>, record: &Record, is_whole: bool) -> Result<Value, FolioError> {
    let mut body = record.json()?;
    if !is_whole {
        let Value::Object(whole) = body else { return Ok(body) };
        let shown: Map<String, Value> =
            whole.into_iter().filter(|(name, _)| SHOWN.contains(&name.as_str())).collect();
        return Ok(Value::Object(shown));
    }
    let of = |path: &str, ids: Vec<pinakes_store::Value>| Query::filter(Expr::In(path.into(), ids));
    let holdings = view.find(&HOLDINGS.kind, &of("instanceId", vec![record.id.as_str().into()]))?;
    let ids = holdings.iter().map(|it| it.id.as_str().into()).collect();
    let items = view.find(&ITEMS.kind, &of("holdingsRecordId", ids))?;
    let bodies = |list: &[Record]| list.iter().map(Record::json).collect::<Result<Vec<Value>, _>>();
    body["holdings"] = bodies(&holdings)?.into();
    body["items"] = bodies(&items)?.into();
    Ok(body)
}

/// Searches authorities. Each heading of an authority is a row; paging is by row.
async fn authorities(call: Call) -> Answer {
    let page = page(&call)?;
    let condition = options::of_headings(page.cql.condition);
    let cql = Cql { condition, ..page.cql };
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (rows, n_rows) = rows::found(view, &cql, page.offset, page.limit)?;
        Ok(json!({"totalRecords": n_rows, "authorities": rows}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn names_of(collection: &'static Collection) -> Names {
    if std::ptr::eq(collection, &INSTANCES) { INSTANCE_NAMES } else { collection.names }
}

/// Counts the values of fields among the results of a search.
async fn facets(call: Call, collection: &'static Collection) -> Answer {
    let page = page(&call)?;
    let asked = facets::asked(&call, collection)?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let filter = filter_of(view, collection, &names_of(collection), &page)?.filter;
        facets::shown(view, collection, &filter, &asked)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Counts the values of fields among the entries of a list.
async fn entry_facets(call: Call, of: &'static browse::EntryFacets) -> Answer {
    let page = page(&call)?;
    let asked = facets::asked_of_entries(&call, of)?;
    let read = move |view: &mut View<'_>| facets::shown_of_entries(view, of, &page.cql.condition, &asked);
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn ids(call: Call, collection: &'static Collection) -> Answer {
    let page = page(&call)?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let query = filter_of(view, collection, &names_of(collection), &page)?;
        let query = Query { skip: 0, limit: None, ..query };
        list_of_ids(view, collection, &query)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
