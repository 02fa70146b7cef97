//! Revisions of a topic, and restoring them.

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use minijinja::{Value, context};
use pinakes_store::{Direction, Expr, Query, Record, Weight};

use super::editing::to_topic;
use super::form::wiki_of;
use crate::call::{Editing, Reading};
use crate::error::{ConclaveError, Result};
use crate::kinds::REVISION;
use crate::model::{Topic, key};
use crate::text::topic_href_raw;

/// Maximum number of revisions on the page.
const LISTED_MAX: u64 = 50;

fn was(record: &Record) -> Result<(Topic, serde_json::Value)> {
    let mut body = record.json()?;
    let was = serde_json::from_value(body["was"].take());
    Ok((was.map_err(|error| ConclaveError::damaged(error.to_string()))?, body))
}

/// Lists the revisions of a topic, the latest first. Revisions may contain what was removed on purpose, so only editors
/// see them.
pub(super) async fn list(call: Reading) -> Result<Response> {
    let id = call.params.required("id")?.to_owned();
    if !call.asker.is_editor() {
        return Err(ConclaveError::unauthenticated());
    }
    let of_topic = key(&call.map, &id);
    let revisions = call.read(Weight::Scan, move |view, _| {
        let filter = Expr::Is("topic".into(), of_topic.as_str().into());
        let query = Query::filter(filter).sorted("key", Direction::Descending).window(0, LISTED_MAX);
        Ok(view.find(&REVISION, &query)?)
    });
    let mut items: Vec<Value> = Vec::new();
    for record in revisions.await? {
        let (mut was, about) = was(&record)?;
        was.retain(|it| call.asker.sees(it));
        let at = about["at"].as_i64().unwrap_or_default();
        let at = time::OffsetDateTime::from_unix_timestamp(at.div_euclid(1000)).ok();
        let at = at.map(|it| format!("{} {:02}:{:02} UTC", it.date(), it.hour(), it.minute()));
        items.push(context! {
            key => record.id, version => about["version"].as_u64(), by => about["by"].as_str(), at => at,
            label => was.label_in(crate::names::DEFAULT_SCOPE), text => wiki_of(&was).map(|it| &it.data),
            n_arcs => was.arcs.len(), n_occurrences => was.occurrences.len(),
        });
    }
    let page = context! {
        title => format!("History of {id}"), id => &id, href => topic_href_raw("", &id), items => items,
        tab => "history",
    };
    call.page(StatusCode::OK, "history.html", page)
}

/// Restores a revision of a topic; the current state becomes a revision.
pub(super) async fn restore(call: Reading, body: Body) -> Result<Response> {
    let (call, fields) = Editing::posted(call, body).await?;
    let revision = fields.text("revision").to_owned();
    let none = || ConclaveError::not_found("the map has no such revision");
    let record = call.read(Weight::Point, move |view, _| Ok(view.get(&REVISION, &revision)?)).await?;
    let (mut was, _) = was(&record.ok_or_else(none)?)?;
    if was.map != call.map {
        return Err(none());
    }
    // What the editor may not see stays as it is now.
    was.retain(|it| call.asker.sees(it));
    let id = was.id.clone();
    call.write(move |edit| edit.put(was.clone())).await?;
    Ok(to_topic(&call, &id))
}
