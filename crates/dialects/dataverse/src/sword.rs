//! SWORD 2.0 for scripts and the R client: Atom entries with Dublin Core terms, files in zip archives (section 11 of
//! the contract). The user name of Basic authentication is the API token.

pub(crate) mod atom;
mod refusals;

use axum::response::Response;
use base64::Engine as _;
use http::header::{LOCATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Expr, Txn, View, Weight};
use serde_json::{Map, Value};

use crate::app::Call;
use crate::asker::Asker;
use crate::blocks::{Fields, edit};
use crate::citation::Cited;
use crate::collections::{self, Collection};
use crate::datasets::create::{self, New};
use crate::datasets::publish::Release;
use crate::datasets::show::publisher;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset, Version, draft, version};
use crate::error::{Answer, ApiError};
use crate::exports::xml::Xml;
use crate::files::{self, rows};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{changes, clock, credentials, permissions, workflows};

use refusals::{locked, may_not_modify, no_permission, not_authorized, refusal};

const BASE: &str = "/dvn/api/data-deposit/v1.1/swordv2";
const TREATMENT: &str = "no treatment information available";

pub(crate) fn routes(routes: Routes) -> Routes {
    let at = |path: &str| format!("{BASE}{path}");
    routes
        .elsewhere(Method::GET, &at("/service-document"), |call| told(call, Verb::Service))
        .elsewhere(Method::GET, &at("/collection/dataverse/{alias}"), |call| told(call, Verb::List))
        .elsewhere(Method::POST, &at("/collection/dataverse/{alias}"), |call| told(call, Verb::Create))
        .elsewhere(Method::POST, &at("/edit/dataverse/{alias}"), |call| told(call, Verb::PublishCollection))
        .elsewhere(Method::GET, &at("/edit/study/{*pid}"), |call| told(call, Verb::Entry))
        .elsewhere(Method::PUT, &at("/edit/study/{*pid}"), |call| told(call, Verb::Update))
        .elsewhere(Method::POST, &at("/edit/study/{*pid}"), |call| told(call, Verb::Publish))
        .elsewhere(Method::DELETE, &at("/edit/study/{*pid}"), |call| told(call, Verb::Delete))
        .elsewhere(Method::POST, &at("/edit-media/study/{*pid}"), |call| told(call, Verb::AddFiles))
        .elsewhere(Method::PUT, &at("/edit-media/study/{*pid}"), |call| told(call, Verb::ReplaceFiles))
        .elsewhere(Method::DELETE, &at("/edit-media/file/{*id}"), |call| told(call, Verb::DeleteFile))
        .elsewhere(Method::GET, &at("/statement/study/{*pid}"), |call| told(call, Verb::Statement))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Service,
    List,
    Create,
    PublishCollection,
    Entry,
    Update,
    Publish,
    Delete,
    AddFiles,
    ReplaceFiles,
    DeleteFile,
    Statement,
}

/// Answers a request; refusals are SWORD error documents.
async fn told(mut call: Call, verb: Verb) -> Answer {
    match authenticated(&mut call).await {
        Ok(()) => {}
        Err(error) => return Ok(error),
    }
    let answered = match verb {
        Verb::Service => service(call).await,
        Verb::List => list(call).await,
        Verb::Create => create_dataset(call).await,
        Verb::PublishCollection => publish_collection(call).await,
        Verb::Entry => entry(call).await,
        Verb::Update => update(call).await,
        Verb::Publish => publish(call).await,
        Verb::Delete => delete(call).await,
        Verb::AddFiles => add_files(call).await,
        Verb::ReplaceFiles => Err(ApiError::bad_request(
            "Replacing the files of a dataset is no longer supported. Please delete and add files separately instead.",
        )),
        Verb::DeleteFile => delete_file(call).await,
        Verb::Statement => statement(call).await,
    };
    Ok(answered.unwrap_or_else(|error| refusal(&error)))
}

