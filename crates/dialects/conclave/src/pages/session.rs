//! Signing in and out. The cookie is a signed token that scripts cannot read; it is set when somebody signs in and at no
//! other time, so that pages can be kept by caches.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use minijinja::context;
use pinakes_accounts::{Login, Password};
use pinakes_http::answer;
use serde_json::{Value, json};

use crate::app::{Asker, COOKIE_NAME, Conclave, Params};
use crate::error::{ConclaveError, Result};
use crate::text::Fields;

/// A place of this site to go on at; anything else would lead strangers elsewhere.
fn next_page(fields: &Fields) -> String {
    let next = fields.text("next");
    let is_own = next.starts_with('/') && !next.starts_with("//") && !next.contains(['\\', '\n', '\r']);
    if is_own { next.to_owned() } else { "/conclave/default".to_owned() }
}

pub(super) async fn form(State(app): State<Conclave>, asker: Asker, params: Params) -> Result<Response> {
    let page = context! { title => "Sign in", next => next_page(&params.0), tab => "sign-in" };
    app.page(&asker, "default", StatusCode::OK, "signin.html", page)
}

/// Errors: 403 for a form of another site.
fn is_from_here(headers: &HeaderMap) -> Result<()> {
    let site = headers.get("sec-fetch-site").and_then(|it| it.to_str().ok()).unwrap_or("same-origin");
    if matches!(site, "same-origin" | "none") {
        return Ok(());
    }
    Err(ConclaveError::forbidden("the form was sent by another site"))
}

pub(super) async fn sign_in(
    State(app): State<Conclave>,
    asker: Asker,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    is_from_here(&headers)?;
    let bytes = app.received(&headers, body).await?;
    let fields = Fields::parse(&String::from_utf8_lossy(&bytes));
    let accounts = app.context.accounts();
    let login = match Password::new(fields.text("password")) {
        Ok(password) => accounts.log_in(asker.db.tenant(), fields.text("username"), password).await?,
        Err(_) => Login::Refused,
    };
    let Login::Welcome(user) = login else {
        let page = context! {
            title => "Sign in", next => next_page(&fields), error => "Name and password do not belong together.",
            tab => "sign-in",
        };
        return app.page(&asker, "default", StatusCode::UNAUTHORIZED, "signin.html", page);
    };
    let claims = match json!({"username": user.username, "_id": user.id, "id": user.id}) {
        Value::Object(claims) => claims,
        _ => serde_json::Map::new(),
    };
    let life_s = app.settings.session_s;
    let token = accounts.sign_for(asker.db.tenant().name(), claims, life_s);
    let cookie = format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={life_s}");
    Ok(with_cookie(&next_page(&fields), &cookie))
}

pub(super) async fn sign_out(
    State(app): State<Conclave>,
    asker: Asker,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    is_from_here(&headers)?;
    let bytes = app.received(&headers, body).await?;
    let fields = Fields::parse(&String::from_utf8_lossy(&bytes));
    // A foreign page must not sign anybody out either.
    if asker.csrf().is_some_and(|it| it != fields.text("_csrf")) {
        return Err(ConclaveError::forbidden("the form does not carry the token of the session"));
    }
    let cookie = format!("{COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
    Ok(with_cookie(&next_page(&fields), &cookie))
}

fn with_cookie(next: &str, cookie: &str) -> Response {
    let response = answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, next);
    answer::with_header(response, SET_COOKIE, cookie)
}
