//! How the dialect is mounted.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use pinakes_http::entrance::TENANT_HEADER;
use pinakes_http::{Context, Entrance, Mount};

use crate::app::{Labe, Parts};
use crate::error::{MountError, render};
use crate::settings::Settings;
use crate::{labed, opencitations};

/// The dialect as the shell serves it, on every path that no other dialect has.
///
/// # Errors
/// A file that the settings name cannot be opened, or a kind is not known: see [`MountError`].
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

/// Makes a mounted dialect look at its files at once, rather than when it next does by itself.
#[derive(Clone)]
pub struct Reload(Arc<Parts>);

impl Reload {
    /// Opens a new graph under the name of the old one, if there is one. What cannot be opened is told in the log, and the
    /// old one stays.
    pub fn now(&self) {
        tracing::info!("looking for a new citation graph");
        self.0.check_graph();
    }
}

/// Counts every answer but those of `/stats`.
async fn count(State(app): State<Labe>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let is_counted = request.uri().path() != "/stats";
    let answer = next.run(request).await;
    if is_counted { app.parts.statistics.note_answer(answer, started.elapsed()) } else { answer }
}
