//! `/copycat`: imports of single records, fetched from another catalogue by Z39.50 or sent by the client (mod-copycat).
//!
//! | file | what |
//! |---|---|
//! | `target.rs` | the session with the Z39.50 server |
//! | `pqf.rs`, `ber.rs` | encoding of queries and messages |
//!
//! A profile says where records come from, how to query for them, and which job profiles import them: one for a new
//! record, one for an existing instance.

mod ber;
mod pqf;
mod target;

use std::time::Duration;

use base64::Engine as _;
use http::StatusCode;
use pinakes_marc::{DataField, Encoding, Field, Format, RawRecord, Record, Tag};
use pinakes_store::{Expr, Query, StoreError, Txn, View, Weight};
use serde_json::{Map, Value};

use crate::data_import::change_manager::{Chunk, associate, run_by, store_chunk};
use crate::data_import::journal::stored::each_batch_of;
use crate::data_import::{Job, NewJob};
use crate::platform::app::Call;
use crate::platform::collection::{Collection, Kinds, Schema, Writer};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::limits::{COPYCAT_LOOK_MS, COPYCAT_WAIT_S};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};
use crate::source_records::marc;
use crate::source_records::source_storage::{self, SOURCE_RECORD};
use target::Target;

/// `/copycat/profiles`: the sources of single records.
pub(crate) static PROFILES: Collection = Collection {
    permission: "copycat.profiles",
    schema: Schema {
        required: &["name"],
        types: &[
            ("name", Kinds::Text),
            ("url", Kinds::Text),
            ("authentication", Kinds::Text),
            ("externalIdQueryMap", Kinds::Text),
            ("internalIdEmbedPath", Kinds::Text),
            ("createJobProfileId", Kinds::Uuid),
            ("updateJobProfileId", Kinds::Uuid),
            ("allowedCreateJobProfileIds", Kinds::List),
            ("allowedUpdateJobProfileIds", Kinds::List),
            ("targetOptions", Kinds::Object),
            ("externalIdentifierType", Kinds::Uuid),
            ("enabled", Kinds::Boolean),
        ],
        ..Schema::OPEN
    },
    names: Names { fields: &["displayName"], ..Names::PLAIN },
    reference_data: include_str!("../../reference/copycat-profiles.json"),
    ..Collection::named("/copycat/profiles", "profiles", "folio_copycat_profile")
};

/// Default place in a record for the id of its instance.
const EMBED_PATH: &str = "999ff$i";
/// Placeholders for the identifier in a profile's query.
const IDENTIFIER: [&str; 2] = ["$identifier", "${identifier}"];

/// Adds the route beyond the collection.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/copycat/imports", Access::to("copycat.imports.post"), import)
}

fn refused(message: impl Into<String>) -> FolioError {
    FolioError::faults(StatusCode::BAD_REQUEST, vec![Fault::new(message)])
}

/// Imports a record, `{"profileId","externalIdentifier"|"record","internalIdentifier"?,"selectedJobProfileId"?}`: as a
/// new instance, or as the new state of the one named. Answers the same object with `internalIdentifier`, the id of the
/// instance.
///
/// Errors: 400 with the reason for an unknown profile, a server that does not have the record or does not answer, or a
/// record that cannot be imported.
async fn import(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    let profile_id = required_text(&body, "profileId")?.to_owned();
    let id = profile_id.clone();
    let profile = call.db().read(Weight::Point, move |view| view.get(&PROFILES.kind, &id)).await?;
    let profile = profile.ok_or_else(|| refused(format!("No such profile {profile_id}")))?.json()?;
    let instance = match body.get("internalIdentifier").and_then(Value::as_str) {
        None | Some("") => None,
        Some(text) => {
            Some(parse_uuid(text).ok_or_else(|| refused(format!("internalIdentifier {text:?} is no UUID")))?)
        }
    };
    let job_profile = job_profile(&profile, &body, instance.is_some())?;
    let mut record = match body.get("record").filter(|it| it.is_object()) {
        Some(given) => given_record(given)?,
        None => fetched(&profile, &body).await?,
    };
    if let Some(instance) = &instance {
        let path = text_at(&profile, "internalIdEmbedPath").unwrap_or(EMBED_PATH);
        embed(&mut record, path, instance)?;
    }
    let found = run(&call, &job_profile, &record).await?;
    body.insert("internalIdentifier".into(), found.into());
    Ok(json_answer(StatusCode::OK, &Value::Object(body)))
}

