//! OAI-PMH 2.0 at `/oai`, and its sets, `/api/harvest/server/oaisets` (section 11 of the contract).
//!
//! A set is a search. Exporting a set records which published datasets the search finds: those become its members. A
//! member whose dataset is no longer published stays as a deleted record.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderValue, Method, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::blocks::Registry;
use crate::datasets::wanted::is_dataset_kept_from;
use crate::datasets::{self, version};
use crate::error::{Answer, ApiError};
use crate::exports::serve::written;
use crate::exports::xml::{DECLARATION, Xml};
use crate::exports::{EXPORTERS, exporter};
use crate::routing::Routes;
use crate::search::{index, query};
use crate::{clock, envelope, stored};

/// Sets by name: body is a [`Set`].
pub(crate) static SET: Kind = Kind::named("dataverse_oai_set");

/// Members of sets, by `{set}/{pid}`: body is a [`Member`]. The set of all datasets has the empty name.
pub(crate) static MEMBER: Kind = Kind {
    columns: &[
        Column::one("set", Type::Text),
        Column::one("pid", Type::Text),
        Column::one("changed", Type::Text),
    ],
    indexes: &[Index::on(&["set"]), Index::on(&["pid"])],
    ..Kind::named("dataverse_oai_member")
};

/// A set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Set {
    /// Name in requests.
    pub name: String,
    /// The search that finds its members.
    pub definition: String,
    /// Description.
    pub description: String,
}

/// A member of a set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    /// The set.
    pub set: String,
    /// The dataset.
    pub pid: String,
    /// When it was added, changed or deleted.
    pub changed: String,
    /// Whether the dataset is no longer published.
    pub deleted: bool,
}

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .elsewhere(Method::GET, "/oai", provide)
        .elsewhere(Method::POST, "/oai", provide)
        .get("/harvest/server/oaisets", list_sets)
        .get("/harvest/server/oaisets/{name}", show_set)
        .post("/harvest/server/oaisets/add", add_set)
        .post("/harvest/server/oaisets/{name}", add_set)
        .put("/harvest/server/oaisets/{name}", change_set)
        .delete("/harvest/server/oaisets/{name}", delete_set)
        .get("/harvest/server/oaisets/{name}/datasets", set_datasets)
        .put("/harvest/server/oaisets/{name}/export", export_set)
        .post("/harvest/server/oaisets/{name}/export", export_set)
        .get("/harvest/server/oaisets/{name}/export", export_set)
        .get("/admin/metadata/exportOAI/{name}", export_set)
        .put("/admin/metadata/exportOAI/{name}", export_set)
}

fn set_json(set: &Set) -> Value {
    json!({"name": set.name, "definition": set.definition, "description": set.description, "version": 1})
}

fn require_superuser(call: &Call) -> Result<(), ApiError> {
    match call.asker.is_superuser() {
        true => Ok(()),
        false => Err(ApiError::bad_request("Only superusers can administer OAI sets.")),
    }
}

fn all_sets(view: &mut View<'_>) -> Result<Vec<Set>, ApiError> {
    stored::find(view, &SET, &pinakes_store::Query::filter(Expr::All))
}

async fn list_sets(call: Call) -> Answer {
    let sets = call.db().read(Weight::Point, all_sets).await?;
    envelope::ok(json!({"oaisets": sets.iter().map(set_json).collect::<Vec<_>>()}))
}

async fn named(call: &Call) -> Result<Set, ApiError> {
    let name = call.param("name").to_owned();
    let text = format!("A set with specname {name} does not exist.");
    let found = call.db().read(Weight::Point, move |view| stored::get::<Set>(view, &SET, &name)).await?;
    found.ok_or_else(|| ApiError::not_found(text))
}

async fn show_set(call: Call) -> Answer {
    envelope::ok(set_json(&named(&call).await?))
}

