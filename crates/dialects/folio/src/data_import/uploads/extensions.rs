//! `/data-import/fileExtensions` and `/data-import/dataTypes`: which files are accepted.

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Kind, Query, StoreError, Txn, Type, View, Weight};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{self, Writer};
use crate::platform::cql;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};

/// Extensions, by id.
pub(super) static FILE_EXTENSION: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("extension", Type::Text)],
    ..Kind::named("folio_file_extension")
};

/// Extension, whether it is blocked, and its data types.
const DEFAULTS: [(&str, bool, &[&str]); 23] = [
    (".csv", false, &["Delimited"]),
    (".dat", false, &["MARC"]),
    (".data", false, &["MARC"]),
    (".edi", false, &["EDIFACT"]),
    (".inv", false, &["EDIFACT"]),
    (".json", false, &["MARC"]),
    (".marc", false, &["MARC"]),
    (".mrc", false, &["MARC"]),
    (".mrc8", false, &["MARC"]),
    (".ord", false, &["MARC"]),
    (".out", false, &["MARC"]),
    (".txt", false, &["MARC"]),
    (".xml", false, &["MARC"]),
    (".doc", true, &[]),
    (".docx", true, &[]),
    (".gif", true, &[]),
    (".jpg", true, &[]),
    (".mrk", true, &[]),
    (".pdf", true, &[]),
    (".png", true, &[]),
    (".xls", true, &[]),
    (".xlsx", true, &[]),
    (".zip", true, &[]),
];

pub(super) fn routes(routes: Routes) -> Routes {
    let (base, item) = ("/data-import/fileExtensions", "/data-import/fileExtensions/{id}");
    routes
        .get(base, to("data-import.fileExtensions.get"), list)
        .post(base, to("data-import.fileExtensions.post"), create)
        .post(
            "/data-import/fileExtensions/restore/default",
            to("data-import.fileExtensions.default"),
            restore,
        )
        .get(item, to("data-import.fileExtensions.get"), by_id)
        .put(item, to("data-import.fileExtensions.put"), replace)
        .delete(item, to("data-import.fileExtensions.delete"), remove)
        .get("/data-import/dataTypes", to("data-import.datatypes.get"), data_types)
}

/// Returns FOLIO's default extensions. Their ids are derived from their position and equal in every tenant.
fn defaults() -> Vec<Value> {
    let one = |(at, (extension, blocked, types)): (usize, &(&str, bool, &[&str]))| {
        json!({"id": format!("9c3b0f6a-5c1e-4f5a-8b1d-0000000000{at:02x}"), "description": "", "extension": extension,
               "dataTypes": types, "importBlocked": blocked, "userInfo": {"firstName": "System", "lastName": "System",
               "userName": "System"}, "metadata": {}})
    };
    DEFAULTS.iter().enumerate().map(one).collect()
}

fn all(view: &mut View<'_>) -> Result<Vec<Value>, StoreError> {
    let stored = view.find(&FILE_EXTENSION, &Query::filter(Expr::All))?;
    if stored.is_empty() {
        return Ok(defaults());
    }
    stored.iter().map(|it| it.json()).collect()
}

/// Stores the defaults in the tenant at the first change.
fn materialise(txn: &mut Txn<'_>) -> Result<(), StoreError> {
    if txn.count(&FILE_EXTENSION, &Expr::All)? == 0 {
        for extension in defaults() {
            let id = extension.get("id").and_then(Value::as_str).unwrap_or_default();
            txn.insert(&FILE_EXTENSION, id, &extension)?;
        }
    }
    Ok(())
}

/// Refuses a file whose extension is blocked.
pub(super) fn refuse_blocked(view: &mut View<'_>, file_name: &str) -> Result<(), FolioError> {
    let Some((_, extension)) = file_name.rsplit_once('.') else { return Ok(()) };
    let extension = format!(".{}", extension.to_lowercase());
    let is_blocked = |it: &Value| {
        it.get("extension").and_then(Value::as_str) == Some(extension.as_str())
            && it.get("importBlocked").and_then(Value::as_bool) == Some(true)
    };
    if all(view)?.iter().any(is_blocked) {
        let fault = Fault::new("validation.uploadDefinition.fileExtension.blocked")
            .code("validation.uploadDefinition.fileExtension.blocked")
            .with("fileDefinition.name", file_name);
        return Err(FolioError::unprocessable(fault));
    }
    Ok(())
}

