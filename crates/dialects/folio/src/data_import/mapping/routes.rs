//! `/mapping-rules` and `/mapping-metadata` (section 7 of the contract).

use http::StatusCode;
use pinakes_store::{StoreError, View, Weight};
use serde_json::{Value, json};

use super::{RuleSet, Rules};
use crate::data_import;
use crate::data_import::mapping::stored::{MAPPING_RULES, stored_rules};
use crate::platform::app::Call;
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

pub(crate) fn routes(routes: Routes) -> Routes {
    let to = |name: &'static str| Access::Permission(name.into());
    routes
        .get("/mapping-rules/{type}", to("mapping-rules.get"), show)
        .put("/mapping-rules/{type}", to("mapping-rules.update"), replace)
        .put("/mapping-rules/{type}/restore", to("mapping-rules.restore"), restore)
        .get("/mapping-metadata/{id}", to("mapping-metadata.get"), of_job)
        .get("/mapping-metadata/type/{type}", to("mapping-metadata.get"), of_type)
}

fn set_of(call: &Call) -> Result<RuleSet, FolioError> {
    let name = call.param("type");
    RuleSet::named(name).ok_or_else(|| {
        let names: Vec<&str> = RuleSet::ALL.iter().map(|it| it.name()).collect();
        FolioError::bad_request(format!("Only {} are supported, found {name:?}", names.join(", ")))
    })
}

async fn show(call: Call) -> Answer {
    let set = set_of(&call)?;
    let text = call.db().read(Weight::Point, move |view| stored_rules(view, set)).await?;
    let rules: Value = serde_json::from_str(&text).unwrap_or_default();
    Ok(json_answer(StatusCode::OK, &rules))
}

async fn replace(mut call: Call) -> Answer {
    let set = set_of(&call)?;
    let bytes = call.bytes().await?;
    let wrong = |reason: String| FolioError::bad_request(format!("Can't update rules: {reason}"));
    let text = std::str::from_utf8(&bytes).map_err(|error| wrong(error.to_string()))?;
    Rules::parse(text).map_err(wrong)?;
    let rules: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let answered = rules.clone();
    call.db().write(move |txn| txn.put(&MAPPING_RULES, set.name(), &rules)).await?;
    Ok(json_answer(StatusCode::OK, &answered))
}

async fn restore(call: Call) -> Answer {
    let set = set_of(&call)?;
    call.db().write(move |txn| txn.delete(&MAPPING_RULES, set.name())).await?;
    let rules: Value = serde_json::from_str(set.default_text()).unwrap_or_default();
    Ok(json_answer(StatusCode::OK, &rules))
}

async fn of_job(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let set = call.query.get("type").and_then(RuleSet::named).unwrap_or(RuleSet::Bib);
    metadata(call, Some(id), set).await
}

async fn of_type(call: Call) -> Answer {
    let set = set_of(&call)?;
    metadata(call, None, set).await
}

async fn metadata(call: Call, job: Option<String>, set: RuleSet) -> Answer {
    let collections = call.app.collections;
    let read = move |view: &mut View<'_>| -> Result<Value, StoreError> {
        let rules = stored_rules(view, set)?;
        let parameters = data_import::reference(view, collections)?.parameters().to_string();
        let mut body = json!({"mappingRules": rules, "mappingParams": parameters});
        if let (Some(job), Value::Object(map)) = (&job, &mut body) {
            map.shift_insert(0, "jobExecutionId".into(), job.as_str().into());
        }
        Ok(body)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