fn read_set(body: &serde_json::Map<String, Value>, name: Option<&str>) -> Result<Set, ApiError> {
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let set = Set {
        name: name.map_or_else(|| text("name"), str::to_owned),
        definition: text("definition"),
        description: text("description"),
    };
    let is_name = |it: &str| {
        !it.is_empty() && it.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-')
    };
    if !is_name(&set.name) {
        return Err(ApiError::bad_request(
            "Valid characters of a set's name are letters, digits, dashes and underscores.",
        ));
    }
    if set.definition.trim().is_empty() {
        return Err(ApiError::bad_request("A set must have a definition."));
    }
    // The time does not matter: this only checks the syntax.
    query::parse(&set.definition, 0)
        .map_err(|error| ApiError::bad_request(format!("Search Syntax Error: {error}")))?;
    Ok(set)
}

async fn add_set(mut call: Call) -> Answer {
    require_superuser(&call)?;
    let body = call.object().await?;
    let set = read_set(&body, None)?;
    let (json, location) = (set_json(&set), format!("/harvest/server/oaisets/{}", set.name));
    let write = move |txn: &mut Txn<'_>| {
        if txn.has(&SET, &set.name)? {
            return Err(ApiError::bad_request(format!("Set with the name {} already exists.", set.name)));
        }
        stored::insert(txn, &SET, &set.name, &set)
    };
    call.db().write(write).await?;
    envelope::created(&location, json)
}

async fn change_set(mut call: Call) -> Answer {
    require_superuser(&call)?;
    let before = named(&call).await?;
    let mut body = call.object().await?;
    let says = |name: &str| body.get(name).and_then(Value::as_str).is_some_and(|it| !it.trim().is_empty());
    let (has_definition, has_description) = (says("definition"), says("description"));
    if !has_definition && !has_description {
        return Err(ApiError::bad_request(
            "Invalid update! You must provide a definition and/or description to be updated.",
        ));
    }
    if !has_definition {
        body.insert("definition".to_owned(), before.definition.as_str().into());
    }
    if !has_description {
        body.insert("description".to_owned(), before.description.as_str().into());
    }
    let set = read_set(&body, Some(&before.name))?;
    let json = set_json(&set);
    call.db().write(move |txn: &mut Txn<'_>| stored::put(txn, &SET, &set.name, &set)).await?;
    envelope::ok(json)
}

async fn delete_set(call: Call) -> Answer {
    require_superuser(&call)?;
    let set = named(&call).await?;
    let name = set.name.clone();
    let write = move |txn: &mut Txn<'_>| {
        txn.delete(&SET, &set.name)?;
        for id in crate::files::rows::ids_of(txn, &MEMBER, Expr::Is("set".into(), set.name.clone().into()))? {
            txn.delete(&MEMBER, &id)?;
        }
        Ok::<_, ApiError>(())
    };
    call.db().write(write).await?;
    envelope::message(format!("OAI Set {name} deleted"))
}

async fn set_datasets(call: Call) -> Answer {
    let set = named(&call).await?;
    let read = move |view: &mut View<'_>| stored::find_by::<Member>(view, &MEMBER, "set", set.name.clone());
    let members = call.db().read(Weight::Scan, read).await?;
    envelope::ok(members.iter().filter(|it| !it.deleted).map(|it| it.pid.clone()).collect::<Vec<_>>())
}