async fn list(call: Call) -> Answer {
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let parsed = collection::parsed(&call.app.settings, call.query.get("query").unwrap_or_default())?;
    let filter = cql::meaning(&parsed.condition, &FILE_EXTENSION, &cql::Names::PLAIN, &mut |_| {
        Ok::<_, FolioError>(None)
    })?;
    let mut list = call.db().read(Weight::Scan, all).await?;
    list.retain(|it| pinakes_store::matches(&filter, it));
    list.sort_by_key(|it| it.get("extension").and_then(Value::as_str).unwrap_or_default().to_owned());
    let total = list.len();
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let page: Vec<Value> = list.into_iter().skip(at(offset)).take(at(limit)).collect();
    Ok(json_answer(StatusCode::OK, &json!({"fileExtensions": page, "totalRecords": total})))
}

fn not_found(id: &str) -> FolioError {
    FolioError::not_found(format!("FileExtension with id '{id}' was not found"))
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let found = call.db().read(Weight::Scan, all).await?;
    let found = found.into_iter().find(|it| it.get("id").and_then(Value::as_str) == Some(id.as_str()));
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(|| not_found(&id))?))
}

/// Returns the extension in its stored form: with a dot, in lower case, and unique.
fn checked(txn: &mut Txn<'_>, id: &str, body: &Map<String, Value>) -> Result<Value, FolioError> {
    let refuse = |code: &str, value: &str| {
        Err(FolioError::unprocessable(Fault::new(code).code(code).with("fileExtension.extension", value)))
    };
    let text = body.get("extension").and_then(Value::as_str);
    let text = text.ok_or_else(|| FolioError::unprocessable(Fault::missing("extension")))?;
    if !text.starts_with('.') || text.len() < 2 || text[1..].contains(|it: char| !it.is_alphanumeric()) {
        return refuse("fileExtension.extension.invalid", text);
    }
    let extension = text.to_lowercase();
    let is_other = |it: &Value| {
        it.get("extension").and_then(Value::as_str) == Some(extension.as_str())
            && it.get("id").and_then(Value::as_str) != Some(id)
    };
    if all(txn)?.iter().any(is_other) {
        return refuse("fileExtension.duplication.invalid", text);
    }
    let mut body = body.clone();
    body.insert("id".into(), id.into());
    body.insert("extension".into(), extension.into());
    body.entry("dataTypes").or_insert_with(|| json!([]));
    body.entry("importBlocked").or_insert_with(|| false.into());
    Ok(Value::Object(body))
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let given = body.get("id").and_then(Value::as_str).and_then(parse_uuid);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let id = given.clone().unwrap_or_else(|| writer().new_uuid());
        let stored = checked(txn, &id, &body)?;
        materialise(txn)?;
        txn.insert(&FILE_EXTENSION, &id, &stored)?;
        Ok(stored)
    };
    let stored = call.db().write(write).await?;
    let id = stored.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let answer = json_answer(StatusCode::CREATED, &stored);
    Ok(answer::with_header(answer, LOCATION, &format!("/data-import/fileExtensions/{id}")))
}

async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        materialise(txn)?;
        if !txn.has(&FILE_EXTENSION, &id)? {
            return Err(not_found(&id));
        }
        let stored = checked(txn, &id, &body)?;
        txn.update(&FILE_EXTENSION, &id, &stored)?;
        Ok(stored)
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

async fn remove(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        materialise(txn)?;
        txn.delete(&FILE_EXTENSION, &id)?.map(drop).ok_or_else(|| not_found(&id))
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn restore(call: Call) -> Answer {
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        txn.clear(&FILE_EXTENSION)?;
        materialise(txn)?;
        Ok(())
    };
    call.db().write(write).await?;
    let list = defaults();
    let total = list.len();
    Ok(json_answer(StatusCode::OK, &json!({"fileExtensions": list, "totalRecords": total})))
}

async fn data_types(_: Call) -> Answer {
    let types = ["Delimited", "EDIFACT", "MARC"];
    Ok(json_answer(StatusCode::OK, &json!({"dataTypes": types, "totalRecords": types.len()})))
}

pub(crate) fn to(name: &'static str) -> Access {
    Access::Permission(name.into())
}
