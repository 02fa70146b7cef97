//! `/authority-source-files`: where authorities come from, recognised by the letters with which their ids begin.

use http::StatusCode;
use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{
    Collection, Hooks, Kinds, Lock, Manner, Metadata, Missing, Schema, Unique, Writer, in_manner, put,
};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// `/authority-source-files`.
pub static SOURCE_FILES: Collection = Collection {
    permission: "inventory-storage.authority-source-files",
    table: "authority_source_file",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("name", Type::Folded),
            Column::one("source", Type::Folded),
            Column::many("codes", Type::Text),
        ],
        indexes: &[Index::unique(&["name"])],
        ..Kind::named("folio_authority_source_file")
    },
    schema: Schema {
        required: &["name", "codes", "source"],
        types: &[
            ("name", Kinds::Text),
            ("codes", Kinds::List),
            ("type", Kinds::Text),
            ("baseUrl", Kinds::Text),
            ("source", Kinds::Text),
            ("selectable", Kinds::Boolean),
            ("hridManagement", Kinds::Object),
        ],
        defaults: &[("selectable", "false")],
        ..Schema::OPEN
    },
    unique: &[Unique {
        column: "name",
        message: "Authority source file with the given 'name' already exists.",
    }],
    names: Names { whole: &["source"], ..Names::PLAIN },
    metadata: Metadata::Micros,
    missing: Some(("Authority Source File", "AuthoritySourceFileNotFoundException")),
    manner: Manner::Links,
    hooks: Hooks { prepare, deleting: keep_defaults, ..Hooks::NONE },
    reference_data: include_str!("../../reference/authority-source-files.json"),
    ..Collection::named("/authority-source-files", "authoritySourceFiles", "folio_authority_source_file")
};

/// Adds the routes beyond the collection's.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .on(
            http::Method::PATCH,
            "/authority-source-files/{id}",
            Access::to("inventory-storage.authority-source-files.item.patch"),
            |call| in_manner(call, &SOURCE_FILES, true, patch),
        )
        .post(
            "/authority-source-files/{id}/hridGenerate",
            Access::to("inventory-storage.authority-source-files.hrid.post"),
            |call| async move {
                let (_, hrid) = next_hrid(call).await?;
                Ok(json_answer(StatusCode::OK, &json!({"id": hrid})))
            },
        )
        .post(
            "/authority-source-files/{id}/hrid",
            Access::to("inventory-storage.authority-source-files.hrid.post"),
            |call| async move {
                let (file, hrid) = next_hrid(call).await?;
                Ok(json_answer(StatusCode::OK, &json!({"id": file, "hrid": hrid})))
            },
        )
}

/// Accepts a local file as `{name, code}` and checks its codes: only letters, and each used by one file only.
fn prepare(
    txn: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    if let Some(code) = body.shift_remove("code").filter(|it| !it.is_null()) {
        body.insert("codes".to_owned(), json!([code]));
    } else if old.is_none() && body.get("codes").is_none_or(Value::is_null) {
        return Err(FolioError::unprocessable(Fault::missing("code")));
    }
    if body.get("source").is_none_or(Value::is_null) {
        body.insert("source".to_owned(), "local".into());
    }
    let id = body.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    for code in body.get("codes").and_then(Value::as_array).into_iter().flatten() {
        let code = code.as_str().unwrap_or_default();
        if code.is_empty() || !code.bytes().all(|it| it.is_ascii_alphabetic()) {
            let fault = Fault::new("Authority Source File prefix should be non-empty sequence of letters");
            return Err(FolioError::unprocessable(
                fault.ty("RequestBodyValidationException").code("validation-error").with("code", code),
            ));
        }
        let other = txn.first(&SOURCE_FILES.kind, Expr::Is("codes".into(), code.into()))?;
        if other.is_some_and(|it| it.id != id) {
            let fault = Fault::new("Authority source file with the given 'code' already exists.");
            return Err(FolioError::unprocessable(
                fault
                    .ty("DataIntegrityViolationException")
                    .code("duplicate.authority-source-file.code")
                    .with("code", code),
            ));
        }
    }
    check_url(txn, body, &id)
}

/// Refuses an address that another file has, whatever the protocol.
fn check_url(view: &mut View<'_>, body: &Map<String, Value>, id: &str) -> Result<(), FolioError> {
    let bare = |url: &str| url.split_once("://").map_or(url, |(_, rest)| rest).to_lowercase();
    let Some(url) = body.get("baseUrl").and_then(Value::as_str).filter(|it| !it.is_empty()) else {
        return Ok(());
    };
    for record in view.find(&SOURCE_FILES.kind, &Query::filter(Expr::Exists("baseUrl".into())))? {
        let other = record.json()?;
        if record.id != id && text_at(&other, "baseUrl").is_some_and(|it| bare(it) == bare(url)) {
            let fault = Fault::new("Authority source file with the given 'url' already exists.");
            let fault =
                fault.ty("DataIntegrityViolationException").code("duplicate.authority-source-file.url");
            return Err(FolioError::unprocessable(fault.with("url", url)));
        }
    }
    Ok(())
}

/// Refuses to delete the files that every tenant has.
fn keep_defaults(_: &mut Txn<'_>, _: &Writer, body: &Value) -> Result<(), FolioError> {
    if body.get("source").and_then(Value::as_str) != Some("folio") {
        return Ok(());
    }
    let fault = Fault::new("Cannot delete Authority source file with source 'folio'");
    Err(FolioError::unprocessable(fault.ty("RequestBodyValidationException").code("validation-error")))
}

/// Changes the properties that are given.
async fn patch(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let changes = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let Some(record) = txn.get(&SOURCE_FILES.kind, &id)? else { return Err(SOURCE_FILES.not_found(&id)) };
        let Value::Object(mut body) = record.json()? else { return Err(SOURCE_FILES.not_found(&id)) };
        body.extend(changes.clone());
        put(txn, &writer(), &SOURCE_FILES, &id, body, Missing::Refuse, Lock::Ignored).map(drop)
    };
    call.db().write(write).await?;
    Ok(pinakes_http::answer::empty(StatusCode::NO_CONTENT))
}

/// Returns the id of a local file and the next authority id in it: the file's code and a number that is never reused.
async fn next_hrid(call: Call) -> Result<(String, String), FolioError> {
    let id = call.uuid_param("id")?;
    let file = id.clone();
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<String, FolioError> {
        let Some(record) = txn.get(&SOURCE_FILES.kind, &id)? else { return Err(SOURCE_FILES.not_found(&id)) };
        let Value::Object(mut body) = record.json()? else { return Err(SOURCE_FILES.not_found(&id)) };
        let code =
            body.get("codes").and_then(|it| it.get(0)).and_then(Value::as_str).unwrap_or_default().to_owned();
        let management = body.get("hridManagement").cloned().unwrap_or_default();
        let start = management.get("startNumber").and_then(Value::as_u64);
        let Some(start) = start else {
            let fault = Fault::new("Authority source file has no hridManagement with a startNumber");
            return Err(FolioError::unprocessable(
                fault.ty("AuthoritySourceFileHridException").code("not-supported"),
            ));
        };
        let prefix = management.get("prefix").and_then(Value::as_str).unwrap_or(&code);
        let given = format!("{prefix}{start}");
        let mut next = management.clone();
        next["startNumber"] = (start + 1).into();
        body.insert("hridManagement".to_owned(), next);
        put(txn, &writer(), &SOURCE_FILES, &id, body, Missing::Refuse, Lock::Ignored)?;
        Ok(given)
    };
    Ok((file, call.db().write(write).await?))
}
