//! Proposals: applications for measurements, their applicants and measurement periods (section 8 of the contract).
//! Lists and counts take `filters=`, not `filter=`.

pub(crate) mod counts;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Document, Expr, Query, Record, Txn, Value as Condition};
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, QueryText, Scicat, object_parameter};
use crate::datasets::forms::Api;
use crate::datasets::read;
use crate::dto::proposal as dto;
use crate::error::{Answer, ScicatError};
use crate::faults::Fault;
use crate::filter::{self, Filter};
use crate::fullquery::Search;
use crate::import::complete;
use crate::import::imported::{Imported, Marks};
use crate::kinds::{DATASET, PROPOSAL};
use crate::listing::{self, Listing};
use crate::precondition::Precondition;
use crate::proposals::counts::N_DATASETS;
use crate::resource::{self, Resource};
use crate::rights::Rights;
use crate::validate::Form;

static LISTING: Listing = Listing::stored(&PROPOSAL);

static SEARCH: Search = Search { kind: &PROPOSAL, quantities: "metadata", quantity_key: "scientific" };

/// Dates of a proposal that are sent in one format.
const DATES: [&str; 2] = ["startTime", "endTime"];

/// The routes and kind of proposals.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&PROPOSAL],
    imported: &[Imported {
        name: "proposal",
        plural: "proposals",
        kind: &PROPOSAL,
        table: || &dto::PROPOSAL,
        complete: complete::proposal,
        marks: &[Marks {
            with: &["title"],
            one_of: &["MeasurementPeriodList", "email", "pi_email", "proposalId"],
            ..Marks::rank(10)
        }],
    }],
    ..Resource::of_routes(routes)
};

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/proposals", get(list).post(create))
        .route("/api/v3/proposals/isvalid", post(is_valid))
        .route("/api/v3/proposals/count", get(count))
        .route("/api/v3/proposals/findone", get(find_one))
        .route("/api/v3/proposals/fullquery", get(full_query))
        .route("/api/v3/proposals/fullfacet", get(full_facet))
        .route("/api/v3/proposals/{pid}", get(by_id).patch(patch).delete(delete))
        .route("/api/v3/proposals/{pid}/authorization", get(authorization))
        .route("/api/v3/proposals/{pid}/datasets", get(datasets))
}

/// Returns the caller's rights to proposals.
pub(crate) fn rights(app: &Scicat, asker: &Asker) -> Rights {
    asker.rights.of_keeper(&app.settings.proposal_groups)
}

fn require_keeper(app: &Scicat, asker: &Asker) -> Result<(), ScicatError> {
    if rights(app, asker).is_admin { Ok(()) } else { Err(ScicatError::forbidden_resource()) }
}

/// Returns a proposal that the caller may read.
///
/// Errors: 404 if it does not exist, 403 if the caller may not read it.
pub(crate) async fn readable(app: &Scicat, asker: &Asker, id: &str) -> Result<Record, ScicatError> {
    let Some((record, class)) = listing::with_class(asker, &PROPOSAL, id).await? else {
        return Err(ScicatError::not_found(format!("Proposal: {id} not found")));
    };
    if !rights(app, asker).may_read(&class) {
        return Err(ScicatError::forbidden("Unauthorized to this proposal"));
    }
    Ok(record)
}

fn filter(query: &QueryText, headers: &HeaderMap) -> Result<Filter, ScicatError> {
    filter::parse(filter::text("filters", query, headers)?, &PROPOSAL)
}

async fn list(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    LISTING.list(&asker, &filter(&query, &headers)?, rights(&app, &asker).visible()).await
}

/// `GET /proposals/findOne?filter=` (also `filters=`): the first row, or an empty answer.
async fn find_one(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let filter = match filter::text("filter", &query, &headers)? {
        Some(text) => filter::parse(Some(text), &PROPOSAL)?,
        None => filter(&query, &headers)?,
    };
    LISTING.first(&asker, &filter, rights(&app, &asker).visible()).await
}

/// `GET /proposals/count?filters=`, or `?filter=` with only the condition.
async fn count(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let condition = match object_parameter(&query, "filter")? {
        condition if condition.is_empty() => filter(&query, &headers)?.condition,
        whole if whole.get("where").is_some_and(Value::is_object) => {
            filter::from_value(&Value::Object(whole), &PROPOSAL)?.condition
        }
        condition => filter::from_value(&json!({"where": condition}), &PROPOSAL)?.condition,
    };
    LISTING.count(&asker, rights(&app, &asker).visible().and(condition)).await
}

async fn full_query(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    LISTING.full_query(&asker, &query, &SEARCH, &rights(&app, &asker)).await
}

async fn full_facet(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    LISTING.full_facet(&asker, &query, &SEARCH, &rights(&app, &asker)).await
}

async fn by_id(app: State<Scicat>, asker: Asker, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    LISTING.one(readable(&app, &asker, &id).await?, &headers)
}

/// Answers with `{"canAccess":…}`; false if the proposal does not exist.
async fn authorization(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    let found = listing::with_class(&asker, &PROPOSAL, &id).await?;
    let may_read = found.is_some_and(|(_, class)| rights(&app, &asker).may_read(&class));
    Ok(answer::json(StatusCode::OK, &json!({"canAccess": may_read})))
}

