//! Signing in and out. The cookie is a signed token that scripts cannot read. It is set only when somebody signs in, so
//! that caches can keep pages.

use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{LOCATION, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use minijinja::context;
use pinakes_accounts::{Login, Password};
use pinakes_http::answer;

use crate::app::{COOKIE_NAME, Conclave};
use crate::basic::claims;
use crate::call::Reading;
use crate::error::{ConclaveError, Result};
use crate::names::DEFAULT_MAP;
use crate::text::Fields;

/// Returns the path of this site to go to after signing in; any other address would allow open redirects.
fn next_page(fields: &Fields) -> String {
    let next = fields.text("next");
    // Browsers strip tabs and line ends from addresses before they parse them, and treat a backslash as a slash.
    let is_plain = next.bytes().all(|it| it.is_ascii_graphic() && it != b'\\');
    let is_own = next.starts_with('/') && !next.starts_with("//") && is_plain;
    if is_own { next.to_owned() } else { "/conclave/default".to_owned() }
}

pub(super) async fn form(State(app): State<Conclave>, mut parts: Parts) -> Result<Response> {
    let call = open(&mut parts, &app).await?;
    let page = context! { title => "Sign in", next => next_page(&call.params.0), tab => "sign-in" };
    call.page(StatusCode::OK, "signin.html", page)
}

/// Opens a request without a check of rights, since users sign in before they may read.
async fn open(parts: &mut Parts, app: &Conclave) -> Result<Reading> {
    Reading::unchecked(parts, app, DEFAULT_MAP.to_owned()).await
}

/// Checks that a form comes from this site. Errors: 403.
fn is_from_here(headers: &HeaderMap) -> Result<()> {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
    let is_own = match (text("sec-fetch-site"), text("origin"), text("host")) {
        (Some(site), _, _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin), Some(host)) => origin.split_once("://").is_some_and(|it| it.1 == host),
        _ => true,
    };
    if is_own {
        return Ok(());
    }
    Err(ConclaveError::forbidden("the form was sent by another site"))
}

/// Returns the cookie of a session. Over TLS it is marked as secure.
fn cookie(headers: &HeaderMap, token: &str, life_s: i64) -> String {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let is_secure = text("origin").starts_with("https://") || text("x-forwarded-proto") == "https";
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={life_s}{secure}")
}

pub(super) async fn sign_in(State(app): State<Conclave>, request: Request) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    is_from_here(&parts.headers)?;
    let call = open(&mut parts, &app).await?;
    let (call, fields) = call.form(body).await?;
    // Conclave's own forms use different names for these fields.
    let field = |name: &str, old: &str| fields.get(name).or(fields.get(old)).unwrap_or_default().to_owned();
    let (name, password) = (field("username", "_uname"), field("password", "_upwd"));
    enter(&call, (&name, &password), &next_page(&fields)).await
}

/// Signs a user in and redirects to a page of this site.
pub(super) async fn enter(call: &Reading, (name, password): (&str, &str), next: &str) -> Result<Response> {
    is_from_here(&call.headers)?;
    let (accounts, tenant) = (call.app.context.accounts(), call.asker.db.tenant());
    let login = match Password::new(password) {
        Ok(password) => accounts.log_in(tenant, name, password).await?,
        Err(_) => Login::Refused,
    };
    let Login::Welcome(user) = login else {
        let page = context! {
            title => "Sign in", next => next, error => "Name and password do not belong together.",
            tab => "sign-in",
        };
        return call.page(StatusCode::UNAUTHORIZED, "signin.html", page);
    };
    let life_s = call.app.settings.session_s;
    let token = accounts.sign_for(tenant.name(), claims(&user), life_s);
    Ok(with_cookie(next, &cookie(&call.headers, &token, life_s)))
}

pub(super) async fn sign_out(State(app): State<Conclave>, request: Request) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    is_from_here(&parts.headers)?;
    let call = open(&mut parts, &app).await?;
    let (call, fields) = call.form(body).await?;
    // A foreign page must not be able to sign anybody out either.
    if call.asker.csrf().is_some_and(|it| it != fields.text("_csrf")) {
        return Err(ConclaveError::forbidden("the form does not carry the token of the session"));
    }
    Ok(with_cookie(&next_page(&fields), &cookie(&call.headers, "", 0)))
}

fn with_cookie(next: &str, cookie: &str) -> Response {
    let response = answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, next);
    answer::with_header(response, SET_COOKIE, cookie)
}
