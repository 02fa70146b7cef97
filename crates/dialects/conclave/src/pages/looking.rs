//! Finding topics: the search page, and the list of topics that point at one.

use axum::response::Response;
use http::StatusCode;
use http::header::LOCATION;
use minijinja::{Value, context};
use pinakes_http::answer;
use pinakes_store::Weight;

use super::parts::words;
use crate::api::{Search, Which, pointing_page};
use crate::call::Reading;
use crate::error::Result;
use crate::kinds::TOPIC;
use crate::model::{Topic, key};
use crate::names::DEFAULT_SCOPE;
use crate::text::topic_href_raw;

/// Topics per page of a list.
const LISTED: usize = 50;

pub(super) async fn home() -> Response {
    answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, "/conclave/default")
}

pub(super) async fn search(call: Reading) -> Result<Response> {
    let text = call.params.0.text("q");
    let found = match text.is_empty() {
        true => Vec::new(),
        false => Search::new(text, LISTED as u32).run(&call).await?,
    };
    let base = call.link_base();
    let items: Vec<Value> = found
        .iter()
        .map(|it| {
            let description = it.get(DEFAULT_SCOPE, "description").unwrap_or_default();
            let href = topic_href_raw(&base, &it.id);
            context! { href => href, id => &it.id, label => &it.label, description => description }
        })
        .collect();
    let page = context! { title => "Search", q => text, items => items, tab => "search" };
    call.page(StatusCode::OK, "search.html", page)
}

pub(super) async fn pointing(call: Reading) -> Result<Response> {
    let id = call.params.required("id")?.to_owned();
    let after = call.params.0.get("after").map(str::to_owned);
    let (asker, wanted) = (call.asker.clone(), id.clone());
    let found = call.read(Weight::Scan, move |view, map| {
        let page = pointing_page(view, (map, &wanted), &Which::default(), &asker, after.as_deref(), LISTED)?;
        let keys: Vec<String> = page.links.iter().map(|it| key(map, &it.owner)).collect();
        let records = view.get_many(&TOPIC, &keys)?;
        let mut items = Vec::new();
        for (link, record) in page.links.iter().zip(records) {
            let Some(record) = record else { continue };
            let mut topic = Topic::stored(&record.body)?;
            topic.retain(|it| asker.sees(it));
            items.push((link.ty.clone(), link.role.clone(), topic));
        }
        Ok((items, page.next))
    });
    let (found, next) = found.await?;
    let base = call.link_base();
    let items: Vec<Value> = found
        .iter()
        .map(|(ty, role, topic)| {
            let href = topic_href_raw(&base, &topic.id);
            let label = topic.label_in(DEFAULT_SCOPE);
            context! { ty => words(ty), role => words(role), href => href, label => label }
        })
        .collect();
    let page = context! {
        title => format!("Pointing at {id}"), id => &id, href => topic_href_raw("", &id), items => items,
        next => next, tab => "pointing",
    };
    call.page(StatusCode::OK, "pointing.html", page)
}
