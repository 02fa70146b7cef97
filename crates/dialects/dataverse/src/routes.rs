//! The table of routes, and how the dialect is mounted.
//!
//! A path is written without `/api`: each is served below `/api` and `/api/v1`. Colons of fixed parts (`:publish`) are taken
//! percent-encoded as well, as some clients send them.

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodFilter;
use http::{Method, StatusCode, Uri};
use pinakes_http::{Context, Cors, DoubleSlashes, FinalSlash, Mount, PathRules};
use serde_json::Value;

use crate::app::{Call, Dataverse};
use crate::error::{Answer, ApiError, render};
use crate::settings::Settings;
use crate::{
    admin, collections, dataset_types, datasets, groups, guestbooks, info, licenses, links, metrics,
    notifications, roles, site, site_settings, templates, users,
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
/// Where the API lives.
const BASES: [&str; 2] = ["/api", "/api/v1"];

/// The routes, gathered. What is not added here is not served.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<Dataverse>,
    /// Methods and paths, each once, without `/api`.
    table: Vec<(Method, String)>,
}

impl Routes {
    /// With `GET path`.
    pub(crate) fn get<H, F>(self, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::GET, path, handler)
    }

    /// With `POST path`.
    pub(crate) fn post<H, F>(self, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::POST, path, handler)
    }

    /// With `PUT path`.
    pub(crate) fn put<H, F>(self, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::PUT, path, handler)
    }

    /// With `DELETE path`.
    pub(crate) fn delete<H, F>(self, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::DELETE, path, handler)
    }

    /// With a route below `/api`.
    pub(crate) fn on<H, F>(mut self, method: Method, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        for base in BASES {
            let whole = format!("{base}{path}");
            self.serve(&method, &whole.replace("/:", "/%3A"), handler.clone());
            if whole.contains("/:") {
                self.serve(&method, &whole, handler.clone());
            }
        }
        self.table.push((method, path.to_owned()));
        self
    }

    /// With a route whose path is taken as it stands, e.g. `/oai`.
    pub(crate) fn elsewhere<H, F>(mut self, method: Method, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.serve(&method, path, handler);
        self.table.push((method, path.to_owned()));
        self
    }

    fn serve<H, F>(&mut self, method: &Method, path: &str, handler: H)
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        let serve = move |State(app): State<Dataverse>, params: RawPathParams, request: Request| {
            let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let handler = handler.clone();
            async move {
                let (parts, body) = request.into_parts();
                let answered = match Call::admit(app, params, parts, body).await {
                    Ok(call) => handler(call).await,
                    Err(refused) => Err(refused),
                };
                answered.unwrap_or_else(ApiError::into_response)
            }
        };
        // The methods of this dialect are all among those that axum knows.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::TRACE);
        let router = std::mem::take(&mut self.router).without_v07_checks();
        self.router = router.route(path, axum::routing::on(filter, serve));
    }

    /// With the routes that `add` adds.
    pub(crate) fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }
}

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
}

/// Every route's method and path.
pub fn table() -> Vec<(Method, String)> {
    all().table
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
    let Routes { router, .. } = all();
    let router = router.fallback(nothing_there).method_not_allowed_fallback(not_so).with_state(app);
    Mount {
        path_rules: PathRules::default()
            .double_slashes(DoubleSlashes::Collapse)
            .final_slash(FinalSlash::Drop),
        openapi: Value::Null,
        cors: Cors::Anyone,
        refuse: |refusal| render(&refusal),
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
