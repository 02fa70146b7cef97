//! Guestbooks: the questions for those who download files, and their answers (section 12 of the contract).

use std::collections::{HashMap, hash_map};

use pinakes_store::{Column, Expr, Facet, Index, Kind, Query, Search, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::asker::Asker;
use crate::collections::{self, Collection};
use crate::csv::cell;
use crate::datasets::show::text_answer;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset, version};
use crate::error::{Answer, ApiError};
use crate::files::rows;
use crate::grants::Permission;
use crate::routing::Routes;
use crate::settings::Settings;
use crate::{envelope, permissions, stored};

/// Guestbooks by number: body is a [`Guestbook`].
pub(crate) static GUESTBOOK: Kind = Kind {
    columns: &[Column::one("collection", Type::Integer)],
    indexes: &[Index::on(&["collection"])],
    ..Kind::named("dataverse_guestbook")
};

/// Downloads with the answers to the guestbook, by number: body is an [`Entry`].
pub(crate) static ENTRY: Kind = Kind {
    columns: &[
        Column::one("guestbook", Type::Integer),
        Column::one("user", Type::Integer),
        Column::one("dataset", Type::Integer),
        Column::one("file", Type::Integer),
        Column::one("isRequest", Type::Boolean),
    ],
    indexes: &[
        Index::on(&["guestbook"]),
        Index::on(&["user"]),
        Index::on(&["dataset"]),
        Index::on(&["file"]),
    ],
    facets: &[Facet::days("time")],
    search: Search::Declared,
    ..Kind::named("dataverse_guestbook_entry")
};

/// A guestbook.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Guestbook {
    /// Number.
    pub id: i64,
    /// The collection that owns it.
    pub collection: i64,
    /// Name.
    pub name: String,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Whether a mail address is required.
    pub email_required: bool,
    /// Whether a name is required.
    pub name_required: bool,
    /// Whether an institution is required.
    pub institution_required: bool,
    /// Whether a position is required.
    pub position_required: bool,
    /// Custom questions, in the form of the API.
    pub custom_questions: Vec<Value>,
    /// When it was created.
    pub create_time: String,
}

/// A download with the answers to the guestbook.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Entry {
    /// The guestbook; `None` if the dataset has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guestbook: Option<i64>,
    /// The user; `None` for guests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<i64>,
    /// The dataset.
    pub dataset: i64,
    /// The file.
    pub file: i64,
    /// Time.
    pub time: String,
    /// Whether it is an access request instead of a download.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_request: bool,
    /// Name, mail address, institution, position and answers, as given.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub response: Map<String, Value>,
}

/// Stores an entry.
pub(crate) fn record(txn: &mut Txn<'_>, id: i64, entry: &Entry) -> Result<(), ApiError> {
    stored::insert(txn, &ENTRY, &id.to_string(), entry)
}

/// Returns whether a user has any entries.
pub(crate) fn has_responses_of(view: &mut View<'_>, user: i64) -> Result<bool, ApiError> {
    Ok(n_responses_of(view, user)? != 0)
}

/// Returns how many entries a user has.
pub(crate) fn n_responses_of(view: &mut View<'_>, user: i64) -> Result<u64, ApiError> {
    Ok(view.count(&ENTRY, &Expr::Is("user".into(), user.into()))?)
}

/// Transfers the entries of one user to another.
pub(crate) fn hand_over(txn: &mut Txn<'_>, from: i64, into: i64) -> Result<(), ApiError> {
    for record in txn.find(&ENTRY, &Query::filter(Expr::Is("user".into(), from.into())))? {
        let mut entry: Entry = stored::parsed(&record)?;
        entry.user = Some(into);
        stored::put(txn, &ENTRY, &record.id, &entry)?;
    }
    Ok(())
}

/// Removes the guestbooks of a collection that is being deleted; entries stay with their datasets.
pub(crate) fn remove_of_collection(txn: &mut Txn<'_>, collection: i64) -> Result<(), ApiError> {
    for record in txn.find(&GUESTBOOK, &Query::filter(Expr::Is("collection".into(), collection.into())))? {
        txn.delete(&GUESTBOOK, &record.id)?;
    }
    Ok(())
}

