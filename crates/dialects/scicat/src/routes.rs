//! The dialect's routes and how it is mounted.

use axum::routing::{get, post};
use axum::{Extension, Router};
use pinakes_http::entrance::TENANT_HEADER;
use pinakes_http::etag::Tagging;
use pinakes_http::{AskedUri, Context, Cors, Entrance, FinalSlash, Mount, PathRules, TokenPlace};

use crate::app::Scicat;
use crate::datasets::{change, create, facets, lifecycle, read, v4};
use crate::error::{ScicatError, render};
use crate::settings::Settings;
use crate::{
    attachments, auth, blocks, history, instruments, jobs, logbooks, openapi, policies, proposals,
    published_data, samples, site, testing, users,
};

/// SciCat's clients send their token as `Authorization`, with or without a scheme, old ones in the query.
const ENTRANCE: Entrance = Entrance {
    tokens: &[TokenPlace::Bearer, TokenPlace::Query("access_token")],
    tenant_headers: &[TENANT_HEADER],
};

/// The dialect as the shell serves it. `testing` adds the route that empties kinds.
pub fn mount(context: Context, settings: Settings, testing: testing::Testing) -> Mount {
    let app = Scicat::new(context, settings);
    let router = Router::new()
        .merge(auth::routes())
        .merge(datasets_v3())
        .merge(datasets_v4())
        .merge(blocks::routes())
        .merge(attachments::routes())
        .merge(proposals::routes())
        .merge(logbooks::routes())
        .merge(samples::routes())
        .merge(instruments::routes())
        .merge(policies::routes())
        .merge(jobs::routes())
        .merge(published_data::routes())
        .merge(users::routes())
        .merge(site::routes())
        .merge(history::routes())
        .merge(openapi::routes())
        .merge(testing::routes(testing))
        .fallback(not_found)
        .method_not_allowed_fallback(not_found)
        .with_state(app);
    Mount {
        entrance: ENTRANCE,
        path_rules: PathRules::default().words(WORDS).final_slash(FinalSlash::Drop),
        openapi: openapi::document(),
        cors: Cors::Anyone,
        tagging: Tagging::EveryAnswer,
        refuse: |refusal| render(&refusal),
        ..Mount::new("scicat", &["/api/v3", "/api/v4", "/explorer", "/explorer-json"], router)
    }
}

fn datasets_v3() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/datasets", get(read::list).post(create::create_v3))
        .route("/api/v3/datasets/isvalid", post(create::is_valid_v3))
        .route("/api/v3/datasets/findone", get(read::find_one))
        .route("/api/v3/datasets/count", get(read::count))
        .route("/api/v3/datasets/fullquery", get(read::full_query))
        .route("/api/v3/datasets/fullfacet", get(facets::full_facet))
        .route("/api/v3/datasets/metadatakeys", get(facets::metadata_keys))
        .route(
            "/api/v3/datasets/{pid}",
            get(read::by_pid).patch(change::patch_v3).put(change::put_v3).delete(change::delete_v3),
        )
        .route("/api/v3/datasets/{pid}/datasetlifecycle", get(lifecycle::get).patch(lifecycle::patch))
        .route("/api/v3/datasets/{pid}/appendtoarrayfield", post(change::append_to_array_field))
        .route("/api/v3/datasets/{pid}/thumbnail", get(read::thumbnail))
}

fn datasets_v4() -> Router<Scicat> {
    Router::new()
        .route("/api/v4/datasets", get(v4::list).post(create::create_v4))
        .route("/api/v4/datasets/isvalid", post(create::is_valid_v4))
        .route("/api/v4/datasets/findone", get(v4::find_one))
        .route("/api/v4/datasets/count", get(v4::count))
        .route("/api/v4/datasets/fullfacet", get(v4::full_facet))
        .route("/api/v4/datasets/metadatakeys", get(v4::metadata_keys))
        .route("/api/v4/datasets/public", get(v4::list_public))
        .route("/api/v4/datasets/public/findone", get(v4::find_one_public))
        .route("/api/v4/datasets/public/count", get(v4::count_public))
        .route("/api/v4/datasets/public/fullfacet", get(v4::full_facet_public))
        .route("/api/v4/datasets/public/metadatakeys", get(v4::metadata_keys_public))
        .route("/api/v4/datasets/public/{pid}", get(v4::by_pid_public))
        .route(
            "/api/v4/datasets/{pid}",
            get(v4::by_pid).patch(change::patch_v4).put(change::put_v4).delete(change::delete_v4),
        )
        .route("/api/v4/datasets/{pid}/datasetlifecycle", get(lifecycle::get).patch(lifecycle::patch))
}

/// `Cannot GET /api/v3/nothing`.
async fn not_found(method: http::Method, uri: http::Uri, asked: Option<Extension<AskedUri>>) -> ScicatError {
    let uri = asked.map_or(uri, |it| it.0.0);
    let path = uri.path_and_query().map_or_else(|| uri.path(), http::uri::PathAndQuery::as_str);
    ScicatError::not_found(format!("Cannot {method} {path}"))
}

/// Words of paths, whose case does not matter.
const WORDS: [&str; 73] = [
    "admin",
    "affiliation",
    "amend",
    "api",
    "appendtoarrayfield",
    "attachments",
    "auth",
    "authorization",
    "callback",
    "collection",
    "config",
    "count",
    "create",
    "datablocks",
    "dataset",
    "datasetdetails",
    "datasetlifecycle",
    "datasets",
    "external",
    "files",
    "findone",
    "formpopulate",
    "fullfacet",
    "fullquery",
    "health",
    "history",
    "identity",
    "instruments",
    "isvalid",
    "isvalidemail",
    "jobs",
    "jwt",
    "ldap",
    "logbook",
    "logbooks",
    "login",
    "logout",
    "metadatakeys",
    "msad",
    "my",
    "oidc",
    "origdatablocks",
    "password",
    "policies",
    "proposals",
    "public",
    "publish",
    "publisheddata",
    "register",
    "resync",
    "runtime-config",
    "samples",
    "self",
    "settings",
    "statuscodes",
    "theme",
    "thumbnail",
    "token",
    "updatewhere",
    "useridentities",
    "useridentity",
    "users",
    "v3",
    "v4",
    "whoami",
    "explorer",
    "explorer-json",
    "reset-to-default",
    "stream",
    "ticket",
    "opensearch",
    "externallinks",
    "testing",
];
