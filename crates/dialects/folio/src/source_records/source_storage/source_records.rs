//! `/source-storage/source-records`: current records, by any of their ids.

use http::StatusCode;
use pinakes_store::{End, Expr, Query, Value as Condition, View, Weight};
use serde_json::{Value, json};

use super::{EXTERNAL_IDS, SOURCE_RECORD, access, as_source_record, record_not_found, resolve};
use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

pub(super) fn routes(routes: Routes) -> Routes {
    let base = "/source-storage/source-records";
    routes
        .get(base, access("source-storage.sourceRecords.collection.get"), list)
        .post(base, access("source-storage.sourceRecords.collection.post"), list_of_ids)
        .get("/source-storage/source-records/{id}", access("source-storage.sourceRecords.item.get"), by_id)
}

/// Returns the condition of the request's parameters.
pub(super) fn filter(call: &Call) -> Result<Expr, FolioError> {
    let query = &call.query;
    let is = |path: &str, value: &str| Expr::Is(path.into(), value.into());
    let mut all = vec![is("recordType", super::record_type(query)?)];
    match query.get("state") {
        Some(state) => all.push(is("state", state)),
        None if query.get("recordId").is_none() => all.push(match query.is_true("deleted") {
            true => Expr::In("state".into(), vec!["ACTUAL".into(), "DELETED".into()]),
            false => is("state", "ACTUAL"),
        }),
        None => {}
    }
    let any_of = |names: &[&str], value: &str| {
        Expr::Or(names.iter().map(|name| is(&format!("externalIdsHolder.{name}"), value)).collect())
    };
    for (name, path) in [
        ("recordId", "matchedId"),
        ("snapshotId", "snapshotId"),
        ("leaderRecordStatus", "leaderRecordStatus"),
    ] {
        all.extend(query.get(name).map(|it| is(path, it)));
    }
    for name in ["instanceId", "instanceHrid", "holdingsId", "holdingsHrid", "authorityId", "authorityHrid"] {
        all.extend(query.get(name).map(|it| is(&format!("externalIdsHolder.{name}"), it)));
    }
    all.extend(query.get("externalId").map(|it| any_of(&EXTERNAL_IDS, it)));
    all.extend(
        query.get("externalHrid").map(|it| any_of(&["instanceHrid", "holdingsHrid", "authorityHrid"], it)),
    );
    for (name, path) in
        [("suppressFromDiscovery", "additionalInfo.suppressDiscovery"), ("deleted", "deleted")]
    {
        if let Some(text) = query.get(name) {
            let value = text.eq_ignore_ascii_case("true");
            all.push(Expr::Is(path.into(), Condition::Boolean(value)));
        }
    }
    let instant = |name: &str| match query.get(name) {
        None => Ok(End::Open),
        Some(text) => dates::parse_ms(text)
            .map(|ms| End::Included(Condition::Instant(ms)))
            .ok_or_else(|| FolioError::bad_request(format!("{name} {text:?} is no date"))),
    };
    let (after, before) = (instant("updatedAfter")?, instant("updatedBefore")?);
    if after != End::Open || before != End::Open {
        all.push(Expr::Range("metadata.updatedDate".into(), after, before));
    }
    Ok(Expr::And(all))
}

async fn list(call: Call) -> Answer {
    let (offset, limit) = super::window(&call)?;
    let filter = filter(&call)?;
    let query =
        Query { order: super::orders(&call.query)?, ..Query::filter(filter.clone()) }.window(offset, limit);
    answer_list(&call, filter, query, limit).await
}

async fn answer_list(call: &Call, filter: Expr, query: Query, limit: u64) -> Answer {
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = if limit == 0 { Vec::new() } else { view.find(&SOURCE_RECORD, &query)? };
        let list = found.iter().map(|it| it.json().map(as_source_record)).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({"sourceRecords": list, "totalRecords": view.count(&SOURCE_RECORD, &filter)?}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Lists records by ids, sent by `POST`, of the type `idType`.
async fn list_of_ids(mut call: Call) -> Answer {
    let Value::Array(ids) = call.json().await? else {
        return Err(FolioError::bad_request("expected a list of ids"));
    };
    let ids: Vec<Condition> = ids.iter().filter_map(Value::as_str).map(Condition::from).collect();
    let path = match call.query.get("idType").unwrap_or("RECORD") {
        "INSTANCE" => "externalIdsHolder.instanceId",
        "HOLDINGS" => "externalIdsHolder.holdingsId",
        "AUTHORITY" => "externalIdsHolder.authorityId",
        _ => "matchedId",
    };
    let limit = ids.len() as u64;
    let deleted = call.query.is_true("deleted");
    let states = if deleted { vec!["ACTUAL".into(), "DELETED".into()] } else { vec!["ACTUAL".into()] };
    let filter = Expr::And(vec![
        Expr::In(path.into(), ids),
        Expr::Is("recordType".into(), super::record_type(&call.query)?.into()),
        Expr::In("state".into(), states),
    ]);
    let query = Query::filter(filter.clone()).window(0, limit);
    answer_list(&call, filter, query, limit).await
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let id_type = call.query.get("idType").unwrap_or("RECORD").to_owned();
    let state = call.query.get("state").unwrap_or("ACTUAL").to_owned();
    let found = call.db().read(Weight::Point, move |view| -> Result<Value, FolioError> {
        resolve(view, &id, &id_type, Some(&state))?.ok_or_else(|| record_not_found(&id))
    });
    Ok(json_answer(StatusCode::OK, &as_source_record(found.await?)))
}
