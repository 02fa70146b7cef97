//! The table of routes: each with its method, its path and what it asks of its caller; and how the dialect is mounted.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::response::IntoResponse as _;
use axum::routing::MethodFilter;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderMap, Method, StatusCode, Uri};
use pinakes_http::entrance::TENANT_HEADER;
use pinakes_http::{Context, Cors, DoubleSlashes, Entrance, FinalSlash, Mount, PathRules, TokenPlace};
use serde_json::Value;

use crate::app::{Call, Folio};
use crate::error::{Answer, FolioError, render};
use crate::permissions::Access;
use crate::settings::Settings;
use crate::{
    authorities, circulation, collection, inventory, links, login, modules, oai, perms, records, search,
    tenants, user_import, users,
};

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with `{name}` for what varies.
    pub path: String,
    /// What it asks of its caller.
    pub access: Access,
}

/// What stands in a path for its parameters, or that it is not UTF-8.
type Params = Result<RawPathParams, RawPathParamsRejection>;

/// The routes, gathered. What is not added here is not served.
#[derive(Default)]
pub struct Routes {
    router: Router<Folio>,
    table: Vec<Route>,
}

impl Routes {
    /// With `GET path`.
    pub fn get<H, F>(self, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::GET, path, access, handler)
    }

    /// With `POST path`.
    pub fn post<H, F>(self, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::POST, path, access, handler)
    }

    /// With `PUT path`.
    pub fn put<H, F>(self, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::PUT, path, access, handler)
    }

    /// With `DELETE path`.
    pub fn delete<H, F>(self, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::DELETE, path, access, handler)
    }

    /// With a route. The handler is reached only by calls that `access` lets in.
    pub fn on<H, F>(mut self, method: Method, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        let access = access.named_as_in_folio(&method, path);
        let asked = Arc::new(access.clone());
        let serve = move |State(app): State<Folio>, params: Params, request: Request| {
            let params = params.map(|it| {
                it.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>()
            });
            let (handler, asked) = (handler.clone(), Arc::clone(&asked));
            async move {
                let Ok(params) = params else {
                    let path = request.uri().path();
                    let message = format!("The path {path} is percent-encoded bytes that are not UTF-8");
                    return FolioError::bad_request(message).into_response();
                };
                let (parts, body) = request.into_parts();
                let answered = match Call::admit(app, params, parts, body, &asked).await {
                    Ok(call) => handler(call).await,
                    Err(refused) => Err(refused),
                };
                let response = answered.unwrap_or_else(FolioError::into_response);
                if response.headers().contains_key(LOCATION) || response.headers().contains_key(SET_COOKIE) {
                    pinakes_http::etag::spell_headers();
                }
                response
            }
        };
        // The methods of this dialect are all among those that axum knows.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::TRACE);
        self.router = self.router.route(path, axum::routing::on(filter, serve));
        self.table.push(Route { method, path: path.to_owned(), access });
        self
    }

    /// With the routes that `add` adds.
    pub fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }

    /// With the routes of a collection.
    pub fn collection(self, collection: &'static collection::Collection) -> Self {
        collection::routes(self, collection)
    }
}

/// Every route of the dialect.
fn all() -> Routes {
    let routes = Routes::default()
        .with(login::routes)
        .with(users::routes)
        .with(perms::routes)
        .with(tenants::routes)
        .with(crate::source_storage::routes)
        .with(crate::specifications::routes)
        .with(crate::data_export::routes)
        .with(crate::profiles::routes)
        .with(crate::mapping::routes::routes)
        .with(crate::uploads::routes)
        .with(crate::change_manager::routes)
        .with(crate::metadata_provider::routes)
        .with(circulation::routes)
        .with(crate::fees::routes)
        .with(crate::patron_blocks::routes)
        .with(crate::notices::routes)
        .with(crate::chores::routes)
        .with(crate::timers::routes)
        .with(inventory::routes)
        .with(authorities::routes)
        .with(user_import::routes)
        .with(links::routes)
        .with(search::routes)
        .with(crate::browse::routes)
        .with(crate::bulk_edit::routes)
        .with(oai::routes)
        .with(crate::notes::routes)
        .with(crate::quick_marc::routes)
        .with(crate::user_settings::routes)
        .with(crate::profile_pictures::routes)
        .with(records::routes)
        .with(crate::setting_entries::routes);
    modules::COLLECTIONS.iter().copied().filter(|it| it.is_served).fold(routes, Routes::collection)
}

/// Every route with what it asks of its caller.
pub fn table() -> Vec<Route> {
    all().table
}

/// The part of a route's path that the dialect claims: the first word. Other harvesting interfaces live below `/oai`,
/// so that of FOLIO's is claimed by two.
fn base_path(path: &str) -> Option<String> {
    let mut words = path.split('/').skip(1);
    match (words.next()?, words.next()) {
        ("oai", Some(second)) => Some(format!("/oai/{second}")),
        (first, _) => Some(format!("/{first}")),
    }
}

/// Where the dialect lives.
fn base_paths(table: &[Route]) -> Vec<String> {
    let mut bases: Vec<String> = table.iter().filter_map(|it| base_path(&it.path)).collect();
    bases.push("/consortia".to_owned());
    bases.push("/entitlements".to_owned());
    bases.sort_unstable();
    bases.dedup();
    bases
}

/// FOLIO's clients send token and tenant in headers of the gateway; browsers the token in a cookie.
const ENTRANCE: Entrance = Entrance {
    tokens: &[
        TokenPlace::Bearer,
        TokenPlace::Header("x-okapi-token"),
        TokenPlace::Cookie("folioAccessToken"),
    ],
    tenant_headers: &["x-okapi-tenant", TENANT_HEADER],
};

/// The dialect as the shell serves it.
pub fn mount(context: Context, settings: Settings) -> Mount {
    let origins = settings.cors_origins.clone();
    let app = Folio::new(context, settings);
    let Routes { router, table } = all();
    let bases = base_paths(&table);
    let bases: Vec<&str> = bases.iter().map(String::as_str).collect();
    let router = router.fallback(nothing_there).method_not_allowed_fallback(nothing_there).with_state(app);
    Mount {
        entrance: ENTRANCE,
        path_rules: PathRules::default()
            .double_slashes(DoubleSlashes::Collapse)
            .final_slash(FinalSlash::Drop),
        openapi: Value::Null,
        cors: Cors::Listed(origins),
        refuse: |refusal| render(&refusal),
        ..Mount::new("folio", &bases, router)
    }
}

/// `No suitable module found for path /x for tenant t`.
async fn nothing_there(State(app): State<Folio>, headers: HeaderMap, uri: Uri, _: Body) -> FolioError {
    let tenant = app.context.tenant_name(&headers).unwrap_or_default();
    let message = format!("No suitable module found for path {} for tenant {tenant}", uri.path());
    FolioError::text(StatusCode::NOT_FOUND, message)
}