/// Authenticates the caller. Errors: a refusal.
async fn authenticated(call: &mut Call) -> Result<(), Response> {
    let given = call.header("authorization").and_then(|it| it.strip_prefix("Basic ")).map(str::trim);
    let unknown = |status: StatusCode| {
        let response = answer::empty(status);
        answer::with_header(response, WWW_AUTHENTICATE, "Basic realm=\"SWORD2\"")
    };
    let Some(given) = given else { return Err(unknown(StatusCode::UNAUTHORIZED)) };
    let decoded = base64::engine::general_purpose::STANDARD.decode(given).ok();
    let decoded = decoded.and_then(|it| String::from_utf8(it).ok()).unwrap_or_default();
    let token = decoded.split(':').next().unwrap_or_default().to_owned();
    let guest = Asker { peer: call.asker.peer, ..Asker::default() };
    match credentials::with_token(&call.app, call.db(), &token, guest).await {
        Ok(asker) if asker.user.is_some() => {
            call.asker = asker;
            Ok(())
        }
        _ => Err(unknown(StatusCode::FORBIDDEN)),
    }
}

const ATOM: HeaderValue = HeaderValue::from_static("application/atom+xml; charset=utf-8");

/// Returns the base URL: `https://host/dvn/api/data-deposit/v1.1/swordv2`. Clients count the slashes in ids, and expect
/// that no port is added.
fn base(call: &Call) -> String {
    format!("{}{BASE}", call.site_url())
}

fn named_collection(view: &mut View<'_>, alias: &str) -> Result<Collection, ApiError> {
    collections::by_alias(view, alias)?
        .ok_or_else(|| ApiError::bad_request(format!("Could not find dataverse based on alias {alias}")))
}

fn named_dataset(view: &mut View<'_>, pid: &str) -> Result<Dataset, ApiError> {
    datasets::by_pid(view, pid.trim_end_matches('/'))?
        .ok_or_else(|| ApiError::not_found(format!("Could not find dataset based on global id: {pid}")))
}

/// Returns the dataset of the path, after checking that the caller may change it.
fn editable(view: &mut View<'_>, asker: &Asker, pid: &str) -> Result<Dataset, ApiError> {
    let dataset = named_dataset(view, pid)?;
    if !permissions::may(view, asker, dataset.place(), Permission::EditDataset)? {
        let owner = collections::named_by_record(view, dataset.owner)?;
        return Err(no_permission(asker, &owner.alias));
    }
    Ok(dataset)
}

async fn service(call: Call) -> Answer {
    let (asker, base) = (call.asker.clone(), base(&call));
    let read = move |view: &mut View<'_>| {
        let mut xml = Xml::document();
        xml.open(
            "service",
            &[
                ("xmlns", "http://www.w3.org/2007/app"),
                ("xmlns:atom", "http://www.w3.org/2005/Atom"),
                ("xmlns:sword", "http://purl.org/net/sword/terms/"),
                ("xmlns:dcterms", "http://purl.org/dc/terms/"),
            ],
        );
        xml.open("workspace", &[]).leaf("atom:title", &publisher(view)?);
        for it in permissions::collections_with(view, &asker, Some(Permission::AddDataset))? {
            let href = format!("{base}/collection/dataverse/{}", it.alias);
            xml.open("collection", &[("href", &href)]);
            xml.leaf("atom:title", &it.name);
            xml.leaf("accept", "*/*");
            xml.leaf("sword:mediation", "false");
            xml.leaf("sword:acceptPackaging", "http://purl.org/net/sword/package/SimpleZip");
            xml.close();
        }
        xml.close().leaf("sword:version", "2.0");
        Ok::<_, ApiError>(xml.finish())
    };
    let text = call.db().read(Weight::Scan, read).await?;
    Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static("application/atomserv+xml"), text))
}

fn title_of(version: &Version) -> String {
    version::title_of(version)
}

