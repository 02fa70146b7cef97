//! The pages: templates, what they share, and their routes.
//!
//! Lists of relations, texts and the small map are made here, as HTML that is escaped already; a template places them. A
//! site puts a template of the same name into its folder to change how a page looks.

mod editing;
mod legacy;
mod looking;
mod parts;
mod session;
mod view;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, StatusCode};
use minijinja::{Environment, Value, context};
use pinakes_http::{Stage, answer, stages};
use std::path::PathBuf;

use crate::app::{Asker, Conclave};
use crate::error::{ConclaveError, Result};
use crate::settings::Settings;

/// `text/html; charset=utf-8`.
pub(crate) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// Scripts and styles are this site's own files; nothing may frame a page.
const POLICY: &str = "default-src 'self'; img-src 'self' https: http:; object-src 'none'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";
const STYLE: &str = include_str!("../../assets/site.css");
const SCRIPT: &str = include_str!("../../assets/site.js");

/// Every template that a page is made of.
const TEMPLATES: [(&str, &str); 8] = [
    ("layout.html", include_str!("../../templates/layout.html")),
    ("topic.html", include_str!("../../templates/topic.html")),
    ("search.html", include_str!("../../templates/search.html")),
    ("pointing.html", include_str!("../../templates/pointing.html")),
    ("edit.html", include_str!("../../templates/edit.html")),
    ("history.html", include_str!("../../templates/history.html")),
    ("signin.html", include_str!("../../templates/signin.html")),
    ("error.html", include_str!("../../templates/error.html")),
];

/// A template of the site cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// It cannot be read.
    #[error("the template {} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no template.
    #[error("the template {name}: {reason}")]
    Syntax {
        /// Name of the template.
        name: &'static str,
        /// What is wrong, with the line.
        reason: String,
    },
}

/// The templates.
pub(crate) struct Pages {
    environment: Environment<'static>,
    /// Changes with the templates: part of every page's tag.
    revision: u64,
}

impl Pages {
    /// The built-in templates, with those of the site in their places.
    pub(crate) fn read(settings: &Settings) -> std::result::Result<Pages, TemplateError> {
        let mut environment = Environment::new();
        let mut all = format!("{STYLE}{SCRIPT}{}", env!("CARGO_PKG_VERSION"));
        for (name, built_in) in TEMPLATES {
            let path = settings.templates.join(name);
            let text = match settings.templates.as_os_str().is_empty() || !path.is_file() {
                true => built_in.to_owned(),
                false => std::fs::read_to_string(&path)
                    .map_err(|source| TemplateError::Read { path: path.clone(), source })?,
            };
            all.push_str(&text);
            let added = environment.add_template_owned(name, text);
            added.map_err(|error| TemplateError::Syntax { name, reason: error.to_string() })?;
        }
        // FNV-1a: tells versions of the templates apart, and nothing more.
        let revision = all.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, it| {
            (hash ^ u64::from(it)).wrapping_mul(0x0100_0000_01b3)
        });
        Ok(Pages { environment, revision })
    }

    fn render(&self, name: &str, values: Value) -> Result<String> {
        let render = || self.environment.get_template(name)?.render(values);
        stages::timed(Stage::Render, render).map_err(|error| {
            ConclaveError::damaged(format!("the template {name} cannot be rendered: {error}"))
        })
    }
}

impl Conclave {
    /// A page. What every template has: `site`, `map`, `user`, `is_editor`, `csrf`, and `page` with the rest.
    fn page(
        &self,
        asker: &Asker,
        map: &str,
        status: StatusCode,
        name: &str,
        page: Value,
    ) -> Result<Response> {
        let values = context! {
            site => &self.settings.site_name, map => map, user => asker.caller.username(),
            is_editor => asker.is_editor(), csrf => asker.csrf(), page => page,
        };
        let html = self.pages.render(name, values)?;
        let mut response = answer::bytes(status, HTML, html);
        harden(&mut response);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept, Cookie"));
        Ok(response)
    }

    /// An error as a page.
    fn error_page(&self, asker: &Asker, map: &str, error: &ConclaveError) -> Result<Response> {
        let status = error.status();
        let page = context! {
            title => status.canonical_reason(), status => status.as_u16(), detail => error.detail(),
        };
        self.page(asker, map, status, "error.html", page)
    }
}

fn harden(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("referrer-policy"), HeaderValue::from_static("same-origin"));
}

pub(crate) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/t/{map}/{*id}", get(view::view))
        .route("/conclave", get(looking::home))
        .route("/conclave/", get(looking::home))
        .route("/conclave/assets/site.css", get(style))
        .route("/conclave/assets/site.js", get(script))
        .route("/conclave/sign-in", get(session::form).post(session::sign_in))
        .route("/conclave/sign-out", post(session::sign_out))
        .route("/conclave/{map}", get(looking::search))
        .route("/conclave/{map}/search", get(looking::search))
        .route("/conclave/{map}/pointing", get(looking::pointing))
        .route("/conclave/{map}/edit", get(editing::form).post(editing::save))
        .route("/conclave/{map}/create", get(editing::create_form))
        .route("/conclave/{map}/remove", post(editing::remove))
        .route("/conclave/{map}/history", get(editing::history))
        .route("/conclave/{map}/restore", post(editing::restore))
        .route("/conclave.cms/{*path}", get(legacy::get))
}

async fn style() -> Response {
    asset(HeaderValue::from_static("text/css; charset=utf-8"), STYLE)
}

async fn script() -> Response {
    asset(HeaderValue::from_static("text/javascript; charset=utf-8"), SCRIPT)
}

fn asset(content_type: HeaderValue, text: &'static str) -> Response {
    let response = answer::bytes(StatusCode::OK, content_type, text);
    let response = answer::with_header(response, CACHE_CONTROL, "public, max-age=3600");
    let response = answer::with_header(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    answer::with_header(response, ETAG, &format!("\"{}-{}\"", env!("CARGO_PKG_VERSION"), text.len()))
}
