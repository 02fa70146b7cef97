//! Objects on which the caller has a role: `/api/mydata/retrieve` (section 7 of the contract). Its envelope differs
//! from the usual one. The objects are found among the documents of the search.

use http::StatusCode;
use pinakes_store::{Direction, Expr, Query, Record, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::datasets::DATASET;
use crate::error::{Answer, ApiError};
use crate::grants::{self, Permission};
use crate::groups::membership;
use crate::routing::Routes;
use crate::search::document::DOCUMENT;
use crate::search::query::facet_value;
use crate::search::show::{self, Shows};
use crate::search::visible;
use crate::{envelope, permissions, roles, search, users};

/// Items per page, and their maximum number.
const PAGE_ITEMS: u64 = 10;
const MOST_ITEMS: u64 = 1_000;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get("/mydata/retrieve", retrieve).get("/mydata/retrieve/collectionList", list_collections)
}

fn failed(message: impl Into<String>) -> Answer {
    let body = json!({"success": false, "error_message": message.into()});
    Ok(envelope::raw_json(StatusCode::OK, &body))
}

fn nothing(message: impl Into<String>) -> Answer {
    let body = json!({"success": true, "message": message.into(), "data": {
        "total_count": 0, "start": 0, "items": [], "search_term": "",
        "pagination": pagination(0, 1, PAGE_ITEMS),
        "dvobject_counts": {"dataverses_count": 0, "datasets_count": 0, "files_count": 0},
        "pubstatus_counts": {}, "selected_filters": {"publication_statuses": [], "role_names": []},
    }});
    Ok(envelope::raw_json(StatusCode::OK, &body))
}

/// Returns the user whose data is requested: the caller, or the user that a superuser names.
async fn owner(call: &Call) -> Result<Result<Asker, String>, ApiError> {
    let user = call.asker.user()?;
    let wanted = call.query.filled("userIdentifier").filter(|_| user.superuser).map(str::to_owned);
    let Some(wanted) = wanted else { return Ok(Ok(call.asker.clone())) };
    let name = wanted.clone();
    let found = call.db().read(Weight::Point, move |view| users::by_name(view, &name)).await?;
    Ok(match found {
        Some(user) => Ok(Asker { user: Some(user.into()), ..Asker::default() }),
        None => Err(format!("No user found for: \"{wanted}\"")),
    })
}

/// The types of objects: (name in requests, name in documents, name in counts).
const TYPES: [(&str, &str, &str); 3] = [
    ("Dataverse", "dataverses", "dataverses_count"),
    ("Dataset", "datasets", "datasets_count"),
    ("DataFile", "files", "files_count"),
];
/// The statuses of publication: (name, name in counts).
const STATUSES: [(&str, &str); 5] = [
    ("Published", "published_count"),
    ("Unpublished", "unpublished_count"),
    ("Draft", "draft_count"),
    ("In Review", "in_review_count"),
    ("Deaccessioned", "deaccessioned_count"),
];
/// Permissions of which one makes a role on a collection concern its datasets.
const OF_DATASETS: [Permission; 3] =
    [Permission::ViewUnpublishedDataset, Permission::EditDataset, Permission::PublishDataset];
/// The permission that makes a role on a collection or dataset concern the files.
const OF_FILES: Permission = Permission::DownloadFile;

/// Parameters of a request.
struct Wanted {
    roles: Vec<i64>,
    /// Types, as documents name them.
    types: Vec<&'static str>,
    states: Vec<String>,
    term: String,
    page: u64,
    per_page: u64,
    shows: Shows,
}

impl Wanted {
    fn of(call: &Call) -> Result<Self, ApiError> {
        let asked: Vec<&str> = call.query.all("dvobject_types").collect();
        let types = TYPES.iter().filter(|it| asked.iter().any(|name| name.eq_ignore_ascii_case(it.0)));
        let number = |name: &str| -> Result<Option<u64>, ApiError> {
            Ok(call.query.number(name)?.and_then(|it| u64::try_from(it).ok()).filter(|it| *it != 0))
        };
        Ok(Self {
            roles: call.query.all("role_ids").filter_map(|it| it.parse().ok()).collect(),
            types: types.map(|it| it.1).collect(),
            states: call.query.all("published_states").map(str::to_owned).collect(),
            term: call.query.filled("mydata_search_term").unwrap_or("*").to_owned(),
            page: number("selected_page")?.unwrap_or(1),
            per_page: number("per_page")?.unwrap_or(PAGE_ITEMS).min(MOST_ITEMS),
            shows: Shows {
                entity_ids: true,
                collections: call.query.is_true("show_collections"),
                ..Shows::default()
            },
        })
    }
}