async fn list(call: Call) -> Answer {
    let (asker, base, alias) = (call.asker.clone(), base(&call), call.param("alias").to_owned());
    let read = move |view: &mut View<'_>| {
        let collection = named_collection(view, &alias)?;
        let may_see = collection.is_released()
            || permissions::may(view, &asker, collection.place(), Permission::AddDataset)?;
        if !may_see {
            return Err(not_authorized(&asker, &format!("list datasets in dataverse {alias}")));
        }
        let mut xml = Xml::document();
        xml.open("feed", &[("xmlns", "http://www.w3.org/2005/Atom")]);
        xml.leaf("id", &format!("{base}/edit/dataverse/{alias}"));
        xml.leaf_with("title", &[("type", "text")], &collection.name);
        xml.leaf_with("generator", &[("uri", "http://www.swordapp.org/"), ("version", "2.0")], "SWORD");
        xml.leaf("dataverseHasBeenReleased", if collection.is_released() { "true" } else { "false" });
        let of = Expr::Is("owner".into(), collection.id.into());
        for id in rows::ids_of(view, &datasets::DATASET, of)? {
            let Some(it) = datasets::by_id(view, id.parse().unwrap_or_default())? else { continue };
            if !permissions::may(view, &asker, it.place(), Permission::EditDataset)? {
                continue;
            }
            let newest =
                it.draft.as_ref().map(|it| it.version).or_else(|| it.last.as_ref().map(|it| it.version));
            let Some(newest) = newest else { continue };
            let version = version::of_dataset(view, &it, newest)?;
            let url = format!("{base}/edit/study/{}", it.pid);
            xml.open("entry", &[]);
            xml.leaf("id", &url);
            xml.leaf_with("title", &[("type", "text")], &title_of(&version));
            xml.empty("link", &[("rel", "edit"), ("href", &url)]);
            xml.close();
        }
        Ok(xml.finish())
    };
    let text = call.db().read(Weight::Scan, read).await?;
    Ok(answer::bytes(StatusCode::OK, ATOM, text))
}

/// Returns the receipt of a deposit.
fn receipt(base: &str, dataset: &Dataset, cited: Option<&str>) -> String {
    let edit = format!("{base}/edit/study/{}", dataset.pid);
    let media = format!("{base}/edit-media/study/{}", dataset.pid);
    let statement = format!("{base}/statement/study/{}", dataset.pid);
    let mut xml = Xml::document();
    xml.open("entry", &[("xmlns", "http://www.w3.org/2005/Atom")]);
    xml.leaf_with("generator", &[("uri", "http://www.swordapp.org/"), ("version", "2.0")], "SWORD");
    xml.leaf("id", &edit);
    xml.empty("link", &[("href", &edit), ("rel", "edit")]);
    xml.empty("link", &[("href", &edit), ("rel", "http://purl.org/net/sword/terms/add")]);
    xml.empty("link", &[("href", &media), ("rel", "edit-media")]);
    xml.leaf_with(
        "packaging",
        &[("xmlns", "http://purl.org/net/sword/terms/")],
        "http://purl.org/net/sword/package/SimpleZip",
    );
    xml.empty(
        "link",
        &[
            ("href", &statement),
            ("rel", "http://purl.org/net/sword/terms/statement"),
            ("type", "application/atom+xml;type=feed"),
        ],
    );
    xml.leaf_with("treatment", &[("xmlns", "http://purl.org/net/sword/terms/")], TREATMENT);
    xml.empty("link", &[("href", &dataset.persistent_url()), ("rel", "alternate")]);
    if let Some(cited) = cited {
        xml.leaf_with("bibliographicCitation", &[("xmlns", "http://purl.org/dc/terms/")], cited);
    }
    xml.finish()
}

/// Checks that an entry states no terms of its own where the site does not allow them. Errors: 400.
fn check_terms(view: &mut View<'_>, said: &Map<String, Value>) -> Result<(), ApiError> {
    if said.contains_key("termsOfUse") && !datasets::terms::allows_custom(view)? {
        return Err(ApiError::bad_request("Custom Terms of Use (dc:rights) are not allowed."));
    }
    Ok(())
}

