//! Routes, each with its method, its path and what it asks of its caller.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::response::IntoResponse as _;
use axum::routing::MethodFilter;
use http::Method;
use http::header::{LOCATION, SET_COOKIE};

use crate::platform::app::{Call, Folio};
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;

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

/// What answers a route. All are of one type, so that what serves a route is compiled once, not for each.
type Handler = Arc<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// The routes, gathered. What is not added here is not served.
#[derive(Default)]
pub struct Routes {
    /// What serves them.
    pub(crate) router: Router<Folio>,
    /// What was added.
    pub(crate) table: Vec<Route>,
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
    pub fn on<H, F>(self, method: Method, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.serve(method, path, access, Arc::new(move |call| Box::pin(handler(call))))
    }

    fn serve(mut self, method: Method, path: &str, access: Access, handler: Handler) -> Self {
        let access = access.named_as_in_folio(&method, path);
        let asked = Arc::new(access.clone());
        let serve = move |State(app): State<Folio>, params: Params, request: Request| {
            let params = params.map(|it| {
                it.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>()
            });
            let (handler, asked) = (Arc::clone(&handler), Arc::clone(&asked));
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
}
