//! Creating datasets: `POST /api/dataverses/{id}/datasets` (section 3 of the contract).

use std::sync::Arc;

use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::assignments::{self, Actor, Point};
use crate::blocks::fields::Reading;
use crate::blocks::{Fields, Registry};
use crate::collections::{self, Collection, visibility};
use crate::datasets::{self, Dataset, Draft, Version, canonical_pid, schema, terms};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::ids::Ids;
use crate::notifications::{self, Notice};
use crate::routing::Routes;
use crate::{changes, dataset_types, envelope, files, permissions, roles, site_settings};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/dataverses/{id}/datasets", create)
        .post("/dataverses/{id}/datasets/:import", import)
        .post("/dataverses/{id}/validateDatasetJson", validate_json)
        .get("/dataverses/{id}/datasetSchema", show_schema)
}

/// Alphabet and length of new identifiers.
const PID_ALPHABET: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const PID_CHARACTERS: usize = 6;

/// A dataset to be created.
#[derive(Debug, Clone)]
pub(crate) struct New {
    /// Metadata, parsed and well formed.
    pub fields: Fields,
    /// The body's `datasetVersion`.
    pub body: Map<String, Value>,
    /// The type that the body names.
    pub dataset_type: Option<String>,
    /// The language of its metadata.
    pub metadata_language: Option<String>,
    /// The persistent identifier to keep; `None` to generate one.
    pub pid: Option<String>,
    /// Whether missing metadata is accepted.
    pub is_incomplete_allowed: bool,
    /// Whether the caller has already checked required metadata by the rules of an interface of its own.
    pub is_checked: bool,
}

impl New {
    /// Parses a body.
    ///
    /// Errors: 400 according to section 3.
    pub(crate) fn read(registry: &Registry, body: &Map<String, Value>) -> Result<Self, ApiError> {
        let Some(version) = body.get("datasetVersion").and_then(Value::as_object) else {
            return Err(ApiError::bad_request("Please provide initial version in the dataset json"));
        };
        let absent = Value::Null;
        let blocks = version.get("metadataBlocks").unwrap_or(&absent);
        let fields = Fields::read(registry, blocks, Reading::Declared)
            .map_err(|text| ApiError::bad_request(format!("Error parsing Json: {text}")))?;
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut new = Self::of(fields, version.clone());
        (new.dataset_type, new.metadata_language) = (text("datasetType"), text("metadataLanguage"));
        Ok(new)
    }

    /// Creates it from fields, and from the other parts of a version's JSON: terms, note, files.
    pub(crate) fn of(fields: Fields, body: Map<String, Value>) -> Self {
        Self {
            fields,
            body,
            dataset_type: None,
            metadata_language: None,
            pid: None,
            is_incomplete_allowed: false,
            is_checked: false,
        }
    }
}

/// Generates an identifier: `FK2/AB12CD`.
fn new_identifier(app: &Dataverse) -> String {
    let random: [u8; PID_CHARACTERS] = app.context.entropy().bytes();
    let letters = random.map(|it| char::from(PID_ALPHABET[usize::from(it) % PID_ALPHABET.len()]));
    format!("{}{}", app.settings.pid_shoulder, letters.iter().collect::<String>())
}

