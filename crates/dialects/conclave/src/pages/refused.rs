//! Errors as pages, for browsers.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::ACCEPT;
use http::{HeaderMap, Uri};
use minijinja::context;

use crate::app::Conclave;
use crate::error::{Result, Told};
use crate::names::DEFAULT_MAP;
use crate::pages::page::finished;

/// Returns whether a refusal is shown as a page.
pub(crate) fn wants_page(headers: &HeaderMap, path: &str) -> bool {
    let accept = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or("*/*");
    let is_for_programs = crate::pages::negotiation::form_of(path).is_some()
        || path.ends_with("/json")
        || path.ends_with("/xml");
    accept.contains("text/html") || accept.starts_with("*/*") && !is_for_programs
}

/// Shows refusals as pages to clients that want pages.
pub(crate) async fn told_as_page(State(app): State<Conclave>, request: Request, next: Next) -> Response {
    let wants_page = wants_page(request.headers(), request.uri().path());
    let uri = request.uri().clone();
    let response = next.run(request).await;
    if wants_page { told(&app, response, &uri) } else { response }
}

/// Renders a refusal as a page. Returns other answers, and refusals that cannot be rendered, unchanged.
pub(crate) fn told(app: &Conclave, response: Response, uri: &Uri) -> Response {
    let Some(told) = response.extensions().get::<Told>() else { return response };
    error_page(app, told, uri).unwrap_or(response)
}

pub(crate) fn error_page(app: &Conclave, told: &Told, uri: &Uri) -> Result<Response> {
    let next = uri.path_and_query().map_or("/", |it| it.as_str());
    let page = context! {
        title => told.status.canonical_reason(), status => told.status.as_u16(), detail => &told.detail,
        next => crate::text::topic_href_raw("", next),
    };
    let values = context! { site => &app.settings.site_name, map => DEFAULT_MAP, page => page };
    finished(told.status, app.pages.now().render("error.html", values)?)
}
