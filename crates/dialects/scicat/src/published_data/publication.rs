//! The steps of a publication: private, public, registered, amended. Each answers with the publication.
//!
//! Making a publication public makes its datasets public too, so the caller must be allowed to change them.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::{datacite, defaults, schema, status};
use crate::app::{Asker, Path, Scicat};
use crate::datasets::change;
use crate::datasets::forms::Api;
use crate::documents::{object, stamp};
use crate::error::{Answer, ScicatError};
use crate::kinds::DATASET;
use crate::kinds::PUBLISHED_DATA;
use crate::listing;
use crate::published_data::access::{absent, metadata_schema, require_editor, require_user};
use crate::published_data::forms::shown;
use crate::resource;
use crate::rights::Rights;
use crate::tracking::Tracking;

/// `POST /api/v4/publisheddata/{id}/publish`: private to public. The metadata must satisfy the site's schema; otherwise
/// the answer is 400 with the list of faults.
pub(super) async fn publish(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    asker.require_user()?;
    let (wanted, now_ms) = (metadata_schema(&app.settings), app.context.clock().now_ms());
    let step = move |publication: &mut Map<String, Value>| {
        require_status(publication, &[status::PRIVATE], "published")?;
        let metadata = publication.entry("metadata").or_insert_with(|| json!({}));
        defaults::fill(&wanted, metadata, now_ms);
        let faults = schema::check(&wanted, metadata);
        if faults.is_empty() {
            return Ok(());
        }
        Err(ScicatError::Said { status: StatusCode::BAD_REQUEST, body: Value::Array(faults) })
    };
    take(&app, &asker, id, status::PUBLIC, Api::V4, step).await
}

/// `POST …/{id}/register`: to registered, with the time of registration. DataCite is called first, outside of any
/// transaction: if the change fails afterwards, registering again does no harm.
pub(super) async fn register(app: State<Scicat>, asker: Asker, Path(id): Path<String>, api: Api) -> Response {
    let registered = register_at_datacite(&app, &asker, id, api).await;
    registered.unwrap_or_else(|error| error.into_response())
}

async fn register_at_datacite(app: &Scicat, asker: &Asker, id: String, api: Api) -> Answer {
    require_user(asker, api)?;
    let step = move |publication: &mut Map<String, Value>| match api {
        Api::V3 => Ok(()),
        Api::V4 => require_status(publication, &[status::PUBLIC, status::AMENDED], "registered"),
    };
    if datacite::is_configured(&app.settings) {
        let record = listing::get(asker, &PUBLISHED_DATA, &id).await?.ok_or_else(|| absent(&id))?;
        let mut publication = object(&record)?;
        require_editor(&asker.rights, &publication, api)?;
        step(&mut publication)?;
        let (rights, of) = (asker.rights.clone(), publication.clone());
        asker.db.read(Weight::Scan, move |view| require_own_datasets(view, &rights, &of)).await?;
        datacite::register(&app.settings, &publication).await?;
    }
    take(app, asker, id, status::REGISTERED, api, step).await
}

/// `POST /api/v4/publisheddata/{id}/amend`: registered to amended, so that it can be changed and registered again.
pub(super) async fn amend(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    asker.require_user()?;
    let step =
        |publication: &mut Map<String, Value>| require_status(publication, &[status::REGISTERED], "amended");
    take(&app, &asker, id, status::AMENDED, Api::V4, step).await
}

fn require_status(publication: &Map<String, Value>, from: &[&str], to: &str) -> Result<(), ScicatError> {
    let found = crate::documents::text(publication, "status");
    if from.contains(&found) {
        return Ok(());
    }
    let from = from.join(" or ");
    Err(ScicatError::bad_request(format!("Only {from} published data can be {to}; this is {found}")))
}

/// Changes the status if `allow` permits it; datasets of a publication that becomes visible are published too.
async fn take(
    app: &Scicat,
    asker: &Asker,
    id: String,
    to: &'static str,
    api: Api,
    allow: impl Fn(&mut Map<String, Value>) -> Result<(), ScicatError> + Send + 'static,
) -> Answer {
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let (tracking, of_datasets) = (asker.tracking(&PUBLISHED_DATA), asker.tracking(&DATASET));
    let stored = asker
        .db
        .write(move |txn| {
            let record = txn.get(&PUBLISHED_DATA, &id)?.ok_or_else(|| absent(&id))?;
            let mut publication = object(&record)?;
            require_editor(&rights, &publication, api)?;
            allow(&mut publication)?;
            publication.insert("status".to_owned(), to.into());
            if to == status::REGISTERED {
                publication.insert("registeredTime".to_owned(), now.as_str().into());
            }
            stamp(&mut publication, &username, &now);
            if to != status::AMENDED {
                for pid in pids(&publication) {
                    publish_dataset(txn, &pid, &rights, &username, &now, of_datasets)?;
                }
            }
            resource::update(txn, &PUBLISHED_DATA, &record, publication, tracking)
        })
        .await?;
    match api {
        Api::V4 => Ok(answer::stored_json(StatusCode::CREATED, stored)),
        Api::V3 => shown(&stored, api),
    }
}

/// Refuses to register, with the site's credentials, a publication without datasets or with datasets that the caller
/// may not change.
///
/// Errors: 403 in shape E1.
pub(super) fn require_own_datasets(
    view: &mut View<'_>,
    rights: &Rights,
    publication: &Map<String, Value>,
) -> Result<(), ScicatError> {
    if rights.is_admin {
        return Ok(());
    }
    let pids = pids(publication);
    let mut are_own = !pids.is_empty();
    for record in view.get_many(&DATASET, &pids)? {
        are_own &= match record {
            Some(record) => rights.may_update(&*view.class(&DATASET, record.class)?),
            None => false,
        };
    }
    if are_own {
        return Ok(());
    }
    Err(ScicatError::forbidden("Only who may change all of its datasets registers published data"))
}

fn pids(publication: &Map<String, Value>) -> Vec<String> {
    let list = publication.get("datasetPids").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Makes a dataset and its blocks public; its lifecycle records when.
fn publish_dataset(
    txn: &mut Txn<'_>,
    pid: &str,
    rights: &Rights,
    username: &str,
    now: &str,
    tracking: Tracking,
) -> Result<(), ScicatError> {
    let message = || format!("Dataset {pid} is not there to be published");
    let record = txn.get(&DATASET, pid)?.ok_or_else(|| ScicatError::not_found(message()))?;
    let mut dataset = object(&record)?;
    if dataset.get("isPublished") == Some(&Value::Bool(true)) {
        return Ok(());
    }
    change::require_owner(txn, rights, &record)?;
    dataset.insert("isPublished".to_owned(), true.into());
    if let Some(Value::Object(lifecycle)) = dataset.get_mut("datasetlifecycle") {
        lifecycle.insert("publishedOn".to_owned(), now.into());
    }
    stamp(&mut dataset, username, now);
    change::save(txn, pid, &record, dataset, tracking)?;
    Ok(())
}