async fn create_dataset(mut call: Call) -> Answer {
    let bytes = call.bytes().await?;
    let user = call.asker.user()?.clone();
    let registry = call.app.registry(call.db()).await?;
    let (fields, mut body) = atom::read(&registry, &bytes, &user.email)?;
    if body.is_empty() {
        body.insert("license".to_owned(), "CC0 1.0".into());
    }
    let mut new = New::of(fields, body);
    new.is_checked = true;
    let (app, asker, alias, ids) =
        (call.app.clone(), call.asker.clone(), call.param("alias").to_owned(), call.ids(5).await?);
    let write = move |txn: &mut Txn<'_>| {
        let collection = named_collection(txn, &alias)?;
        if !permissions::may(txn, &asker, collection.place(), Permission::AddDataset)? {
            return Err(not_authorized(&asker, "create a dataset in this dataverse."));
        }
        for required in ["title", "author", "dsDescription"] {
            let is_there = registry.place(required).is_some_and(|at| new.fields.get(at).is_some());
            if !is_there {
                return Err(ApiError::bad_request(format!(
                    "Can't create/update dataset. {required} is required."
                )));
            }
        }
        check_terms(txn, &new.body)?;
        create::insert(txn, &app, &registry, &asker, &collection, &new, ids)
    };
    let dataset = call.db().write(write).await?;
    let text = receipt(&base(&call), &dataset, None);
    let response = answer::bytes(StatusCode::CREATED, ATOM, text);
    Ok(answer::with_header(response, LOCATION, &format!("{}/edit/study/{}", base(&call), dataset.pid)))
}

async fn publish_collection(call: Call) -> Answer {
    let alias = call.param("alias").to_owned();
    let (asker, find) = (call.asker.clone(), alias.clone());
    let is_asked = call.header("in-progress").is_none_or(|it| it.eq_ignore_ascii_case("false"));
    let read = move |view: &mut View<'_>| {
        let collection = named_collection(view, &find)?;
        if !permissions::may(view, &asker, collection.place(), Permission::PublishDataverse)? {
            return Err(no_permission(&asker, &find));
        }
        Ok(collection)
    };
    let collection = call.db().read(Weight::Point, read).await?;
    if is_asked && !collection.is_released() {
        let published = collections::publication::publish(&call, "alias").await?;
        if !published.status().is_success() {
            return Ok(published);
        }
    }
    let mut xml = Xml::document();
    xml.open("entry", &[("xmlns", "http://www.w3.org/2005/Atom")]);
    xml.leaf("id", &format!("{}/edit/dataverse/{alias}", base(&call)));
    xml.leaf_with("treatment", &[("xmlns", "http://purl.org/net/sword/terms/")], TREATMENT);
    Ok(answer::bytes(StatusCode::OK, ATOM, xml.finish()))
}

/// What is done with a dataset, for the refusal of those who may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Changing,
    AddingFiles,
    Viewing,
}

/// Returns the dataset of the path with its newest version, after checking that the caller may change it.
async fn opened(call: &Call, doing: Doing) -> Result<(Dataset, Version, String), ApiError> {
    let (asker, pid) = (call.asker.clone(), call.param("pid").to_owned());
    let read = move |view: &mut View<'_>| {
        let dataset = named_dataset(view, &pid)?;
        if !permissions::may(view, &asker, dataset.place(), Permission::EditDataset)? {
            return Err(match doing {
                Doing::AddingFiles => {
                    not_authorized(&asker, &format!("modify dataset with global ID {}", dataset.pid))
                }
                Doing::Viewing => {
                    not_authorized(&asker, &format!("view dataset with global ID {}", dataset.pid))
                }
                Doing::Changing => {
                    no_permission(&asker, &collections::named_by_record(view, dataset.owner)?.alias)
                }
            });
        }
        let version = version::find(view, &asker, &dataset, ":latest", version::Withdrawn::Shown)?;
        let cited = Cited::of(&dataset, &version, &publisher(view)?).text();
        Ok::<_, ApiError>((dataset, version, cited))
    };
    call.db().read(Weight::Point, read).await
}

async fn entry(call: Call) -> Answer {
    let (dataset, _, cited) = opened(&call, Doing::Changing).await?;
    Ok(answer::bytes(StatusCode::OK, ATOM, receipt(&base(&call), &dataset, Some(&cited))))
}