/// Returns the guestbook with that number.
pub(crate) fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<Guestbook>, ApiError> {
    stored::get(view, &GUESTBOOK, &id.to_string())
}

/// Returns whether a guestbook may be used in a collection: it is enabled, and owned by it or a collection above.
pub(crate) fn is_available(view: &mut View<'_>, id: i64, at: &Collection) -> Result<bool, ApiError> {
    let Some(guestbook) = by_id(view, id)?.filter(|it| it.enabled) else { return Ok(false) };
    let above = collections::with_owners(view, at.clone())?;
    Ok(above.iter().any(|it| it.id == guestbook.collection))
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/guestbooks/{id}", show)
        .post("/guestbooks/{id}", create)
        .put("/guestbooks/{id}", update)
        .get("/guestbooks/{id}/list", list)
        .get("/guestbooks/{id}/responses", list_responses)
        .put("/guestbooks/{id}/{guestbook}/enabled", set_enabled)
        .get("/dataverses/{id}/guestbookResponses", responses_csv)
        .get("/datasets/{id}/guestbookEntryAtRequest", show_at_request)
        .put("/datasets/{id}/guestbookEntryAtRequest", set_at_request)
        .delete("/datasets/{id}/guestbookEntryAtRequest", reset_at_request)
}

impl Guestbook {
    /// Sets the members that a body states. Errors: 400.
    fn read(&mut self, body: &Map<String, Value>, first_id: i64) -> Result<(), ApiError> {
        let missing = |name: &str| {
            ApiError::bad_request(format!("Error parsing Guestbook data. Field '{name}' is mandatory"))
        };
        let name = body.get("name").and_then(Value::as_str).filter(|it| !it.trim().is_empty());
        name.ok_or_else(|| missing("name"))?.clone_into(&mut self.name);
        let flag = |name: &str, before: bool| body.get(name).and_then(Value::as_bool).unwrap_or(before);
        self.enabled = flag("enabled", self.enabled);
        self.email_required = flag("emailRequired", self.email_required);
        self.name_required = flag("nameRequired", self.name_required);
        self.institution_required = flag("institutionRequired", self.institution_required);
        self.position_required = flag("positionRequired", self.position_required);
        let Some(questions) = body.get("customQuestions").and_then(Value::as_array) else { return Ok(()) };
        let mut kept = Vec::new();
        for (place, question) in questions.iter().enumerate() {
            let Some(text) = question["question"].as_str() else { return Err(missing("question")) };
            let ty = question["type"].as_str().unwrap_or("text");
            if !["text", "textarea", "options"].contains(&ty) {
                return Err(ApiError::bad_request(format!(
                    "Error parsing Guestbook data. Invalid question type: {ty}"
                )));
            }
            let options = question["optionValues"].as_array().cloned().unwrap_or_default();
            if ty == "options" && options.is_empty() {
                return Err(ApiError::bad_request(
                    "Error parsing Guestbook data. - An Option question requires multiple options. Please complete before saving.",
                ));
            }
            let place = i64::try_from(place).unwrap_or(i64::MAX);
            let mut map = Map::new();
            map.insert("id".into(), question["id"].as_i64().unwrap_or(first_id + place).into());
            map.insert("question".into(), text.into());
            map.insert("required".into(), question["required"].as_bool().unwrap_or(false).into());
            map.insert("displayOrder".into(), question["displayOrder"].as_i64().unwrap_or(place).into());
            map.insert("type".into(), ty.into());
            map.insert("hidden".into(), question["hidden"].as_bool().unwrap_or(false).into());
            if ty == "options" {
                map.insert("optionValues".into(), options.into());
            }
            kept.push(Value::Object(map));
        }
        self.custom_questions = kept;
        Ok(())
    }

