//! Signing in with a password, at a directory or at an OpenID Connect provider; signing out; choosing a language.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::header::{LOCATION, SET_COOKIE};
use pinakes_accounts::{Login, Password, User};
use pinakes_http::{answer, entrance};
use serde_json::{Map, Value, json};

use crate::app::{LANGUAGE_COOKIE, SESSION_COOKIE, Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::{Fields, encoded};
use crate::language::Language;

/// How long a chosen language is remembered (a year).
const LANGUAGE_S: u32 = 365 * 24 * 60 * 60;
/// The cookie in which a browser keeps a login that was started at the provider.
const LOGIN_COOKIE: &str = "pinakes_sign_in";
/// Path to which the provider redirects browsers.
const CALLBACK: &str = "/site/sign-in/callback";

pub(crate) async fn form(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    shown(&site, &visitor, &fields.next(), StatusCode::OK, None)
}

/// Returns the form, with the key of the previous attempt's error.
fn shown(
    site: &Site,
    visitor: &Visitor,
    next: &str,
    status: StatusCode,
    fault_key: Option<&str>,
) -> Result<Response> {
    let provider = callback_url(site).map(|_| format!("/site/sign-in/provider?next={}", encoded(next)));
    let page = json!({ "title_key": "sign_in", "next": next, "fault_key": fault_key, "provider": provider });
    site.page(visitor, status, "signin.html", page)
}

pub(crate) async fn sign_in(State(site): State<Site>, visitor: Visitor, body: Body) -> Result<Response> {
    visitor.expect_own_page()?;
    let fields = site.form(&visitor, body).await?;
    let login = match Password::new(fields.exact("password")) {
        Ok(password) => logged_in(&site, &visitor, fields.text("username"), password).await?,
        Err(_) => Login::Refused,
    };
    match login {
        Login::Welcome(user) => Ok(welcomed(&site, &visitor, &user, &fields.next())),
        Login::Refused => {
            shown(&site, &visitor, &fields.next(), StatusCode::UNAUTHORIZED, Some("sign_in_failed"))
        }
    }
}

/// Checks the password against the one kept here, or at the directory if the account has none here.
async fn logged_in(site: &Site, visitor: &Visitor, username: &str, password: Password) -> Result<Login> {
    let (accounts, tenant) = (site.context.accounts(), visitor.db.tenant());
    if accounts.sources().ldap.is_configured() {
        let known = accounts.by_username(tenant, username).await?;
        if known.is_none_or(|it| it.password.is_none()) {
            return Ok(accounts.log_in_at_directory(tenant, "ldap", username, password).await?);
        }
    }
    Ok(accounts.log_in(tenant, username, password).await?)
}

/// Redirects to the page that the visitor wanted, with the cookie of a session.
fn welcomed(site: &Site, visitor: &Visitor, user: &User, next: &str) -> Response {
    let claims = match json!({
        "username": user.username, "_id": user.id, "id": user.id, "sub": user.username, "user_id": user.id,
    }) {
        Value::Object(claims) => claims,
        _ => Map::new(),
    };
    let life_s = site.settings.session_s;
    let token = site.context.accounts().sign_for(visitor.db.tenant().name(), claims, life_s);
    let cookie = format!("{SESSION_COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={life_s}");
    with_cookie(visitor, next, cookie)
}

/// Returns the URL to which the provider redirects browsers; `None` if no provider is configured.
fn callback_url(site: &Site) -> Option<String> {
    let provider = &site.context.accounts().sources().oidc;
    if !provider.is_configured() {
        return None;
    }
    if !site.settings.callback_url.is_empty() {
        return Some(site.settings.callback_url.clone());
    }
    let origin: Vec<&str> = provider.callback_url.splitn(4, '/').take(3).collect();
    (origin.len() == 3).then(|| format!("{}{CALLBACK}", origin.join("/")))
}

/// `GET /site/sign-in/provider?next=`: redirects to the OpenID Connect provider.
pub(crate) async fn depart(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let departed = departed(&site, &visitor, &fields.next()).await;
    site.shown(&visitor, departed)
}

async fn departed(site: &Site, visitor: &Visitor, next: &str) -> Result<Response> {
    let callback_url = callback_url(site).ok_or(SiteError::NotFound)?;
    let accounts = site.context.accounts();
    let departure = accounts.depart_from_pages(visitor.db.tenant(), &callback_url, next).await;
    let departure = departure.map_err(|error| {
        tracing::warn!(%error, "nobody can sign in at the provider");
        SiteError::Failed(StatusCode::BAD_GATEWAY)
    })?;
    Ok(with_cookie(visitor, &departure.url, login_cookie(&departure.cookie, departure.cookie_life_s)))
}

fn login_cookie(text: &str, life_s: i64) -> String {
    format!("{LOGIN_COOKIE}={text}; Path=/site/sign-in; HttpOnly; SameSite=Lax; Max-Age={life_s}")
}

/// `GET /site/sign-in/callback?code=&state=`: receives the browser from the provider.
pub(crate) async fn arrive(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let arrived = arrived(&site, &visitor, &fields).await;
    site.shown(&visitor, arrived)
}

async fn arrived(site: &Site, visitor: &Visitor, fields: &Fields) -> Result<Response> {
    callback_url(site).ok_or(SiteError::NotFound)?;
    let cookie = entrance::cookie(&visitor.headers, LOGIN_COOKIE).unwrap_or_default();
    let (accounts, tenant) = (site.context.accounts(), visitor.db.tenant());
    let asked =
        accounts.arrive_from_provider(tenant, cookie, fields.text("state"), fields.text("code")).await;
    let arrival = asked.map_err(|error| {
        tracing::warn!(%error, "a sign-in at the provider could not be finished");
        SiteError::Failed(StatusCode::BAD_GATEWAY)
    })?;
    let forget = login_cookie("", 0);
    let mut response = match arrival.login {
        Login::Welcome(user) => welcomed(site, visitor, &user, &own_path(&arrival.return_url)),
        Login::Refused => {
            shown(site, visitor, "/", StatusCode::UNAUTHORIZED, Some("sign_in_elsewhere_failed"))?
        }
    };
    if let Ok(forget) = http::HeaderValue::from_str(&forget) {
        response.headers_mut().append(SET_COOKIE, forget);
    }
    Ok(response)
}

/// Returns a path to continue at; the cookie of a login that a dialect's frontend started may contain a foreign
/// address.
fn own_path(url: &str) -> String {
    Fields::parse(&format!("next={}", encoded(url))).next()
}

pub(crate) async fn sign_out(State(site): State<Site>, visitor: Visitor, body: Body) -> Result<Response> {
    let fields = site.form(&visitor, body).await?;
    match visitor.proven(&fields) {
        Ok(()) | Err(SiteError::SignIn) => {}
        Err(other) => return Err(other),
    }
    let cookie = format!("{SESSION_COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
    Ok(with_cookie(&visitor, &fields.next(), cookie))
}

/// Chooses a language. This only changes a cookie, so that a link may do it.
pub(crate) async fn language(visitor: Visitor, fields: Fields) -> Result<Response> {
    let chosen = Language::named(fields.text("to")).ok_or(SiteError::NotFound)?;
    let tag = chosen.tag();
    let cookie = format!("{LANGUAGE_COOKIE}={tag}; Path=/; HttpOnly; SameSite=Lax; Max-Age={LANGUAGE_S}");
    Ok(with_cookie(&visitor, &fields.next(), cookie))
}

fn with_cookie(visitor: &Visitor, next: &str, cookie: String) -> Response {
    let cookie = if visitor.is_secure() { format!("{cookie}; Secure") } else { cookie };
    let response = answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, next);
    let response = answer::with_header(response, http::header::CACHE_CONTROL, "no-store");
    answer::with_header(response, SET_COOKIE, &cookie)
}