async fn update(mut call: Call) -> Answer {
    let bytes = call.bytes().await?;
    let user = call.asker.user()?.clone();
    let registry = call.app.registry(call.db()).await?;
    let (update, rights) = atom::read(&registry, &bytes, &user.email)?;
    let (app, asker, pid, ids, now) = (
        call.app.clone(),
        call.asker.clone(),
        call.param("pid").to_owned(),
        call.ids(1).await?,
        call.app.now(),
    );
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let mut dataset = editable(txn, &asker, &pid)?;
        datasets::edit::check_changeable(txn, &asker, &dataset)
            .map_err(|_| locked("problem updating", &dataset))?;
        let mut version = draft::open_draft(txn, &now, &mut dataset, &mut ids)?;
        version.note_contributor(&asker);
        let blocks = Value::Object(version.metadata_blocks.clone());
        let mut fields = Fields::stored(&registry, &blocks);
        edit::replace(&registry, &mut fields, update.clone());
        if let Value::Object(blocks) = fields.to_json(&registry) {
            version.metadata_blocks = blocks;
        }
        check_terms(txn, &rights)?;
        if let Some(body) = Some(&rights).filter(|it| !it.is_empty()) {
            datasets::terms::read(txn, &mut version, body)?;
        }
        version::put(txn, &version)?;
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)?;
        Ok::<_, ApiError>(dataset)
    };
    let dataset = call.db().write(write).await?;
    Ok(answer::bytes(StatusCode::OK, ATOM, receipt(&base(&call), &dataset, None)))
}

async fn publish(call: Call) -> Answer {
    let (asker, pid) = (call.asker.clone(), call.param("pid").to_owned());
    let read = move |view: &mut View<'_>| {
        let dataset = named_dataset(view, &pid)?;
        if !permissions::may(view, &asker, dataset.place(), Permission::PublishDataset)? {
            let owner = collections::named_by_record(view, dataset.owner)?;
            return Err(no_permission(&asker, &owner.alias));
        }
        Ok(dataset)
    };
    let dataset = call.db().read(Weight::Point, read).await?;
    let is_asked = call.header("in-progress").is_some_and(|it| it.eq_ignore_ascii_case("false"));
    if !is_asked {
        return Err(ApiError::bad_request("Pass 'In-Progress: false' header to publish a dataset."));
    }
    let wanted = Wanted::number(dataset.id);
    let dataset = workflows::run::publish(&call, wanted, Release::Major).await?.dataset;
    Ok(answer::bytes(StatusCode::OK, ATOM, receipt(&base(&call), &dataset, None)))
}

async fn delete(call: Call) -> Answer {
    let (dataset, _, _) = match opened(&call, Doing::Changing).await {
        // The original answers this, and only this, with a 404 and nothing else.
        Err(error) if error.status == StatusCode::NOT_FOUND => {
            return Ok(answer::empty(StatusCode::NOT_FOUND));
        }
        opened => opened?,
    };
    let (app, asker) = (call.app.clone(), call.asker.clone());
    let write = move |txn: &mut Txn<'_>| {
        let dataset = Wanted::number(dataset.id).find(txn)?;
        permissions::require(txn, &asker, dataset.place(), Permission::DeleteDatasetDraft)?;
        datasets::edit::check_changeable(txn, &asker, &dataset)
            .map_err(|_| locked("problem deleting", &dataset))?;
        match (&dataset.draft, &dataset.last) {
            (Some(_), None) => datasets::remove::remove(txn, &app, &dataset),
            (Some(_), Some(_)) => datasets::remove::drop_draft(txn, &app, dataset),
            _ => Err(ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "Deaccessioning a dataset is not supported here; see POST /api/datasets/{id}/versions/{v}/deaccession.",
            )),
        }
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn add_files(mut call: Call) -> Answer {
    let packaging = call.header("packaging").unwrap_or_default();
    if packaging != "http://purl.org/net/sword/package/SimpleZip" {
        return Err(ApiError::bad_request(format!(
            "Package format http://purl.org/net/sword/package/SimpleZip is required but format specified in 'Packaging' \
             HTTP header was {packaging}"
        )));
    }
    let (dataset, _, _) = opened(&call, Doing::AddingFiles).await?;
    let (asker, of) = (call.asker.clone(), dataset.clone());
    let check = move |view: &mut View<'_>| {
        datasets::edit::check_changeable(view, &asker, &of).map_err(|_| locked("Couldn't update", &of))
    };
    call.db().read(Weight::Point, check).await?;
    let dataset = files::add_archive(&mut call, dataset).await?;
    let response = answer::bytes(StatusCode::CREATED, ATOM, receipt(&base(&call), &dataset, None));
    Ok(answer::with_header(response, LOCATION, &format!("{}/edit-media/study/{}", base(&call), dataset.pid)))
}

