//! Jobs: requests to do something with datasets (archive, retrieve, publish) and their progress (section 8 of the
//! contract). A job is stored once, in the form of v4; `forms.rs` converts it to the form of v3 and back, `rules.rs`
//! decides which jobs a site accepts and from whom, `actions.rs` defines what happens then, and `run.rs` executes it.

pub mod actions;
mod broker;
mod details;
pub(crate) mod forms;
pub(crate) mod outbox;
mod outside;
mod owners;
mod rules;
mod run;
mod template;
mod visible;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Document, Expr, StoreError, Weight};
use serde_json::{Map, Value, json};

use self::actions::Action;
use self::outbox::Operation;
use self::owners::Applicant;
use self::run::Scene;
use crate::app::{Asker, Path, QueryText, Scicat, json_parameter, object_parameter};
use crate::datasets::facets::answer_facets;
use crate::datasets::forms::Api;
use crate::documents::{is_merge_patch, object, stamp};
use crate::dto::job as dto;
use crate::error::{Answer, ScicatError};
use crate::filter::{self, Filter};
use crate::fullquery;
use crate::import::complete;
use crate::import::imported::{Imported, Marks};
use crate::jobs::visible::{SEARCH, filter, invalid_id, readable, visible};
use crate::kinds::JOB;
use crate::listing::{self, Listing};
use crate::resource::{self, Resource};
use crate::tracking::Tracking;
use crate::validate::Form;

/// The routes and kinds of jobs.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&JOB, &crate::kinds::JOB_ACTION],
    imported: &[Imported {
        name: "job",
        plural: "jobs",
        kind: &JOB,
        table: || &dto::V4_CREATE,
        complete: complete::job,
        marks: &[Marks { one_of: &["jobParams", "jobStatusMessage", "emailJobInitiator"], ..Marks::rank(5) }],
    }],
    ..Resource::of_routes(routes)
};

pub(crate) fn routes() -> Router<Scicat> {
    Router::new().merge(routes_of("/api/v3/jobs", Api::V3)).merge(routes_of("/api/v4/jobs", Api::V4))
}

fn routes_of(base: &str, api: Api) -> Router<Scicat> {
    Router::new()
        .route(
            base,
            get(move |a, b, c, d| list(a, b, c, d, api)).post(move |a, b, c, d| create(a, b, c, d, api)),
        )
        .route(&format!("{base}/count"), get(count))
        .route(&format!("{base}/fullquery"), get(move |a, b, c, d| full_query(a, b, c, d, api)))
        .route(&format!("{base}/fullfacet"), get(full_facet))
        .route(
            &format!("{base}/datasetdetails"),
            get(move |a, b, c, d| details::dataset_details(a, b, c, d, api)),
        )
        .route(
            &format!("{base}/{{id}}"),
            get(move |a, b, c, d, e| by_id(a, b, c, d, e, api))
                .patch(move |a, b, c, d, e| patch(a, b, c, d, e, api))
                .delete(move |a, b, c| delete(a, b, c, api)),
        )
}

fn listing(api: Api) -> Listing {
    match api {
        Api::V3 => Listing { kind: &JOB, form: Some(forms::show_as_v3) },
        Api::V4 => Listing::stored(&JOB),
    }
}

async fn list(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap, api: Api) -> Answer {
    asker.forbid_anonymous()?;
    let filter = filter(&query, &headers)?;
    if filter.include.is_empty() {
        return listing(api).list(&asker, &filter, visible(&app, &asker)).await;
    }
    details::list_with_datasets(&asker, &filter, visible(&app, &asker), api).await
}

async fn count(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    asker.forbid_anonymous()?;
    let condition = filter(&query, &headers)?.condition;
    listing(Api::V4).count(&asker, visible(&app, &asker).and(condition)).await
}

/// Returns the condition of `fields`, limited to the jobs that the caller may see.
fn searched(app: &Scicat, asker: &Asker, query: &QueryText) -> Result<Expr, ScicatError> {
    let fields = forms::with_v4_names(object_parameter(query, "fields")?);
    Ok(visible(app, asker).and(fullquery::unrestricted(&fields, &SEARCH)?.condition))
}

