//! Search: instances, holdings, items and authorities by words, with facets (section 12 of the contract; mod-search).
//!
//! A search sees everything committed before it; the store guarantees that.

pub(crate) mod browse;
mod facets;
mod options;

use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_store::{Direction, Expr, Kind, Order, Query, Record, Txn, View, Weight, matches};
use serde_json::{Map, Value, json};

use crate::authorities::authority::AUTHORITIES;
use crate::authorities::headings;
use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::inventory::reindex;
use crate::platform::app::Call;
use crate::platform::collection::{Collection, Collections, Page, condition_of, parsed};
use crate::platform::cql::{self, Clause, Cql, Names, Node, Relation};
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

/// The meaning of names in searches for authorities, whose conditions apply to rows.
const ROW_NAMES: Names = Names {
    aliases: &[
        ("lccn", "identifiers"),
        ("canceledLccn", "identifiers"),
        ("identifiers.all", "identifiers"),
        ("authoritySourceFileId", "sourceFileId"),
    ],
    elements: &[("identifiers", "value"), ("notes", "note")],
    whole: &["naturalId", "authRefType", "headingType", "source"],
    anywhere: &["headingRef", "naturalId", "identifiers"],
    fields: &[],
};

/// A kind for the rows of authorities, which are not stored records.
static ROW: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_authority_row") };

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let mut routes = routes.get("/search/instances", to("search.instances.collection.get"), instances).get(
        "/search/authorities",
        to("search.authorities.collection.get"),
        authorities,
    );
    routes =
        routes.post("/search/index/inventory/reindex", to("search.index.inventory.reindex.post"), |call| {
            reindex::begin(call, &reindex::INSTANCES_JOB)
        });
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
    routes.with(resource_routes)
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
        return Err(FolioError::bad_request("query parameter 'query' is required"));
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
    if std::ptr::eq(collection, &INSTANCES) {
        let resolved = options::resolved(view, node.clone())?;
        return condition_of(view, collections, collection, names, &resolved);
    }
    condition_of(view, collections, collection, names, node)
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
    let condition = options::of_headings(page.cql.condition.clone());
    let page = Page { cql: Cql { condition, ..page.cql }, ..page };
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        // First select the records that may have a matching row, then the rows.
        let candidates = candidates(&page.cql.condition)?;
        let fits = cql::meaning(&page.cql.condition, &ROW, &ROW_NAMES, &mut |_| Ok::<_, FolioError>(None))?;
        let order = cql::order(&page.cql, &ROW_NAMES);
        let (mut rows, mut total) = (Vec::new(), 0_u64);
        let is_sorted = !order.is_empty();
        // Without a condition on words, read the list of headings instead of all authorities.
        let is_listed = matches!(candidates, Expr::All) && is_about_headings(&page.cql.condition);
        let by_heading = [Order { path: "headingRef".into(), direction: Direction::Ascending }];
        if is_listed && (order.is_empty() || order == by_heading) {
            let condition = format!("{:?}", page.cql.condition);
            let limit = if is_sorted { page.limit } else { 0 };
            let (listed, n_rows) = browse::headings(view, &fits, &condition, page.offset, limit)?;
            rows = if is_sorted { listed } else { first_rows(view, &fits, page.offset, page.limit)? };
            with_titles(view, &mut rows)?;
            return Ok(json!({"totalRecords": n_rows, "authorities": rows}));
        }
        view.for_each_body(&AUTHORITIES.kind, &Query::filter(candidates), |_, authority| {
            for row in headings::rows(&authority) {
                let shown = headings::shown(&authority, &row);
                if matches(&fits, &shown) {
                    if is_sorted || (page.offset <= total && total < page.offset.saturating_add(page.limit)) {
                        rows.push(shown);
                    }
                    total += 1;
                }
            }
            ControlFlow::Continue(())
        })?;
        if is_sorted {
            sort(&mut rows, &order);
            let bound = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            rows = rows.into_iter().skip(bound(page.offset)).take(bound(page.limit)).collect();
        }
        with_titles(view, &mut rows)?;
        Ok(json!({"totalRecords": total, "authorities": rows}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Checks whether the list of headings is sufficient to evaluate a condition.
fn is_about_headings(node: &Node) -> bool {
    match node {
        Node::And(a, b) | Node::Or(a, b) | Node::Not(a, b) => is_about_headings(a) && is_about_headings(b),
        Node::Negation(it) => is_about_headings(it),
        Node::Clause(clause) => {
            clause.modifiers.is_empty()
                && [&[crate::platform::cql::ALL_RECORDS][..], &browse::HEADING_FIELDS]
                    .concat()
                    .iter()
                    .any(|it| it.eq_ignore_ascii_case(&clause.index))
        }
    }
}

/// Returns a window of the rows that satisfy a condition, in the order of the records; stops reading once it is full.
fn first_rows(view: &mut View<'_>, fits: &Expr, skip: u64, limit: u64) -> Result<Vec<Value>, FolioError> {
    let (mut rows, mut n) = (Vec::new(), 0_u64);
    if limit == 0 {
        return Ok(rows);
    }
    view.for_each_body(&AUTHORITIES.kind, &Query::filter(Expr::All), |_, authority| {
        for row in headings::rows(&authority) {
            let shown = headings::shown(&authority, &row);
            if matches(fits, &shown) {
                if skip <= n && (rows.len() as u64) < limit {
                    rows.push(shown);
                }
                n += 1;
            }
        }
        if limit <= rows.len() as u64 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(rows)
}

/// Adds the number of titles that use each authorised heading.
fn with_titles(view: &mut View<'_>, rows: &mut [Value]) -> Result<(), FolioError> {
    for row in rows {
        if row["authRefType"] == "Authorized" {
            let id = row["id"].as_str().unwrap_or_default().to_owned();
            row["numberOfTitles"] = crate::links::linked::n_links(view, &id)?.into();
        }
    }
    Ok(())
}

/// Returns a condition that every authority with a matching row satisfies. A negated clause cannot be used: one row
/// that does not match says nothing about the authority's other rows.
fn candidates(node: &Node) -> Result<Expr, FolioError> {
    Ok(match node {
        Node::And(a, b) => candidates(a)?.and(candidates(b)?),
        Node::Or(a, b) => match (candidates(a)?, candidates(b)?) {
            (Expr::All, _) | (_, Expr::All) => Expr::All,
            (a, b) => Expr::Or(vec![a, b]),
        },
        Node::Not(a, _) => candidates(a)?,
        Node::Negation(_) => Expr::All,
        Node::Clause(clause) if clause.relation == Relation::Different => Expr::All,
        Node::Clause(clause) if clause.index.eq_ignore_ascii_case("headingRef") => {
            let each = headings::fields().map(|index| of_record(&Clause { index, ..clause.clone() }));
            Expr::Or(each.collect::<Result<_, _>>()?)
        }
        Node::Clause(clause) if OF_ROWS.iter().any(|it| it.eq_ignore_ascii_case(&clause.index)) => Expr::All,
        Node::Clause(clause) => of_record(clause)?,
    })
}

/// Fields of rows that authorities do not have.
const OF_ROWS: [&str; 4] = ["authRefType", "headingType", "isTitleHeadingRef", "shared"];

fn of_record(clause: &Clause) -> Result<Expr, FolioError> {
    let node = Node::Clause(clause.clone());
    cql::meaning(&node, &AUTHORITIES.kind, &AUTHORITIES.names, &mut |_| Ok::<_, FolioError>(None))
}

fn sort(rows: &mut [Value], order: &[pinakes_store::Order]) {
    let key = |row: &Value, path: &pinakes_store::Path| -> String {
        let found = path.as_steps().iter().try_fold(row, |at, step| at.get(step));
        found.map_or_else(String::new, |it| it.as_str().map_or_else(|| it.to_string(), pinakes_store::fold))
    };
    rows.sort_by(|a, b| {
        order.iter().fold(std::cmp::Ordering::Equal, |so_far, it| {
            so_far.then_with(|| {
                let by_key = key(a, &it.path).cmp(&key(b, &it.path));
                if it.direction == pinakes_store::Direction::Descending { by_key.reverse() } else { by_key }
            })
        })
    });
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

async fn ids(call: Call, collection: &'static Collection) -> Answer {
    let page = page(&call)?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let query = filter_of(view, collection, &names_of(collection), &page)?;
        let query = Query { skip: 0, limit: None, ..query };
        list_of_ids(view, collection, &query)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
