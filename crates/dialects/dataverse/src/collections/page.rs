//! The page that the `url` of a collection refers to: `/dataverse/{alias}`.

use http::{HeaderValue, Method, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Direction, Expr, Query, View, Weight};
use serde_json::Value;

use crate::app::Call;
use crate::collections::{self, Collection, visibility};
use crate::error::{Answer, ApiError};
use crate::exports::xml::Xml;
use crate::routing::Routes;
use crate::search::document::DOCUMENT;
use crate::search::visible::visible;

/// Maximum number of collections and datasets on the page, newest first.
const LISTED: u64 = 100;

/// Adds the route.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.elsewhere(Method::GET, "/dataverse/{id}", show)
}

async fn show(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let read = move |view: &mut View<'_>| -> Result<(Collection, Vec<Value>, u64), ApiError> {
        let collection = collections::find(view, &id)?;
        visibility::require_visible(view, &asker, &collection)?;
        let types = ["dataverses", "datasets"].map(Into::into).to_vec();
        let inside = Expr::Is("parent".into(), collection.id.to_string().into());
        let filter = visible(view, &asker)?.and(inside).and(Expr::In("type".into(), types));
        let n_all = view.count(&DOCUMENT, &filter)?;
        let query = Query::filter(filter).sorted("date", Direction::Descending).window(0, LISTED);
        let found = view.find(&DOCUMENT, &query)?;
        let documents = found.iter().map(|it| it.json()).collect::<Result<Vec<Value>, _>>()?;
        Ok((collection, documents, n_all))
    };
    let (collection, documents, n_all) = call.db().read(Weight::Scan, read).await?;
    let site_url = call.site_url();
    let mut xml = Xml::fragment();
    xml.raw("<!DOCTYPE html>")
        .open("html", &[("lang", "en")])
        .open("head", &[])
        .leaf("title", &collection.name)
        .close();
    xml.open("body", &[]).leaf("h1", &collection.name);
    if let Some(description) = &collection.description {
        xml.leaf("p", &crate::site::plain(description));
    }
    xml.open("ul", &[]);
    for it in &documents {
        let text = |name: &str| it[name].as_str().unwrap_or_default();
        let href = match text("pid") {
            "" => format!("{site_url}/dataverse/{}", text("identifier")),
            pid => format!("{site_url}/dataset.xhtml?persistentId={pid}"),
        };
        xml.open("li", &[]).leaf_with("a", &[("href", &href)], text("name")).close();
    }
    xml.close();
    if LISTED < n_all {
        xml.leaf("p", &format!("{LISTED} of {n_all}; the others are found by the search."));
    }
    let html = HeaderValue::from_static("text/html;charset=UTF-8");
    Ok(answer::bytes(StatusCode::OK, html, xml.finish()))
}
