//! Login and logout (section 2 of the contract): with a password kept here, at a directory, or at an OpenID Connect
//! provider. Groups are read again for each request, so a token only identifies the user.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use pinakes_accounts::{Login, Password, User};
use pinakes_http::{answer, entrance};
use serde_json::{Value, json};

use crate::app::{Asker, QueryText, Scicat};
use crate::error::{Answer, ScicatError};
use crate::resource::Resource;
use crate::users::account::shown;

/// The cookie in which a browser keeps a login that was started at the provider.
const LOGIN_COOKIE: &str = "pinakes_oidc";

/// The routes of logins.
pub(crate) static RESOURCE: Resource = Resource::of_routes(routes);

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/auth/login", post(login))
        .route("/api/v3/auth/ldap", post(ldap_login))
        .route("/api/v3/auth/msad", post(msad_login))
        .route("/api/v3/auth/oidc", get(depart))
        .route("/api/v3/auth/oidc/callback", get(arrive))
        .route("/api/v3/auth/oidc/token", post(login_with_id_token))
        .route("/api/v3/auth/whoami", get(who_am_i))
        .route("/api/v3/auth/logout", post(log_out))
        .route("/api/v3/users/logout", post(log_out))
        .route("/api/v3/users/login", post(polled_login))
        .route("/api/v4/auth/login", post(login))
        .route("/api/v4/auth/whoami", get(who_am_i))
        .route("/api/v4/auth/logout", post(log_out))
}

fn refused() -> ScicatError {
    ScicatError::bare(StatusCode::UNAUTHORIZED)
}

/// Exchanges `{username, password}` for a token, which is sent as `access_token` and, for old clients, as `id`.
async fn login(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    let (username, password) = credentials(&app, &headers, body).await?;
    let login = app.context.accounts().log_in(asker.db.tenant(), &username, password).await?;
    welcome(&app, &asker, login).await
}

async fn ldap_login(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    directory_login(&app, &asker, "ldap", &headers, body).await
}

async fn msad_login(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    directory_login(&app, &asker, "msad", &headers, body).await
}

/// Checks a login at the directory; if none is configured, against the accounts kept here.
async fn directory_login(
    app: &Scicat,
    asker: &Asker,
    strategy: &'static str,
    headers: &HeaderMap,
    body: Body,
) -> Answer {
    let (username, password) = credentials(app, headers, body).await?;
    let (accounts, tenant) = (app.context.accounts(), asker.db.tenant());
    let login = if accounts.sources().ldap.is_configured() {
        accounts.log_in_at_directory(tenant, strategy, &username, password).await?
    } else {
        accounts.log_in(tenant, &username, password).await?
    };
    welcome(app, asker, login).await
}

/// `POST /auth/oidc/token` `{idToken}`: for programs that have logged in at the provider themselves.
async fn login_with_id_token(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    let body = app.optional_object(&headers, body).await?;
    let token = body.get("idToken").and_then(Value::as_str).ok_or_else(refused)?;
    let login = app.context.accounts().log_in_with_id_token(asker.db.tenant(), token).await?;
    welcome(&app, &asker, login).await
}

async fn credentials(
    app: &Scicat,
    headers: &HeaderMap,
    body: Body,
) -> Result<(String, Password), ScicatError> {
    let body = app.optional_object(headers, body).await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let (Some(username), Some(password)) = (text("username"), text("password")) else {
        return Err(refused());
    };
    Ok((username.to_owned(), Password::new(password).map_err(|_| refused())?))
}

async fn welcome(app: &Scicat, asker: &Asker, login: Login) -> Answer {
    let Login::Welcome(user) = login else { return Err(refused()) };
    let (token, life_s) = token(app, asker, &user).await?;
    Ok(answer::json(
        StatusCode::CREATED,
        &json!({
            "access_token": token, "id": token, "expires_in": life_s, "ttl": life_s, "created": app.now(),
            "userId": user.id, "user": shown(&user),
        }),
    ))
}

/// Creates a token for a user who has logged in; returns it with its lifetime in seconds.
async fn token(app: &Scicat, asker: &Asker, user: &User) -> Result<(String, i64), ScicatError> {
    let life_s = app.settings.jwt_expires_in;
    let token = app.context.accounts().sign_for(asker.db.tenant().name(), shown(user), life_s);
    crate::users::remember_login(app, asker, user).await?;
    Ok((token, life_s))
}