/// `GET /proposals/{pid}/datasets`: for administrators of proposals; shows the datasets that they may see.
async fn datasets(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    query: QueryText,
    headers: HeaderMap,
) -> Answer {
    require_keeper(&app, &asker)?;
    readable(&app, &asker, &id).await?;
    let filter = filter::parse(filter::text("filters", &query, &headers)?, &DATASET)?;
    let of_proposal = Expr::Is("proposalIds".into(), Condition::Text(id));
    read::answer_list(&asker, &filter, asker.rights.visible().and(of_proposal), Api::V3).await
}

/// Order of the checks: role 403, table 400, duplicate 409.
async fn create(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    require_keeper(&app, &asker)?;
    let body = app.object(&headers, body).await?;
    resource::require_sound(&faults(&app, &body, Form::Create))?;
    let id = crate::documents::text(&body, "proposalId").to_owned();
    let mut proposal = Map::new();
    proposal.insert("proposalId".to_owned(), id.clone().into());
    proposal.insert("_id".to_owned(), id.clone().into());
    resource::complete(&mut proposal, body, &dto::PROPOSAL);
    normalise(&app, &mut proposal);
    proposal.insert(N_DATASETS.to_owned(), 0.into());
    crate::documents::sign(&mut proposal, &asker.username(), &app.now());
    let stored = asker.db.write(move |txn| insert(txn, &id, proposal.clone())).await?;
    Ok(answer::stored_json(StatusCode::CREATED, stored))
}

/// Inserts a proposal. Datasets that were stored before it are counted.
fn insert(
    txn: &mut Txn<'_>,
    id: &str,
    mut proposal: Map<String, Value>,
) -> Result<bytes::Bytes, ScicatError> {
    if txn.has(&PROPOSAL, id)? {
        return Err(ScicatError::conflict(format!("Proposal with {id} already exists")));
    }
    let n_datasets = txn.count(&DATASET, &Expr::Is("proposalIds".into(), Condition::Text(id.to_owned())))?;
    proposal.insert(N_DATASETS.to_owned(), n_datasets.into());
    let document = Document::new(&PROPOSAL, id, &Value::Object(proposal))?;
    txn.insert_document(&document)?;
    Ok(document.body().clone())
}

async fn is_valid(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    require_keeper(&app, &asker)?;
    let body = app.object(&headers, body).await?;
    let is_valid = faults(&app, &body, Form::Create).is_empty();
    Ok(answer::json(StatusCode::OK, &json!({"valid": is_valid})))
}

/// Returns the faults of the table, and one for a type that the site does not list. A site without a list accepts
/// any type.
fn faults(app: &Scicat, body: &Map<String, Value>, form: Form) -> Vec<Fault> {
    let mut faults = dto::PROPOSAL.check(body, form);
    let known = &app.settings.proposal_types;
    if let Some(Value::String(name)) = body.get("type")
        && !known.is_empty()
        && !known.contains(name)
        && name != dto::DEFAULT_TYPE
    {
        faults.push(Fault::with_constraint("type", "isIn", dto::type_fault(known)));
    }
    faults
}

/// Normalises dates and adds an id to each measurement period. Metadata stays as it was sent, without SI values.
fn normalise(app: &Scicat, proposal: &mut Map<String, Value>) {
    crate::documents::normalise_dates(proposal, &DATES);
    let periods = proposal.get_mut("MeasurementPeriodList").and_then(Value::as_array_mut);
    for period in periods.into_iter().flatten().filter_map(Value::as_object_mut) {
        crate::documents::normalise_dates(period, &["start", "end"]);
        period.entry("_id").or_insert_with(|| app.new_object_id().into());
    }
}

/// Order of the checks: role 403, missing 404, table 400, precondition 412. Fields that a patch does not name
/// stay.
async fn patch(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    require_keeper(&app, &asker)?;
    let mut changes = app.object(&headers, body).await?;
    let faults = faults(&app, &changes, Form::Update);
    normalise(&app, &mut changes);
    let precondition = Precondition::of(&headers);
    let stored = resource::change(&asker, &PROPOSAL, id.clone(), app.now(), move |_, _, proposal| {
        resource::require_sound(&faults)?;
        precondition.check("Proposal", "on server", &id, proposal)?;
        resource::apply(proposal, &changes);
        Ok(())
    });
    Ok(answer::stored_json(StatusCode::OK, stored.await?))
}

/// Deletes a proposal and the attachments that belong to nothing else. Its datasets stay.
async fn delete(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    if !asker.rights.may_delete {
        return Err(ScicatError::forbidden_resource());
    }
    resource::delete(&asker, &PROPOSAL, id, app.now(), |txn, record| {
        let attached = Query::filter(crate::attachments::targets::attached_to(&record.id));
        for attachment in txn.find(&crate::kinds::ATTACHMENT, &attached)? {
            crate::attachments::targets::detach(txn, &attachment, &record.id)?;
        }
        Ok(())
    })
    .await
}
