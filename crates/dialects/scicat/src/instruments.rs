//! Instruments: everyone may read them, admins may write them (section 8 of the contract).

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::Expr;
use serde_json::{Map, json};

use crate::app::{Asker, Path, QueryText, Scicat, json_parameter};
use crate::dto::instrument as dto;
use crate::error::{Answer, ScicatError};
use crate::filter;
use crate::import::complete;
use crate::import::imported::{Imported, Marks};
use crate::kinds::INSTRUMENT;
use crate::listing::{self, Listing};
use crate::precondition::Precondition;
use crate::resource::{self, Resource};
use crate::validate::Form;

static LISTING: Listing = Listing::stored(&INSTRUMENT);

/// The routes and kind of instruments.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&INSTRUMENT],
    imported: &[Imported {
        name: "instrument",
        plural: "instruments",
        kind: &INSTRUMENT,
        table: || &dto::INSTRUMENT,
        complete: complete::instrument,
        marks: &[Marks { with: &["name"], one_of: &["uniqueName", "customMetadata"], ..Marks::rank(11) }],
    }],
    ..Resource::of_routes(routes)
};

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/instruments", get(list).post(create))
        .route("/api/v3/instruments/count", get(count))
        .route("/api/v3/instruments/findone", get(find_one))
        .route("/api/v3/instruments/{id}", get(by_id).patch(patch).delete(delete))
}

fn taken() -> ScicatError {
    ScicatError::conflict("Instrument with the same unique name or PID already exists")
}

fn require_admin(asker: &Asker) -> Result<(), ScicatError> {
    if asker.rights.is_admin { Ok(()) } else { Err(ScicatError::forbidden_resource()) }
}

async fn list(_: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let filter = filter::parse(filter::text("filter", &query, &headers)?, &INSTRUMENT)?;
    LISTING.list(&asker, &filter, Expr::All).await
}

async fn find_one(_: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let filter = filter::parse(filter::text("filter", &query, &headers)?, &INSTRUMENT)?;
    LISTING.first(&asker, &filter, Expr::All).await
}

/// `GET /instruments/count?where=` (also `filter=`).
async fn count(_: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let filter = match query.get("where").filter(|it| !it.is_empty()) {
        Some(text) => filter::from_value(&json!({"where": json_parameter("where", text)?}), &INSTRUMENT)?,
        None => filter::parse(filter::text("filter", &query, &headers)?, &INSTRUMENT)?,
    };
    LISTING.count(&asker, filter.condition).await
}

/// Answers with an instrument; an empty answer for an unknown id.
async fn by_id(_: State<Scicat>, asker: Asker, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    match listing::get(&asker, &INSTRUMENT, &id).await? {
        Some(record) => LISTING.one(record, &headers),
        None => Ok(answer::empty(StatusCode::OK)),
    }
}

/// Creates an instrument. The default pid is the site's prefix and a UUID, without a slash between them.
async fn create(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    require_admin(&asker)?;
    let body = app.object(&headers, body).await?;
    resource::require_sound(&dto::INSTRUMENT.check(&body, Form::Create))?;
    let pid = match crate::documents::text(&body, "pid") {
        "" => format!("{}{}", app.settings.pid_prefix, app.new_uuid()),
        given => given.to_owned(),
    };
    let mut instrument = Map::new();
    for name in ["pid", "_id", "id"] {
        instrument.insert(name.to_owned(), pid.clone().into());
    }
    resource::complete(&mut instrument, body, &dto::INSTRUMENT);
    crate::documents::sign(&mut instrument, &asker.username(), &app.now());
    let stored = resource::insert(&asker, &INSTRUMENT, &pid, instrument, taken()).await?;
    Ok(answer::stored_json(StatusCode::CREATED, stored))
}

/// Order of the checks: role 403, missing 404, table 400, precondition 412, duplicate 409.
async fn patch(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    require_admin(&asker)?;
    let changes = app.object(&headers, body).await?;
    let faults = dto::INSTRUMENT.check(&changes, Form::Update);
    let precondition = Precondition::of(&headers);
    let stored = resource::change(&asker, &INSTRUMENT, id.clone(), app.now(), move |_, _, instrument| {
        resource::require_sound(&faults)?;
        precondition.check("Instrument", "on server", &id, instrument)?;
        resource::apply(instrument, &changes);
        Ok(())
    });
    // Creating an instrument answers 409 in the same case, as the original does.
    let taken = ScicatError::bad_request("Instrument with the same unique name already exists");
    let stored = stored.await.map_err(|error| resource::or_taken(error, taken))?;
    Ok(answer::stored_json(StatusCode::OK, stored))
}

async fn delete(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    if !asker.rights.may_delete {
        return Err(ScicatError::forbidden_resource());
    }
    resource::delete(&asker, &INSTRUMENT, id, app.now(), |_, _| Ok(())).await
}
