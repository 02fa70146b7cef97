//! The table of routes, and how the dialect is mounted.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode, Uri};
use pinakes_http::{Context, Cors, DoubleSlashes, FinalSlash, Mount, PathRules};
use serde_json::Value;

use crate::access::{self, file};
use crate::app::Dataverse;
use crate::error::{ApiError, render};
use crate::harvest::serve;
use crate::routing::Routes;
use crate::settings::Settings;
use crate::{
    admin, admission, batch, collections, cross_origin, dataset_types, datasets, exports, featured, files,
    groups, guestbooks, inbox, info, licenses, links, metrics, mydata, notifications, oai, openapi, pids,
    reviews, roles, saved_searches, search, signposting, site, site_settings, sitemap, sword, templates,
    thumbnails, tools, transfers, usage, users, vocabulary, workflows,
};

/// Base paths that the dialect serves.
const BASE_PATHS: &[&str] = &[
    "/api",
    "/oai",
    "/dvn",
    "/confirmemail.xhtml",
    "/dataset.xhtml",
    "/dataverse",
    "/file.xhtml",
    "/openapi",
    "/previewurl.xhtml",
    "/privateurl.xhtml",
    "/sitemap",
    "/sitemap.xml",
    "/users/:me",
];

/// Returns every route of the dialect.
fn all() -> Routes {
    Routes::admitted_by(|app, params, parts, body| Box::pin(admission::admit(app, params, parts, body)))
        .with(files::add::routes)
        .with(files::replace::routes)
        .with(files::direct::routes)
        .with(files::edit::routes)
        .with(files::availability::routes)
        .with(files::headers::routes)
        .with(files::ingest::routes)
        .with(files::listing::routes)
        .with(files::show::routes)
        .with(files::side::routes)
        .with(files::variables::routes)
        .with(file::routes)
        .with(access::archive::routes)
        .with(access::metadata::routes)
        .with(access::requests::routes)
        .with(search::routes)
        .with(exports::serve::routes)
        .with(signposting::routes)
        .with(sword::routes)
        .with(oai::routes)
        .with(serve::routes)
        .with(vocabulary::routes)
        .with(thumbnails::routes)
        .with(tools::routes)
        .with(datasets::jsonld::routes)
        .with(info::routes)
        .with(admin::accounts::routes)
        .with(admin::misc::routes)
        .with(admin::index::routes)
        .with(admin::integrity::routes)
        .with(admin::checks::routes)
        .with(admin::storage_sites::routes)
        .with(site_settings::routes)
        .with(users::builtin::routes)
        .with(users::me::routes)
        .with(notifications::routes)
        .with(roles::serve::routes)
        .with(groups::explicit::routes)
        .with(groups::addresses::routes)
        .with(groups::domains::routes)
        .with(licenses::routes)
        .with(dataset_types::routes)
        .with(collections::write::routes)
        .with(collections::show::routes)
        .with(collections::page::routes)
        .with(collections::logo::routes)
        .with(collections::structure::routes)
        .with(collections::people::routes)
        .with(collections::publication::routes)
        .with(collections::moving::routes)
        .with(collections::storage::routes)
        .with(collections::fair::routes)
        .with(datasets::create::routes)
        .with(datasets::migrate::routes)
        .with(datasets::ddi::routes)
        .with(datasets::show::routes)
        .with(datasets::edit::routes)
        .with(datasets::publish::routes)
        .with(datasets::remove::routes)
        .with(datasets::people::routes)
        .with(datasets::locks::routes)
        .with(datasets::moving::routes)
        .with(datasets::storage::routes)
        .with(datasets::archival::routes)
        .with(datasets::curation::routes)
        .with(datasets::compare::routes)
        .with(links::serve::routes)
        .with(guestbooks::routes)
        .with(featured::routes)
        .with(featured::dataverses::routes)
        .with(templates::routes)
        .with(metrics::routes)
        .with(metrics::downloads::routes)
        .with(mydata::routes)
        .with(saved_searches::routes)
        .with(|routes| openapi::routes(routes, table, is_elsewhere))
        .with(sitemap::routes)
        .with(site::routes)
        .with(usage::routes)
        .with(pids::routes)
        .with(reviews::routes)
        .with(transfers::routes)
        .with(inbox::routes)
        .with(batch::routes)
        .with(workflows::admin::routes)
        .with(workflows::run::routes)
}

/// Returns every route's method and path.
pub fn table() -> Vec<(Method, String)> {
    all().into_parts().1
}

/// Returns whether a path of the table is used as it is, not below `/api`.
fn is_elsewhere(path: &str) -> bool {
    BASE_PATHS
        .iter()
        .skip(1)
        .any(|base| path.strip_prefix(base).is_some_and(|it| it.is_empty() || it.starts_with('/')))
}

/// Returns the dialect as the shell serves it.
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
        // The dialect sets CORS headers itself, see `cross_origin.rs`.
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
