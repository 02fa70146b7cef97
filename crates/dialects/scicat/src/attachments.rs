//! Attachments: pictures and notes that belong to datasets, samples and proposals (section 7 of the contract).
//!
//! An attachment is stored once, in the form of v4, with its relationships. v3 shows it below each thing that it
//! belongs to, with that thing's id instead of the relationships (`below.rs`).

mod below;
pub(crate) mod stored;
pub(crate) mod targets;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Expr, Value as Condition};
use serde_json::{Value, json};

use crate::app::{Asker, Path, QueryText, Scicat};
use crate::attachments::stored::{SET_BY_SERVER, keep_identity, stored, taken};
use crate::dto::attachment as dto;
use crate::error::{Answer, ScicatError};
use crate::filter::Filter;
use crate::import::complete;
use crate::import::imported::{Imported, Marks};
use crate::kinds::ATTACHMENT;
use crate::listing::{self, Listing};
use crate::precondition::Precondition;
use crate::resource::{self, Resource};
use crate::validate::Form;
use crate::{faults, strict};

static LISTING: Listing = Listing::stored(&ATTACHMENT);

/// The routes and kinds of attachments.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&ATTACHMENT],
    imported: &[Imported {
        name: "attachment",
        plural: "attachments",
        kind: &ATTACHMENT,
        table: || &dto::V4,
        complete: complete::attachment,
        marks: &[
            Marks { with: &["caption"], ..Marks::rank(7) },
            Marks { with: &["thumbnail"], one_of: &["relationships", "datasetId", "aid"], ..Marks::rank(8) },
        ],
    }],
    ..Resource::of_routes(routes)
};

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v4/attachments", get(list).post(create))
        .route("/api/v4/attachments/isvalid", post(is_valid))
        .route("/api/v4/attachments/count", get(count))
        .route("/api/v4/attachments/public", get(list_public))
        .route("/api/v4/attachments/public/{aid}", get(by_id_public))
        .route("/api/v4/attachments/{aid}", get(by_id).patch(patch).put(put).delete(delete))
        .merge(below::routes())
}

fn filter(query: &QueryText) -> Result<Filter, ScicatError> {
    let fields = dto::V4.fields.iter().map(|it| it.name).chain(SET_BY_SERVER);
    strict::parse(query, &ATTACHMENT, &fields.collect::<Vec<_>>())
}

fn published() -> Expr {
    Expr::Is("isPublished".into(), Condition::Boolean(true))
}

async fn list(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let rights = asker.rights.of_keeper(&app.settings.attachment_privileged_groups);
    LISTING.list(&asker, &filter(&query)?, rights.visible()).await
}

async fn list_public(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    LISTING.list(&asker, &filter(&query)?, published()).await
}

async fn count(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let rights = asker.rights.of_keeper(&app.settings.attachment_privileged_groups);
    LISTING.count(&asker, rights.visible().and(filter(&query)?.condition)).await
}

async fn by_id(app: State<Scicat>, asker: Asker, Path(aid): Path<String>, headers: HeaderMap) -> Answer {
    let Some((record, class)) = listing::with_class(&asker, &ATTACHMENT, &aid).await? else {
        return Err(ScicatError::not_found(format!("Attachment: {aid} not found")));
    };
    let rights = asker.rights.of_keeper(&app.settings.attachment_privileged_groups);
    if !rights.may_read(&class) {
        return Err(ScicatError::forbidden("Unauthorized access"));
    }
    LISTING.one(record, &headers)
}

/// Answers as `by_id` does, without login: an empty answer for an attachment that is missing or private.
async fn by_id_public(_: State<Scicat>, asker: Asker, Path(aid): Path<String>, headers: HeaderMap) -> Answer {
    match listing::with_class(&asker, &ATTACHMENT, &aid).await? {
        Some((record, class)) if class.get("isPublished") == Some(&Value::Bool(true)) => {
            LISTING.one(record, &headers)
        }
        _ => Ok(answer::empty(StatusCode::OK)),
    }
}

