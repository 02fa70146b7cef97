//! Samples: what was measured (section 8 of the contract). Their characteristics contain quantities, which searches
//! compare in SI units, as for datasets.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Record, Value as Condition};
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, QueryText, Scicat, object_parameter};
use crate::datasets::facets::answer_metadata_keys;
use crate::datasets::forms::Api;
use crate::datasets::read;
use crate::dto::sample as dto;
use crate::error::{Answer, ScicatError};
use crate::filter::{self, Filter};
use crate::fullquery::{self, Search};
use crate::import::complete;
use crate::import::imported::{Imported, Marks};
use crate::kinds::{DATASET, QUANTITIES, SAMPLE};
use crate::listing::{self, Listing};
use crate::precondition::Precondition;
use crate::resource::{self, Resource};
use crate::rights::Rights;
use crate::scientific;
use crate::validate::Form;

static LISTING: Listing = Listing::stored(&SAMPLE);

static SEARCH: Search = Search { kind: &SAMPLE, quantities: QUANTITIES, quantity_key: "characteristics" };

/// The routes and kind of samples.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&SAMPLE],
    imported: &[Imported {
        name: "sample",
        plural: "samples",
        kind: &SAMPLE,
        table: || &dto::SAMPLE,
        complete: complete::sample,
        marks: &[
            Marks { one_of: &["sampleCharacteristics", "sampleName"], ..Marks::rank(9) },
            Marks { with: &["sampleId", "ownerGroup"], ..Marks::rank(13) },
        ],
    }],
    ..Resource::of_routes(routes)
};

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/samples", get(list).post(create))
        .route("/api/v3/samples/count", get(count))
        .route("/api/v3/samples/findone", get(find_one))
        .route("/api/v3/samples/fullquery", get(full_query))
        .route("/api/v3/samples/metadatakeys", get(metadata_keys))
        .route("/api/v3/samples/{id}", get(by_id).patch(patch).delete(delete))
        .route("/api/v3/samples/{id}/authorization", get(authorization))
        .route("/api/v3/samples/{id}/datasets", get(datasets))
}

/// Returns the caller's rights to samples. Callers who may create any sample still read only their own, shared and
/// public ones, as others do.
pub(crate) fn rights(_: &Scicat, asker: &Asker) -> Rights {
    asker.rights.of_keeper(&[])
}

/// Returns a sample that the caller may read.
///
/// Errors: 404 if it does not exist, 403 if the caller may not read it.
pub(crate) async fn readable(app: &Scicat, asker: &Asker, id: &str) -> Result<Record, ScicatError> {
    let Some((record, class)) = listing::with_class(asker, &SAMPLE, id).await? else {
        return Err(ScicatError::not_found(format!("Sample: {id} not found")));
    };
    if !rights(app, asker).may_read(&class) {
        return Err(ScicatError::forbidden("Unauthorized to this sample"));
    }
    Ok(record)
}

fn filter(query: &QueryText, headers: &HeaderMap) -> Result<Filter, ScicatError> {
    filter::parse(filter::text("filter", query, headers)?, &SAMPLE)
}

async fn list(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    LISTING.list(&asker, &filter(&query, &headers)?, rights(&app, &asker).visible()).await
}

async fn find_one(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    LISTING.first(&asker, &filter(&query, &headers)?, rights(&app, &asker).visible()).await
}

/// `GET /samples/count?filter=`, or `?fields=`, which the frontend's search form uses.
async fn count(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let rights = rights(&app, &asker);
    let condition = match query.get("fields").filter(|it| !it.is_empty()) {
        Some(_) => fullquery::parse(&object_parameter(&query, "fields")?, &SEARCH, &rights)?.condition,
        None => rights.visible().and(filter(&query, &headers)?.condition),
    };
    LISTING.count(&asker, condition).await
}

async fn full_query(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    LISTING.full_query(&asker, &query, &SEARCH, &rights(&app, &asker)).await
}

async fn metadata_keys(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let fields = object_parameter(&query, "fields")?;
    let found = fullquery::parse(&fields, &SEARCH, &rights(&app, &asker))?;
    answer_metadata_keys(&app, &asker, &SAMPLE, &fields, found.condition).await
}

async fn by_id(app: State<Scicat>, asker: Asker, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    LISTING.one(readable(&app, &asker, &id).await?, &headers)
}

