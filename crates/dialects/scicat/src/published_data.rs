//! Published data: sets of datasets with a DOI (section 8 of the contract). Stored once, in the form of v4, where
//! most fields of v3 live in `metadata`; `forms.rs` turns one into the other, `publication.rs` has the steps from
//! private to registered, `schema.rs` checks the metadata against the site's JSON schema.

mod datacite;
pub(crate) mod forms;
mod publication;
pub(crate) mod schema;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{
    Column, Expr, Identifier, Index, Kind, Query, Record, Text, Type, Value as Condition, Weight,
};
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, QueryText, Scicat, json_parameter};
use crate::attachments::{ATTACHMENT, attached_to};
use crate::datasets::Api;
use crate::datasets::change::{object, stamp};
use crate::dto::published_data as dto;
use crate::error::{Answer, ScicatError};
use crate::filter::{self, Filter};
use crate::listing::{self, Listing};
use crate::proposals::PROPOSAL;
use crate::resource;
use crate::rights::Rights;
use crate::validate::Form;

/// Published data by DOI.
pub(crate) static PUBLISHED_DATA: Kind = Kind {
    id_path: Some("doi"),
    columns: &[
        Column::one("title", Type::Text),
        Column::one("status", Type::Text),
        Column::one("createdBy", Type::Text),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
        Column::one("registeredTime", Type::Instant),
        Column::many("datasetPids", Type::Text),
    ],
    indexes: &[Index::on(&["createdAt"]), Index::on(&["status"])],
    text: Text::AllStrings,
    identifiers: &[Identifier { scheme: "doi", path: "doi" }],
    ..Kind::named("scicat_published_data")
};

/// Steps of a publication, as v4 names them.
pub(crate) mod status {
    /// Seen by who has logged in.
    pub(crate) const PRIVATE: &str = "private";
    /// Seen by anyone.
    pub(crate) const PUBLIC: &str = "public";
    /// Its DOI is registered: it does not change.
    pub(crate) const REGISTERED: &str = "registered";
    /// Registered before, and being changed.
    pub(crate) const AMENDED: &str = "amended";
}

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
        .route(&format!("{base}/formpopulate"), get(form_populate))
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

/// Who has not logged in: v4 says so, v3 just refuses.
fn require_user(asker: &Asker, api: Api) -> Result<(), ScicatError> {
    match api {
        Api::V4 => asker.require_user(),
        Api::V3 if asker.caller().is_anonymous() => Err(ScicatError::forbidden_resource()),
        Api::V3 => Ok(()),
    }
}

/// What may be seen without logging in: in v3 what is registered, in v4 what is no longer private.
fn statuses_for_anyone(api: Api) -> &'static [&'static str] {
    match api {
        Api::V3 => &[status::REGISTERED, status::AMENDED],
        Api::V4 => &[status::PUBLIC, status::REGISTERED, status::AMENDED],
    }
}

fn visible(asker: &Asker, api: Api) -> Expr {
    if !asker.caller().is_anonymous() {
        return Expr::All;
    }
    let statuses = statuses_for_anyone(api).iter().map(|it| Condition::Text((*it).to_owned()));
    Expr::In("status".into(), statuses.collect())
}

fn absent(id: &str) -> ScicatError {
    ScicatError::not_found(format!("No PublishedData with the id '{id}' exists"))
}

/// A publication that the caller may see.
async fn readable(asker: &Asker, id: &str, api: Api) -> Result<Record, ScicatError> {
    let record = listing::get(asker, &PUBLISHED_DATA, id).await?.ok_or_else(|| absent(id))?;
    if asker.caller().is_anonymous() {
        let publication = object(&record)?;
        if !statuses_for_anyone(api).contains(&resource::text(&publication, "status")) {
            return Err(absent(id));
        }
    }
    Ok(record)
}

/// Whoever made a publication changes it, and admins.
fn require_editor(rights: &Rights, publication: &Map<String, Value>) -> Result<(), ScicatError> {
    let is_own =
        rights.caller().username().is_some_and(|name| name == resource::text(publication, "createdBy"));
    if is_own || rights.is_admin {
        return Ok(());
    }
    Err(ScicatError::forbidden("Unauthorized to update this published data"))
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
    // The frontend sends parts of a filter as parameters of their own.
    let mut filter = filter(&query, &headers, api)?;
    let parameter = |name: &str| query.get(name).filter(|it| !it.is_empty());
    if let Some(limits) = parameter("limits") {
        filter.window = filter::window(Some(&json_parameter("limits", limits)?), &PUBLISHED_DATA)?;
    }
    if let Some(fields) = parameter("fields") {
        filter.condition = filter.condition.and(condition_of_fields(fields, api)?);
    }
    listing(api).list(&asker, &filter, visible(&asker, api)).await
}

/// `fields={"status":"registered"}`: fields that must equal.
fn condition_of_fields(text: &str, api: Api) -> Result<Expr, ScicatError> {
    let named = json!({"where": json_parameter("fields", text)?});
    let named = if api == Api::V3 { forms::filter_with_v4_names(named) } else { named };
    Ok(filter::from_value(&named, &PUBLISHED_DATA)?.condition)
}