    fn json(&self, counts: Option<(u64, u64)>) -> Value {
        Value::Object(envelope::object(json!({
            "id": self.id,
            "name": self.name,
            "enabled": self.enabled,
            "emailRequired": self.email_required,
            "nameRequired": self.name_required,
            "institutionRequired": self.institution_required,
            "positionRequired": self.position_required,
            "usageCount": counts.map(|it| it.0),
            "responseCount": counts.map(|it| it.1),
            "customQuestions": self.custom_questions,
            "createTime": self.create_time,
            "dataverseId": self.collection,
        })))
    }
}

/// Returns how many datasets use a guestbook, and how many entries it has.
fn counts(view: &mut View<'_>, id: i64) -> Result<(u64, u64), ApiError> {
    let used = view.count(&datasets::DATASET, &Expr::Is("guestbook".into(), id.into()))?;
    Ok((used, view.count(&ENTRY, &Expr::Is("guestbook".into(), id.into()))?))
}

/// Returns the guestbook of a path, and its collection.
fn named(view: &mut View<'_>, text: &str) -> Result<(Guestbook, Collection), ApiError> {
    let missing = || ApiError::not_found(format!("Guestbook with ID {text} not found."));
    let guestbook: Guestbook = stored::get(view, &GUESTBOOK, text)?.ok_or_else(missing)?;
    let collection = collections::named_by_record(view, guestbook.collection)?;
    Ok((guestbook, collection))
}

async fn show(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let (guestbook, _) = named(view, &id)?;
        Ok(guestbook.json(None))
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

fn editable(view: &mut View<'_>, asker: &Asker, collection: &Collection) -> Result<(), ApiError> {
    permissions::require(view, asker, collection.place(), Permission::EditDataverse)
}

/// Maximum number of questions of a guestbook.
const QUESTIONS: i64 = 100;

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (asker, id, now) = (call.asker.clone(), call.param("id").to_owned(), call.app.now());
    let ids = call.ids(QUESTIONS + 1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Guestbook, ApiError> {
        let mut ids = ids;
        let collection = collections::find(txn, &id)?;
        editable(txn, &asker, &collection)?;
        let id = ids.next()?;
        let mut guestbook = Guestbook {
            id,
            collection: collection.id,
            create_time: now.clone(),
            enabled: true,
            ..Guestbook::default()
        };
        guestbook.read(&body, id + 1)?;
        stored::put(txn, &GUESTBOOK, &guestbook.id.to_string(), &guestbook)?;
        Ok(guestbook)
    };
    let guestbook = call.db().write(write).await?;
    let data = json!({"message": format!("Guestbook {} created", guestbook.id), "id": guestbook.id});
    envelope::created(&format!("/guestbooks/{}", guestbook.id), data)
}

async fn update(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let ids = call.ids(QUESTIONS).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut ids = ids;
        let (mut guestbook, collection) = named(txn, &id)?;
        editable(txn, &asker, &collection)?;
        guestbook.read(&body, ids.next()?)?;
        stored::put(txn, &GUESTBOOK, &id, &guestbook)?;
        let mut json = guestbook.json(None);
        json["message"] = format!("Guestbook {id} updated").into();
        Ok(json)
    };
    envelope::ok(call.db().write(write).await?)
}