async fn export_set(call: Call) -> Answer {
    let set = named(&call).await?;
    let (now, name) = (call.app.now(), set.name.clone());
    call.db().write(move |txn: &mut Txn<'_>| refresh(txn, &set, &now)).await?;
    envelope::message(format!("OAI Set {name} exported"))
}

/// Updates the members of a set.
fn refresh(txn: &mut Txn<'_>, set: &Set, now: &str) -> Result<(), ApiError> {
    let now_ms = crate::clock::parse(now).unwrap_or_default();
    let filter = query::parse(&set.definition, now_ms).map_err(ApiError::bad_request)?.filter;
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for id in index::public_datasets(txn, filter)? {
        let Some(dataset) = datasets::by_id(txn, id)? else { continue };
        let Some(released) = &dataset.released else { continue };
        if dataset.harvested_by.is_some() {
            continue;
        }
        let version = version::of_dataset(txn, &dataset, released.version)?;
        found.insert(dataset.pid, version.release_time.unwrap_or_else(|| now.to_owned()));
    }
    for mut member in stored::find_by::<Member>(txn, &MEMBER, "set", set.name.clone())? {
        let id = format!("{}/{}", set.name, member.pid);
        // A dataset that the search no longer finds may be found again later; a member is deleted only when its dataset
        // is no longer published.
        let dataset = datasets::by_pid(txn, &member.pid)?;
        let is_there = dataset.is_some_and(|it| it.released.is_some());
        let changed = found.remove(&member.pid);
        if member.deleted == is_there {
            member.deleted = !is_there;
            member.changed = now.to_owned();
            stored::put(txn, &MEMBER, &id, &member)?;
        } else if let Some(changed) = changed.filter(|it| is_there && member.changed < *it) {
            member.changed = changed;
            stored::put(txn, &MEMBER, &id, &member)?;
        }
    }
    for (pid, changed) in found {
        let member = Member { set: set.name.clone(), pid, changed, deleted: false };
        stored::put(txn, &MEMBER, &format!("{}/{}", set.name, member.pid), &member)?;
    }
    Ok(())
}

/// An OAI-PMH error: (code, text).
type Fault = (&'static str, String);

/// Formats offered to harvesters: (name here, name of the export).
const FORMATS: [(&str, &str); 5] = [
    ("oai_dc", "oai_dc"),
    ("oai_ddi", "oai_ddi"),
    ("oai_datacite", "oai_datacite"),
    ("Datacite", "Datacite"),
    ("dataverse_json", "dataverse_json"),
];

const ROOT: &[(&str, &str)] = &[
    ("xmlns", "http://www.openarchives.org/OAI/2.0/"),
    ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    (
        "xsi:schemaLocation",
        "http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd",
    ),
];

fn answered(text: String) -> Answer {
    // Harvesters check records for a second XML declaration, by its usual quotes.
    let body = text.strip_prefix(DECLARATION).map(|it| format!("<?xml version='1.0' encoding='UTF-8'?>{it}"));
    let body = body.unwrap_or(text);
    Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static("text/xml;charset=UTF-8"), body))
}

async fn provide(mut call: Call) -> Answer {
    let mut given = call.query.clone();
    if call.method == Method::POST {
        let text = call.text().await?;
        given = crate::query::Query::parse(&text);
    }
    let enabled = |view: &mut View<'_>| crate::site_settings::is_true(view, ":OAIServerEnabled", true);
    if !call.db().read(Weight::Point, enabled).await? {
        return Err(ApiError::not_found("The OAI server is switched off: :OAIServerEnabled."));
    }
    let verbs: Vec<&str> = given.all("verb").collect();
    let request = Request {
        app: call.app.clone(),
        registry: call.app.registry(call.db()).await?,
        site_url: call.site_url(),
        now: call.app.now(),
    };
    let fault = match verbs[..] {
        [] => Some("No argument 'verb' found".to_owned()),
        [one] if VERBS.contains(&one) => None,
        [one] => Some(format!("Unknown verb '{one}'")),
        _ => Some(format!("Verb must be singular, given: '[{}]'", verbs.join(", "))),
    };
    if let Some(text) = fault {
        let mut xml = request.begin(None, &given);
        xml.leaf_with("error", &[("code", "badVerb")], &text);
        return answered(xml.finish());
    }
    let verb = verbs[0].to_owned();
    let read = move |view: &mut View<'_>| {
        let mut xml = request.begin(Some(&verb), &given);
        match request.verb(view, &verb, &given)? {
            Ok(inner) => xml.raw(&inner),
            Err((code, text)) => xml.leaf_with("error", &[("code", code)], &text),
        };
        Ok::<_, ApiError>(xml.finish())
    };
    answered(call.db().read(Weight::Scan, read).await?)
}

