//! Saved searches of a collection: their results are linked to it. `/api/admin/savedsearches`.

use std::ops::ControlFlow;

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::collections::{self, Collection};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::links::{self, serve};
use crate::routing::Routes;
use crate::search::document::DOCUMENT;
use crate::search::{self, visible};
use crate::{datasets, envelope, permissions, stored, users};

/// Saved searches by number: body is a [`SavedSearch`].
pub(crate) static SAVED_SEARCH: Kind = Kind {
    columns: &[Column::one("definitionPointId", Type::Integer)],
    indexes: &[Index::on(&["definitionPointId"])],
    ..Kind::named("dataverse_saved_search")
};

/// Maximum number of hits of one search that are linked at once; the others are linked the next time.
const HITS: u64 = 1000;

/// A search whose results are linked to a collection.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedSearch {
    /// Number.
    id: i64,
    /// The query, in the syntax of `/api/search`.
    query: String,
    /// Filter queries in the same syntax.
    #[serde(default)]
    filter_queries: Vec<String>,
    /// The user who saved it, on whose behalf links are created.
    creator_id: i64,
    /// The collection.
    definition_point_id: i64,
    /// Other members that were posted.
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// Removes the saved searches of a collection that is being deleted.
pub(crate) fn remove_of_collection(txn: &mut Txn<'_>, id: i64) -> Result<(), ApiError> {
    for it in stored::find_by::<SavedSearch>(txn, &SAVED_SEARCH, "definitionPointId", id)? {
        txn.delete(&SAVED_SEARCH, &it.id.to_string())?;
    }
    Ok(())
}

/// Returns the saved searches of a user as `{"id": …}`.
pub(crate) fn ids_of(view: &mut View<'_>, user: i64) -> Result<Vec<Value>, ApiError> {
    let all: Vec<SavedSearch> = stored::find(view, &SAVED_SEARCH, &Query::filter(Expr::All))?;
    Ok(all.iter().filter(|it| it.creator_id == user).map(|it| json!({"id": it.id})).collect())
}

/// Transfers the saved searches of one user to another.
pub(crate) fn hand_over(txn: &mut Txn<'_>, from: i64, into: i64) -> Result<(), ApiError> {
    let all: Vec<SavedSearch> = stored::find(txn, &SAVED_SEARCH, &Query::filter(Expr::All))?;
    for mut search in all.into_iter().filter(|it| it.creator_id == from) {
        search.creator_id = into;
        stored::put(txn, &SAVED_SEARCH, &search.id.to_string(), &search)?;
    }
    Ok(())
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/savedsearches", list)
        .get("/admin/savedsearches/list", list)
        .post("/admin/savedsearches", save)
        .get("/admin/savedsearches/{id}", show)
        .delete("/admin/savedsearches/{id}", delete)
        .put("/admin/savedsearches/makelinks/all", make_links)
        .put("/admin/savedsearches/makelinks/{id}", make_links)
}

async fn list(call: Call) -> Answer {
    let all = |view: &mut View<'_>| stored::find::<Value>(view, &SAVED_SEARCH, &Query::filter(Expr::All));
    let all = call.db().read(Weight::Scan, all).await?;
    envelope::ok(json!({"savedSearches": all}))
}

async fn save(mut call: Call) -> Answer {
    let bytes = call.bytes().await?;
    if bytes.is_empty() {
        return Err(ApiError::internal("The saved search has no body."));
    }
    let mut body: Map<String, Value> = serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::bad_request(format!("Error parsing Json: {error}")))?;
    for name in ["creatorId", "definitionPointId"] {
        if body.get(name).and_then(Value::as_i64).is_none() {
            return Err(ApiError::bad_request(format!("{name} must be a whole number")));
        }
    }
    body.insert("id".into(), 0.into());
    let search: SavedSearch = serde_json::from_value(Value::Object(body))
        .map_err(|error| ApiError::bad_request(format!("Error parsing Json: {error}")))?;
    search.condition(call.app.now_ms())?;
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<i64, ApiError> {
        let mut ids = ids;
        let (creator, point) = (search.creator_id, search.definition_point_id);
        if users::by_id(txn, creator)?.is_none() {
            return Err(ApiError::not_found(format!("User with id {creator} not found.")));
        }
        if collections::by_id(txn, point)?.is_none() {
            return Err(ApiError::not_found(format!("Can't find dataverse with identifier='{point}'")));
        }
        let search = SavedSearch { id: ids.next()?, ..search.clone() };
        stored::insert(txn, &SAVED_SEARCH, &search.id.to_string(), &search)?;
        Ok(search.id)
    };
    let id = call.db().write(write).await?;
    envelope::ok(json!({"message": "Added: Saved Search", "id": id}))
}

async fn show(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let found =
        call.db().read(Weight::Point, move |view| stored::get::<Value>(view, &SAVED_SEARCH, &id)).await?;
    envelope::ok(found.ok_or_else(missing)?)
}

fn missing() -> ApiError {
    ApiError::not_found("Saved search not found.")
}

