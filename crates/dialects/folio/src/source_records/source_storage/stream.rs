//! `/source-storage/stream`: one object per line, however many there are.

use std::ops::ControlFlow;

use http::{HeaderValue, StatusCode};
use pinakes_http::Sink;
use pinakes_http::answer;
use pinakes_store::{Expr, Query, View};
use serde_json::{Value, json};

use super::{
    EXTERNAL_IDS, SOURCE_RECORD, access, as_source_record, expression, records, shown, source_records,
};
use crate::platform::app::Call;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json as text_form;
use crate::platform::routes::Routes;

/// One JSON object per line.
const STREAM: HeaderValue = HeaderValue::from_static("application/stream+json");

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get(
            "/source-storage/stream/records",
            access("source-storage.stream.records.collection.get"),
            all_records,
        )
        .get(
            "/source-storage/stream/source-records",
            access("source-storage.stream.source-records.collection.get"),
            all_source_records,
        )
        .post(
            "/source-storage/stream/marc-record-identifiers",
            access("source-storage.stream.marc-record-identifiers.collection.post"),
            identifiers,
        )
}

async fn all_records(call: Call) -> Answer {
    let filter = records::filter(&call)?;
    stream(&call, filter, shown).await
}

async fn all_source_records(call: Call) -> Answer {
    let filter = source_records::filter(&call)?;
    stream(&call, filter, as_source_record).await
}

async fn stream(call: &Call, filter: Expr, shape: fn(Value) -> Value) -> Answer {
    let mut query = Query { order: super::orders(&call.query)?, ..Query::filter(filter) };
    query.skip = call.query.number("offset", 0)?;
    query.limit = call.query.get("limit").map(|_| call.query.number("limit", 0)).transpose()?;
    let limits = call.app.context.limits();
    let produce = move |view: &mut View<'_>, sink: &mut Sink| -> Result<(), FolioError> {
        view.for_each(&SOURCE_RECORD, &query, |record| {
            let line = match record.json() {
                Ok(body) => text_form::bytes(&shape(body)),
                Err(error) => {
                    tracing::warn!(%error, id = record.id, "a source record cannot be read");
                    return ControlFlow::Continue(());
                }
            };
            match sink.push(&line).and_then(|()| sink.push(b"\n")) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        Ok(())
    };
    let body = call.db().stream(limits, produce).await?;
    Ok(answer::with_body(StatusCode::OK, STREAM, body))
}

/// Lists the ids of the instances that the search finds: `{"records":[ids],"totalCount"}` in one line.
async fn identifiers(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (limits, now) = (call.app.context.limits(), expression::Search::of(&body)?);
    let produce = move |view: &mut View<'_>, sink: &mut Sink| -> Result<(), FolioError> {
        let mut ids = Vec::new();
        now.for_each(view, |body| {
            let external =
                EXTERNAL_IDS.iter().find_map(|name| body.pointer(&format!("/externalIdsHolder/{name}")));
            ids.extend(external.cloned());
            ControlFlow::Continue(())
        })?;
        let total = ids.len();
        let line = text_form::bytes(&json!({"records": ids, "totalCount": total}));
        // If the client has disconnected, the end of the list is not needed.
        let _ = sink.push(&line).and_then(|()| sink.push(b"\n"));
        Ok(())
    };
    let body = call.db().stream(limits, produce).await?;
    Ok(answer::with_body(StatusCode::OK, STREAM, body))
}