async fn list(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let with_counts = call.query.is_true("includeStats");
    let inherited = call.query.is_true("includeInherited");
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = collections::find(view, &id)?;
        editable(view, &asker, &collection)?;
        let mut above = collections::with_owners(view, collection)?;
        if !inherited {
            above.truncate(1);
        }
        let mut items = Vec::new();
        for collection in above {
            for it in stored::find_by::<Guestbook>(view, &GUESTBOOK, "collection", collection.id)? {
                let counts = if with_counts { Some(counts(view, it.id)?) } else { None };
                items.push(it.json(counts));
            }
        }
        Ok(items)
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

async fn set_enabled(mut call: Call) -> Answer {
    let text = call.text().await?;
    let enabled = match text.as_str() {
        "true" => true,
        "false" => false,
        _ => return Err(ApiError::bad_request(format!("Illegal value '{text}': expected true or false"))),
    };
    let (asker, id) = (call.asker.clone(), call.param("guestbook").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let (mut guestbook, collection) = named(txn, &id)?;
        editable(txn, &asker, &collection)?;
        guestbook.enabled = enabled;
        stored::put(txn, &GUESTBOOK, &id, &guestbook)?;
        let state = if enabled { "enabled" } else { "disabled" };
        Ok(format!("Guestbook {} {state}", guestbook.id))
    };
    envelope::message(call.db().write(write).await?)
}

/// Name of a setting of datasets: whether the guestbook is answered when access is requested.
const AT_REQUEST: &str = "guestbookAtRequest";

/// Returns whether the guestbook of a dataset is answered when access to a restricted file is requested, instead of
/// when it is downloaded.
pub(crate) fn is_at_request(settings: &Settings, dataset: &Dataset) -> bool {
    dataset.more.get(AT_REQUEST).and_then(Value::as_bool).unwrap_or(settings.guestbook_at_request)
}

async fn show_at_request(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let find = move |view: &mut View<'_>| -> Result<Dataset, ApiError> {
        let dataset = wanted.find(view)?;
        permissions::require(view, &asker, dataset.place(), Permission::EditDataset)?;
        Ok(dataset)
    };
    let dataset = call.db().read(Weight::Point, find).await?;
    let counts = is_at_request(&call.app.settings, &dataset);
    envelope::message(match dataset.more.contains_key(AT_REQUEST) {
        true => counts.to_string(),
        false => format!("Not set on dataset, using the default: {counts}"),
    })
}

async fn change_at_request(call: &Call, wished: Option<bool>) -> Result<(), ApiError> {
    let (wanted, asker) = (Wanted::of(call)?, call.asker.clone());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut dataset = wanted.find(txn)?;
        permissions::require(txn, &asker, dataset.place(), Permission::EditDataset)?;
        match wished {
            Some(it) => drop(dataset.more.insert(AT_REQUEST.to_owned(), it.into())),
            None => drop(dataset.more.remove(AT_REQUEST)),
        }
        datasets::put(txn, &dataset)
    };
    call.db().write(write).await
}

/// Sets that; the body is `true` or `false`.
async fn set_at_request(mut call: Call) -> Answer {
    let text = call.text().await?;
    let wished = match text.trim().to_ascii_lowercase().as_str() {
        "true" => true,
        "false" => false,
        _ => return Err(ApiError::bad_request(format!("The body is {text:?}; expected true or false."))),
    };
    change_at_request(&call, Some(wished)).await?;
    envelope::message(format!("Guestbook Entry At Request set to: {wished}"))
}

async fn reset_at_request(call: Call) -> Answer {
    change_at_request(&call, None).await?;
    let default = call.app.settings.guestbook_at_request;
    envelope::message(format!("Guestbook Entry At Request reset to default: {default}"))
}

/// Default and maximum number of entries per page.
const MAX_ENTRIES: i64 = 1000;

impl Entry {
    /// Returns the name of the event in lists of entries.
    fn event(&self) -> &'static str {
        if self.is_request { "AccessRequest" } else { "Download" }
    }

    fn json(&self, view: &mut View<'_>, id: &str) -> Result<Value, ApiError> {
        let dataset = datasets::by_id(view, self.dataset)?;
        let user = self.user.map(|id| crate::users::by_id(view, id)).transpose()?.flatten();
        let name = user.as_ref().map_or_else(|| "Guest".to_owned(), |it| it.display_name());
        let mut map = envelope::object(json!({
            "id": id.parse::<i64>().ok(),
            "datasetPid": dataset.map(|it| it.pid),
            "fileId": self.file,
            "date": self.time,
            "type": self.event(),
            "userName": user.as_ref().map(|it| it.name.as_str()),
            "name": name,
            "email": user.as_ref().map(|it| it.email.as_str()),
        }));
        map.extend(self.response.iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(Value::Object(map))
    }
}