/// What was found.
struct Page {
    role_names: Vec<String>,
    items: Vec<Value>,
    n_all: u64,
    n_by_type: Map<String, Value>,
    n_by_status: Map<String, Value>,
}

async fn retrieve(call: Call) -> Answer {
    let asker = match owner(&call).await? {
        Ok(asker) => asker,
        Err(message) => return failed(message),
    };
    let wanted = Wanted::of(&call)?;
    if wanted.types.is_empty() {
        return failed("No results. Please select one of Dataverses, Datasets, Files.");
    }
    if wanted.roles.is_empty() {
        return nothing("Sorry, you have no assigned roles.");
    }
    let term = search::parse(&wanted.term, call.app.now_ms());
    let term = term.map_err(|error| ApiError::bad_request(format!("Search Syntax Error: {error}")))?.filter;
    let (app, site_url) = (call.app.clone(), call.site_url());
    let (states, shown_term) = (wanted.states.clone(), wanted.term.clone());
    let (page, per_page) = (wanted.page, wanted.per_page);
    let find = move |view: &mut View<'_>| found(view, &app, &asker, &site_url, &wanted, &term);
    let found = call.db().read(Weight::Scan, find).await?;
    if found.n_all == 0 {
        let which = if found.role_names.len() == 1 { "this role" } else { "these roles" };
        return nothing(format!("Sorry, nothing was found for {which}: {}", found.role_names.join(", ")));
    }
    let body = json!({"success": true, "data": {
        "pagination": pagination(found.n_all, page, per_page),
        "items": found.items,
        "total_count": found.n_all,
        "start": (page - 1).saturating_mul(per_page),
        "search_term": shown_term,
        "dvobject_counts": found.n_by_type,
        "pubstatus_counts": found.n_by_status,
        "selected_filters": {"publication_statuses": states, "role_names": found.role_names},
    }});
    Ok(envelope::raw_json(StatusCode::OK, &body))
}

fn found(
    view: &mut View<'_>,
    app: &Dataverse,
    asker: &Asker,
    site_url: &str,
    wanted: &Wanted,
    term: &Expr,
) -> Result<Page, ApiError> {
    let is_status =
        |name: &str| Expr::Is("facetValues".into(), facet_value("publicationStatus", name).into());
    let mut filter = concerned(view, asker, wanted)?.and(term.clone());
    if !wanted.states.is_empty() {
        filter = filter.and(Expr::Or(wanted.states.iter().map(|it| is_status(it)).collect()));
    }
    let mut count = |more: Expr| view.count(&DOCUMENT, &filter.clone().and(more));
    let n_all = count(Expr::All)?;
    let (mut n_by_type, mut n_by_status) = (Map::new(), Map::new());
    for (_, ty, name) in TYPES {
        n_by_type.insert(name.to_owned(), count(Expr::Is("type".into(), ty.into()))?.into());
    }
    for (status, name) in STATUSES {
        let n = count(is_status(status))?;
        if n != 0 {
            n_by_status.insert(name.to_owned(), n.into());
        }
    }
    let start = (wanted.page - 1).saturating_mul(wanted.per_page);
    let query = Query::filter(filter).sorted("date", Direction::Descending).window(start, wanted.per_page);
    let documents = view.find(&DOCUMENT, &query)?;
    let documents = documents.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?;
    let mut items = Vec::new();
    for step in documents.chunks(show::STEP_ITEMS) {
        show::read_ahead(view, step.iter())?;
        for document in step {
            if let Some(mut item) = show::item(view, app, asker, site_url, document, &wanted.shows)? {
                add_state(&mut item, document);
                items.push(item);
            }
        }
    }
    Ok(Page { role_names: names_of(view, &wanted.roles)?, items, n_all, n_by_type, n_by_status })
}

