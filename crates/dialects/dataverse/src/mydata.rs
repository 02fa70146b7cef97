//! Objects on which the caller has a role: `/api/mydata/retrieve` (section 7 of the contract). Its envelope differs
//! from the usual one.

use http::StatusCode;
use pinakes_store::{View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::asker::Asker;
use crate::citation::Cited;
use crate::collections::{self, Collection};
use crate::datasets::show::publisher;
use crate::datasets::{self, DATASET, Dataset, State, Version, version};
use crate::error::{Answer, ApiError};
use crate::grants::{self, Permission};
use crate::groups::membership;
use crate::routing::Routes;
use crate::{envelope, permissions, roles, stored, users};

/// Items per page.
const PAGE_ITEMS: usize = 10;

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

/// A found object, with its sort and filter values.
struct Found {
    changed: String,
    status: &'static str,
    item: Value,
}

async fn retrieve(call: Call) -> Answer {
    let asker = match owner(&call).await? {
        Ok(asker) => asker,
        Err(message) => return failed(message),
    };
    let wanted_roles: Vec<i64> = call.query.all("role_ids").filter_map(|it| it.parse().ok()).collect();
    let types: Vec<String> = call.query.all("dvobject_types").map(str::to_owned).collect();
    let states: Vec<String> = call.query.all("published_states").map(str::to_owned).collect();
    let term = call.query.filled("mydata_search_term").unwrap_or_default().to_lowercase();
    let page = call.query.number("selected_page")?.unwrap_or(1).max(1);
    let per_page =
        call.query.number("per_page")?.and_then(|it| usize::try_from(it).ok()).filter(|it| 0 < *it);
    let per_page = per_page.unwrap_or(PAGE_ITEMS).min(1000);
    if types.is_empty() {
        return failed("No results. Please select one of Dataverses, Datasets, Files.");
    }
    let site_url = call.site_url();
    let shows_holders = call.query.is_true("show_collections");
    let (asked_roles, asked_types) = (wanted_roles.clone(), types.clone());
    let find = move |view: &mut View<'_>| -> Result<(Vec<String>, Vec<Found>), ApiError> {
        let mut names = vec![asker.identifier()];
        names.extend(membership::of(view, &asker)?);
        let grants = grants::grants_to(view, &names)?;
        let role_names: Vec<String> = names_of(view, &asked_roles)?;
        let mut found = Finder::new(&site_url, &asked_types);
        found.shows_holders = shows_holders;
        for grant in &grants {
            for assigned in &grant.roles {
                if asked_roles.contains(&assigned.role) {
                    let held = roles::permissions_of(view, assigned.role)?;
                    found.take(view, grant.object, &held)?;
                }
            }
        }
        Ok((role_names, found.all))
    };
    let (role_names, mut found) = call.db().read(Weight::Scan, find).await?;
    if wanted_roles.is_empty() {
        return nothing("Sorry, you have no assigned roles.");
    }
    found.retain(|it| {
        let text = it.item["name"].as_str().unwrap_or_default().to_lowercase();
        (states.is_empty() || states.iter().any(|state| state == it.status)) && text.contains(&term)
    });
    if found.is_empty() {
        let which = if role_names.len() == 1 { "this role" } else { "these roles" };
        return nothing(format!("Sorry, nothing was found for {which}: {}", role_names.join(", ")));
    }
    found.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| entity(b).cmp(&entity(a))));
    let n_all = found.len();
    let page = usize::try_from(page).unwrap_or(1);
    let start = (page - 1).saturating_mul(per_page);
    let count = |ty: &str| found.iter().filter(|it| it.item["type"] == ty).count();
    let mut statuses = Map::new();
    for it in &found {
        let key = format!("{}_count", it.status.to_lowercase().replace(' ', "_"));
        let n = statuses.get(&key).and_then(Value::as_u64).unwrap_or(0);
        statuses.insert(key, (n + 1).into());
    }
    let body = json!({"success": true, "data": {
        "pagination": pagination(n_all, page, per_page),
        "items": found.iter().skip(start).take(per_page).map(|it| it.item.clone()).collect::<Vec<Value>>(),
        "total_count": n_all,
        "start": start,
        "search_term": if term.is_empty() { "*" } else { term.as_str() },
        "dvobject_counts": {
            "dataverses_count": count("dataverse"), "datasets_count": count("dataset"), "files_count": count("file"),
        },
        "pubstatus_counts": statuses,
        "selected_filters": {"publication_statuses": states, "role_names": role_names},
    }});
    Ok(envelope::raw_json(StatusCode::OK, &body))
}