/// Lists the entries of a guestbook, newest first: `{"responses": [...], "pagination": {"totalResponses": 17, ...}}`.
async fn list_responses(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let (limit, offset) = datasets::show::window(&call)?;
    let limit = limit.unwrap_or(MAX_ENTRIES).clamp(0, MAX_ENTRIES);
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let (guestbook, collection) = named(view, &id)?;
        editable(view, &asker, &collection)?;
        let filter = Expr::Is("guestbook".into(), guestbook.id.into());
        let n_all = view.count(&ENTRY, &filter)?;
        // Entries are stored in the order in which they were made; the page is counted from the end.
        let end = n_all.saturating_sub(offset.unsigned_abs());
        let start = end.saturating_sub(limit.unsigned_abs());
        let mut responses = Vec::new();
        for record in view.find(&ENTRY, &Query::filter(filter).window(start, end - start))? {
            let entry: Entry = stored::parsed(&record)?;
            responses.push(entry.json(view, &record.id)?);
        }
        responses.reverse();
        Ok(json!({
            "guestbookId": guestbook.id,
            "pagination": {"totalResponses": n_all, "offset": offset, "limit": limit},
            "responses": responses,
        }))
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

/// Answers with the entries of a collection's guestbooks, as CSV.
/// What a dataset and its files are called in the version that the caller sees.
#[derive(Default)]
struct Called {
    pid: String,
    title: String,
    /// Names of files, by number.
    files: HashMap<i64, String>,
}

impl Called {
    /// Returns names of a dataset: those of the newest published version, or of the draft for those who may see it.
    fn of(view: &mut View<'_>, asker: &Asker, id: i64) -> Result<Self, ApiError> {
        let Some(dataset) = datasets::by_id(view, id)? else { return Ok(Self::default()) };
        let shown = match (&dataset.last, &dataset.draft) {
            (Some(last), _) => Some((last.version, last.ordinal)),
            (None, Some(draft))
                if permissions::may(view, asker, dataset.place(), Permission::ViewUnpublishedDataset)? =>
            {
                Some((draft.version, draft.ordinal))
            }
            _ => None,
        };
        let mut called = Self { pid: dataset.pid.clone(), ..Self::default() };
        if let Some((version, ordinal)) = shown {
            called.title = version::title_of(&version::of_dataset(view, &dataset, version)?);
            rows::each_of_version(view, id, ordinal, |row| {
                called.files.insert(row.file, row.label);
            })?;
        }
        Ok(called)
    }
}

async fn responses_csv(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let only = call.query.number("guestbookId")?;
    let find = move |view: &mut View<'_>| -> Result<String, ApiError> {
        let collection = collections::find(view, &id)?;
        editable(view, &asker, &collection)?;
        let mut csv = String::from(
            "Guestbook, Dataset, Dataset PID, Date, Type, File Name, File Id, File PID, User Name, Email, Institution, Position, Custom Questions\n",
        );
        let mut called: HashMap<i64, Called> = HashMap::new();
        for guestbook in stored::find_by::<Guestbook>(view, &GUESTBOOK, "collection", collection.id)? {
            if only.is_some_and(|it| it != guestbook.id) {
                continue;
            }
            for entry in stored::find_by::<Entry>(view, &ENTRY, "guestbook", guestbook.id)? {
                let names = match called.entry(entry.dataset) {
                    hash_map::Entry::Occupied(known) => known.into_mut(),
                    hash_map::Entry::Vacant(new) => new.insert(Called::of(view, &asker, entry.dataset)?),
                };
                let text = |name: &str| entry.response.get(name).and_then(Value::as_str).unwrap_or_default();
                let cells = [
                    guestbook.name.as_str(),
                    &names.title,
                    &names.pid,
                    &entry.time,
                    entry.event(),
                    names.files.get(&entry.file).map_or("", String::as_str),
                    &entry.file.to_string(),
                    "",
                    text("name"),
                    text("email"),
                    text("institution"),
                    text("position"),
                ];
                let answers = entry.response.get("answers").and_then(Value::as_array).into_iter().flatten();
                let answers = answers.flat_map(|it| [&it["question"], &it["value"]]);
                let cells = cells.into_iter().chain(answers.map(|it| it.as_str().unwrap_or_default()));
                csv.push_str(&cells.map(cell).collect::<Vec<_>>().join(","));
                csv.push('\n');
            }
        }
        Ok(csv)
    };
    text_answer("text/csv", call.db().read(Weight::Scan, find).await?)
}