/// Returns the job profile for the import: the selected one if the profile allows it, otherwise the profile's default.
fn job_profile(profile: &Value, body: &Map<String, Value>, is_update: bool) -> Result<String, FolioError> {
    let (own, allowed) = match is_update {
        true => ("updateJobProfileId", "allowedUpdateJobProfileIds"),
        false => ("createJobProfileId", "allowedCreateJobProfileIds"),
    };
    let chosen = body.get("selectedJobProfileId").and_then(Value::as_str).filter(|it| !it.is_empty());
    let Some(chosen) = chosen else {
        let found = text_at(profile, own).map(str::to_owned);
        return found.ok_or_else(|| refused(format!("the profile has no {own}")));
    };
    let is_own = text_at(profile, own) == Some(chosen);
    let is_allowed = match profile.get(allowed).and_then(Value::as_array) {
        Some(list) => list.iter().any(|it| it == chosen),
        None => true,
    };
    if is_own || is_allowed {
        return Ok(chosen.to_owned());
    }
    Err(refused(format!("the job profile {chosen} is not one of {allowed} of the profile")))
}

fn parsed(format: Format, bytes: &[u8]) -> Result<Record, FolioError> {
    let record = pinakes_marc::parse(format, Encoding::Leader, RawRecord::alone(bytes)).record;
    record.filter(|it| !it.fields.is_empty()).ok_or_else(|| refused("what came is no MARC record"))
}

/// Parses `{"json":{…}}` in MARC-in-JSON, or `{"marc":"…"}` in ISO 2709, base64.
fn given_record(given: &Value) -> Result<Record, FolioError> {
    if let Some(content) = given.get("json").filter(|it| !it.is_null()) {
        return marc::from_value(content).ok_or_else(|| refused("record.json is no MARC-in-JSON"));
    }
    let text = text_at(given, "marc").ok_or_else(|| refused("record must have json or marc"))?;
    let decoded = base64::engine::general_purpose::STANDARD.decode(text.trim());
    let bytes = decoded.map_err(|error| refused(format!("record.marc is no base64: {error}")))?;
    parsed(Format::Iso2709, &bytes)
}

/// Fetches the record from the profile's server.
async fn fetched(profile: &Value, body: &Map<String, Value>) -> Result<Record, FolioError> {
    let identifier = body.get("externalIdentifier").and_then(Value::as_str).unwrap_or_default().trim();
    if identifier.is_empty() {
        return Err(refused("externalIdentifier or record is required"));
    }
    let quoted = format!("\"{}\"", identifier.replace('\\', "\\\\").replace('"', "\\\""));
    let map = text_at(profile, "externalIdQueryMap").unwrap_or("@attr 1=1007 $identifier");
    let text = IDENTIFIER.iter().rev().fold(map.to_owned(), |text, it| text.replace(it, &quoted));
    let query =
        pqf::read(&text).map_err(|error| refused(format!("externalIdQueryMap of the profile: {error}")))?;
    let url = text_at(profile, "url").unwrap_or_default();
    let mut target = Target::read(url).map_err(|error| refused(error.to_string()))?;
    target.login = text_at(profile, "authentication").filter(|it| !it.is_empty()).map(str::to_owned);
    let asked = tokio::task::spawn_blocking(move || target.first(&query)).await;
    let bytes = asked.map_err(|_| StoreError::Panicked)?.map_err(|error| refused(error.to_string()))?;
    parsed(Format::Iso2709, &bytes)
}

/// Writes an id into a place such as `999ff$i`.
fn embed(record: &mut Record, path: &str, id: &str) -> Result<(), FolioError> {
    let bad =
        || refused(format!("internalIdEmbedPath {path:?} is no place in a record, such as {EMBED_PATH}"));
    let (field, code) = path.split_once('$').ok_or_else(bad)?;
    let code = code.chars().next().ok_or_else(bad)?;
    let characters: Vec<char> = field.chars().collect();
    let [a, b, c, rest @ ..] = characters.as_slice() else { return Err(bad()) };
    let name: String = [*a, *b, *c].iter().collect();
    let tag = Tag::try_from(name.as_str()).map_err(|_| bad())?;
    let indicator = |n: usize| rest.get(n).copied().unwrap_or(' ');
    let indicators = [indicator(0), indicator(1)];
    record.remove_where(|it| match it {
        Field::Data(field) => *field.tag.as_str() == *name.as_str() && field.indicators == indicators,
        Field::Control(_) => false,
    });
    record.push(DataField { tag, indicators, subfields: Vec::new() }.with(code, id));
    Ok(())
}

