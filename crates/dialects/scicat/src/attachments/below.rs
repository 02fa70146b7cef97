//! The v3 view of attachments below datasets, samples and proposals.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, put};
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Kind, Query, Record};
use serde_json::{Map, Value, json};

use super::stored;
use crate::app::{Asker, Path, Scicat};
use crate::attachments::stored::{keep_identity, taken, v3_view};
use crate::attachments::targets::{attached_to, detach};
use crate::datasets::read;
use crate::documents::object;
use crate::dto::attachment as dto;
use crate::error::{Answer, ScicatError};
use crate::kinds::ATTACHMENT;
use crate::kinds::DATASET;
use crate::kinds::PROPOSAL;
use crate::kinds::SAMPLE;
use crate::listing;
use crate::proposals;
use crate::resource;
use crate::rights::Rights;
use crate::samples;
use crate::validate::Form;

/// What attachments can belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Dataset,
    Sample,
    Proposal,
}

impl Target {
    /// Returns the name that relationships use.
    fn name(self) -> &'static str {
        match self {
            Self::Dataset => "dataset",
            Self::Sample => "sample",
            Self::Proposal => "proposal",
        }
    }

    fn kind(self) -> &'static Kind {
        match self {
            Self::Dataset => &DATASET,
            Self::Sample => &SAMPLE,
            Self::Proposal => &PROPOSAL,
        }
    }

    /// Returns the parent record if the caller may read it.
    async fn readable(self, app: &Scicat, asker: &Asker, id: &str) -> Result<Record, ScicatError> {
        match self {
            Self::Dataset => read::readable(app, asker, id).await,
            Self::Sample => samples::readable(app, asker, id).await,
            Self::Proposal => proposals::readable(app, asker, id).await,
        }
    }

    /// Returns the caller's rights to parents of this type.
    fn rights(self, app: &Scicat, asker: &Asker) -> Rights {
        match self {
            Self::Dataset => asker.rights.clone(),
            Self::Sample => samples::rights(app, asker),
            Self::Proposal => proposals::rights(app, asker),
        }
    }
}

pub(super) fn routes() -> Router<Scicat> {
    Router::new()
        .merge(routes_of("/api/v3/datasets/{pid}/attachments", Target::Dataset))
        .merge(routes_of("/api/v3/samples/{id}/attachments", Target::Sample))
        .merge(routes_of("/api/v3/proposals/{pid}/attachments", Target::Proposal))
}

fn routes_of(base: &str, target: Target) -> Router<Scicat> {
    Router::new()
        .route(
            base,
            get(move |a, b, Path(id): Path<String>| list(a, b, id, target))
                .post(move |a, b, Path(id): Path<String>, d, e| create(a, b, id, d, e, target))
                .delete(move |a, b, Path(id): Path<String>| delete_all(a, b, id, target)),
        )
        .route(&format!("{base}/count"), get(move |a, b, Path(id): Path<String>| count(a, b, id, target)))
        .route(
            &format!("{base}/{{aid}}"),
            put(move |a, b, Path(ids): Path<(String, String)>, d, e| {
                change(a, b, ids, d, e, target, Form::Replace)
            })
            .patch(move |a, b, Path(ids): Path<(String, String)>, d, e| {
                change(a, b, ids, d, e, target, Form::Update)
            })
            .get(move |a, b, Path(ids): Path<(String, String)>| by_id(a, b, ids, target))
            .delete(move |a, b, Path(ids): Path<(String, String)>| delete(a, b, ids, target)),
        )
}

fn row(record: &Record, target: Target, id: &str) -> Result<Map<String, Value>, ScicatError> {
    let mut row = object(record)?;
    v3_view(&mut row, target.name(), id);
    Ok(row)
}

/// What a request does to the attachments of a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Create,
    Change,
    Delete,
}

