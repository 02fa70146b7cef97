//! How the dialect is mounted.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use pinakes_http::{Context, Mount};

use crate::app::{Labe, Parts};
use crate::error::{MountError, render};
use crate::settings::Settings;
use crate::{labed, opencitations};

/// The dialect as the shell serves it, on every path that no other dialect has.
///
/// # Errors
/// A file that the settings name cannot be opened, or a kind is not known: see [`MountError`].
pub fn mount(context: Context, settings: Settings) -> Result<Mount, MountError> {
    let app = Labe { context, parts: Arc::new(Parts::open(settings)?) };
    let router = Router::new()
        .merge(labed::routes())
        .merge(opencitations::routes())
        .fallback(labed::elsewhere)
        .layer(from_fn_with_state(app.clone(), count))
        .with_state(app);
    Ok(Mount { refuse: |refusal| render(&refusal), ..Mount::new("labe", &["/"], router) })
}

/// Counts every answer but those of `/stats`.
async fn count(State(app): State<Labe>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let is_counted = request.uri().path() != "/stats";
    let answer = next.run(request).await;
    if is_counted { app.parts.statistics.note_answer(answer, started.elapsed()) } else { answer }
}