fn entity(found: &Found) -> i64 {
    found.item["entity_id"].as_i64().unwrap_or_default()
}

fn names_of(view: &mut View<'_>, ids: &[i64]) -> Result<Vec<String>, ApiError> {
    let mut names = Vec::new();
    for id in ids {
        names.extend(roles::by_id(view, *id)?.map(|it| it.name));
    }
    Ok(names)
}

fn pagination(n_all: usize, page: usize, per_page: usize) -> Value {
    let n_pages = n_all.div_ceil(per_page);
    json!({
        "isNecessary": 1 < n_pages, "numResults": n_all, "numResultsString": n_all.to_string(),
        "docsPerPage": per_page, "selectedPageNumber": page, "pageCount": n_pages,
        "hasPreviousPageNumber": 1 < page, "previousPageNumber": page.saturating_sub(1).max(1),
        "hasNextPageNumber": page < n_pages, "nextPageNumber": (page + 1).min(n_pages.max(1)),
        "startCardNumber": (page - 1).saturating_mul(per_page) + usize::from(n_all != 0),
        "endCardNumber": page.saturating_mul(per_page).min(n_all),
        "pageNumberList": (1..=n_pages).collect::<Vec<usize>>(),
    })
}

/// Collects collections and datasets, each once.
struct Finder<'f> {
    site_url: &'f str,
    collections: bool,
    datasets: bool,
    /// Whether datasets are listed with the collections that contain them.
    shows_holders: bool,
    seen: Vec<i64>,
    all: Vec<Found>,
}

impl<'f> Finder<'f> {
    fn new(site_url: &'f str, types: &[String]) -> Self {
        let has = |name: &str| types.iter().any(|it| it.eq_ignore_ascii_case(name));
        Self {
            site_url,
            collections: has("Dataverse"),
            datasets: has("Dataset"),
            shows_holders: false,
            seen: Vec::new(),
            all: Vec::new(),
        }
    }

    /// Adds an object on which a role is assigned; for a collection also its datasets, if the role concerns datasets.
    fn take(&mut self, view: &mut View<'_>, object: i64, held: &[Permission]) -> Result<(), ApiError> {
        let Some(collection) = collections::by_id(view, object)? else {
            if let Some(dataset) = datasets::by_id(view, object)? {
                self.take_dataset(view, &dataset)?;
            }
            return Ok(());
        };
        if self.collections && !self.seen.contains(&collection.id) {
            self.seen.push(collection.id);
            self.all.push(self.collection(view, &collection)?);
        }
        let is_about_datasets = held.contains(&Permission::ViewUnpublishedDataset)
            || held.contains(&Permission::EditDataset)
            || held.contains(&Permission::PublishDataset);
        if is_about_datasets && self.datasets {
            for dataset in stored::find_by::<Dataset>(view, &DATASET, "owner", collection.id)? {
                self.take_dataset(view, &dataset)?;
            }
        }
        Ok(())
    }

