//! Shared by the FOLIO scenarios: tenant, login, single requests. Only the public interface is used, so the same
//! scenario runs against the original server.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};

use super::scicat::single;
use crate::client::{Answer, Request};
use crate::error::BenchError;
use crate::target::Target;

/// Environment variable of the password.
const PASSWORD_VARIABLE: &str = "PINAKES_BENCH_PASSWORD";

/// Tenant and account of the FOLIO scenarios.
#[derive(Clone, Args)]
pub struct FolioArgs {
    /// Tenant.
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// Account with the rights that the scenario needs. Its password comes from `PINAKES_BENCH_PASSWORD`.
    #[arg(long)]
    pub username: String,
    /// Its password; visible to other users of this machine, so better in the environment.
    #[arg(long)]
    pub password: Option<String>,
}

/// Omits the password.
impl fmt::Debug for FolioArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut it = f.debug_struct("FolioArgs");
        it.field("tenant", &self.tenant).field("username", &self.username).finish_non_exhaustive()
    }
}

/// An account that is logged in. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    target: Arc<Target>,
    headers: Arc<HeaderMap>,
    preflight: Arc<HeaderMap>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session {
    /// Logs in with a token that lasts for the run.
    pub async fn begin(target: &Arc<Target>, args: &FolioArgs) -> Result<Self, BenchError> {
        const PATH: &str = "/authn/login";
        let password = args.password.clone().or_else(|| std::env::var(PASSWORD_VARIABLE).ok());
        let password = password.ok_or_else(|| BenchError::NoPassword {
            username: args.username.clone(),
            variable: PASSWORD_VARIABLE,
            option: "--password",
        })?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let tenant = HeaderValue::from_str(&args.tenant).map_err(|_| BenchError::BadOption {
            option: "--tenant",
            value: args.tenant.clone(),
            reason: "it cannot stand in a header".to_owned(),
        })?;
        headers.insert("x-okapi-tenant", tenant);
        let body = json!({"username": args.username, "password": password}).to_string();
        let request = Request::post(target.path(PATH), &Arc::new(headers.clone()), body.into());
        let answer = single(target, &request).await?;
        let Some(token) = answer.headers.get("x-okapi-token").filter(|_| answer.is_success()) else {
            return Err(refusal(target, args, &answer, PATH));
        };
        let mut token = token.clone();
        token.set_sensitive(true);
        headers.insert("x-okapi-token", token);
        let mut preflight = HeaderMap::new();
        preflight.insert("origin", HeaderValue::from_static("http://localhost:3000"));
        preflight.insert("access-control-request-method", HeaderValue::from_static("POST"));
        let asked = HeaderValue::from_static("content-type,x-okapi-tenant,x-okapi-token");
        preflight.insert("access-control-request-headers", asked);
        Ok(Self { target: Arc::clone(target), headers: Arc::new(headers), preflight: Arc::new(preflight) })
    }

    /// Headers with tenant and token.
    pub fn headers(&self) -> Arc<HeaderMap> {
        Arc::clone(&self.headers)
    }

    /// Headers of an `OPTIONS` as browsers send it.
    pub fn preflight_headers(&self) -> Arc<HeaderMap> {
        Arc::clone(&self.preflight)
    }

    /// Returns the request target of `path` at this server.
    pub fn path(&self, path: &str) -> String {
        self.target.path(path)
    }

    /// Sends one request and returns its answer, whatever it is.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, BenchError> {
        let body = body.map(|it| Bytes::from(it.to_string())).unwrap_or_default();
        let request = Request { method, body, ..Request::get(self.path(path), &self.headers) };
        single(&self.target, &request).await
    }

    /// Creates a record and returns its id.
    pub async fn create(&self, path: &str, body: &Value) -> Result<String, BenchError> {
        let answer = self.send(Method::POST, path, Some(body)).await?;
        let made: Option<Value> = serde_json::from_slice(&answer.body).ok();
        match made.as_ref().and_then(|it| it["id"].as_str()) {
            Some(id) if answer.is_success() => Ok(id.to_owned()),
            _ => Err(BenchError::Preparation {
                what: format!("a record of {path}"),
                done: 0,
                wanted: 1,
                reason: answer.excerpt(),
            }),
        }
    }

    /// Returns the body of an answer, `null` if it is not JSON.
    pub async fn get(&self, path: &str) -> Result<Value, BenchError> {
        let answer = self.send(Method::GET, path, None).await?;
        Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Deletes a record; returns 1 if it remains.
    pub async fn delete(&self, path: &str) -> Result<u64, BenchError> {
        let answer = self.send(Method::DELETE, path, None).await?;
        Ok(u64::from(!answer.is_success() && answer.status != 404))
    }

    /// Requests a deletion that the server need not support.
    pub async fn try_delete(&self, path: &str) -> Result<(), BenchError> {
        self.send(Method::DELETE, path, None).await.map(drop)
    }

    /// Returns whether a data import of the tenant is running; false if the server has no such interface.
    pub async fn is_import_running(&self) -> Result<bool, BenchError> {
        let path = "/metadata-provider/jobExecutions?uiStatusAny=RUNNING&limit=1";
        Ok(self.get(path).await?["totalRecords"].as_u64().is_some_and(|it| 0 < it))
    }
}

fn refusal(target: &Target, args: &FolioArgs, answer: &Answer, path: &str) -> BenchError {
    let parsed: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let said = parsed.as_ref().and_then(|it| it["errors"][0]["message"].as_str());
    match (answer.status, said) {
        (400 | 401 | 403 | 422, Some(message)) => BenchError::LoginRefused {
            url: target.url(path),
            username: args.username.clone(),
            status: answer.status,
            message: message.to_owned(),
            variable: PASSWORD_VARIABLE,
        },
        _ => BenchError::OtherDialect {
            url: target.url(path),
            expected: "FOLIO (201 with the header x-okapi-token)".to_owned(),
            found: answer.excerpt(),
        },
    }
}