/// Order of the checks: role 403, table 400, object 403, duplicate 409.
async fn create(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    if !asker.rights.has_attachment_role(&app.settings) {
        return Err(ScicatError::forbidden_resource());
    }
    let body = app.object(&headers, body).await?;
    resource::require_sound(&dto::V4.check(&body, Form::Create))?;
    if !asker.rights.may_create_attachment(&app.settings, crate::documents::text(&body, "ownerGroup")) {
        return Err(ScicatError::forbidden("Unauthorized to create this attachment"));
    }
    let (aid, attachment) = stored(&app, &asker, body);
    let stored = resource::insert(&asker, &ATTACHMENT, &aid, attachment, taken(&aid)).await?;
    Ok(answer::stored_json(StatusCode::CREATED, stored))
}

async fn is_valid(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    if !asker.rights.has_attachment_role(&app.settings) {
        return Err(ScicatError::forbidden_resource());
    }
    let body = app.object(&headers, body).await?;
    let faults = dto::V4.check(&body, Form::Create);
    if faults.is_empty() {
        return Ok(answer::json(StatusCode::OK, &json!({"valid": true})));
    }
    let reason = faults::raw(&faults, &Value::Object(body));
    Ok(answer::json(StatusCode::OK, &json!({"valid": false, "reason": reason})))
}

async fn patch(
    app: State<Scicat>,
    asker: Asker,
    aid: Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    change(app.0, asker, aid.0, headers, body, Form::Update).await
}

async fn put(app: State<Scicat>, asker: Asker, aid: Path<String>, headers: HeaderMap, body: Body) -> Answer {
    change(app.0, asker, aid.0, headers, body, Form::Replace).await
}

/// Order of the checks: role 403, missing 404, table 400, object 403, precondition 412.
async fn change(
    app: Scicat,
    asker: Asker,
    aid: String,
    headers: HeaderMap,
    body: Body,
    form: Form,
) -> Answer {
    if !asker.rights.has_attachment_role(&app.settings) {
        return Err(ScicatError::forbidden_resource());
    }
    let changes = app.object(&headers, body).await?;
    let faults = dto::V4.check(&changes, form);
    let precondition = Precondition::of(&headers);
    let (rights, settings) = (asker.rights.clone(), app.settings.clone());
    let stored =
        resource::change(&asker, &ATTACHMENT, aid.clone(), app.now(), move |txn, record, attachment| {
            resource::require_sound(&faults)?;
            if !rights.may_update_attachment(&settings, &*txn.class(&ATTACHMENT, record.class)?) {
                return Err(ScicatError::forbidden("Unauthorized to update this attachment"));
            }
            precondition.check("Attachment", "on server", &aid, attachment)?;
            let class = txn.class(&ATTACHMENT, record.class)?;
            let may_give = |group: &Value| {
                group.as_str().is_some_and(|it| rights.may_give_attachment(&settings, &class, it))
            };
            if !changes.get("ownerGroup").is_none_or(may_give) {
                return Err(ScicatError::forbidden("Unauthorized to update this attachment"));
            }
            let mut changes = changes.clone();
            if form == Form::Replace {
                keep_identity(attachment);
                changes.retain(|_, value| !value.is_null());
            }
            let relationships = changes.contains_key("relationships");
            resource::apply(attachment, &changes);
            if form == Form::Replace || relationships {
                dto::V4.fill_defaults(attachment);
            }
            Ok(())
        });
    Ok(answer::stored_json(StatusCode::OK, stored.await?))
}

async fn delete(app: State<Scicat>, asker: Asker, Path(aid): Path<String>) -> Answer {
    if !asker.rights.may_delete && !asker.rights.has_attachment_role(&app.settings) {
        return Err(ScicatError::forbidden_resource());
    }
    let (rights, settings) = (asker.rights.clone(), app.settings.clone());
    resource::delete(&asker, &ATTACHMENT, aid, app.now(), move |txn, record| {
        let class = txn.class(&ATTACHMENT, record.class)?;
        if rights.may_delete || rights.may_update_attachment(&settings, &class) {
            Ok(())
        } else {
            Err(ScicatError::forbidden("Unauthorized to delete this attachment"))
        }
    })
    .await
}
