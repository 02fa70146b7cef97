//! Published data: sets of datasets with a DOI (section 8 of the contract). Stored once, in the form of v4, where most
//! fields of v3 are in `metadata`; `forms.rs` converts between the two, `publication.rs` has the steps from private to
//! registered, `schema.rs` checks the metadata against the site's JSON schema.

pub(crate) mod access;
mod datacite;
mod defaults;
pub(crate) mod forms;
mod publication;
pub(crate) mod schema;
pub(crate) mod status;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, QueryText, Scicat, json_parameter, object_parameter};
use crate::attachments::targets::attached_to;
use crate::datasets::forms::Api;
use crate::documents::{object, stamp};
use crate::dto::published_data as dto;
use crate::error::{Answer, ScicatError};
use crate::filter::{self, Filter};
use crate::fullquery::{self, Search};
use crate::import::complete;
use crate::import::imported::{Imported, Marks};
use crate::kinds::{ATTACHMENT, PROPOSAL, PUBLISHED_DATA};
use crate::listing::Listing;
use crate::published_data::access::{
    absent, metadata_schema, readable, require_editor, require_user, visible,
};
use crate::published_data::forms::{parsed, shown};
use crate::resource::{self, Resource};
use crate::validate::Form;

/// How published data are searched.
static SEARCH: Search = Search { kind: &PUBLISHED_DATA, quantities: "", quantity_key: "" };

/// The routes and kind of published data.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&PUBLISHED_DATA],
    imported: &[Imported {
        name: "publisheddata",
        plural: "publisheddatas",
        kind: &PUBLISHED_DATA,
        table: || &dto::V4,
        complete: complete::publication,
        marks: &[Marks { with: &["title"], one_of: &["pidArray", "datasetPids"], ..Marks::rank(6) }],
    }],
    ..Resource::of_routes(routes)
};

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .merge(routes_of("/api/v3/publisheddata", Api::V3))
        .merge(routes_of("/api/v4/publisheddata", Api::V4))
        .route(
            "/api/v3/publisheddata/{id}/resync",
            post(|a, b, c, d, e, f| change(a, b, c, d, e, f, Api::V3)),
        )
        .route(
            "/api/v4/publisheddata/{id}/resync",
            post(|a, b, c, d, e, f| change(a, b, c, d, e, f, Api::V4)),
        )
        .route("/api/v4/publisheddata/config", get(config))
        .route("/api/v4/publisheddata/{id}/publish", post(publication::publish))
        .route("/api/v4/publisheddata/{id}/amend", post(publication::amend))
}

fn routes_of(base: &str, api: Api) -> Router<Scicat> {
    Router::new()
        .route(
            base,
            get(move |a, b, c, d| list(a, b, c, d, api)).post(move |a, b, c, d| create(a, b, c, d, api)),
        )
        .route(&format!("{base}/count"), get(move |a, b, c| count(a, b, c, api)))
        .route(&format!("{base}/formpopulate"), get(move |a, b, c| form_populate(a, b, c, api)))
        .route(
            &format!("{base}/{{id}}"),
            get(move |a, b, c, d| by_id(a, b, c, d, api))
                .patch(move |a, b, c, d, e, f| change(a, b, c, d, e, f, api))
                .delete(move |a, b, c| delete(a, b, c, api)),
        )
        .route(&format!("{base}/{{id}}/register"), post(move |a, b, c| publication::register(a, b, c, api)))
}

fn listing(api: Api) -> Listing {
    match api {
        Api::V3 => Listing { kind: &PUBLISHED_DATA, form: Some(forms::show_as_v3) },
        Api::V4 => Listing::stored(&PUBLISHED_DATA),
    }
}

fn filter(query: &QueryText, headers: &HeaderMap, api: Api) -> Result<Filter, ScicatError> {
    let value = match filter::text("filter", query, headers)? {
        None => Value::Null,
        Some(text) => json_parameter("filter", text)?,
    };
    filter::from_value(
        &if api == Api::V3 { forms::filter_with_v4_names(value) } else { value },
        &PUBLISHED_DATA,
    )
}

async fn list(_: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap, api: Api) -> Answer {
    // The frontend sends parts of a filter as separate parameters.
    let mut filter = filter(&query, &headers, api)?;
    if let Some(limits) = query.get("limits").filter(|it| !it.is_empty()) {
        filter.window = filter::window(Some(&json_parameter("limits", limits)?), &PUBLISHED_DATA)?;
    }
    filter.condition = filter.condition.and(condition_of_fields(&query, api)?);
    listing(api).list(&asker, &filter, visible(&asker, api)).await
}

