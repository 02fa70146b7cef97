//! Policies: what happens to the data of an owner group (section 8 of the contract). The first dataset of a
//! group creates its policy, and the policy determines the classification of every dataset of the group.

pub(crate) mod seen;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Expr, Record, StoreError, Txn, Value as Condition, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, QueryText, Scicat, json_parameter};
use crate::documents::{object, stamp};
use crate::dto::policy as dto;
use crate::error::{Answer, ScicatError};
use crate::filter;
use crate::import::complete;
use crate::import::imported::{Imported, Marks};
use crate::kinds::POLICY;
use crate::listing::Listing;
use crate::policies::seen::{DEFAULT_REDUNDANCY, redundancy};
use crate::resource::{self, Resource};
use crate::tracking::Tracking;
use crate::validate::Form;

static LISTING: Listing = Listing::stored(&POLICY);

/// The routes and kind of policies.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&POLICY],
    imported: &[Imported {
        name: "policy",
        plural: "policies",
        kind: &POLICY,
        table: || &dto::POLICY,
        complete: complete::policy,
        marks: &[Marks {
            with: &["ownerGroup"],
            one_of: &["tapeRedundancy", "autoArchive", "embargoPeriod"],
            ..Marks::rank(4)
        }],
    }],
    ..Resource::of_routes(routes)
};

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/policies", get(list).post(create))
        .route("/api/v3/policies/count", get(count))
        .route("/api/v3/policies/findone", get(find_one))
        .route("/api/v3/policies/updatewhere", post(update_where))
        .route("/api/v3/policies/{id}", get(by_id).patch(patch).delete(delete))
}

/// The fields of a group's first dataset that determine its policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct First<'d> {
    pub(crate) owner_group: &'d str,
    pub(crate) owner_email: &'d str,
    pub(crate) classification: &'d str,
}

/// Returns the policy of a group whose first dataset is being created by `username`.
pub(crate) fn of_new_group(app: &Scicat, first: First<'_>, username: &str) -> Value {
    let managers: Vec<&str> = first.owner_email.split(',').map(str::trim).collect();
    let mut policy = Map::new();
    let id = app.new_object_id();
    policy.insert("_id".to_owned(), id.clone().into());
    policy.insert("id".to_owned(), id.into());
    policy.insert("ownerGroup".to_owned(), first.owner_group.into());
    policy.insert("manager".to_owned(), json!(managers));
    let redundancy = redundancy(first.classification);
    policy.insert("tapeRedundancy".to_owned(), redundancy.unwrap_or(DEFAULT_REDUNDANCY).into());
    dto::POLICY.fill_defaults(&mut policy);
    crate::documents::sign(&mut policy, username, &app.now());
    Value::Object(policy)
}

/// Refuses callers who do not administer policies.
fn require_keeper(app: &Scicat, asker: &Asker) -> Result<(), ScicatError> {
    let is_keeper = asker.rights.of_keeper(&app.settings.policy_groups).is_admin;
    if is_keeper { Ok(()) } else { Err(ScicatError::forbidden_resource()) }
}

async fn list(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    require_keeper(&app, &asker)?;
    let filter = filter::parse(filter::text("filter", &query, &headers)?, &POLICY)?;
    LISTING.list(&asker, &filter, Expr::All).await
}

async fn find_one(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    require_keeper(&app, &asker)?;
    let filter = filter::parse(filter::text("filter", &query, &headers)?, &POLICY)?;
    LISTING.first(&asker, &filter, Expr::All).await
}

/// `GET /policies/count?where=` (also `filter=`).
async fn count(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    require_keeper(&app, &asker)?;
    let filter = match query.get("where").filter(|it| !it.is_empty()) {
        Some(text) => filter::from_value(&json!({"where": json_parameter("where", text)?}), &POLICY)?,
        None => filter::parse(filter::text("filter", &query, &headers)?, &POLICY)?,
    };
    LISTING.count(&asker, filter.condition).await
}

async fn by_id(app: State<Scicat>, asker: Asker, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    require_keeper(&app, &asker)?;
    let record = asker.db.read(Weight::Point, move |view| view.first(&POLICY, named(&id))).await;
    match record.map_err(|error: StoreError| ScicatError::from(error))? {
        Some(record) => LISTING.one(record, &headers),
        None => Ok(answer::empty(StatusCode::OK)),
    }
}

/// Returns the condition for the policy with that `_id`, or of that group.
fn named(id: &str) -> Expr {
    let by_object_id = Expr::Is("_id".into(), Condition::Text(id.to_owned()));
    Expr::Or(vec![by_object_id, Expr::Ids(vec![id.to_owned()])])
}

