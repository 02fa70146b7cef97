//! The mount of the dialect.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::{CACHE_CONTROL, VARY};
use http::{HeaderValue, Method, StatusCode};
use pinakes_http::entrance::TENANT_HEADER;
use pinakes_http::{Context, Entrance, Mount};

use crate::app::{Labe, Parts};
use crate::error::{MountError, render};
use crate::settings::Settings;
use crate::{labed, opencitations};

/// Returns the dialect as the shell serves it, on every path that no other dialect has.
///
/// # Errors
/// A file that the settings name cannot be opened, or a kind is unknown: see [`MountError`].
pub fn mount(context: Context, settings: Settings) -> Result<(Mount, Reload), MountError> {
    let app = Labe { context, parts: Arc::new(Parts::open(settings)?) };
    let reload = Reload(app.parts.clone());
    app.parts.shelves.prepare(&app);
    let router = Router::new()
        .merge(labed::routes())
        .merge(opencitations::routes())
        .fallback(labed::elsewhere)
        .layer(from_fn_with_state(app.clone(), count))
        .with_state(app);
    let entrance = Entrance { tokens: &[], tenant_headers: &[TENANT_HEADER] };
    let mount = Mount { entrance, refuse: |refusal| render(&refusal), ..Mount::new("labe", &["/"], router) };
    Ok((mount, reload))
}

/// Makes a mounted dialect check its files at once, instead of at the next scheduled check.
#[derive(Clone)]
pub struct Reload(Arc<Parts>);

impl Reload {
    /// Opens a new graph under the name of the old one, if there is one. If it cannot be opened, this is logged and the
    /// old one stays.
    pub fn now(&self) {
        tracing::info!("looking for a new citation graph");
        self.0.check_graph();
    }
}

/// Counts every answer except those of `/stats`.
async fn count(State(app): State<Labe>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let is_counted = request.uri().path() != "/stats";
    let is_of_data = request.method() == Method::GET && is_of_data(request.uri().path());
    let mut answer = next.run(request).await;
    let max_age_s = if is_of_data { app.parts.settings.max_age_s } else { 0 };
    set_max_age(&mut answer, max_age_s);
    if is_counted { app.parts.statistics.note_answer(answer, started.elapsed()) } else { answer }
}

/// Says whether the answer at a path depends only on the graph and the catalogue.
fn is_of_data(path: &str) -> bool {
    ["/id/", "/doi/", "/index/", "/meta/"].iter().any(|it| path.starts_with(it))
}

/// Sets how long an answer may be cached: `max_age_s` for a success, not at all for an error or if it is 0. The answer
/// varies with the header that may name the tenant.
fn set_max_age(answer: &mut Response, max_age_s: u32) {
    let status = answer.status();
    let is_answer = status.is_success() || status == StatusCode::TEMPORARY_REDIRECT;
    let value = if is_answer && 0 < max_age_s {
        HeaderValue::from_str(&format!("public, max-age={max_age_s}")).ok()
    } else {
        Some(HeaderValue::from_static("no-store"))
    };
    if let Some(value) = value {
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, value);
        headers.append(VARY, HeaderValue::from_static(TENANT_HEADER));
    }
}