/// Stores a new dataset with its first draft, and assigns its creator's role.
pub(crate) fn insert(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    registry: &Registry,
    asker: &Asker,
    collection: &Collection,
    new: &New,
    mut ids: Ids,
) -> Result<Dataset, ApiError> {
    permissions::require(txn, asker, collection.place(), Permission::AddDataset)?;
    let user = asker.user()?;
    let dataset_type = dataset_types::for_new(txn, collection, new.dataset_type.as_deref())?;
    let now = app.now();
    let id = ids.next()?;
    let draft = Draft { version: ids.next()?, ordinal: 1, internal: 1, last_update_time: now.clone() };
    let mut first = Version {
        id: draft.version,
        dataset: id,
        ordinal: 1,
        internal: 1,
        create_time: now.clone(),
        last_update_time: now.clone(),
        file_access_request: true,
        version_note: new.body.get("versionNote").and_then(Value::as_str).map(str::to_owned),
        ..Version::default()
    };
    first.note_contributor(asker);
    terms::read(txn, &mut first, &new.body)?;
    let may_be_incomplete = new.is_incomplete_allowed && app.settings.incomplete_metadata;
    if !may_be_incomplete && !new.is_checked {
        schema::check_fields(txn, registry, collection, &new.fields)?;
    }
    if let Value::Object(blocks) = new.fields.to_json(registry) {
        first.metadata_blocks = blocks;
    }
    let (protocol, authority, identifier) = match &new.pid {
        Some(pid) => parts_of_pid(pid)?,
        None => (
            app.settings.pid_protocol.clone(),
            app.settings.pid_authority.clone(),
            free_identifier(txn, app)?,
        ),
    };
    let pid = format!("{protocol}:{authority}/{identifier}");
    if new.pid.is_some() && datasets::by_pid(txn, &pid)?.is_some() {
        return Err(ApiError::forbidden(format!("A dataset with the identifier {pid} already exists.")));
    }
    let dataset = Dataset {
        id,
        owner: collection.id,
        doi: (protocol == "doi").then(|| format!("{authority}/{identifier}")),
        storage_identifier: format!("{}://{authority}/{identifier}", app.settings.storage_driver),
        pid,
        protocol,
        authority,
        identifier,
        creator: user.id,
        create_time: now.clone(),
        dataset_type: dataset_type.name,
        metadata_language: new.metadata_language.clone(),
        draft: Some(draft),
        last_ordinal: 1,
        ..Dataset::default()
    };
    txn.insert(&datasets::DATASET, &id.to_string(), &json!(dataset))?;
    txn.insert(&datasets::VERSION, &first.id.to_string(), &json!(first))?;
    let silent = Actor { who: asker.identifier(), now: now.clone(), keeps_history: false };
    let role = collection.default_contributor_role.unwrap_or(roles::CONTRIBUTOR);
    if let Some(role) = roles::by_id(txn, role)? {
        assignments::assign(txn, &silent, &point(&dataset, ""), &asker.identifier(), &role, ids.next()?)?;
    }
    if site_settings::is_true(txn, ":SendNotificationOnDatasetCreation", false)? {
        let notice = Notice::of("DATASETCREATED").with("datasetPersistentIdentifier", dataset.pid.as_str());
        notifications::send(txn, ids.next()?, &now, user.id, notice)?;
    }
    changes::dataset(txn, app, id)?;
    Ok(dataset)
}

/// Returns a dataset as the object of role assignments.
pub(crate) fn point(dataset: &Dataset, title: &str) -> Point {
    Point {
        id: dataset.id,
        name: title.to_owned(),
        ty: "Dataset",
        pid: Some(dataset.pid.clone()),
        dataset: None,
    }
}

/// Generates an identifier that is not in use.
fn free_identifier(txn: &mut Txn<'_>, app: &Dataverse) -> Result<String, ApiError> {
    loop {
        let identifier = new_identifier(app);
        let pid = format!("{}:{}/{identifier}", app.settings.pid_protocol, app.settings.pid_authority);
        if datasets::by_pid(txn, &pid)?.is_none() {
            return Ok(identifier);
        }
    }
}

/// Splits `doi:10.5072/FK2/AB12CD` into protocol, authority and identifier.
pub(crate) fn parts_of_pid(pid: &str) -> Result<(String, String, String), ApiError> {
    let pid = canonical_pid(pid);
    let parts = pid.split_once(':').and_then(|(protocol, rest)| {
        let (authority, identifier) = rest.split_once('/')?;
        Some((protocol.to_owned(), authority.to_owned(), identifier.to_owned()))
    });
    let parts = parts.filter(|it| !it.2.is_empty() && ["doi", "hdl", "perma"].contains(&it.0.as_str()));
    parts.ok_or_else(|| ApiError::bad_request(format!("Persistent identifier {pid} cannot be read.")))
}

async fn create(mut call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let mut body = call.object().await?;
    if datasets::jsonld::is_jsonld(&call) {
        body = datasets::jsonld::new_body(&registry, &body)?;
    }
    let mut new = New::read(&registry, &body)?;
    if new.body.contains_key("files") && !call.asker.is_superuser() {
        return Err(ApiError::bad_request("Only a superuser may add files via this api"));
    }
    new.is_incomplete_allowed = call.query.is_true("doNotValidate");
    let dataset = store(&call, registry, new).await?;
    let location = format!("{}/api/datasets/{}", call.site_url(), dataset.id);
    envelope::created(&location, json!({"id": dataset.id, "persistentId": dataset.pid}))
}

/// Stores a new dataset in the collection of the path.
pub(crate) async fn store(call: &Call, registry: Arc<Registry>, new: New) -> Result<Dataset, ApiError> {
    store_in(call, call.param("id"), registry, new).await
}