/// Imports one record and waits for the result: the id of its instance.
async fn run(call: &Call, profile: &str, record: &Record) -> Result<String, FolioError> {
    let content = marc::to_value(record).to_string();
    let user = call.asker.user_id().unwrap_or_default();
    let (writer, now_ms) = (Writer::of(call), call.app.now_ms());
    let profile = profile.to_owned();
    let begin = move |txn: &mut Txn<'_>| -> Result<Result<String, String>, FolioError> {
        let writer = writer();
        let id = writer.new_uuid();
        let run_by = run_by(txn, Some(&user), &user)?;
        let mut job = Job::create(
            txn,
            NewJob {
                id: id.clone(),
                parent: id.clone(),
                subordination: "PARENT_SINGLE",
                file_name: "No file name".to_owned(),
                user_id: user.clone(),
                run_by,
                profile: None,
                now_ms,
            },
        )?;
        if let Err(message) = associate(txn, &writer, &mut job, &profile, "MARC")? {
            return Ok(Err(message));
        }
        job.save(txn)?;
        source_storage::put_snapshot(txn, &id, "NEW", now_ms)?;
        let chunk = Chunk::of_one(writer.new_uuid(), "MARC_JSON", &content);
        store_chunk(txn, &id, &chunk, true, now_ms)?;
        Ok(Ok(id))
    };
    let job = call.db().write(begin).await?.map_err(refused)?;
    call.app.imports.wake(call.db().tenant());
    let looks = COPYCAT_WAIT_S * 1_000 / COPYCAT_LOOK_MS;
    for _ in 0..looks {
        let id = job.clone();
        let read = move |view: &mut View<'_>| -> Result<Option<Result<String, String>>, FolioError> {
            let found = Job::get(view, &id)?.ok_or_else(|| crate::data_import::job::not_found(&id))?;
            if !found.is_final() { Ok(None) } else { Ok(Some(outcome(view, &id)?)) }
        };
        if let Some(done) = call.db().read(Weight::Scan, read).await? {
            return done.map_err(refused);
        }
        tokio::time::sleep(Duration::from_millis(COPYCAT_LOOK_MS)).await;
    }
    Err(refused(format!("the import takes longer than {COPYCAT_WAIT_S} s; its job is {job}")))
}

/// Returns the instance that a one-record job created or changed, or the reason why it did not.
fn outcome(view: &mut View<'_>, job: &str) -> Result<Result<String, String>, FolioError> {
    let of_job = Query::filter(Expr::Is("snapshotId".into(), job.into()));
    for record in view.find(&SOURCE_RECORD, &of_job)? {
        if let Some(id) = text_at(&record.json()?, "externalIdsHolder.instanceId") {
            return Ok(Ok(id.to_owned()));
        }
    }
    let (mut instance, mut reason) = (None, String::new());
    each_batch_of(view, job, false, |_, batch| {
        for entry in &batch.entries {
            // An update of only the instance stores no source record.
            let made = entry.rows().find(|row| row[0] == "INSTANCE" && !row[1].is_empty());
            instance = instance.take().or_else(|| made.map(|row| row[1].to_owned()));
            if !entry.error.0.is_empty() {
                reason = entry.error.0.to_string();
            }
        }
        Ok(())
    })?;
    if let Some(id) = instance {
        return Ok(Ok(id));
    }
    Ok(Err(match reason.as_str() {
        "" => "the job profile made no instance of the record".to_owned(),
        reason => reason.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_are_written_where_the_profile_says() -> Result<(), FolioError> {
        let content = json!({"leader": "00000nam a2200000 a 4500", "fields": [
            {"001": "1"}, {"999": {"ind1": "f", "ind2": "f", "subfields": [{"i": "old"}]}},
        ]});
        let mut record = marc::from_value(&content).ok_or_else(|| refused("no record"))?;
        embed(&mut record, "999ff$i", "new")?;
        assert_eq!(marc::to_value(&record)["fields"][1]["999"]["subfields"], json!([{"i": "new"}]));
        assert!(embed(&mut record, "999", "new").is_err());
        Ok(())
    }
}