/// `GET /jobs/fullquery?fields=&limits=`, or `?filter=` as in v4.
async fn full_query(
    app: State<Scicat>,
    asker: Asker,
    query: QueryText,
    headers: HeaderMap,
    api: Api,
) -> Answer {
    asker.forbid_anonymous()?;
    if query.get("filter").is_some_and(|it| !it.is_empty()) {
        return list(app, asker, query, headers, api).await;
    }
    let limits = query.get("limits").filter(|it| !it.is_empty());
    let limits = limits.map(|it| json_parameter("limits", it)).transpose()?.unwrap_or_default();
    let named = forms::filter_with_v4_names(json!({"limits": limits}));
    let filter = Filter { condition: searched(&app, &asker, &query)?, ..filter::from_value(&named, &JOB)? };
    listing(api).list(&asker, &filter, Expr::All).await
}

async fn full_facet(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    asker.forbid_anonymous()?;
    let condition = searched(&app, &asker, &query)?;
    answer_facets(&asker, &query, &JOB, condition).await
}

/// v4 shows what `filter` selects of the job, and its datasets if it includes them.
async fn by_id(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    query: QueryText,
    headers: HeaderMap,
    api: Api,
) -> Answer {
    let record = readable(&app, &asker, &id).await?;
    let wanted = if api == Api::V4 { filter(&query, &headers)? } else { Filter::default() };
    match (wanted.include.is_empty(), wanted.fields.is_everything()) {
        (true, true) => listing(api).one(record, &headers),
        (true, false) => Ok(answer::json(StatusCode::OK, &listing(api).chosen(&record, &wanted)?)),
        (false, _) => details::one_with_datasets(&asker, &wanted, record).await,
    }
}

/// Order of the checks: type 400, table 400, datasets 422, owners 403 and 422, caller 403, the type's conditions and
/// actions. Actions that call other servers run after the job has been stored.
async fn create(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body, api: Api) -> Answer {
    let body = app.object(&headers, body).await?;
    let name = body.get("type").and_then(Value::as_str).unwrap_or("undefined").to_owned();
    if api == Api::V3 {
        rules::job_type(&app.settings, &name)?;
    }
    let table = if api == Api::V3 { &dto::V3_CREATE } else { &dto::V4_CREATE };
    resource::require_sound(&table.check(&body, Form::Create))?;
    let job_type = rules::job_type(&app.settings, &name)?.clone();
    let mut job = if api == Api::V3 { forms::v4_of_create(body) } else { body };
    let listed = rules::list(&job)?;
    let pids: Vec<String> = listed.iter().map(|it| it.0.clone()).collect();
    rules::require_datasets(&job_type, &job, &pids, api)?;
    let applicant = Applicant::of(&app.settings, &asker, app.context.accounts().everyone());
    let scene = Scene::new(&job, pids.clone());
    let (wanted, asked) = (job_type.clone(), job.clone());
    let owner = asker
        .db
        .read(Weight::Scan, move |view| {
            let datasets = rules::datasets(view, &pids, &wanted)?;
            let owner = applicant.admit(view, &wanted, &asked, &datasets, api)?;
            owners::require_files(view, &listed)?;
            rules::require_conditions(&wanted, &datasets)?;
            Ok::<_, ScicatError>(owner)
        })
        .await?;
    let scene = judged(&asker, job_type.create_actions.clone(), scene).await?;
    for (name, value) in
        [("ownerUser", owner.user), ("ownerGroup", owner.group), ("contactEmail", owner.email)]
    {
        job.insert(name.to_owned(), value.into());
    }
    let id = app.new_uuid();
    let job = stored(&app, &asker, &id, job);
    let mut shown = job.clone();
    let taken = ScicatError::conflict(format!("Job with id {id} already exists"));
    let scene = scene.with_job(&shown);
    let actions = job_type.create_actions.as_slice();
    let pending = app.outbox.pending(&job_type.name, Operation::Create, actions, &scene);
    let document = Document::new(&JOB, &id, &Value::Object(job))?;
    let bytes = document.body().clone();
    let written = asker.db.write(move |txn| {
        txn.insert_document(&document)?;
        pending.as_ref().map(|it| it.put(txn)).transpose()
    });
    let held = match written.await {
        Err(StoreError::Duplicate { .. }) => return Err(taken),
        held => held?,
    };
    app.outbox.perform(asker.db.tenant(), held, actions, &scene).await?;
    if api == Api::V4 {
        return Ok(answer::stored_json(StatusCode::CREATED, bytes));
    }
    forms::show_as_v3(&mut shown);
    Ok(answer::json(StatusCode::CREATED, &shown))
}

/// Runs the actions that validate a request and returns the scene that they completed.
async fn judged(asker: &Asker, actions: Vec<Action>, scene: Scene) -> Result<Scene, ScicatError> {
    if actions.is_empty() {
        return Ok(scene);
    }
    asker
        .db
        .read(Weight::Scan, move |view| {
            let mut scene = scene.clone();
            run::validate(view, &actions, &mut scene)?;
            Ok(scene)
        })
        .await
}

