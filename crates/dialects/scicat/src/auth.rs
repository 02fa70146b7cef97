//! Logging in and out (section 2 of the contract). Groups are read anew for each request, so a token says only
//! who somebody is.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use pinakes_accounts::{Login, Password, User};
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use crate::app::{Asker, Scicat};
use crate::error::{Answer, ScicatError};

/// How an account of our own is named in SciCat's answers.
pub(crate) const STRATEGY: &str = "local";

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/auth/login", post(login))
        .route("/api/v3/auth/ldap", post(login))
        .route("/api/v3/auth/msad", post(login))
        .route("/api/v3/auth/whoami", get(who_am_i))
        .route("/api/v3/auth/logout", post(log_out))
        .route("/api/v3/users/logout", post(log_out))
        .route("/api/v3/users/login", post(polled_login))
        .route("/api/v4/auth/login", post(login))
        .route("/api/v4/auth/whoami", get(who_am_i))
        .route("/api/v4/auth/logout", post(log_out))
}

/// `{username, password}` for a token, which is sent as `access_token` and, for old clients, as `id`.
async fn login(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    let refused = || ScicatError::bare(StatusCode::UNAUTHORIZED);
    let body = app.optional_object(&headers, body).await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let (Some(username), Some(password)) = (text("username"), text("password")) else {
        return Err(refused());
    };
    let password = Password::new(password).map_err(|_| refused())?;
    let accounts = app.context.accounts();
    let user = match accounts.log_in(asker.db.tenant(), username, password).await? {
        Login::Welcome(user) => user,
        Login::Refused => return Err(refused()),
    };
    let life_s = app.settings.jwt_expires_in;
    let shown = shown(&user);
    let token = accounts.sign_for(asker.db.tenant().name(), shown.clone(), life_s);
    let created = app.now();
    crate::users::remember_login(&app, &asker, &user).await?;
    Ok(answer::json(
        StatusCode::CREATED,
        &json!({
            "access_token": token, "id": token, "expires_in": life_s, "ttl": life_s, "created": created,
            "userId": user.id, "user": shown,
        }),
    ))
}

/// A user as SciCat shows one.
pub(crate) fn shown(user: &User) -> Map<String, Value> {
    let value = json!({
        "username": user.username, "email": user.email, "authStrategy": STRATEGY,
        "_id": user.id, "__v": 0, "id": user.id,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The user, or nothing at all.
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

/// Tokens stay valid: nothing is kept of them.
async fn log_out(asker: Asker) -> Answer {
    if asker.caller().is_anonymous() {
        return Err(ScicatError::text(StatusCode::UNAUTHORIZED, "Not logged in"));
    }
    Ok(answer::json(StatusCode::OK, &json!({"logout": "successful"})))
}

/// What clients poll to see whether the server is up.
async fn polled_login() -> Answer {
    Ok(answer::empty(StatusCode::CREATED))
}