async fn delete_file(call: Call) -> Answer {
    let id = call.param("id").split('/').next().unwrap_or_default();
    let id: i64 = id.parse().map_err(|_| ApiError::bad_request(format!("File id {id} is not a number.")))?;
    let url = format!("{}/edit-media/file/{id}", base(&call));
    let (app, asker, now, ids) = (call.app.clone(), call.asker.clone(), call.app.now(), call.ids(1).await?);
    let write = move |txn: &mut Txn<'_>| {
        let (mut ids, wanted) = (ids, files::Wanted::number(id));
        let unknown = |_| ApiError::bad_request(format!("Unable to find file id {id} from URL: {url}"));
        let file = wanted.find(txn).map_err(unknown)?;
        let dataset = files::Found::of(txn, file)?.dataset;
        if !permissions::may(txn, &asker, dataset.place(), Permission::EditDataset)? {
            return Err(may_not_modify(&asker, &collections::named_by_record(txn, dataset.owner)?.alias));
        }
        files::delete_one(txn, &app, &asker, &now, &wanted, &mut ids)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Returns whether the newest version has the files of the released one, so that it could be published as a minor
/// version; as in the original, one without a predecessor counts as such.
fn is_minor_update(view: &mut View<'_>, dataset: &Dataset, newest: &Version) -> Result<bool, ApiError> {
    match (&dataset.released, &dataset.last) {
        (None, None) => Ok(true),
        (Some(released), Some(last)) if released.version == last.version => {
            Ok(newest.id == released.version || !files::changed(view, dataset.id, newest.ordinal)?)
        }
        _ => Ok(false),
    }
}

async fn statement(call: Call) -> Answer {
    let (dataset, version, _) = opened(&call, Doing::Viewing).await?;
    let base = base(&call);
    let (of, shown) = (dataset.clone(), version.clone());
    let read = move |view: &mut View<'_>| {
        Ok::<_, ApiError>((files::all_of(view, &shown)?, is_minor_update(view, &of, &shown)?))
    };
    let (files, is_minor) = call.db().read(Weight::Scan, read).await?;
    let blocks = Value::Object(version.metadata_blocks.clone());
    let authors = crate::blocks::fields::Metadata(&blocks).children("author", "authorName").join("; ");
    let mut xml = Xml::document();
    xml.open("feed", &[("xmlns", "http://www.w3.org/2005/Atom")]);
    xml.leaf("id", &format!("{base}/edit/study/{}", dataset.pid));
    xml.empty("link", &[("href", &format!("{base}/edit/study/{}", dataset.pid)), ("rel", "self")]);
    xml.leaf_with("title", &[("type", "text")], &title_of(&version));
    xml.open("author", &[]).leaf("name", &authors).close();
    xml.leaf("updated", &version.last_update_time);
    for (file, state) in [
        ("latestVersionState", version.state.name()),
        ("locked", if dataset.locks.is_empty() { "false" } else { "true" }),
        ("isMinorUpdate", if is_minor { "true" } else { "false" }),
    ] {
        let attributes =
            [("term", file), ("scheme", "http://purl.org/net/sword/terms/state"), ("label", "State")];
        xml.leaf_with("category", &attributes, state);
    }
    for (row, file) in &files {
        let url = format!("{base}/edit-media/file/{}/{}", file.id, row.label);
        xml.open("entry", &[]);
        xml.empty("content", &[("type", &file.content_type), ("src", &url)]);
        xml.leaf("id", &url);
        xml.leaf_with("title", &[("type", "text")], &format!("Resource {url}"));
        xml.leaf_with("summary", &[("type", "text")], "Resource Part");
        xml.leaf("updated", &clock::instant(file.created_ms));
        xml.close();
    }
    Ok(answer::bytes(
        StatusCode::OK,
        HeaderValue::from_static("application/atom+xml;type=feed"),
        xml.finish(),
    ))
}