/// Returns a new job as it is stored.
fn stored(app: &Scicat, asker: &Asker, id: &str, mut given: Map<String, Value>) -> Map<String, Value> {
    let mut job = Map::new();
    job.insert("_id".to_owned(), id.into());
    job.insert("id".to_owned(), id.into());
    given.retain(|_, value| !value.is_null());
    for (name, default) in [
        ("type", Value::Null),
        ("statusCode", app.settings.job_default_status_code.clone().into()),
        ("statusMessage", app.settings.job_default_status_message.clone().into()),
        ("jobParams", json!({})),
        ("ownerUser", Value::Null),
        ("ownerGroup", Value::Null),
        ("accessGroups", json!([])),
        ("isPublished", false.into()),
        ("contactEmail", Value::Null),
        ("configVersion", app.settings.job_config_version.clone().into()),
        ("jobResultObject", json!({})),
    ] {
        let value = given.shift_remove(name).unwrap_or(default);
        if !value.is_null() {
            job.insert(name.to_owned(), value);
        }
    }
    crate::documents::sign(&mut job, &asker.username(), &app.now());
    job
}

/// Order of the checks: missing 400, table 400, caller 403, the type's actions.
async fn patch(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
    api: Api,
) -> Answer {
    let body = app.object(&headers, body).await?;
    let is_merge = is_merge_patch(&headers);
    let (faults, changes) = match api {
        Api::V3 => (dto::V3_UPDATE.check(&body, Form::Update), forms::v4_of_update(body)),
        Api::V4 => (dto::V4_UPDATE.check(&body, Form::Replace), body),
    };
    let (rights, settings, username, now) =
        (asker.rights.clone(), app.settings.clone(), asker.username(), app.now());
    let record = listing::get(&asker, &JOB, &id).await?.ok_or_else(invalid_id)?;
    resource::require_sound(&faults)?;
    let before = object(&record)?;
    rules::may_update(&settings, &rights, &before)?;
    // A type that the site no longer has has no actions.
    let job_type = settings.job_types.iter().find(|it| it.name == crate::documents::text(&before, "type"));
    let actions = job_type.map(|it| it.update_actions.clone()).unwrap_or_default();
    let scene = Scene::new(&changes, rules::pids(&before)?).with_job(&before);
    let scene = judged(&asker, actions.clone(), scene).await?;
    let (rules_of, outbox) = (settings.clone(), app.outbox.clone());
    let (name, listed) = (crate::documents::text(&before, "type").to_owned(), actions.clone());
    let (stored, held, scene) = asker
        .db
        .write(move |txn| {
            let record = txn.get(&JOB, &id)?.ok_or_else(invalid_id)?;
            let mut job = object(&record)?;
            rules::may_update(&rules_of, &rights, &job)?;
            forms::apply(&mut job, &changes, is_merge);
            stamp(&mut job, &username, &now);
            let scene = scene.clone().with_job(&job);
            let stored = resource::update(txn, &JOB, &record, job, Tracking::Off)?;
            let pending = outbox.pending(&name, Operation::Update, &listed, &scene);
            let held = pending.map(|it| it.put(txn)).transpose()?;
            Ok::<_, ScicatError>((stored, held, scene))
        })
        .await?;
    app.outbox.perform(asker.db.tenant(), held, &actions, &scene).await?;
    shown(&stored, api)
}

fn shown(stored: &bytes::Bytes, api: Api) -> Answer {
    if api == Api::V4 {
        return Ok(answer::stored_json(StatusCode::OK, stored.clone()));
    }
    let mut job: Map<String, Value> = serde_json::from_slice(stored)
        .map_err(|error| pinakes_store::StoreError::Damaged(error.to_string()))?;
    forms::show_as_v3(&mut job);
    Ok(answer::json(StatusCode::OK, &job))
}

async fn delete(app: State<Scicat>, asker: Asker, Path(id): Path<String>, api: Api) -> Answer {
    if !asker.caller().is_in_any(&app.settings.delete_job_groups) {
        return Err(ScicatError::forbidden_resource());
    }
    let record = asker
        .db
        .write(move |txn| {
            let message = || format!("Job id {id} doesn't exist.");
            txn.delete(&JOB, &id)?.ok_or_else(|| ScicatError::short(StatusCode::BAD_REQUEST, message()))
        })
        .await?;
    shown(&record.body, api)
}
