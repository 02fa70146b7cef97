//! Registration of routes: each is added below the bases of the API, and to the table from which the description of the
//! API is generated.
//!
//! Paths are written without `/api`: each is served below `/api` and `/api/v1`. Colons of fixed parts (`:publish`) are
//! accepted percent-encoded as well, because some clients encode them.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::response::IntoResponse as _;
use axum::routing::MethodFilter;
use http::Method;
use http::request::Parts;

use crate::app::{Call, Dataverse};
use crate::error::{Answer, ApiError};

/// Base paths of the API.
const BASES: [&str; 2] = ["/api", "/api/v1"];

/// A handler. All have the same type, so that the code that serves a route is compiled once, not per handler.
type Handler = Arc<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// The future of an admitted call.
type Admitted = Pin<Box<dyn Future<Output = Result<Call, ApiError>> + Send>>;
/// Converts a request into a call. Passed in, because admission is in a higher layer, see `admission.rs`.
type Admit = fn(Dataverse, Vec<(String, String)>, Parts, Body) -> Admitted;

/// The routes. Only what is added here is served.
pub(crate) struct Routes {
    admit: Admit,
    router: Router<Dataverse>,
    /// Methods and paths, each once, without `/api`.
    table: Vec<(Method, String)>,
}

impl Routes {
    /// Returns an empty set of routes; every request goes through `admit` first.
    pub(crate) fn admitted_by(admit: Admit) -> Self {
        Self { admit, router: Router::new(), table: Vec::new() }
    }

    /// Adds `GET path`.
    pub(crate) fn get<H, F>(self, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::GET, path, handler)
    }

    /// Adds `POST path`.
    pub(crate) fn post<H, F>(self, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::POST, path, handler)
    }

    /// Adds `PUT path`.
    pub(crate) fn put<H, F>(self, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::PUT, path, handler)
    }

    /// Adds `DELETE path`.
    pub(crate) fn delete<H, F>(self, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::DELETE, path, handler)
    }

    /// Adds a route below `/api`.
    pub(crate) fn on<H, F>(self, method: Method, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.below(method, path, &boxed(handler))
    }

    fn below(mut self, method: Method, path: &str, handler: &Handler) -> Self {
        for base in BASES {
            let whole = format!("{base}{path}");
            self.serve(&method, &whole.replace("/:", "/%3A"), Arc::clone(handler));
            if whole.contains("/:") {
                self.serve(&method, &whole, Arc::clone(handler));
            }
        }
        self.table.push((method, path.to_owned()));
        self
    }

    /// Adds a route whose path is used as it is, e.g. `/oai`.
    pub(crate) fn elsewhere<H, F>(mut self, method: Method, path: &str, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.serve(&method, path, boxed(handler));
        self.table.push((method, path.to_owned()));
        self
    }

    fn serve(&mut self, method: &Method, path: &str, handler: Handler) {
        let admit = self.admit;
        let serve = move |State(app): State<Dataverse>, params: RawPathParams, request: Request| {
            let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let handler = Arc::clone(&handler);
            async move {
                let (parts, body) = request.into_parts();
                let answered = match admit(app, params, parts, body).await {
                    Ok(call) => handler(call).await,
                    Err(refused) => Err(refused),
                };
                answered.unwrap_or_else(ApiError::into_response)
            }
        };
        // axum supports all methods of this dialect.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::TRACE);
        let router = std::mem::take(&mut self.router).without_v07_checks();
        self.router = router.route(path, axum::routing::on(filter, serve));
    }

    /// Returns the router, and every route's method and path.
    pub(crate) fn into_parts(self) -> (Router<Dataverse>, Vec<(Method, String)>) {
        (self.router, self.table)
    }

    /// Adds the routes that `add` adds.
    pub(crate) fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }
}

fn boxed<H, F>(handler: H) -> Handler
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    Arc::new(move |call| Box::pin(handler(call)))
}