/// Stores a new dataset in the collection with that name or number.
pub(crate) async fn store_in(
    call: &Call,
    collection: &str,
    registry: Arc<Registry>,
    new: New,
) -> Result<Dataset, ApiError> {
    let described = files::of_version_json(&call.app, new.body.get("files"))?;
    let n_files = i64::try_from(described.len()).unwrap_or(i64::MAX / 4);
    let (ids, file_ids) = (call.ids(5).await?, call.ids(3 * n_files + 1).await?);
    let (app, asker, id) = (call.app.clone(), call.asker.clone(), collection.to_owned());
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<Dataset, ApiError> {
        let collection = collections::find(txn, &id)?;
        let mut dataset = insert(txn, &app, &registry, &asker, &collection, &new, ids)?;
        if !described.is_empty() {
            let mut file_ids = file_ids;
            files::add_all(txn, &app, &asker, now_ms, &mut dataset, &mut file_ids, described.clone(), false)?;
        }
        Ok(dataset)
    };
    call.db().write(write).await
}

/// `POST …/datasets/:import?pid=&release=`: keeps the persistent identifier; superusers only.
async fn import(mut call: Call) -> Answer {
    let body = call.object().await?;
    import_body(&call, body).await
}

/// Imports a body that was converted from another format.
pub(crate) async fn import_body(call: &Call, body: Map<String, Value>) -> Answer {
    call.asker.superuser("Not a superuser")?;
    let registry = call.app.registry(call.db()).await?;
    let mut new = New::read(&registry, &body)?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let in_body = || Some(format!("{}:{}/{}", text("protocol")?, text("authority")?, text("identifier")?));
    let pid = call.query.filled("pid").map(str::to_owned).or_else(in_body);
    let missing = "Please provide a persistent identifier, either by including it in the JSON, or by using the pid query parameter.";
    new.pid = Some(own_pid(&call.app, &pid.ok_or_else(|| ApiError::bad_request(missing))?)?);
    store_import(call, registry, new).await
}

/// Returns an identifier that this site may assign, in canonical form.
///
/// Errors: 400 for a text that is not an identifier, and for one of another site.
pub(crate) fn own_pid(app: &Dataverse, pid: &str) -> Result<String, ApiError> {
    let pid = canonical_pid(pid);
    let (protocol, authority, identifier) = parts_of_pid(&pid)?;
    let settings = &app.settings;
    let is_ours = protocol == settings.pid_protocol
        && authority == settings.pid_authority
        && identifier.starts_with(&settings.pid_shoulder);
    if !is_ours {
        let message = "Cannot import a dataset that has a PID that doesn't match the server's settings";
        return Err(ApiError::bad_request(message));
    }
    Ok(pid)
}

/// Stores an imported dataset, and releases it if `release=yes`.
pub(crate) async fn store_import(call: &Call, registry: Arc<Registry>, new: New) -> Answer {
    let dataset = store(call, registry, new).await?;
    let release = call.query.get("release").is_some_and(|it| matches!(it, "yes" | "true"));
    let mut data = json!({"id": dataset.id, "persistentId": dataset.pid});
    if release {
        datasets::publish::release(call, dataset.id, datasets::publish::Release::Major).await?;
        data["releaseCompleted"] = true.into();
    }
    let location = format!("{}/api/datasets/{}", call.site_url(), dataset.id);
    envelope::created(&location, data)
}

/// Checks whether a body could become a dataset here; answers 200 in either case.
async fn validate_json(mut call: Call) -> Answer {
    call.asker.user()?;
    let text = call.bytes().await?;
    let registry = call.app.registry(call.db()).await?;
    let id = call.param("id").to_owned();
    let read = move |view: &mut View<'_>| -> Result<Option<String>, ApiError> {
        let collection = collections::find(view, &id)?;
        let body: Map<String, Value> = match serde_json::from_slice(&text) {
            Ok(body) => body,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let rules = crate::collections::structure::rules_of(view, &registry, &collection)?;
        if let Some(fault) = schema::fault(&registry, &rules, &body) {
            return Ok(Some(fault));
        }
        let checked = New::read(&registry, &body)
            .and_then(|new| schema::check_fields(view, &registry, &collection, &new.fields));
        Ok(checked.err().map(|it| it.message))
    };
    match call.db().read(Weight::Point, read).await? {
        None => envelope::message("The Dataset JSON provided is valid for this Dataverse Collection."),
        Some(fault) => envelope::message(format!(
            "The Dataset JSON provided failed validation with the following error: {fault}"
        )),
    }
}

/// Answers with the JSON schema of datasets in the collection; not enveloped.
async fn show_schema(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let read = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let collection = collections::find(view, &id)?;
        visibility::require_visible(view, &asker, &collection)?;
        schema::of(view, &registry, &collection)
    };
    let schema = call.db().read(Weight::Point, read).await?;
    Ok(envelope::raw_json(http::StatusCode::OK, &schema))
}
