//! `/field-protection-settings/marc`: MARC fields that updates do not change.

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Expr, Kind, Query, StoreError, View, Weight};
use serde_json::{Map, Value, json};

use crate::data_import::Protection;
use crate::platform::app::Call;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Settings that a site created, by id.
pub(super) static SETTING: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_marc_field_protection") };

const PATH: &str = "/field-protection-settings/marc";

pub(super) fn routes(routes: Routes) -> Routes {
    let to = |name: &'static str| Access::Permission(name.into());
    routes
        .get(PATH, to("converter-storage.field-protection-settings.get"), list)
        .post(PATH, to("converter-storage.field-protection-settings.post"), create)
        .get(
            "/field-protection-settings/marc/{id}",
            to("converter-storage.field-protection-settings.get"),
            by_id,
        )
        .put(
            "/field-protection-settings/marc/{id}",
            to("converter-storage.field-protection-settings.put"),
            replace,
        )
        .delete(
            "/field-protection-settings/marc/{id}",
            to("converter-storage.field-protection-settings.delete"),
            remove,
        )
}

fn system() -> Vec<Value> {
    let setting = |id: &str, field: &str, indicator: &str, subfield: &str| {
        json!({"id": id, "field": field, "indicator1": indicator, "indicator2": indicator, "subfield": subfield,
               "data": "*", "source": "SYSTEM", "override": false})
    };
    vec![
        setting("2d706874-8a10-4d3e-a190-33c301d157e3", "001", "", ""),
        setting("82d0b904-f8b0-4cc2-b238-7d8cddef7b7e", "999", "f", "*"),
    ]
}

fn all(view: &mut View<'_>) -> Result<Vec<Value>, StoreError> {
    let mut list = system();
    for record in view.find(&SETTING, &Query::filter(Expr::All))? {
        list.push(record.json()?);
    }
    Ok(list)
}

/// Returns the fields that updates do not change.
pub(crate) fn protections(view: &mut View<'_>) -> Result<Vec<Protection>, StoreError> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let first = |text: String, other: char| text.chars().next().unwrap_or(other);
    let read = |it: &Value| Protection {
        id: text(it, "id"),
        tag: text(it, "field"),
        indicators: [first(text(it, "indicator1"), ' '), first(text(it, "indicator2"), ' ')],
        subfield: first(text(it, "subfield"), '*'),
        data: Some(text(it, "data")).filter(|it| !it.is_empty()).unwrap_or_else(|| "*".to_owned()),
    };
    Ok(all(view)?.iter().map(read).collect())
}

async fn list(call: Call) -> Answer {
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let list = call.db().read(Weight::Scan, all).await?;
    let total = list.len();
    let (offset, limit) =
        (usize::try_from(offset).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX));
    let page: Vec<Value> = list.into_iter().skip(offset).take(limit).collect();
    Ok(json_answer(StatusCode::OK, &json!({"marcFieldProtectionSettings": page, "totalRecords": total})))
}

fn not_found(id: &str) -> FolioError {
    FolioError::not_found(format!("MARC field protection setting with id '{id}' was not found"))
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let list = call.db().read(Weight::Scan, all).await?;
    let found = list.into_iter().find(|it| it.get("id").and_then(Value::as_str) == Some(id.as_str()));
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(|| not_found(&id))?))
}

fn checked(body: &mut Map<String, Value>) -> Result<(), FolioError> {
    let tag = body.get("field").and_then(Value::as_str).unwrap_or_default();
    if tag.len() != 3 {
        return Err(FolioError::unprocessable(Fault::missing("field")));
    }
    for name in ["indicator1", "indicator2", "subfield"] {
        body.entry(name).or_insert_with(|| "*".into());
    }
    body.entry("data").or_insert_with(|| "*".into());
    body.insert("source".into(), "USER".into());
    Ok(())
}

async fn create(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    checked(&mut body)?;
    let id = body
        .get("id")
        .and_then(Value::as_str)
        .and_then(crate::platform::values::parse_uuid)
        .unwrap_or_else(|| call.app.new_uuid());
    body.insert("id".into(), id.as_str().into());
    let (at, stored) = (id.clone(), Value::Object(body));
    let answered = stored.clone();
    call.db().write(move |txn| txn.insert(&SETTING, &at, &stored)).await?;
    let answer = json_answer(StatusCode::CREATED, &answered);
    Ok(answer::with_header(answer, LOCATION, &format!("{PATH}/{id}")))
}

fn refuse_system(id: &str) -> Result<(), FolioError> {
    let is_system = system().iter().any(|it| it.get("id").and_then(Value::as_str) == Some(id));
    if is_system {
        Err(FolioError::bad_request("SYSTEM settings cannot be changed or deleted"))
    } else {
        Ok(())
    }
}

async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    refuse_system(&id)?;
    let mut body = call.object().await?;
    checked(&mut body)?;
    body.insert("id".into(), id.as_str().into());
    let stored = Value::Object(body);
    let answered = stored.clone();
    call.db()
        .write(move |txn| -> Result<(), FolioError> {
            if !txn.has(&SETTING, &id)? {
                return Err(not_found(&id));
            }
            txn.update(&SETTING, &id, &stored)?;
            Ok(())
        })
        .await?;
    Ok(json_answer(StatusCode::OK, &answered))
}

async fn remove(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    refuse_system(&id)?;
    call.db()
        .write(move |txn| -> Result<(), FolioError> {
            txn.delete(&SETTING, &id)?.map(drop).ok_or_else(|| not_found(&id))
        })
        .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
