//! Signing in and out, and the choice of a language.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::header::{LOCATION, SET_COOKIE};
use pinakes_accounts::{Login, Password};
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use crate::app::{LANGUAGE_COOKIE, SESSION_COOKIE, Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::Fields;
use crate::language::Language;

/// How long a chosen language is remembered (a year).
const LANGUAGE_S: u32 = 365 * 24 * 60 * 60;

pub(crate) async fn form(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let page = json!({ "title_key": "sign_in", "next": fields.next(), "failed": false });
    site.page(&visitor, StatusCode::OK, "signin.html", page)
}

pub(crate) async fn sign_in(State(site): State<Site>, visitor: Visitor, body: Body) -> Result<Response> {
    visitor.expect_own_page()?;
    let fields = site.form(&visitor, body).await?;
    let (accounts, tenant) = (site.context.accounts(), visitor.db.tenant());
    let login = match Password::new(fields.exact("password")) {
        Ok(password) => accounts.log_in(tenant, fields.text("username"), password).await?,
        Err(_) => Login::Refused,
    };
    let Login::Welcome(user) = login else {
        let page = json!({ "title_key": "sign_in", "next": fields.next(), "failed": true });
        return site.page(&visitor, StatusCode::UNAUTHORIZED, "signin.html", page);
    };
    let claims = match json!({
        "username": user.username, "_id": user.id, "id": user.id, "sub": user.username, "user_id": user.id,
    }) {
        Value::Object(claims) => claims,
        _ => Map::new(),
    };
    let life_s = site.settings.session_s;
    let token = accounts.sign_for(tenant.name(), claims, life_s);
    let cookie = format!("{SESSION_COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={life_s}");
    Ok(with_cookie(&visitor, &fields.next(), cookie))
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

/// A choice of language. It changes nothing but a cookie, so that a link may make it.
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
