//! The front page: the dialects that are served, and a search form.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{ACCEPT, LOCATION};
use http::{HeaderValue, Method, StatusCode};
use pinakes_http::answer;
use serde::Serialize;
use serde_json::json;

use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::encoded;
use crate::record::{items, text};

/// Number of keywords that the search form suggests before anything is typed.
const SUGGESTED_MAX: usize = 50;

/// A dialect on the front page.
#[derive(Serialize)]
struct Served {
    /// Keys of its name and of its description.
    name_key: &'static str,
    about_key: &'static str,
    /// Where to browse its records.
    href: Option<String>,
    /// How many records the visitor may see, if the dialect tells.
    n_records: Option<String>,
}

/// `GET /`. Programs that do not ask for a page get labe's answer at this path, as they did before there was
/// a page.
pub(crate) async fn front(State(site): State<Site>, visitor: Visitor, request: Request) -> Result<Response> {
    let accept = request.headers().get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let wants_page = accept.contains("text/html") || accept.contains("application/xhtml+xml");
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    if (!wants_page || !is_reading) && site.neighbour("labe").is_some() {
        return labes_own(&site, &visitor, request.method().clone()).await;
    }
    if !is_reading {
        let refused = answer::empty(StatusCode::METHOD_NOT_ALLOWED);
        return Ok(answer::with_header(refused, http::header::ALLOW, "GET, HEAD"));
    }
    let (datasets, deposits) = tokio::join!(datasets(&site, &visitor), n_deposits(&site, &visitor));
    let (datasets, suggestions) = datasets.unwrap_or_default();
    let mut served = Vec::new();
    let mut add = |dialect: &str, name_key, about_key, href: Option<String>, n_records: Option<String>| {
        if site.neighbour(dialect).is_some() {
            served.push(Served { name_key, about_key, href, n_records });
        }
    };
    let search = |kind: &str| Some(format!("/site/search?in={}", encoded(kind)));
    add("scicat", "scicat_name", "scicat_about", search("datasets"), datasets);
    add("dataverse", "dataverse_name", "dataverse_about", search("deposits"), deposits);
    add("folio", "folio_name", "folio_about", search("titles"), None);
    add("labe", "labe_name", "labe_about", None, None);
    let topics = site.settings.maps.first().map(|map| format!("/conclave/{}", encoded(map)));
    let topics = topics.and_then(|path| site.href(&visitor, "conclave", &path));
    add("conclave", "conclave_name", "conclave_about", topics, None);
    let explorer = site.href(&visitor, "scicat", "/explorer");
    let page =
        json!({ "title_key": "welcome", "served": served, "explorer": explorer, "suggestions": suggestions });
    site.page(&visitor, StatusCode::OK, "front.html", page)
}

/// Returns labe's answer at `/`.
async fn labes_own(site: &Site, visitor: &Visitor, method: Method) -> Result<Response> {
    let is_head = method == Method::HEAD;
    let said = site.ask(visitor, "labe", method, "/", None).await?;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    let body = if is_head { Body::empty() } else { Body::from(said.body) };
    let mut response = answer::with_body(said.status, plain, body);
    response.headers_mut().insert(http::header::VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

/// Returns the number of datasets, and their most frequent keywords.
async fn datasets(site: &Site, visitor: &Visitor) -> Option<(Option<String>, Vec<String>)> {
    let wanted = json!(["type", "keywords"]).to_string();
    let facets = format!("fields={}&facets={}", encoded("{}"), encoded(&wanted));
    let said = site.read(visitor, "scicat", &format!("/api/v3/datasets/fullfacet?{facets}")).await.ok()?;
    let found = said.get(0)?;
    let total = found.get("all").and_then(|it| it.get(0)).map(|it| text(it, "totalSets"));
    let keywords = items(found, "keywords").iter().take(SUGGESTED_MAX).map(|it| text(it, "_id"));
    Some((total.filter(|it| !it.is_empty()), keywords.collect()))
}

async fn n_deposits(site: &Site, visitor: &Visitor) -> Option<String> {
    let said = site.read(visitor, "dataverse", "/api/search?q=*&type=dataset&per_page=1").await.ok()?;
    Some(text(&said, "data/total_count")).filter(|it| !it.is_empty())
}

/// Redirects `/site` to the front page.
pub(crate) async fn moved() -> Response {
    answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, "/")
}

/// Answers for any other address below `/site`.
pub(crate) async fn nothing_there(State(site): State<Site>, visitor: Visitor) -> Result<Response> {
    site.shown(&visitor, Err(SiteError::NotFound))
}