async fn count(asker: Asker, query: QueryText, headers: HeaderMap, api: Api) -> Answer {
    let mut condition = filter(&query, &headers, api)?.condition;
    if let Some(fields) = query.get("fields").filter(|it| !it.is_empty()) {
        condition = condition.and(condition_of_fields(fields, api)?);
    }
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

/// `{"metadataSchema":…,"uiSchema":…}`, as the site's settings have it.
async fn config(app: State<Scicat>, _: Asker) -> Answer {
    Ok(answer::stored_json(StatusCode::OK, app.settings.published_data_config.clone().into()))
}

/// `GET /publisheddata/formpopulate?pid=`: what the form for a publication of this dataset begins with.
async fn form_populate(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    require_user(&asker, Api::V3)?;
    let pid = query.get("pid").unwrap_or_default().to_owned();
    let dataset = object(&crate::datasets::read::readable(&app, &asker, &pid).await?)?;
    let proposal_id = resource::text(&dataset, "proposalId").to_owned();
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
    Ok(answer::json(StatusCode::OK, &form))
}

/// Order of the checks: anonymous, table 400, duplicate 409.
async fn create(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body, api: Api) -> Answer {
    require_user(&asker, api)?;
    let body = app.object(&headers, body).await?;
    resource::require_sound(&table(api).check(&body, Form::Create))?;
    let doi = match resource::text(&body, "doi") {
        "" => format!("{}/{}", app.settings.doi_prefix.trim_end_matches('/'), app.new_uuid()),
        given => given.to_owned(),
    };
    let mut publication = Map::new();
    publication.insert("doi".to_owned(), doi.clone().into());
    publication.insert("_id".to_owned(), doi.clone().into());
    let mut given = if api == Api::V3 { forms::v4_of(body) } else { body };
    // Steps are taken on routes of their own.
    given.retain(|name, _| name != "status" && name != "registeredTime");
    resource::complete(&mut publication, given, &dto::V4);
    publication.insert("status".to_owned(), status::PRIVATE.into());
    resource::sign(&mut publication, &asker.username(), &app.now());
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

/// `PATCH`, and `POST /{id}/resync`, which corrects a publication that is registered already, at DataCite too. Order of the checks:
/// anonymous, missing 404, table 400, caller 403, and in v4 400 for a `PATCH` of what is registered.
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
    // Clients send back what they have read: what only the server sets cannot be changed.
    const SET_BY_SERVER: [&str; 9] =
        ["doi", "_id", "id", "__v", "status", "registeredTime", "createdBy", "updatedBy", "createdAt"];
    body.retain(|name, _| name != "updatedAt" && !SET_BY_SERVER.contains(&name.as_str()));
    let is_resync = method == http::Method::POST;
    let faults = table(api).check(&body, Form::Update);
    let changes = if api == Api::V3 { forms::v4_of(body) } else { body };
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let tracking = asker.tracking(&PUBLISHED_DATA);
    let stored = asker
        .db
        .write(move |txn| {
            let record = txn.get(&PUBLISHED_DATA, &id)?.ok_or_else(|| absent(&id))?;
            resource::require_sound(&faults)?;
            let mut publication = object(&record)?;
            require_editor(&rights, &publication)?;
            let is_registered = resource::text(&publication, "status") == status::REGISTERED;
            if is_registered && api == Api::V4 && !is_resync {
                let message = "Registered published data cannot be changed; amend it first";
                return Err(ScicatError::bad_request(message));
            }
            forms::apply(&mut publication, &changes, api);
            stamp(&mut publication, &username, &now);
            resource::update(txn, &PUBLISHED_DATA, &record, publication, tracking)
        })
        .await?;
    if is_resync {
        let publication = parsed(&stored)?;
        if resource::text(&publication, "status") == status::REGISTERED {
            datacite::register(&app.settings, &publication).await?;
        }
    }
    shown(&stored, api)
}

fn parsed(stored: &bytes::Bytes) -> Result<Map<String, Value>, ScicatError> {
    let parsed = serde_json::from_slice(stored);
    parsed.map_err(|error| pinakes_store::StoreError::Damaged(error.to_string()).into())
}

fn shown(stored: &bytes::Bytes, api: Api) -> Answer {
    if api == Api::V4 {
        return Ok(answer::stored_json(StatusCode::OK, stored.clone()));
    }
    let mut publication = parsed(stored)?;
    forms::show_as_v3(&mut publication);
    Ok(answer::json(StatusCode::OK, &publication))
}

/// The groups that delete may always; whoever made a publication while it is private.
async fn delete(app: State<Scicat>, asker: Asker, Path(id): Path<String>, api: Api) -> Answer {
    require_user(&asker, api)?;
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let tracking = asker.tracking(&PUBLISHED_DATA);
    let record = asker
        .db
        .write(move |txn| {
            let record = txn.get(&PUBLISHED_DATA, &id)?.ok_or_else(|| absent(&id))?;
            let publication = object(&record)?;
            let is_private = resource::text(&publication, "status") == status::PRIVATE;
            let may_withdraw = is_private && require_editor(&rights, &publication).is_ok();
            if !rights.may_delete && !may_withdraw {
                return Err(ScicatError::forbidden_resource());
            }
            tracking.note_deletion(txn, &id, record.version, &publication, &username, &now)?;
            txn.delete(&PUBLISHED_DATA, &id)?;
            Ok(record)
        })
        .await?;
    shown(&record.body, api)
}