const VERBS: [&str; 6] =
    ["Identify", "ListMetadataFormats", "ListSets", "ListIdentifiers", "ListRecords", "GetRecord"];

/// Position at which a list continues.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Cursor {
    offset: usize,
    prefix: String,
    set: String,
    from: String,
    until: String,
}

struct Request {
    app: Dataverse,
    registry: Arc<Registry>,
    site_url: String,
    now: String,
}

impl Request {
    /// Writes the beginning of a document, up to the output of the verb.
    fn begin(&self, verb: Option<&str>, given: &crate::query::Query) -> Xml {
        let mut xml = Xml::document();
        xml.open(if verb.is_some() { "OAI-PMH" } else { "oai" }, ROOT);
        xml.leaf("responseDate", &self.now);
        let mut attributes = Vec::new();
        if let Some(verb) = verb {
            attributes.push(("verb", verb));
            for name in ["identifier", "metadataPrefix", "set", "from", "until", "resumptionToken"] {
                attributes.push((name, given.get(name).unwrap_or_default()));
            }
        }
        xml.leaf_with("request", &attributes, &format!("{}/oai", self.site_url));
        xml
    }

    fn verb(
        &self,
        view: &mut View<'_>,
        verb: &str,
        given: &crate::query::Query,
    ) -> Result<Result<String, Fault>, ApiError> {
        Ok(match verb {
            "Identify" => Ok(self.identify(view)?),
            "ListMetadataFormats" => Ok(self.formats()),
            "ListSets" => Ok(self.sets(view)?),
            "GetRecord" => return self.record(view, given),
            _ => return self.list(view, verb, given),
        })
    }

    fn identify(&self, view: &mut View<'_>) -> Result<String, ApiError> {
        let mut xml = Xml::fragment();
        let name = crate::datasets::show::publisher(view)?;
        let mail = &self.app.settings.system_email;
        xml.open("Identify", &[]);
        xml.leaf("repositoryName", &format!("{name} Dataverse OAI Archive"));
        xml.leaf("baseURL", &format!("{}/oai", self.site_url));
        xml.leaf("protocolVersion", "2.0");
        xml.leaf("adminEmail", if mail.is_empty() { "nobody@localhost" } else { mail });
        xml.leaf("earliestDatestamp", "2000-01-01T00:00:00Z");
        xml.leaf("deletedRecord", "transient");
        xml.leaf("granularity", "YYYY-MM-DDThh:mm:ssZ");
        Ok(xml.finish())
    }

    fn formats(&self) -> String {
        let mut xml = Xml::fragment();
        xml.open("ListMetadataFormats", &[]);
        for (prefix, name) in FORMATS {
            let Some(format) = EXPORTERS.iter().find(|it| it.name == name) else { continue };
            let [space, schema, _] = format.schema.unwrap_or(["dataverse_json", "dataverse_json", ""]);
            xml.open("metadataFormat", &[]);
            xml.leaf("metadataPrefix", prefix).leaf("schema", schema).leaf("metadataNamespace", space);
            xml.close();
        }
        xml.finish()
    }

    fn sets(&self, view: &mut View<'_>) -> Result<String, ApiError> {
        let mut xml = Xml::fragment();
        xml.open("ListSets", &[]);
        for set in all_sets(view)? {
            xml.open("set", &[]).leaf("setSpec", &set.name).leaf("setName", &set.name);
            if !set.description.is_empty() {
                xml.open("setDescription", &[]);
                xml.open(
                    "oai_dc:dc",
                    &[
                        ("xmlns:oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"),
                        ("xmlns:dc", "http://purl.org/dc/elements/1.1/"),
                    ],
                );
                xml.leaf("dc:description", &set.description).close().close();
            }
            xml.close();
        }
        Ok(xml.finish())
    }

