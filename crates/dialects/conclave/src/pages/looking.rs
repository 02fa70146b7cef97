//! Finding topics: the search page, and the list of those that point at one.

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use http::header::LOCATION;
use minijinja::{Value, context};
use pinakes_http::answer;
use pinakes_store::Weight;

use crate::api::{Which, find_topics, pointing_page};
use crate::app::{Asker, Conclave, Params, map_name};
use crate::error::{ConclaveError, Result};
use crate::kinds::TOPIC;
use crate::model::{DEFAULT_SCOPE, Topic, key};
use crate::text::topic_href_raw;

/// Topics on a page of a list.
const LISTED: usize = 50;

pub(super) async fn home() -> Response {
    answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, "/conclave/default")
}

pub(super) async fn search(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Result<Response> {
    asker.may_read()?;
    let map = map_name(&map)?;
    let text = params.0.text("q");
    let found = match text.is_empty() {
        true => Vec::new(),
        false => find_topics(&asker, map, text, 50).await?,
    };
    let items: Vec<Value> = found.into_iter().map(|it| item(map, &asker.filtered(it).topic)).collect();
    let page = context! { title => "Search", q => text, items => items, tab => "search" };
    app.page(&asker, map, StatusCode::OK, "search.html", page)
}

fn item(map: &str, topic: &Topic) -> Value {
    let description = topic.get(DEFAULT_SCOPE, "description").unwrap_or_default();
    context! {
        href => topic_href_raw(&format!("/t/{map}/"), &topic.id), id => &topic.id, label => &topic.label,
        description => description,
    }
}

pub(super) async fn pointing(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Result<Response> {
    asker.may_read()?;
    let (map, id) = (map_name(&map)?.to_owned(), params.required("id")?.to_owned());
    let after = params.0.get("after").map(str::to_owned);
    let (items, next) = {
        let (map, id, reader) = (map.clone(), id.clone(), asker.clone());
        asker
            .db
            .read(Weight::Scan, move |view| {
                let page = pointing_page(view, (&map, &id), &Which::default(), after.as_deref(), LISTED)?;
                let keys: Vec<String> = page.links.iter().map(|it| key(&map, &it.owner)).collect();
                let records = view.get_many(&TOPIC, &keys)?;
                let mut items = Vec::new();
                for (link, record) in page.links.iter().zip(records) {
                    let Some(record) = record.filter(|_| reader.sees(&link.scope)) else { continue };
                    let mut topic = Topic::stored(&record.body)?;
                    topic.retain(|it| reader.sees(it));
                    items.push((link.ty.clone(), link.role.clone(), topic));
                }
                Ok::<_, ConclaveError>((items, page.next))
            })
            .await?
    };
    let items: Vec<Value> = items
        .iter()
        .map(|(ty, role, topic)| {
            let href = topic_href_raw(&format!("/t/{map}/"), &topic.id);
            context! { ty => ty, role => role, href => href, label => &topic.label }
        })
        .collect();
    let encoded = topic_href_raw("", &id);
    let page = context! {
        title => format!("Pointing at {id}"), id => id, href => encoded, items => items, next => next,
        tab => "pointing",
    };
    app.page(&asker, &map, StatusCode::OK, "pointing.html", page)
}
