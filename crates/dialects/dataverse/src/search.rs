//! Search: `/api/search` (section 7 of the contract).

pub(crate) mod alike;
pub(crate) mod document;
pub(crate) mod index;
pub(crate) mod moment;
pub(crate) mod place;
pub(crate) mod query;
mod ranking;
pub(crate) mod show;
mod tokens;
pub(crate) mod visible;

use pinakes_store::{Direction, Expr, Query, View, Weight};
use serde_json::{Map, Value, json};

use self::place::Circle;
use crate::app::Call;
use crate::asker::Asker;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::search::document::DOCUMENT;
use crate::{collections, envelope, site_settings};

pub(crate) use index::index_file;
pub(crate) use query::parse;

/// Maximum number of results in one answer.
const PER_PAGE: i64 = 1000;
/// Maximum number of values shown per facet.
const FACET_VALUES: usize = 50;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get("/search", search).get("/search/services", services)
}

async fn services(_: Call) -> Answer {
    envelope::ok(json!({
        "services": [{"name": "solr", "displayName": "Dataverse Standard Search"}],
        "defaultService": "solr",
    }))
}

/// Parameters of a request.
#[derive(Debug, Clone)]
struct Wanted {
    text: String,
    filter: Expr,
    words: Vec<String>,
    circle: Option<Circle>,
    types: Vec<&'static str>,
    subtrees: Vec<String>,
    order: Option<(&'static str, Direction)>,
    start: u64,
    per_page: u64,
    shows: show::Shows,
}

fn wanted(call: &Call) -> Result<Wanted, ApiError> {
    let text = call.query.get("q").ok_or_else(|| ApiError::bad_request("q parameter is missing"))?.to_owned();
    let syntax = |error: String| ApiError::bad_request(format!("Search Syntax Error: {error}"));
    let now_ms = call.app.now_ms();
    let parsed = query::parse(&text, now_ms).map_err(syntax)?;
    let mut filter = parsed.filter;
    for fq in call.query.all("fq").filter(|it| !it.trim().is_empty()) {
        filter = filter.and(query::parse(fq, now_ms).map_err(syntax)?.filter);
    }
    let mut types = Vec::new();
    for name in call.query.all("type") {
        types.push(match name {
            "dataverse" => "dataverses",
            "dataset" => "datasets",
            "file" => "files",
            other => {
                return Err(ApiError::bad_request(format!(
                    "Invalid type '{other}'. Must be one of [dataverse, dataset, file]"
                )));
            }
        });
    }
    let direction = match call.query.filled("order") {
        None => None,
        Some("asc") => Some(Direction::Ascending),
        Some("desc") => Some(Direction::Descending),
        Some(other) => {
            return Err(ApiError::bad_request(format!(
                "The 'order' parameter was '{other}' but expected one of [asc, desc]."
            )));
        }
    };
    let order = match call.query.filled("sort") {
        Some("name") => Some(("sortName", direction.unwrap_or(Direction::Ascending))),
        Some("date") => Some(("date", direction.unwrap_or(Direction::Descending))),
        _ => None,
    };
    let per_page = call.query.number("per_page")?.unwrap_or(10);
    if PER_PAGE < per_page {
        return Err(ApiError::bad_request(format!(
            "{per_page} results per page requested but max limit is {PER_PAGE}."
        )));
    }
    let start = call.query.number("start")?.unwrap_or(0);
    let negative = |name: &str| ApiError::bad_request(format!("{name} must be a positive number."));
    Ok(Wanted {
        text,
        filter,
        words: parsed.words,
        circle: Circle::of(call)?,
        types,
        subtrees: call.query.all("subtree").map(str::to_owned).collect(),
        order,
        start: u64::try_from(start).map_err(|_| negative("start"))?,
        per_page: u64::try_from(per_page).map_err(|_| negative("per_page"))?,
        shows: show::Shows::of(call),
    })
}

async fn search(call: Call) -> Answer {
    let is_guest = call.asker.is_guest() && call.asker.preview.is_none();
    if is_guest {
        let read = |view: &mut View<'_>| site_settings::is_true(view, ":SearchApiRequiresToken", false);
        if call.db().read(Weight::Point, read).await? {
            return Err(ApiError::unauthorized(
                "Only authenticated users can perform the requested operation",
            ));
        }
    }
    let wanted = wanted(&call)?;
    let (app, asker, site_url) = (call.app.clone(), call.asker.clone(), call.site_url());
    let registry = call.app.registry(call.db()).await?;
    let read = move |view: &mut View<'_>| run(view, &app, &asker, &registry, &site_url, &wanted);
    envelope::ok(call.db().read(Weight::Scan, read).await?)
}

fn run(
    view: &mut View<'_>,
    app: &crate::app::Dataverse,
    asker: &Asker,
    registry: &crate::blocks::Registry,
    site_url: &str,
    wanted: &Wanted,
) -> Result<Value, ApiError> {
    let mut filter = visible::visible(view, asker)?.and(wanted.filter.clone());
    let mut root = None;
    let mut paths: Vec<pinakes_store::Value> = Vec::new();
    for alias in &wanted.subtrees {
        let found = collections::by_alias(view, alias)?;
        let collection = found
            .ok_or_else(|| ApiError::bad_request(format!("Could not find dataverse with alias {alias}")))?;
        if collection.parent.is_some() {
            paths.push(subtree_path(view, &collection)?.into());
        }
        root = Some(collection);
    }
    if !paths.is_empty() && paths.len() == wanted.subtrees.len() {
        filter = filter.and(Expr::In("subtree".into(), paths));
    }
    if let Some(circle) = &wanted.circle {
        filter = circle.condition(view, &filter)?.and(filter);
    }
    let all_types = filter.clone();
    if !wanted.types.is_empty() {
        let types = wanted.types.iter().map(|it| (*it).into()).collect();
        filter = filter.and(Expr::In("type".into(), types));
    }
    let n_all = view.count(&DOCUMENT, &filter)?;
    let page = page(view, &filter, wanted)?;
    let mut items = Vec::new();
    for step in page.chunks(show::STEP_ITEMS) {
        show::read_ahead(view, step.iter().map(|it| &it.1))?;
        for (score, document) in step {
            let item = show::item(view, app, asker, site_url, document, &wanted.shows)?;
            let Some(mut item) = item else { continue };
            if wanted.shows.relevance {
                item["matches"] = show::matches(document, &wanted.words);
                item["score"] = (*score).into();
            }
            items.push(item);
        }
    }
    let mut data = json!({
        "q": wanted.text,
        "total_count": n_all,
        "start": wanted.start,
        "spelling_alternatives": {},
        "items": items,
        "count_in_response": page.len(),
    });
    if wanted.shows.facets {
        data["facets"] = json!([facets(view, &filter, root.as_ref(), registry)?]);
    }
    if wanted.shows.type_counts {
        let mut count =
            |name: &str| view.count(&DOCUMENT, &all_types.clone().and(Expr::Is("type".into(), name.into())));
        data["total_count_per_object_type"] = json!({
            "Dataverses": count("dataverses")?,
            "Datasets": count("datasets")?,
            "Files": count("files")?,
        });
    }
    Ok(data)
}

/// Returns the path of a collection: `/1/42`.
fn subtree_path(view: &mut View<'_>, collection: &collections::Collection) -> Result<String, ApiError> {
    let mut above = collections::with_owners(view, collection.clone())?;
    if above.first().is_some_and(|it| it.id == collection.id) {
        above.reverse();
    }
    Ok(above.iter().map(|it| format!("/{}", it.id)).collect())
}

/// Returns the documents of a page, each with its score.
fn page(view: &mut View<'_>, filter: &Expr, wanted: &Wanted) -> Result<Vec<(f64, Value)>, ApiError> {
    if wanted.order.is_none() && !wanted.words.is_empty() {
        let weighted = ranking::weighted(&wanted.words);
        let found = view.ranked(&DOCUMENT, filter, &weighted, wanted.start, wanted.per_page)?;
        let scored = found.iter().map(|it| Ok((ranking::score(it.rank, &wanted.words), it.record.json()?)));
        return scored.collect();
    }
    let mut query = Query::filter(filter.clone()).window(wanted.start, wanted.per_page);
    if let Some((path, direction)) = wanted.order {
        query = query.sorted(path, direction);
    }
    view.find(&DOCUMENT, &query)?.iter().map(|it| Ok((1.0, it.json()?))).collect()
}

/// Facets of every search: (name in queries, display name).
const FACETS: [(&str, &str); 9] = [
    ("dvCategory", "Dataverse Category"),
    ("datasetType", "Dataset Type"),
    ("metadataSource", "Metadata Source"),
    ("publicationStatus", "Publication Status"),
    ("publicationDate", "Publication Year"),
    ("license", "License"),
    ("fileTypeGroupFacet", "File Type"),
    ("fileTag", "File Tag"),
    ("fileAccess", "Access"),
];

fn facets(
    view: &mut View<'_>,
    filter: &Expr,
    collection: Option<&collections::Collection>,
    registry: &crate::blocks::Registry,
) -> Result<Value, ApiError> {
    let root = match collection {
        Some(it) => it.clone(),
        None => collections::named_by_record(view, collections::ROOT)?,
    };
    let own = collections::structure::facets_of(view, &root)?;
    let counted = view.facets(&DOCUMENT, filter, &["facetValues"])?.pop().unwrap_or_default();
    let mut map = Map::new();
    let mut add = |name: &str, key: String, friendly: String| {
        // Values are in descending order, so those of one facet are adjacent.
        let prefix = query::facet_value(name, "");
        let begin = counted
            .partition_point(|it| prefix.as_str() < it.value.as_str() && !it.value.starts_with(&prefix));
        let mut values: Vec<(&str, u64)> = counted[begin..]
            .iter()
            .map_while(|it| Some((it.value.strip_prefix(&prefix)?, it.n_records)))
            .collect();
        let by_count = |a: &(&str, u64), b: &(&str, u64)| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0));
        if FACET_VALUES < values.len() {
            values.select_nth_unstable_by(FACET_VALUES, by_count);
            values.truncate(FACET_VALUES);
        }
        values.sort_by(by_count);
        let labels: Vec<Value> = values.iter().map(|(value, n)| json!({*value: n})).collect();
        // With only one dataset type, the facet is useless.
        let says_something = if name == "datasetType" { 1 < labels.len() } else { !labels.is_empty() };
        if says_something {
            map.insert(key, json!({"friendly": friendly, "labels": labels}));
        }
    };
    for (name, friendly) in FACETS {
        add(name, name.to_owned(), friendly.to_owned());
    }
    for name in own {
        let friendly = registry.field(&name).map_or_else(|| name.clone(), |it| registry.display_name(it));
        add(&name, format!("{name}_ss"), friendly);
    }
    Ok(map.into())
}