/// Refuses callers who may not do that to attachments of a parent. Its owners may if their role lets them write such
/// records; callers who may create such records for any group may add attachments to any of them, and change only
/// those of their own. Members of the groups that may delete may delete.
async fn require_writer(
    app: &Scicat,
    asker: &Asker,
    id: &str,
    target: Target,
    act: Act,
) -> Result<(), ScicatError> {
    if act == Act::Delete && asker.rights.may_delete {
        return Ok(());
    }
    let (rights, settings) = (target.rights(app, asker), &app.settings);
    if asker.caller().is_anonymous() {
        return Err(match target {
            Target::Sample => ScicatError::unauthenticated(),
            Target::Dataset | Target::Proposal => ScicatError::forbidden_resource(),
        });
    }
    let Some((_, class)) = listing::with_class(asker, target.kind(), id).await? else {
        return target.readable(app, asker, id).await.map(|_| ());
    };
    let group = class.get("ownerGroup").and_then(Value::as_str).unwrap_or_default();
    let owns_attachments = rights.owns(&class) && rights.caller().is_in_any(&settings.attachment_groups);
    let may_write = match (target, act) {
        (Target::Dataset, Act::Create) => rights.may_add_to(&class) || owns_attachments,
        (Target::Dataset, _) => rights.may_update(&class) || owns_attachments,
        (Target::Sample, Act::Create) => rights.may_create_sample(settings, group),
        (Target::Sample, _) => rights.may_update_sample(settings, group),
        (Target::Proposal, _) => rights.is_admin || owns_attachments,
    };
    if may_write {
        return Ok(());
    }
    Err(ScicatError::forbidden(match target {
        Target::Dataset => "Unauthorized to update this dataset",
        Target::Sample => "Unauthorized to this sample",
        Target::Proposal => "Unauthorized to this proposal",
    }))
}

async fn list(app: State<Scicat>, asker: Asker, id: String, target: Target) -> Answer {
    target.readable(&app, &asker, &id).await?;
    let records = listing::find(&asker, &ATTACHMENT, Query::filter(attached_to(&id))).await?;
    let rows: Result<Vec<_>, _> = records.iter().map(|it| row(it, target, &id)).collect();
    Ok(answer::json(StatusCode::OK, &rows?))
}

async fn count(app: State<Scicat>, asker: Asker, id: String, target: Target) -> Answer {
    target.readable(&app, &asker, &id).await?;
    listing::Listing::stored(&ATTACHMENT).count(&asker, attached_to(&id)).await
}

async fn by_id(app: State<Scicat>, asker: Asker, (id, aid): (String, String), target: Target) -> Answer {
    target.readable(&app, &asker, &id).await?;
    match listing::get(&asker, &ATTACHMENT, &aid).await? {
        Some(record) if belongs(&record, &id)? => {
            Ok(answer::json(StatusCode::OK, &row(&record, target, &id)?))
        }
        _ => Err(ScicatError::not_found(format!("Attachment: {aid} not found"))),
    }
}

fn belongs(record: &Record, id: &str) -> Result<bool, ScicatError> {
    let attachment = object(record)?;
    let relationships = attachment.get("relationships").and_then(Value::as_array);
    let mut targets = relationships.into_iter().flatten().filter_map(|it| it.get("targetId")?.as_str());
    Ok(targets.any(|it| it == id))
}

