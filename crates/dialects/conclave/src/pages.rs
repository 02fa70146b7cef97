//! The pages: routes, static files and templates.
//!
//! Lists of relations, texts and the small map are written in code, as escaped HTML; a template places them. A site
//! overrides the look of a page with a template of the same name in its folder.

mod editing;
mod form;
mod galleries;
mod history;
mod leaf;
mod legacy;
mod looking;
pub(crate) mod negotiation;
pub(crate) mod page;
mod parts;
mod records;
pub(crate) mod refused;
mod session;
mod shown;
pub(crate) mod templates;
mod view;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use http::header::{CACHE_CONTROL, ETAG, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, StatusCode};
use pinakes_http::answer;

use crate::app::Conclave;
use crate::pages::refused::told_as_page;
use crate::pages::templates::{SCRIPT, STYLE};
use crate::text::hash;
use crate::validators::{is_known, not_modified};

const ICON: &str = include_str!("../assets/icon.svg");

pub(crate) fn routes(app: &Conclave) -> Router<Conclave> {
    Router::new()
        .route("/conclave", get(looking::home))
        .route("/conclave/", get(looking::home))
        .route("/conclave/assets/site.css", get(style))
        .route("/conclave/assets/site.js", get(script))
        .route("/conclave/assets/icon.svg", get(icon))
        .route("/conclave/sign-in", get(session::form).post(session::sign_in))
        .route("/conclave/sign-out", post(session::sign_out))
        .route("/conclave/{map}", get(looking::search))
        .route("/conclave/{map}/search", get(looking::search))
        .route("/conclave/{map}/pointing", get(looking::pointing))
        .route("/conclave/{map}/gallery/{scope}/{*path}", get(galleries::file))
        .route("/conclave/{map}/edit", get(editing::form).post(editing::save))
        .route("/conclave/{map}/create", get(editing::create_form))
        .route("/conclave/{map}/remove", post(editing::remove))
        .route("/conclave/{map}/history", get(history::list))
        .route("/conclave/{map}/restore", post(history::restore))
        .route("/conclave.cms/{*path}", get(legacy::get).post(legacy::post))
        .layer(from_fn_with_state(app.clone(), told_as_page))
        // This handler renders refusals itself, since most requests are for topics: none of them passes through the
        // layer.
        .route("/t/{map}/{*id}", get(view::view))
}

async fn style(headers: HeaderMap) -> Response {
    asset(&headers, HeaderValue::from_static("text/css; charset=utf-8"), STYLE)
}

async fn script(headers: HeaderMap) -> Response {
    asset(&headers, HeaderValue::from_static("text/javascript; charset=utf-8"), SCRIPT)
}

async fn icon(headers: HeaderMap) -> Response {
    asset(&headers, HeaderValue::from_static("image/svg+xml"), ICON)
}

fn asset(headers: &HeaderMap, content_type: HeaderValue, text: &'static str) -> Response {
    let tag = format!("\"{:x}\"", hash(text.as_bytes()));
    if is_known(headers, &tag) {
        return not_modified(&tag);
    }
    let response = answer::bytes(StatusCode::OK, content_type, text);
    let response = answer::with_header(response, CACHE_CONTROL, "public, max-age=3600");
    let response = answer::with_header(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    answer::with_header(response, ETAG, &tag)
}