    fn header(xml: &mut Xml, member: &Member, sets: &[String]) {
        xml.open("header", &[("status", if member.deleted { "deleted" } else { "" })]);
        xml.leaf("identifier", &member.pid).leaf("datestamp", &member.changed);
        xml.leaves("setSpec", sets.iter().map(String::as_str));
        xml.close();
    }

    /// Writes a record; `None` if its dataset is no longer published.
    fn written(
        &self,
        view: &mut View<'_>,
        xml: &mut Xml,
        member: &Member,
        prefix: &str,
        sets: &[String],
    ) -> Result<(), ApiError> {
        xml.open("record", &[]);
        let dataset = datasets::by_pid(view, &member.pid)?;
        let released = dataset.as_ref().and_then(|it| it.released.as_ref());
        let is_kept = match &dataset {
            Some(it) => is_dataset_kept_from(view, &Asker::default(), it)?,
            None => false,
        };
        let name = FORMATS.iter().find(|it| it.0 == prefix).map_or(prefix, |it| it.1);
        match (&dataset, released, exporter(name)) {
            (Some(dataset), Some(released), Some(format)) if !member.deleted && !is_kept => {
                Self::header(xml, member, sets);
                let version = version::of_dataset(view, dataset, released.version)?;
                let text =
                    written(view, &self.app, &self.registry, &self.site_url, dataset, &version, format)?;
                let text = text.strip_prefix(DECLARATION).unwrap_or(&text);
                if format.media_type == "application/json" {
                    let url = format!(
                        "{}/api/datasets/export?exporter={name}&persistentId={}",
                        self.site_url, member.pid
                    );
                    xml.empty("metadata", &[("directApiCall", &url)]);
                } else {
                    xml.open("metadata", &[]).raw(text).close();
                }
            }
            _ => Self::header(xml, &Member { deleted: true, ..member.clone() }, sets),
        }
        xml.close();
        Ok(())
    }

    fn record(
        &self,
        view: &mut View<'_>,
        given: &crate::query::Query,
    ) -> Result<Result<String, Fault>, ApiError> {
        let missing = |name: &str| ("badArgument", format!("The request is missing the argument '{name}'"));
        let Some(pid) = given.filled("identifier") else { return Ok(Err(missing("identifier"))) };
        let Some(prefix) = given.filled("metadataPrefix") else { return Ok(Err(missing("metadataPrefix"))) };
        if !FORMATS.iter().any(|it| it.0 == prefix) {
            return Ok(Err(unknown_format(prefix)));
        }
        let members: Vec<Member> = stored::find_by(view, &MEMBER, "pid", pid)?;
        let Some(first) = members.first() else {
            return Ok(Err(("idDoesNotExist", format!("There is no record {pid}"))));
        };
        let sets: Vec<String> = members.iter().map(|it| it.set.clone()).filter(|it| !it.is_empty()).collect();
        let mut xml = Xml::fragment();
        xml.open("GetRecord", &[]);
        self.written(view, &mut xml, first, prefix, &sets)?;
        Ok(Ok(xml.finish()))
    }