/// Order of the checks: role 403, missing 404, object 403, table 400.
async fn create(
    app: State<Scicat>,
    asker: Asker,
    id: String,
    headers: HeaderMap,
    body: Body,
    target: Target,
) -> Answer {
    require_writer(&app, &asker, &id, target, Act::Create).await?;
    let mut body = app.object(&headers, body).await?;
    let parent = listing::get(&asker, target.kind(), &id).await?.ok_or_else(ScicatError::bare_not_found)?;
    if target == Target::Sample
        && body.get("ownerGroup").is_none_or(Value::is_null)
        && let Some(group) = object(&parent)?.get("ownerGroup")
    {
        body.insert("ownerGroup".to_owned(), group.clone());
    }
    resource::require_sound(&dto::V3.check(&body, Form::Create))?;
    without_parents(&mut body);
    if let Some(given @ Value::String(_)) = body.shift_remove("id") {
        body.entry("aid").or_insert(given);
    }
    if !body.get("isPublished").is_some_and(Value::is_boolean) {
        let is_published = object(&parent)?.get("isPublished") == Some(&Value::Bool(true));
        body.insert("isPublished".to_owned(), is_published.into());
    }
    body.insert(
        "relationships".to_owned(),
        json!([{"targetId": id, "targetType": target.name(), "relationType": "is attached to"}]),
    );
    let (aid, attachment) = stored(&app, &asker, body);
    let mut shown = attachment.clone();
    resource::insert(&asker, &ATTACHMENT, &aid, attachment, taken(&aid)).await?;
    v3_view(&mut shown, target.name(), &id);
    Ok(answer::json(StatusCode::CREATED, &shown))
}

/// Removes the ids of parents, which may be sent along: the path decides.
fn without_parents(body: &mut Map<String, Value>) {
    for name in ["datasetId", "sampleId", "proposalId"] {
        body.shift_remove(name);
    }
}

async fn change(
    app: State<Scicat>,
    asker: Asker,
    (id, aid): (String, String),
    headers: HeaderMap,
    body: Body,
    target: Target,
    form: Form,
) -> Answer {
    require_writer(&app, &asker, &id, target, Act::Change).await?;
    let mut changes = app.object(&headers, body).await?;
    // Clients send back what they have read; the ids cannot be changed.
    changes.retain(|name, _| !["aid", "id", "_id"].contains(&name.as_str()));
    resource::require_sound(&dto::V3.check(&changes, form))?;
    without_parents(&mut changes);
    let parent = id.clone();
    let stored = resource::change(&asker, &ATTACHMENT, aid, app.now(), move |_, record, attachment| {
        if !belongs(record, &parent)? {
            return Err(ScicatError::bare_not_found());
        }
        let mut changes = changes.clone();
        if form == Form::Replace {
            let kept: Vec<(String, Value)> = ["relationships", "isPublished"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), attachment.get(name)?.clone())))
                .collect();
            keep_identity(attachment);
            attachment.extend(kept);
            changes.retain(|_, value| !value.is_null());
            dto::V3.fill_defaults(&mut changes);
        }
        resource::apply(attachment, &changes);
        Ok(())
    });
    let stored = stored.await?;
    let mut shown: Map<String, Value> = serde_json::from_slice(&stored)
        .map_err(|error| pinakes_store::StoreError::Damaged(error.to_string()))?;
    v3_view(&mut shown, target.name(), &id);
    Ok(answer::json(StatusCode::OK, &shown))
}

/// Detaches an attachment from this parent and deletes it if it belongs to nothing else. Answers with the attachment
/// as it was.
async fn delete(app: State<Scicat>, asker: Asker, (id, aid): (String, String), target: Target) -> Answer {
    require_writer(&app, &asker, &id, target, Act::Delete).await?;
    let record = asker
        .db
        .write(move |txn| {
            let record = txn.get(&ATTACHMENT, &aid)?.ok_or_else(ScicatError::bare_not_found)?;
            if !belongs(&record, &id)? {
                return Err(ScicatError::bare_not_found());
            }
            detach(txn, &record, &id)?;
            Ok(record)
        })
        .await?;
    Ok(answer::stored_json(StatusCode::OK, record.body))
}

/// `DELETE /datasets/{pid}/attachments`: `{"count":n}`.
async fn delete_all(app: State<Scicat>, asker: Asker, id: String, target: Target) -> Answer {
    require_writer(&app, &asker, &id, target, Act::Delete).await?;
    let count = asker
        .db
        .write(move |txn| {
            let attached = txn.find(&ATTACHMENT, &Query::filter(attached_to(&id)))?;
            for attachment in &attached {
                detach(txn, attachment, &id)?;
            }
            Ok::<_, ScicatError>(attached.len())
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"count": count})))
}