async fn delete(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let gone =
        call.db().write(move |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.delete(&SAVED_SEARCH, &id)?)).await?;
    match gone {
        Some(_) => envelope::ok(json!({"Deleted": call.param("id")})),
        None => Err(missing()),
    }
}

/// A search result that can be linked to a collection.
enum Hit {
    Dataset(i64),
    Collection(i64),
}

impl SavedSearch {
    /// Returns its condition. Errors: 400 for an invalid query.
    fn condition(&self, now_ms: i64) -> Result<Expr, ApiError> {
        let syntax = |error: String| ApiError::bad_request(format!("Search Syntax Error: {error}"));
        let mut all = search::parse(&self.query, now_ms).map_err(syntax)?.filter;
        for text in self.filter_queries.iter().filter(|it| !it.trim().is_empty()) {
            all = all.and(search::parse(text, now_ms).map_err(syntax)?.filter);
        }
        Ok(all)
    }

    /// Returns publicly visible results that are not linked to the collection yet.
    fn hits(&self, view: &mut View<'_>, now_ms: i64) -> Result<Vec<Hit>, ApiError> {
        let types = ["dataverses", "datasets"].map(Into::into).to_vec();
        let filter = visible::visible(view, &Asker::default())?
            .and(Expr::In("type".into(), types))
            .and(self.condition(now_ms)?);
        let shown: Vec<i64> =
            links::in_collection(view, self.definition_point_id)?.iter().map(|it| it.linked).collect();
        let mut hits = Vec::new();
        view.for_each(&DOCUMENT, &Query::filter(filter), |record| {
            let Ok(document) = record.json() else { return ControlFlow::Continue(()) };
            let id = document["entity"].as_str().and_then(|it| it.parse().ok()).unwrap_or_default();
            if shown.contains(&id) {
                return ControlFlow::Continue(());
            }
            hits.push(if document["type"] == "datasets" { Hit::Dataset(id) } else { Hit::Collection(id) });
            if (hits.len() as u64) < HITS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(hits)
    }

    /// Links the results. Returns the outcome for each hit.
    fn link(&self, txn: &mut Txn<'_>, app: &Dataverse) -> Result<Value, ApiError> {
        let Some(target) = collections::by_id(txn, self.definition_point_id)? else {
            return Ok(self.told("The collection is gone.", Vec::new()));
        };
        let Some(creator) = users::by_id(txn, self.creator_id)?.filter(|it| !it.deactivated) else {
            return Ok(self.told("Who saved the search is gone.", Vec::new()));
        };
        let asker = Asker { user: Some(creator.into()), ..Asker::default() };
        for right in [Permission::LinkDataset, Permission::LinkDataverse] {
            if !permissions::may(txn, &asker, target.place(), right)? {
                let why = format!("{} may not link here.", asker.identifier());
                return Ok(self.told(&why, Vec::new()));
            }
        }
        let mut told = Vec::new();
        for hit in self.hits(txn, app.now_ms())? {
            told.extend(self.show(txn, app, &hit, &target)?);
        }
        Ok(self.told(&format!("{} hits", told.len()), told))
    }

    /// Links one hit; returns `None` if it no longer exists. A refusal is part of the outcome and does not end the run.
    fn show(
        &self,
        txn: &mut Txn<'_>,
        app: &Dataverse,
        hit: &Hit,
        target: &Collection,
    ) -> Result<Option<Value>, ApiError> {
        let (id, done) = match hit {
            Hit::Dataset(id) => {
                let Some(dataset) = datasets::by_id(txn, *id)? else { return Ok(None) };
                (*id, serve::show_dataset_in(txn, app, &dataset, target, Some(self.id)))
            }
            Hit::Collection(id) => {
                let Some(collection) = collections::by_id(txn, *id)? else { return Ok(None) };
                (*id, serve::show_collection_in(txn, app, &collection, target, Some(self.id)))
            }
        };
        match done {
            Ok(()) => Ok(Some(json!({"id": id, "linked": true}))),
            Err(error) if error.status == http::StatusCode::FORBIDDEN => {
                Ok(Some(json!({"id": id, "linked": false, "reason": error.message})))
            }
            Err(error) => Err(error),
        }
    }

    fn told(&self, outcome: &str, hits: Vec<Value>) -> Value {
        json!({"savedSearchId": self.id, "query": self.query, "outcome": outcome, "hits": hits})
    }
}

/// Creates the links of one saved search, or of all of them.
async fn make_links(call: Call) -> Answer {
    let (app, id) = (call.app.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<Vec<Value>, ApiError> {
        let searches = match id.as_str() {
            "" => stored::find::<SavedSearch>(txn, &SAVED_SEARCH, &Query::filter(Expr::All))?,
            id => vec![stored::get(txn, &SAVED_SEARCH, id)?.ok_or_else(missing)?],
        };
        searches.iter().map(|it| it.link(txn, &app)).collect()
    };
    envelope::ok(json!({"hits by saved search": call.db().write(write).await?}))
}
