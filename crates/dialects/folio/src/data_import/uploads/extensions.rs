//! `/data-import/fileExtensions` and `/data-import/dataTypes`: which files are accepted.

use std::sync::LazyLock;

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Kind, Query, StoreError, Txn, Type, View, Weight};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{self, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};
use crate::platform::{cql, dates};
use crate::users::user::USERS;

/// Extensions, by id.
pub(super) static FILE_EXTENSION: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("extension", Type::Text)],
    ..Kind::named("folio_file_extension")
};

/// FOLIO's default extensions, with their ids.
static DEFAULTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    // A test checks that they are valid JSON.
    serde_json::from_str(include_str!("../../../reference/file-extensions.json")).unwrap_or_default()
});

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

fn all(view: &mut View<'_>) -> Result<Vec<Value>, StoreError> {
    let stored = view.find(&FILE_EXTENSION, &Query::filter(Expr::All))?;
    if stored.is_empty() {
        return Ok(DEFAULTS.clone());
    }
    stored.iter().map(|it| it.json()).collect()
}

/// Stores the defaults in the tenant at the first change.
fn materialise(txn: &mut Txn<'_>) -> Result<(), StoreError> {
    if txn.count(&FILE_EXTENSION, &Expr::All)? == 0 {
        for extension in &*DEFAULTS {
            let id = extension.get("id").and_then(Value::as_str).unwrap_or_default();
            txn.insert(&FILE_EXTENSION, id, extension)?;
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
fn checked(
    txn: &mut Txn<'_>,
    writer: &Writer,
    id: &str,
    body: &Map<String, Value>,
    old: Option<&Value>,
) -> Result<Value, FolioError> {
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
    body.insert("userInfo".into(), changed_by(txn, writer)?);
    let now = dates::rmb(writer.now_ms);
    let created = old.and_then(|it| it.pointer("/metadata/createdDate")).cloned();
    let creator = match old {
        Some(old) => old.pointer("/metadata/createdByUserId").cloned(),
        None => writer.user.clone().map(Value::from),
    };
    let mut metadata = Map::new();
    metadata.insert("createdDate".into(), created.unwrap_or_else(|| now.as_str().into()));
    metadata.extend(creator.map(|it| ("createdByUserId".to_owned(), it)));
    metadata.insert("updatedDate".into(), now.into());
    metadata.extend(writer.user.as_ref().map(|it| ("updatedByUserId".to_owned(), it.as_str().into())));
    body.insert("metadata".into(), Value::Object(metadata));
    Ok(Value::Object(body))
}

/// Returns the names of the user who changes an extension.
fn changed_by(view: &mut View<'_>, writer: &Writer) -> Result<Value, FolioError> {
    let user = writer.user.as_deref().map(|id| view.get(&USERS.kind, id)).transpose()?.flatten();
    let user = user.map(|it| it.json()).transpose()?.unwrap_or_default();
    let text = |path: &str| text_at(&user, path).unwrap_or_default();
    Ok(json!({
        "firstName": text("personal.firstName"), "lastName": text("personal.lastName"), "userName": text("username"),
    }))
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let given = body.get("id").and_then(Value::as_str).and_then(parse_uuid);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let writer = writer();
        let id = given.clone().unwrap_or_else(|| writer.new_uuid());
        let stored = checked(txn, &writer, &id, &body, None)?;
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
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        materialise(txn)?;
        let old = txn.get(&FILE_EXTENSION, &id)?.ok_or_else(|| not_found(&id))?.json()?;
        let stored = checked(txn, &writer(), &id, &body, Some(&old))?;
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
    Ok(json_answer(StatusCode::OK, &json!({"fileExtensions": *DEFAULTS, "totalRecords": DEFAULTS.len()})))
}

async fn data_types(_: Call) -> Answer {
    let types = ["Delimited", "EDIFACT", "MARC"];
    Ok(json_answer(StatusCode::OK, &json!({"dataTypes": types, "totalRecords": types.len()})))
}

pub(crate) fn to(name: &'static str) -> Access {
    Access::Permission(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_folio() {
        let blocked = DEFAULTS.iter().filter(|it| it["importBlocked"] == true).count();
        assert_eq!((DEFAULTS.len(), blocked), (13, 6));
    }
}