/// Adds what this list tells of a result beside the search.
fn add_state(item: &mut Value, document: &Value) {
    let statuses: Vec<&str> =
        document["facetValues"].as_array().into_iter().flatten().filter_map(status_of).collect();
    let has = |name: &str| statuses.contains(&name);
    let states = [
        ("is_published", has("Published")),
        ("is_unpublished_state", has("Unpublished")),
        ("is_draft_state", has("Draft")),
        ("is_in_review_state", has("In Review")),
        ("is_deaccesioned", has("Deaccessioned")),
    ];
    for (name, is_so) in states {
        item[name] = is_so.into();
    }
    item["date_to_display_on_card"] = document["date"].clone();
    item["publication_statuses"] = statuses.into();
}

/// Returns the status of publication that a facet value says.
fn status_of(facet: &Value) -> Option<&str> {
    facet.as_str()?.strip_prefix(&facet_value("publicationStatus", ""))
}

/// Returns the condition on documents of objects that the wanted roles concern: those on which they are assigned, the
/// datasets in such a collection, the files in such a collection or dataset.
fn concerned(view: &mut View<'_>, asker: &Asker, wanted: &Wanted) -> Result<Expr, ApiError> {
    let mut names = vec![asker.identifier()];
    names.extend(membership::of(view, asker)?);
    let (mut of_datasets, mut of_files) = (Vec::new(), Vec::new());
    for role in &wanted.roles {
        let held = roles::permissions_of(view, *role)?;
        of_datasets.extend(OF_DATASETS.iter().any(|it| held.contains(it)).then_some(*role));
        of_files.extend(held.contains(&OF_FILES).then_some(*role));
    }
    let assigned = grants::objects_of(view, &names, &wanted.roles)?;
    let with_datasets = grants::objects_of(view, &names, &of_datasets)?;
    let with_files = grants::objects_of(view, &names, &of_files)?;
    let datasets =
        view.join_keys(&DATASET, &Expr::Joined("owner".into(), with_files.clone()), &"id".into())?;
    let is_assigned = Expr::Joined("entity".into(), assigned);
    let is_in = |keys| Expr::Joined("parent".into(), keys);
    let of_type = |ty: &str| match ty {
        "dataverses" => is_assigned.clone(),
        "datasets" => Expr::Or(vec![is_assigned.clone(), is_in(with_datasets.clone())]),
        _ => Expr::Or(vec![is_assigned.clone(), is_in(with_files.clone()), is_in(datasets.clone())]),
    };
    let types = wanted.types.iter().map(|ty| Expr::Is("type".into(), (*ty).into()).and(of_type(ty)));
    let types: Vec<Expr> = types.collect();
    Ok(Expr::Or(types).and(visible::visible(view, asker)?))
}

fn names_of(view: &mut View<'_>, ids: &[i64]) -> Result<Vec<String>, ApiError> {
    let mut names = Vec::new();
    for id in ids {
        names.extend(roles::by_id(view, *id)?.map(|it| it.name));
    }
    Ok(names)
}

fn pagination(n_all: u64, page: u64, per_page: u64) -> Value {
    let n_pages = n_all.div_ceil(per_page);
    json!({
        "isNecessary": 1 < n_pages, "numResults": n_all, "numResultsString": n_all.to_string(),
        "docsPerPage": per_page, "selectedPageNumber": page, "pageCount": n_pages,
        "hasPreviousPageNumber": 1 < page, "previousPageNumber": page.saturating_sub(1).max(1),
        "hasNextPageNumber": page < n_pages, "nextPageNumber": (page + 1).min(n_pages.max(1)),
        "startCardNumber": (page - 1).saturating_mul(per_page) + u64::from(n_all != 0),
        "endCardNumber": page.saturating_mul(per_page).min(n_all),
        "pageNumberList": (1..=n_pages).collect::<Vec<u64>>(),
    })
}

/// Lists the collections to which the caller may add datasets.
async fn list_collections(call: Call) -> Answer {
    let asker = match owner(&call).await? {
        Ok(asker) => asker,
        Err(message) => return failed(message),
    };
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let found = permissions::collections_with(view, &asker, Some(Permission::AddDataset))?;
        Ok(found.iter().map(|it| json!({"id": it.id, "alias": it.alias, "name": it.name})).collect())
    };
    let items = call.db().read(Weight::Scan, find).await?;
    envelope::ok(json!({"count": items.len(), "items": items}))
}
