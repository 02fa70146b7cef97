//! The dialect's routes and its mount.

use axum::{Extension, Router};
use pinakes_http::entrance::TENANT_HEADER;
use pinakes_http::etag::Tagging;
use pinakes_http::{AskedUri, Context, Cors, Entrance, FinalSlash, Mount, PathRules, TokenPlace};

use crate::app::Scicat;
use crate::error::{ScicatError, render};
use crate::resources::RESOURCES;
use crate::settings::Settings;
use crate::{openapi, testing};

/// SciCat's clients send their token as `Authorization`, with or without a scheme; old ones send it in the
/// query.
const ENTRANCE: Entrance = Entrance {
    tokens: &[TokenPlace::Bearer, TokenPlace::Query("access_token")],
    tenant_headers: &[TENANT_HEADER],
};

/// Returns the dialect as the shell serves it. `testing` adds the route that empties kinds.
pub fn mount(context: Context, settings: Settings, testing: testing::Testing) -> Mount {
    let app = Scicat::new(context, settings);
    app.outbox.start();
    let router = RESOURCES
        .iter()
        .fold(Router::new(), |router, it| router.merge((it.routes)()))
        .merge(testing::routes(testing))
        .fallback(not_found)
        .method_not_allowed_fallback(not_found)
        .with_state(app);
    Mount {
        entrance: ENTRANCE,
        path_rules: PathRules::default().words(openapi::path_words()).final_slash(FinalSlash::Drop),
        openapi: openapi::document(),
        cors: Cors::Anyone,
        tagging: Tagging::EveryAnswer,
        refuse: |refusal| render(&refusal),
        ..Mount::new("scicat", &["/api/v3", "/api/v4", "/explorer", "/explorer-json"], router)
    }
}

/// Answers `Cannot GET /api/v3/nothing`.
async fn not_found(method: http::Method, uri: http::Uri, asked: Option<Extension<AskedUri>>) -> ScicatError {
    let uri = asked.map_or(uri, |it| it.0.0);
    let path = uri.path_and_query().map_or_else(|| uri.path(), http::uri::PathAndQuery::as_str);
    ScicatError::not_found(format!("Cannot {method} {path}"))
}
