//! Routes, each with its method, its path and what it requires of its caller.

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

/// One entry of the route table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with `{name}` for parameters.
    pub path: String,
    /// What it requires of its caller.
    pub access: Access,
}

/// The parameters of a path, or the fact that it is not UTF-8.
type Params = Result<RawPathParams, RawPathParamsRejection>;

/// The handler of a route. All have one type, so that the code around them is compiled once, not for each.
type Handler = Arc<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// The routes collected so far. Only what is added here is served.
#[derive(Default)]
pub struct Routes {
    /// The router that serves them.
    pub(crate) router: Router<Folio>,
    /// The table of the routes added.
    pub(crate) table: Vec<Route>,
}

impl Routes {
    /// Adds `GET path`.
    pub fn get<H, F>(self, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::GET, path, access, handler)
    }

    /// Adds `POST path`.
    pub fn post<H, F>(self, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::POST, path, access, handler)
    }

    /// Adds `PUT path`.
    pub fn put<H, F>(self, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::PUT, path, access, handler)
    }

    /// Adds `DELETE path`.
    pub fn delete<H, F>(self, path: &str, access: Access, handler: H) -> Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        self.on(Method::DELETE, path, access, handler)
    }

    /// Adds a route. Only calls that `access` admits reach the handler.
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
        // axum knows all methods of this dialect.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::TRACE);
        self.router = self.router.route(path, axum::routing::on(filter, serve));
        self.table.push(Route { method, path: path.to_owned(), access });
        self
    }

    /// Adds the routes that `add` adds.
    pub fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }
}