async fn create(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    require_keeper(&app, &asker)?;
    let body = app.object(&headers, body).await?;
    resource::require_sound(&dto::POLICY.check(&body, Form::Create))?;
    let group = crate::documents::text(&body, "ownerGroup").to_owned();
    let mut policy = Map::new();
    let id = app.new_object_id();
    policy.insert("_id".to_owned(), id.clone().into());
    policy.insert("id".to_owned(), id.into());
    resource::complete(&mut policy, body, &dto::POLICY);
    crate::documents::sign(&mut policy, &asker.username(), &app.now());
    let taken = ScicatError::conflict(format!("Policy with ownerGroup {group} already exists"));
    let stored = resource::insert(&asker, &POLICY, &group, policy, taken).await?;
    Ok(answer::stored_json(StatusCode::CREATED, stored))
}

async fn patch(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    require_keeper(&app, &asker)?;
    let changes = app.object(&headers, body).await?;
    let faults = dto::POLICY.check(&changes, Form::Update);
    let (username, now, tracking) = (asker.username(), app.now(), asker.tracking(&POLICY));
    let stored = asker
        .db
        .write(move |txn| {
            let record = txn.first(&POLICY, named(&id))?.ok_or_else(ScicatError::bare_not_found)?;
            resource::require_sound(&faults)?;
            change(txn, &record, &changes, &username, &now, tracking)
        })
        .await?;
    Ok(answer::stored_json(StatusCode::OK, stored))
}

/// Replaces fields of a policy. A policy whose group changes is stored under the new group.
fn change(
    txn: &mut Txn<'_>,
    record: &Record,
    changes: &Map<String, Value>,
    username: &str,
    now: &str,
    tracking: Tracking,
) -> Result<bytes::Bytes, ScicatError> {
    let mut policy = object(record)?;
    resource::apply(&mut policy, changes);
    stamp(&mut policy, username, now);
    let group = crate::documents::text(&policy, "ownerGroup").to_owned();
    if group == record.id {
        return resource::update(txn, &POLICY, record, policy, tracking);
    }
    if txn.has(&POLICY, &group)? {
        return Err(ScicatError::conflict(format!("Policy with ownerGroup {group} already exists")));
    }
    tracking.note_change(txn, &record.id, record.version, &object(record)?, &policy)?;
    txn.delete(&POLICY, &record.id)?;
    let document = pinakes_store::Document::new(&POLICY, group, &Value::Object(policy))?;
    txn.insert_document(&document)?;
    Ok(document.body().clone())
}

async fn delete(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    if !asker.rights.may_delete {
        return Err(ScicatError::forbidden_resource());
    }
    let (username, now, tracking) = (asker.username(), app.now(), asker.tracking(&POLICY));
    let record = asker
        .db
        .write(move |txn| {
            let record = txn.first(&POLICY, named(&id))?.ok_or_else(ScicatError::bare_not_found)?;
            tracking.note_deletion(txn, &record.id, record.version, &object(&record)?, &username, &now)?;
            txn.delete(&POLICY, &record.id)?;
            Ok::<_, ScicatError>(record)
        })
        .await?;
    Ok(answer::stored_json(StatusCode::OK, record.body))
}

/// `POST /policies/updateWhere` `{"ownerGroupList":"g1,g2","data":{…}}`: for administrators of policies, and
/// for the managers that a policy names. Groups without a policy are skipped.
async fn update_where(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    asker.forbid_anonymous()?;
    let body = app.object(&headers, body).await?;
    let groups = group_list(&body)?;
    let Some(Value::Object(changes)) = body.get("data").cloned() else {
        return Err(ScicatError::bad_request("data must be an object"));
    };
    resource::require_sound(&dto::POLICY.check(&changes, Form::Update))?;
    let is_keeper = require_keeper(&app, &asker).is_ok();
    let names = own_names(&asker);
    let (username, now, tracking) = (asker.username(), app.now(), asker.tracking(&POLICY));
    asker
        .db
        .write(move |txn| {
            for group in &groups {
                let Some(record) = txn.get(&POLICY, group)? else { continue };
                if !is_keeper && !is_managed_by(&record, &names)? {
                    return Err(ScicatError::with(
                        StatusCode::UNAUTHORIZED,
                        "User not authorised for action based on policy",
                    ));
                }
                change(txn, &record, &changes, &username, &now, tracking)?;
            }
            Ok(())
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"submissionResponse": "successful policy update"})))
}

/// Parses `"g1,g2"` or `["g1","g2"]`.
fn group_list(body: &Map<String, Value>) -> Result<Vec<String>, ScicatError> {
    match body.get("ownerGroupList") {
        Some(Value::String(text)) => {
            Ok(text.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect())
        }
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            Ok(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => Err(ScicatError::bad_request("ownerGroupList must be a string")),
    }
}

/// Returns the names under which the caller may be listed among a policy's managers.
fn own_names(asker: &Asker) -> Vec<String> {
    let Some(user) = asker.caller().user.as_deref() else { return Vec::new() };
    user.email.iter().cloned().chain([user.username.clone()]).collect()
}

fn is_managed_by(policy: &Record, names: &[String]) -> Result<bool, ScicatError> {
    let policy = object(policy)?;
    let managers = policy.get("manager").and_then(Value::as_array).into_iter().flatten();
    Ok(managers.filter_map(Value::as_str).any(|manager| names.iter().any(|it| it == manager)))
}