    fn list(
        &self,
        view: &mut View<'_>,
        verb: &str,
        given: &crate::query::Query,
    ) -> Result<Result<String, Fault>, ApiError> {
        let cursor = match given.filled("resumptionToken") {
            Some(token) => {
                let parsed =
                    URL_SAFE_NO_PAD.decode(token).ok().and_then(|it| serde_json::from_slice(&it).ok());
                match parsed {
                    Some(cursor) => cursor,
                    None => {
                        return Ok(Err(("badResumptionToken", format!("The token {token} is not known"))));
                    }
                }
            }
            None => {
                let text = |name: &str| given.filled(name).unwrap_or_default().to_owned();
                Cursor {
                    offset: 0,
                    prefix: text("metadataPrefix"),
                    set: text("set"),
                    from: text("from"),
                    until: text("until"),
                }
            }
        };
        if cursor.prefix.is_empty() {
            return Ok(Err((
                "badArgument",
                "The request is missing the argument 'metadataPrefix'".to_owned(),
            )));
        }
        if !FORMATS.iter().any(|it| it.0 == cursor.prefix) {
            return Ok(Err(unknown_format(&cursor.prefix)));
        }
        let (Some(from), Some(until)) =
            (instant(&cursor.from, "T00:00:00Z"), instant(&cursor.until, "T23:59:59Z"))
        else {
            return Ok(Err((
                "badArgument",
                "from and until are dates as 2026-01-31 or 2026-01-31T10:20:30Z".to_owned(),
            )));
        };
        let mut members: Vec<Member> = match cursor.set.as_str() {
            "" => everything(view)?,
            set => stored::find_by(view, &MEMBER, "set", set)?,
        };
        members.retain(|it| {
            (from.is_empty() || from <= it.changed) && (until.is_empty() || it.changed <= until)
        });
        members.sort_by(|a, b| (&a.changed, &a.pid).cmp(&(&b.changed, &b.pid)));
        if members.is_empty() {
            return Ok(Err(("noRecordsMatch", "No records match the request".to_owned())));
        }
        let is_full = verb == "ListRecords";
        let settings = &self.app.settings;
        let size = if is_full { settings.oai_records } else { settings.oai_identifiers }.max(1) as usize;
        let mut xml = Xml::fragment();
        xml.open(if is_full { "ListRecords" } else { "ListIdentifiers" }, &[]);
        for member in members.iter().skip(cursor.offset).take(size) {
            let sets: Vec<String> = if member.set.is_empty() { Vec::new() } else { vec![member.set.clone()] };
            match is_full {
                true => self.written(view, &mut xml, member, &cursor.prefix, &sets)?,
                false => Self::header(&mut xml, member, &sets),
            }
        }
        let next = cursor.offset + size;
        let (total, offset) = (members.len().to_string(), cursor.offset.to_string());
        let attributes = [("completeListSize", total.as_str()), ("cursor", offset.as_str())];
        if next < members.len() {
            let cursor = Cursor { offset: next, ..cursor };
            let token = URL_SAFE_NO_PAD.encode(json!(cursor).to_string());
            xml.leaf_with("resumptionToken", &attributes, &token);
        } else if 0 < cursor.offset {
            xml.empty("resumptionToken", &attributes);
        }
        Ok(Ok(xml.finish()))
    }
}

fn unknown_format(prefix: &str) -> Fault {
    ("cannotDisseminateFormat", format!("The format '{prefix}' is not offered"))
}

/// Returns an instant from a request; `time` is added to a date. `None` for any other text.
fn instant(text: &str, time: &str) -> Option<String> {
    let whole = if text.len() == 10 { format!("{text}{time}") } else { text.to_owned() };
    (text.is_empty() || clock::parse(&whole).is_some()).then_some(whole)
}

/// Returns all published datasets, as members of no set.
fn everything(view: &mut View<'_>) -> Result<Vec<Member>, ApiError> {
    let mut members: BTreeMap<String, Member> = BTreeMap::new();
    for id in index::public_datasets(view, Expr::All)? {
        let Some(dataset) = datasets::by_id(view, id)? else { continue };
        let Some(released) = &dataset.released else { continue };
        let version = version::of_dataset(view, &dataset, released.version)?;
        let changed = version.release_time.unwrap_or_default();
        let member = Member { set: String::new(), pid: dataset.pid.clone(), changed, deleted: false };
        members.insert(dataset.pid, member);
    }
    Ok(members.into_values().collect())
}