/// Answers with `{"canAccess":…}`; false if the sample does not exist.
async fn authorization(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    let found = listing::with_class(&asker, &SAMPLE, &id).await?;
    let may_read = found.is_some_and(|(_, class)| rights(&app, &asker).may_read(&class));
    Ok(answer::json(StatusCode::OK, &json!({"canAccess": may_read})))
}

/// `GET /samples/{id}/datasets`: those datasets that the caller may see.
async fn datasets(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    query: QueryText,
    headers: HeaderMap,
) -> Answer {
    readable(&app, &asker, &id).await?;
    let filter = filter::parse(filter::text("filter", &query, &headers)?, &DATASET)?;
    let of_sample = Expr::Is("sampleIds".into(), Condition::Text(id));
    read::answer_list(&asker, &filter, asker.rights.visible().and(of_sample), Api::V3).await
}

/// Order of the checks: anonymous 401, role 403, table 400, object 403, duplicate 409.
async fn create(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    asker.require_user()?;
    if !asker.rights.has_sample_role(&app.settings) {
        return Err(ScicatError::forbidden_resource());
    }
    let mut body = app.object(&headers, body).await?;
    let id = match crate::documents::text(&body, "sampleId") {
        "" => app.new_uuid(),
        given => given.to_owned(),
    };
    dto::name_sample(&mut body, &id);
    resource::require_sound(&dto::SAMPLE.check(&body, Form::Create))?;
    if !asker.rights.may_create_sample(&app.settings, crate::documents::text(&body, "ownerGroup")) {
        return Err(ScicatError::forbidden("Unauthorized to create this sample"));
    }
    let mut sample = Map::new();
    sample.insert("sampleId".to_owned(), id.clone().into());
    sample.insert("_id".to_owned(), id.clone().into());
    resource::complete(&mut sample, body, &dto::SAMPLE);
    enrich(&mut sample);
    crate::documents::sign(&mut sample, &asker.username(), &app.now());
    let taken = ScicatError::conflict(format!("Sample with {id} already exists"));
    let stored = resource::insert(&asker, &SAMPLE, &id, sample, taken).await?;
    Ok(answer::stored_json(StatusCode::CREATED, stored))
}

fn enrich(sample: &mut Map<String, Value>) {
    if let Some(Value::Object(characteristics)) = sample.get_mut(QUANTITIES) {
        scientific::enrich(characteristics);
    }
}

/// Order of the checks: anonymous 401, role 403, missing 404, table 400, object 403, precondition 412.
async fn patch(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.require_user()?;
    if !asker.rights.has_sample_role(&app.settings) {
        return Err(ScicatError::forbidden_resource());
    }
    let mut changes = app.object(&headers, body).await?;
    let faults = dto::SAMPLE.check(&changes, Form::Update);
    enrich(&mut changes);
    let precondition = Precondition::of(&headers);
    let (rights, settings) = (asker.rights.clone(), app.settings.clone());
    let stored = resource::change(&asker, &SAMPLE, id.clone(), app.now(), move |_, _, sample| {
        resource::require_sound(&faults)?;
        let before = crate::documents::text(sample, "ownerGroup");
        let may_give = |group: &Value| {
            group.as_str().is_some_and(|it| it == before || rights.may_create_sample(&settings, it))
        };
        if !rights.may_update_sample(&settings, before) || !changes.get("ownerGroup").is_none_or(may_give) {
            return Err(ScicatError::forbidden("Unauthorized to this sample"));
        }
        precondition.check("Sample", "on server", &id, sample)?;
        resource::apply(sample, &changes);
        Ok(())
    });
    Ok(answer::stored_json(StatusCode::OK, stored.await?))
}

/// Deletes a sample and the attachments that belong to nothing else. Its datasets stay.
async fn delete(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    if !asker.rights.may_delete {
        return Err(ScicatError::forbidden_resource());
    }
    resource::delete(&asker, &SAMPLE, id, app.now(), |txn, record| {
        let attached = Query::filter(crate::attachments::targets::attached_to(&record.id));
        for attachment in txn.find(&crate::kinds::ATTACHMENT, &attached)? {
            crate::attachments::targets::detach(txn, &attachment, &record.id)?;
        }
        Ok(())
    })
    .await
}
