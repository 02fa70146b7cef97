//! The table of routes, and how the dialect is mounted.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode, Uri};
use pinakes_http::{Context, Cors, DoubleSlashes, FinalSlash, Mount, PathRules};
use serde_json::Value;

use crate::app::Dataverse;
use crate::error::{ApiError, render};
use crate::routing::Routes;
use crate::settings::Settings;
use crate::{
    admin, collections, cross_origin, dataset_types, datasets, groups, guestbooks, info, licenses, links,
    metrics, notifications, roles, site, site_settings, templates, users,
};

/// What the dialect answers for.
const BASE_PATHS: &[&str] = &[
    "/api",
    "/oai",
    "/dvn",
    "/confirmemail.xhtml",
    "/dataset.xhtml",
    "/dataverse",
    "/openapi",
    "/previewurl.xhtml",
    "/privateurl.xhtml",
    "/sitemap",
    "/sitemap.xml",
    "/users/:me",
];

/// Every route of the dialect.
fn all() -> Routes {
    Routes::default()
        .with(crate::files::routes)
        .with(crate::access::routes)
        .with(crate::search::routes)
        .with(crate::exports::serve::routes)
        .with(crate::signposting::routes)
        .with(crate::sword::routes)
        .with(crate::oai::routes)
        .with(crate::harvest::routes)
        .with(crate::vocabulary::routes)
        .with(crate::thumbnails::routes)
        .with(crate::tools::routes)
        .with(crate::datasets::jsonld::routes)
        .with(info::routes)
        .with(admin::routes)
        .with(site_settings::routes)
        .with(users::builtin::routes)
        .with(users::me::routes)
        .with(notifications::routes)
        .with(roles::routes)
        .with(groups::explicit::routes)
        .with(groups::addresses::routes)
        .with(groups::domains::routes)
        .with(licenses::routes)
        .with(dataset_types::routes)
        .with(collections::routes)
        .with(datasets::routes)
        .with(links::routes)
        .with(guestbooks::routes)
        .with(crate::featured::routes)
        .with(templates::routes)
        .with(metrics::routes)
        .with(crate::mydata::routes)
        .with(crate::saved_searches::routes)
        .with(crate::openapi::routes)
        .with(crate::sitemap::routes)
        .with(site::routes)
        .with(crate::usage::routes)
        .with(crate::pids::routes)
        .with(crate::reviews::routes)
        .with(crate::transfers::routes)
        .with(crate::inbox::routes)
        .with(crate::batch::routes)
        .with(crate::workflows::routes)
}

/// Every route's method and path.
pub fn table() -> Vec<(Method, String)> {
    all().into_parts().1
}

/// Whether a path of the table is taken as it stands, not below `/api`.
pub(crate) fn is_elsewhere(path: &str) -> bool {
    BASE_PATHS
        .iter()
        .skip(1)
        .any(|base| path.strip_prefix(base).is_some_and(|it| it.is_empty() || it.starts_with('/')))
}

/// The dialect as the shell serves it.
pub fn mount(context: Context, settings: Settings) -> Mount {
    let app = Dataverse::new(context, settings);
    let (router, _) = all().into_parts();
    let router = router
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_so)
        .with_state(app)
        .layer(axum::middleware::from_fn(cross_origin::with_headers));
    Mount {
        path_rules: PathRules::default()
            .double_slashes(DoubleSlashes::Collapse)
            .final_slash(FinalSlash::Drop),
        openapi: Value::Null,
        // The dialect says it itself, see `cross_origin.rs`.
        cors: Cors::Off,
        refuse: |refusal| {
            let mut response = render(&refusal);
            cross_origin::put(response.headers_mut());
            response
        },
        ..Mount::new("dataverse", BASE_PATHS, router)
    }
}

async fn nothing_there(method: Method, uri: Uri, _: Body) -> Response {
    let message = "API endpoint does not exist on this server. Please check your code for typos, or consult our \
                   API guide at http://guides.dataverse.org.";
    ApiError::not_found(message).routed(&uri.to_string(), method.as_str()).into_response()
}

async fn not_so(method: Method, uri: Uri, _: Body) -> Response {
    let message =
        "API endpoint does not support this method. Consult our API guide at http://guides.dataverse.org.";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message)
        .routed(&uri.to_string(), method.as_str())
        .into_response()
}