/// Parses `fields={"status":"registered","text":"neutron"}`, as the frontend's search form sends it.
fn condition_of_fields(query: &QueryText, api: Api) -> Result<Expr, ScicatError> {
    let fields = object_parameter(query, "fields")?;
    let fields = if api == Api::V3 { forms::with_v4_names(fields) } else { fields };
    Ok(fullquery::unrestricted(&fields, &SEARCH)?.condition)
}

async fn count(asker: Asker, query: QueryText, headers: HeaderMap, api: Api) -> Answer {
    let condition = filter(&query, &headers, api)?.condition.and(condition_of_fields(&query, api)?);
    listing(api).count(&asker, visible(&asker, api).and(condition)).await
}

async fn by_id(
    _: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    api: Api,
) -> Answer {
    listing(api).one(readable(&asker, &id, api).await?, &headers)
}

/// Answers with `{"metadataSchema":…,"uiSchema":…}` from the site's settings.
async fn config(app: State<Scicat>, _: Asker) -> Answer {
    Ok(answer::stored_json(StatusCode::OK, app.settings.published_data_config.clone().into()))
}

/// `GET /publisheddata/formpopulate?pid=`: the initial values of the form for a publication of this dataset.
///
/// In v4 including the defaults of the site's metadata schema.
async fn form_populate(app: State<Scicat>, asker: Asker, query: QueryText, api: Api) -> Answer {
    require_user(&asker, Api::V3)?;
    let pid = query.get("pid").unwrap_or_default().to_owned();
    let dataset = object(&crate::datasets::read::readable(&app, &asker, &pid).await?)?;
    let proposal_id = crate::documents::text(&dataset, "proposalId").to_owned();
    let rights = crate::proposals::rights(&app, &asker);
    let (proposal, attachments) = asker
        .db
        .read(Weight::Scan, move |view| {
            let mut proposal = None;
            if let Some(record) = view.get(&PROPOSAL, &proposal_id)?
                && rights.may_read(&*view.class(&PROPOSAL, record.class)?)
            {
                proposal = Some(object(&record)?);
            }
            let attachments = view.find(&ATTACHMENT, &Query::filter(attached_to(&pid)).window(0, 10))?;
            Ok::<_, ScicatError>((proposal, attachments))
        })
        .await?;
    let mut form = Map::new();
    for (name, from, field) in [
        ("resourceType", Some(&dataset), "type"),
        ("description", Some(&dataset), "description"),
        ("title", proposal.as_ref(), "title"),
        ("abstract", proposal.as_ref(), "abstract"),
    ] {
        if let Some(value) = from.and_then(|it| it.get(field)) {
            form.insert(name.to_owned(), value.clone());
        }
    }
    for attachment in &attachments {
        if let Some(thumbnail) = object(attachment)?.get("thumbnail").filter(|it| it.is_string()) {
            form.entry("thumbnail").or_insert_with(|| thumbnail.clone());
        }
    }
    if api == Api::V4 {
        let mut metadata = json!({});
        defaults::fill(&metadata_schema(&app.settings), &mut metadata, app.context.clock().now_ms());
        form.insert("metadata".to_owned(), metadata);
    }
    Ok(answer::json(StatusCode::OK, &form))
}

/// Order of the checks: anonymous, table 400, duplicate 409.
async fn create(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body, api: Api) -> Answer {
    require_user(&asker, api)?;
    let body = app.object(&headers, body).await?;
    resource::require_sound(&table(api).check(&body, Form::Create))?;
    let doi = match crate::documents::text(&body, "doi") {
        "" => format!("{}/{}", app.settings.doi_prefix.trim_end_matches('/'), app.new_uuid()),
        given => given.to_owned(),
    };
    datacite::require_own_prefix(&app.settings, &doi)?;
    let mut publication = Map::new();
    publication.insert("doi".to_owned(), doi.clone().into());
    publication.insert("_id".to_owned(), doi.clone().into());
    let mut given = if api == Api::V3 { forms::v4_of(body) } else { body };
    // The status changes only through its own routes, except that v3 accepts publications registered elsewhere.
    let is_registered = api == Api::V3 && crate::documents::text(&given, "status") == status::REGISTERED;
    given.retain(|name, _| name != "status" && (name != "registeredTime" || is_registered));
    resource::complete(&mut publication, given, &dto::V4);
    let first = if is_registered { status::REGISTERED } else { status::PRIVATE };
    publication.insert("status".to_owned(), first.into());
    crate::documents::sign(&mut publication, &asker.username(), &app.now());
    let mut shown = publication.clone();
    let taken = ScicatError::conflict(format!("PublishedData with doi {doi} already exists"));
    let stored = resource::insert(&asker, &PUBLISHED_DATA, &doi, publication, taken).await?;
    if api == Api::V4 {
        return Ok(answer::stored_json(StatusCode::CREATED, stored));
    }
    forms::show_as_v3(&mut shown);
    Ok(answer::json(StatusCode::CREATED, &shown))
}

