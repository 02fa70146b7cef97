//! The pages: templates, what they share, and their routes.
//!
//! Lists of relations, texts and the small map are made here, as HTML that is escaped already; a template places them. A
//! site puts a template of the same name into its folder to change how a page looks.

mod editing;
mod form;
mod history;
mod leaf;
mod legacy;
mod looking;
mod parts;
mod records;
mod session;
mod shown;
mod view;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value, context, escape_formatter};
use pinakes_http::{Stage, answer, stages};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use self::leaf::Frame;
use crate::api::{is_known, not_modified};
use crate::app::Conclave;
use crate::call::Reading;
use crate::error::{ConclaveError, Result, Told};
use crate::model::DEFAULT_MAP;
use crate::settings::Settings;
use crate::text::{escape, hash};

pub(crate) use self::view::cached;

/// `text/html; charset=utf-8`.
pub(crate) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// Scripts and styles are this site's own files; nothing may frame a page.
const POLICY: &str = "default-src 'self'; img-src 'self' https: http:; object-src 'none'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";
const STYLE: &str = include_str!("../../assets/site.css");
const SCRIPT: &str = include_str!("../../assets/site.js");
const ICON: &str = include_str!("../../assets/icon.svg");

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
    /// Whether the page of a topic is the built-in one.
    has_own_leaf: bool,
}

/// The templates as they are now; an administrator has them read anew with the flag `nocache`.
pub(crate) struct Templates(RwLock<Arc<Pages>>);

impl Templates {
    /// The built-in templates, with those of the site in their places.
    pub(crate) fn read(settings: &Settings) -> std::result::Result<Templates, TemplateError> {
        Ok(Templates(RwLock::new(Arc::new(Pages::read(settings)?))))
    }

    /// Those of now.
    pub(crate) fn now(&self) -> Arc<Pages> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads them anew. Errors: 422 with the file and what is wrong with it; those of before stay.
    fn read_anew(&self, settings: &Settings) -> Result<()> {
        let read = Pages::read(settings).map_err(|error| ConclaveError::rule(error.to_string()))?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        Ok(())
    }
}

impl Pages {
    /// The built-in templates, with those of the site in their places.
    pub(crate) fn read(settings: &Settings) -> std::result::Result<Pages, TemplateError> {
        let mut environment = Environment::new();
        environment.set_formatter(|out, state, value| match value.as_str() {
            // Slashes stay as they are: most of what stands on a page are addresses.
            Some(text) if !value.is_safe() && *state.auto_escape() == AutoEscape::Html => {
                out.write_str(&escape(text)).map_err(|_| Error::from(ErrorKind::WriteFailure))
            }
            _ => escape_formatter(out, state, value),
        });
        // Everything that pages are made of beside topics.
        let of_site = format!("{}{:?}", settings.site_name, settings.records);
        let mut all = format!("{STYLE}{SCRIPT}{}{of_site}", env!("CARGO_PKG_VERSION"));
        let mut has_own_leaf = true;
        for (name, built_in) in TEMPLATES {
            let path = settings.templates.join(name);
            let is_built_in = settings.templates.as_os_str().is_empty() || !path.is_file();
            has_own_leaf &= is_built_in || !matches!(name, "layout.html" | "topic.html");
            let text = match is_built_in {
                true => built_in.to_owned(),
                false => std::fs::read_to_string(&path)
                    .map_err(|source| TemplateError::Read { path: path.clone(), source })?,
            };
            all.push_str(&text);
            let added = environment.add_template_owned(name, text);
            added.map_err(|error| TemplateError::Syntax { name, reason: error.to_string() })?;
        }
        let revision = hash(all.as_bytes());
        Ok(Pages { environment, revision, has_own_leaf })
    }

    /// What every template has: `site`, `map`, `user`, `is_editor`, `csrf`, and `page` with the rest.
    fn framed(&self, frame: &Frame<'_>, page: Value) -> Value {
        context! {
            site => frame.site, map => frame.map, user => frame.user, is_editor => frame.is_editor,
            csrf => &frame.csrf, page => page,
        }
    }

    fn render(&self, name: &str, values: Value) -> Result<String> {
        let render = || self.environment.get_template(name)?.render(values);
        stages::timed(Stage::Render, render).map_err(|error| {
            ConclaveError::damaged(format!("the template {name} cannot be rendered: {error}"))
        })
    }
}

impl Reading {
    /// A page; [`Pages::framed`] says what its template has.
    fn page(&self, status: StatusCode, name: &str, page: Value) -> Result<Response> {
        let pages = self.app.pages.now();
        finished(status, pages.render(name, pages.framed(&Frame::of(self), page))?)
    }

    /// Does what the flag `nocache` asks for.
    fn renew_templates(&self) -> Result<()> {
        if self.params.0.is_set("nocache") && self.asker.is_administrator() {
            self.app.pages.read_anew(&self.app.settings)?;
        }
        Ok(())
    }
}

fn finished(status: StatusCode, html: String) -> Result<Response> {
    let mut response = answer::bytes(status, HTML, html);
    harden(&mut response);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept, Cookie"));
    Ok(response)
}

/// Whether a refusal is told as a page.
fn wants_page(headers: &HeaderMap, path: &str) -> bool {
    let accept = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or("*/*");
    let is_for_programs = view::form_of(path).is_some() || path.ends_with("/json") || path.ends_with("/xml");
    accept.contains("text/html") || accept.starts_with("*/*") && !is_for_programs
}

/// Says a refusal as a page to those who read pages.
async fn told_as_page(State(app): State<Conclave>, request: Request, next: Next) -> Response {
    let wants_page = wants_page(request.headers(), request.uri().path());
    let uri = request.uri().clone();
    let response = next.run(request).await;
    if wants_page { told(&app, response, &uri) } else { response }
}

/// A refusal as a page; other answers, and what cannot be rendered, as they are.
fn told(app: &Conclave, response: Response, uri: &Uri) -> Response {
    let Some(told) = response.extensions().get::<Told>() else { return response };
    error_page(app, told, uri).unwrap_or(response)
}

fn error_page(app: &Conclave, told: &Told, uri: &Uri) -> Result<Response> {
    let next = uri.path_and_query().map_or("/", |it| it.as_str());
    let page = context! {
        title => told.status.canonical_reason(), status => told.status.as_u16(), detail => &told.detail,
        next => crate::text::topic_href_raw("", next),
    };
    let values = context! { site => &app.settings.site_name, map => DEFAULT_MAP, page => page };
    finished(told.status, app.pages.now().render("error.html", values)?)
}

fn harden(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("referrer-policy"), HeaderValue::from_static("same-origin"));
}

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
        .route("/conclave/{map}/edit", get(editing::form).post(editing::save))
        .route("/conclave/{map}/create", get(editing::create_form))
        .route("/conclave/{map}/remove", post(editing::remove))
        .route("/conclave/{map}/history", get(history::list))
        .route("/conclave/{map}/restore", post(history::restore))
        .route("/conclave.cms/{*path}", get(legacy::get).post(legacy::post))
        .layer(from_fn_with_state(app.clone(), told_as_page))
        // It tells of refusals itself: most requests are for topics, and none of them goes through the layer.
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