    fn collection(&self, view: &mut View<'_>, it: &Collection) -> Result<Found, ApiError> {
        let status = if it.is_released() { "Published" } else { "Unpublished" };
        let parent = match it.parent {
            Some(parent) => Some(collections::named_by_record(view, parent)?),
            None => None,
        };
        let item = envelope::object(json!({
            "name": it.name,
            "type": "dataverse",
            "url": format!("{}/dataverse/{}", self.site_url, it.alias),
            "identifier": it.alias,
            "description": it.description,
            "published_at": it.publication_date.as_deref().unwrap_or(&it.creation_date),
            "publicationStatuses": [status],
            "affiliation": it.affiliation,
            "parentDataverseName": parent.as_ref().map(|it| it.name.clone()),
            "parentDataverseIdentifier": parent.as_ref().map(|it| it.alias.clone()),
            "entity_id": it.id,
            "is_published": it.is_released(),
            "is_draft_state": false,
        }));
        let changed = it.publication_date.clone().unwrap_or_else(|| it.creation_date.clone());
        Ok(Found { changed, status, item: item.into() })
    }

    fn take_dataset(&mut self, view: &mut View<'_>, dataset: &Dataset) -> Result<(), ApiError> {
        if !self.datasets || self.seen.contains(&dataset.id) {
            return Ok(());
        }
        self.seen.push(dataset.id);
        let ids = [dataset.draft.as_ref().map(|it| it.version), dataset.last.as_ref().map(|it| it.version)];
        for id in ids.into_iter().flatten() {
            let version = version::of_dataset(view, dataset, id)?;
            self.all.push(self.dataset(view, dataset, &version)?);
        }
        Ok(())
    }

    fn dataset(&self, view: &mut View<'_>, dataset: &Dataset, version: &Version) -> Result<Found, ApiError> {
        let owner = collections::named_by_record(view, dataset.owner)?;
        let is_in_review = dataset.locks.iter().any(|it| it.lock_type == "InReview");
        let status = match version.state {
            State::Draft if is_in_review => "In Review",
            State::Draft => "Draft",
            State::Released => "Published",
            State::Deaccessioned => "Deaccessioned",
        };
        let mut statuses = vec![status];
        if version.state == State::Draft && dataset.last.is_none() {
            statuses.push("Unpublished");
        }
        let cited = Cited::of(dataset, version, &publisher(view)?);
        let mut holders = Vec::new();
        if self.shows_holders {
            holders.push(owner.clone());
            for link in crate::links::of(view, dataset.id)? {
                holders.extend(collections::by_id(view, link.collection)?);
            }
        }
        let holders = holders.iter().map(|it| json!({"id": it.id, "name": it.name, "alias": it.alias}));
        let holders: Vec<Value> = holders.collect();
        // A minor version is sorted by the date of its major one.
        let dated = match (version.number, version.minor) {
            (Some(number), Some(minor)) if minor != 0 => version::newest_first(view, dataset)?
                .into_iter()
                .find(|it| it.number == Some(number) && it.minor == Some(0))
                .and_then(|it| it.release_time),
            _ => None,
        };
        let item = envelope::object(json!({
            "name": cited.title,
            "type": "dataset",
            "url": dataset.persistent_url(),
            "global_id": dataset.pid,
            "published_at": version.release_time.as_deref().unwrap_or(&version.create_time),
            "publisher": owner.name,
            "citationHtml": cited.html(),
            "identifier_of_dataverse": owner.alias,
            "name_of_dataverse": owner.name,
            "citation": cited.text(),
            "publicationStatuses": statuses,
            "storageIdentifier": dataset.storage_identifier,
            "versionId": version.id,
            "versionState": version.state.name(),
            "majorVersion": version.number,
            "minorVersion": version.minor,
            "createdAt": version.create_time,
            "updatedAt": version.last_update_time,
            "authors": cited.authors,
            "collections": (!holders.is_empty()).then_some(holders),
            "entity_id": dataset.id,
            "is_draft_state": version.state == State::Draft,
            "is_published": version.state == State::Released,
            "date_to_display_on_card": version.last_update_time,
        }));
        let changed = dated.or_else(|| version.release_time.clone());
        let changed = changed.unwrap_or_else(|| version.last_update_time.clone());
        Ok(Found { changed, status, item: item.into() })
    }
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