fn table(api: Api) -> &'static crate::validate::Dto {
    if api == Api::V3 { &dto::V3 } else { &dto::V4 }
}

/// `PATCH`, and `POST /{id}/resync`, which corrects a publication that is already registered, at DataCite too. Order of
/// the checks: anonymous, missing 404, table 400, caller 403, and in v4 400 for a `PATCH` of a registered publication.
async fn change(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    method: http::Method,
    headers: HeaderMap,
    body: Body,
    api: Api,
) -> Answer {
    require_user(&asker, api)?;
    let mut body = app.object(&headers, body).await?;
    // Clients send back what they have read; fields that only the server sets cannot be changed.
    const SET_BY_SERVER: [&str; 9] =
        ["doi", "_id", "id", "__v", "status", "registeredTime", "createdBy", "updatedBy", "createdAt"];
    body.retain(|name, _| name != "updatedAt" && !SET_BY_SERVER.contains(&name.as_str()));
    let is_resync = method == http::Method::POST;
    let faults = table(api).check(&body, Form::Update);
    let changes = if api == Api::V3 { forms::v4_of(body) } else { body };
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let (tracking, settings) = (asker.tracking(&PUBLISHED_DATA), app.settings.clone());
    let stored = asker
        .db
        .write(move |txn| {
            let record = txn.get(&PUBLISHED_DATA, &id)?.ok_or_else(|| absent(&id))?;
            resource::require_sound(&faults)?;
            let mut publication = object(&record)?;
            require_editor(&rights, &publication, api)?;
            let found = crate::documents::text(&publication, "status").to_owned();
            let may_change = match found.as_str() {
                status::REGISTERED => is_resync,
                status::PUBLIC => is_resync || rights.is_admin,
                _ => true,
            };
            if !may_change {
                let message = format!("Published data that is {found} cannot be changed; amend it first");
                return Err(ScicatError::bad_request(message));
            }
            if is_resync && found == status::REGISTERED && datacite::is_configured(&settings) {
                publication::require_own_datasets(txn, &rights, &publication)?;
            }
            forms::apply(&mut publication, &changes, api);
            stamp(&mut publication, &username, &now);
            resource::update(txn, &PUBLISHED_DATA, &record, publication, tracking)
        })
        .await?;
    if is_resync {
        let publication = parsed(&stored)?;
        if crate::documents::text(&publication, "status") == status::REGISTERED {
            datacite::register(&app.settings, &publication).await?;
        }
        if api == Api::V4 {
            return Ok(answer::stored_json(StatusCode::CREATED, stored));
        }
    }
    shown(&stored, api)
}

/// Deletes a private publication, for its creator and the groups that may delete. What others have seen stays.
async fn delete(app: State<Scicat>, asker: Asker, Path(id): Path<String>, api: Api) -> Answer {
    require_user(&asker, api)?;
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let tracking = asker.tracking(&PUBLISHED_DATA);
    let record = asker
        .db
        .write(move |txn| {
            let record = txn.get(&PUBLISHED_DATA, &id)?.ok_or_else(|| absent(&id))?;
            let publication = object(&record)?;
            if !rights.may_delete {
                require_editor(&rights, &publication, api)?;
            }
            let found = crate::documents::text(&publication, "status");
            // In v3 the groups that may delete can also withdraw registered publications.
            let is_taken_back = api == Api::V3 && rights.may_delete;
            if found != status::PRIVATE && !is_taken_back {
                let message = format!("Published data that is {found} cannot be deleted");
                return Err(ScicatError::bad_request(message));
            }
            tracking.note_deletion(txn, &id, record.version, &publication, &username, &now)?;
            txn.delete(&PUBLISHED_DATA, &id)?;
            Ok(record)
        })
        .await?;
    shown(&record.body, api)
}