/// `GET /auth/oidc?client=&returnURL=`: redirects to the provider.
async fn depart(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let accounts = app.context.accounts();
    require_provider(&app)?;
    let client = query.get("client").unwrap_or_default();
    let return_url = query.get("returnURL").or_else(|| query.get("returnUrl")).unwrap_or_default();
    let departure = accounts.depart(asker.db.tenant(), client, return_url).await?;
    let mut answer = redirect(&departure.url)?;
    keep(&app, &mut answer, &departure.cookie, departure.cookie_life_s)?;
    Ok(answer)
}

/// `GET /auth/oidc/callback?code=&state=`: receives the browser from the provider and redirects it to the frontend with
/// `access-token`, `user-id` and `returnUrl`.
async fn arrive(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    require_provider(&app)?;
    let cookie = entrance::cookie(&headers, LOGIN_COOKIE).unwrap_or_default();
    let (state, code) = (query.get("state").unwrap_or_default(), query.get("code").unwrap_or_default());
    let tenant = asker.db.tenant();
    let arrival = app.context.accounts().arrive_from_provider(tenant, cookie, state, code).await?;
    let Login::Welcome(user) = arrival.login else { return Err(refused()) };
    let (token, _) = token(&app, &asker, &user).await?;
    let encoded =
        |it: &str| percent_encoding::utf8_percent_encode(it, percent_encoding::NON_ALPHANUMERIC).to_string();
    let mark = if arrival.success_url.contains('?') { '&' } else { '?' };
    let mut url = format!(
        "{}{mark}access-token={}&user-id={}",
        arrival.success_url,
        encoded(&token),
        encoded(&user.id)
    );
    if !arrival.return_url.is_empty() {
        url.push_str("&returnUrl=");
        url.push_str(&encoded(&arrival.return_url));
    }
    let mut answer = redirect(&url)?;
    keep(&app, &mut answer, "", 0)?;
    Ok(answer)
}

/// Checks that a provider is configured. Errors: 404 if none is.
fn require_provider(app: &Scicat) -> Result<(), ScicatError> {
    if app.context.accounts().sources().oidc.is_configured() {
        return Ok(());
    }
    Err(ScicatError::not_found(
        "No OpenID Connect provider is configured (accounts.oidc.issuer, OIDC_ISSUER)",
    ))
}

fn redirect(url: &str) -> Result<Response, ScicatError> {
    let unfit = || ScicatError::with(StatusCode::BAD_GATEWAY, "A URL of accounts.oidc cannot be sent");
    let mut answer = answer::empty(StatusCode::FOUND);
    answer.headers_mut().insert(LOCATION, HeaderValue::try_from(url).map_err(|_| unfit())?);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// Sets the cookie that keeps the login; a lifetime of 0 deletes it.
fn keep(app: &Scicat, answer: &mut Response, cookie: &str, life_s: i64) -> Result<(), ScicatError> {
    let is_safe = app.context.accounts().sources().oidc.callback_url.starts_with("https:");
    let secure = if is_safe { "; Secure" } else { "" };
    let text = format!("{LOGIN_COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Lax; Max-Age={life_s}{secure}");
    let unfit = |_| ScicatError::with(StatusCode::BAD_GATEWAY, "The login cannot be kept");
    answer.headers_mut().append(SET_COOKIE, HeaderValue::try_from(text).map_err(unfit)?);
    Ok(())
}

/// Returns the user, or an empty answer.
async fn who_am_i(asker: Asker) -> Answer {
    Ok(match &asker.caller().user {
        Some(user) => {
            let mut shown = shown(user);
            shown.insert("currentGroups".to_owned(), json!(asker.caller().groups.to_vec()));
            answer::json(StatusCode::OK, &shown)
        }
        None => answer::empty(StatusCode::OK),
    })
}

/// Logs out. Tokens stay valid, as the server keeps no list of them.
async fn log_out(asker: Asker) -> Answer {
    if asker.caller().is_anonymous() {
        return Err(ScicatError::text(StatusCode::UNAUTHORIZED, "Not logged in"));
    }
    Ok(answer::json(StatusCode::OK, &json!({"logout": "successful"})))
}

/// Answers clients that poll to see whether the server is up.
async fn polled_login() -> Answer {
    Ok(answer::empty(StatusCode::CREATED))
}
