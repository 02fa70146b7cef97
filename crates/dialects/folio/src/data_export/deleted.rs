//! `POST /data-export/export-deleted`: exports the MARC records of deleted instances.

use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_store::{Expr, Query, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::data_export::run;
use crate::data_export::start::{new_job, profile, run_by};
use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::values::json_answer;
use crate::source_records::source_storage::SOURCE_RECORD;

/// The first and the last day of the export, as 005 writes them; either may be missing.
struct Days(Option<String>, Option<String>);

impl Days {
    fn of(body: &Map<String, Value>) -> Result<Self, FolioError> {
        let day = |name: &str| -> Result<Option<String>, FolioError> {
            let Some(text) = body.get(name).and_then(Value::as_str).filter(|it| !it.is_empty()) else {
                return Ok(None);
            };
            let at_ms = dates::parse_ms(text).ok_or_else(|| {
                FolioError::bad_request(format!("{name} is {text:?}, expected a day such as 2026-01-31"))
            })?;
            Ok(Some(dates::marc_005(at_ms)[..8].to_owned()))
        };
        Ok(Self(day("from")?, day("to")?))
    }

    fn hold(&self, source: &Value) -> bool {
        let fields = source.pointer("/parsedRecord/content/fields").and_then(Value::as_array);
        let changed = fields.into_iter().flatten().find_map(|it| it.get("005")?.as_str()?.get(..8));
        let Self(from, to) = self;
        match changed {
            Some(day) => {
                from.as_deref().is_none_or(|it| it <= day) && to.as_deref().is_none_or(|it| day <= it)
            }
            None => from.is_none() && to.is_none(),
        }
    }
}

/// Runs a job for the bibliographic records that are deleted: `{from?, to?}`, the days of their last change.
pub(super) async fn export_deleted(mut call: Call) -> Answer {
    let bytes = call.bytes().await?;
    let body: Value = if bytes.iter().all(u8::is_ascii_whitespace) {
        json!({})
    } else {
        let limits = call.app.context.limits();
        pinakes_http::body::parse_json(&bytes, limits)
            .map_err(|fault| FolioError::bad_request(format!("Json content error: {fault}")))?
    };
    let Value::Object(body) = body else {
        return Err(FolioError::bad_request("Json content error: expected an object"));
    };
    let days = Days::of(&body)?;
    let read = move |view: &mut View<'_>| -> Result<Vec<String>, FolioError> {
        let is_deleted = Expr::Is("leaderRecordStatus".into(), "d".into());
        let states = Expr::In("state".into(), vec!["ACTUAL".into(), "DELETED".into()]);
        let filter = Expr::Is("recordType".into(), "MARC_BIB".into()).and(is_deleted).and(states);
        let mut ids: Vec<String> = Vec::new();
        view.for_each_body(&SOURCE_RECORD, &Query::filter(filter), |_, source| {
            if let Some(id) = text_at(&source, "externalIdsHolder.instanceId")
                && days.hold(&source)
            {
                ids.push(id.to_owned());
            }
            ControlFlow::Continue(())
        })?;
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    };
    let ids = call.db().read(Weight::Scan, read).await?;
    let (id, now_ms, by) = (call.app.new_uuid(), call.app.now_ms(), run_by(&call));
    let name = format!("marc-deleted-ids-{}.csv", &dates::marc_005(now_ms)[..8]);
    let at = id.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<run::How, FolioError> {
        let profile = profile(txn, None, "INSTANCE")?;
        new_job(txn, &at, &profile, &by, &name, now_ms)?;
        run::How::of(txn, &profile)
    };
    let how = call.db().write(write).await?;
    run::start(&call, id.clone(), run::Plan { kind: "INSTANCE", wanted: run::Wanted::Ids(ids), how });
    Ok(json_answer(StatusCode::OK, &json!({"jobExecutionId": id})))
}
