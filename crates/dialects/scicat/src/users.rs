//! Users as SciCat shows them: the users themselves, their identities, settings, passwords, and tokens for other
//! programs (sections 2 and 8 of the contract). All dialects share the accounts; only settings are records of this
//! dialect.

pub(crate) mod account;
mod identities;
mod settings;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, patch, post};
use http::{HeaderMap, StatusCode};
use pinakes_accounts::{Caller, Login, Password, user};
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, Scicat};
use crate::documents::text;
use crate::error::{Answer, ScicatError};
use crate::filter::DEFAULT_LIMIT;
use crate::resource::Resource;
use crate::rights::Rights;
use crate::users::account::shown;
use crate::users::account::{myself, refused, require_own, user};

pub(crate) use self::settings::remember_login;
pub(crate) use crate::kinds::USER_SETTINGS;

/// Lifetime in seconds of a token that never expires: 100 years.
const NEVER_S: i64 = 100 * 365 * 24 * 3600;

/// The routes of users and the kind of their settings.
pub(crate) static RESOURCE: Resource = Resource { kinds: &[&USER_SETTINGS], ..Resource::of_routes(routes) };

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/users", get(list))
        .route("/api/v3/users/my/self", get(my_self))
        .route("/api/v3/users/jwt", post(own_token))
        .route("/api/v3/users/password", post(change_own_password))
        .route("/api/v3/users/{id}", get(by_id))
        .route("/api/v3/users/{id}/jwt", post(token))
        .route("/api/v3/users/{id}/password", patch(change_password))
        .route("/api/v3/users/{id}/authorization/dataset/create", get(may_create_datasets))
        .merge(identities::routes())
        .merge(settings::routes())
}

/// Refuses callers who are not admins.
fn require_admin(asker: &Asker) -> Result<(), ScicatError> {
    myself(asker)?;
    if asker.rights.is_admin { Ok(()) } else { Err(refused()) }
}

/// `GET /users`: for admins; in order of creation, at most 100.
async fn list(_: State<Scicat>, asker: Asker) -> Answer {
    require_admin(&asker)?;
    let query = Query::filter(Expr::All).window(0, DEFAULT_LIMIT);
    let users = asker.db.read(Weight::Scan, move |view| user::find(view, &query)).await?;
    Ok(answer::json(StatusCode::OK, &users.iter().map(shown).collect::<Vec<_>>()))
}

async fn my_self(_: State<Scicat>, asker: Asker) -> Answer {
    Ok(answer::json(StatusCode::OK, &shown(myself(&asker)?)))
}

async fn by_id(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    require_own(&asker, &id)?;
    Ok(match user(&app, &asker, &id).await? {
        Some(user) => answer::json(StatusCode::OK, &shown(&user)),
        None => answer::empty(StatusCode::OK),
    })
}

/// `POST /users/jwt`: a token that tells another program the caller's name and groups; anyone can get one.
async fn own_token(app: State<Scicat>, asker: Asker) -> Answer {
    let caller = asker.caller();
    let claims = match &caller.user {
        Some(user) => json!({"username": user.id, "groups": caller.groups.to_vec()}),
        None => json!({"username": "anonymous", "groups": ["public"]}),
    };
    Ok(signed(&app, &asker, claims, app.settings.jwt_expires_in))
}

fn signed(app: &Scicat, asker: &Asker, claims: Value, life_s: i64) -> axum::response::Response {
    let claims = if let Value::Object(claims) = claims { claims } else { Map::new() };
    let token = app.context.accounts().sign_for(asker.db.tenant().name(), claims, life_s);
    answer::json(StatusCode::CREATED, &json!({"jwt": token}))
}

/// `POST /users/{id}/jwt` `{"expiresIn":"2h"}` or `"never"`: a token with which the user's programs log in; for
/// admins.
async fn token(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    require_admin(&asker)?;
    let life_s = match app.optional_object(&headers, body).await?.get("expiresIn") {
        None | Some(Value::Null) => app.settings.jwt_expires_in,
        Some(value) => life_s(value).ok_or_else(|| {
            let expected =
                "expected seconds, or a number with s, m, h, d, w or y such as \"2h\", or \"never\"";
            ScicatError::bad_request(format!("expiresIn is {value}; {expected}"))
        })?,
    };
    let Some(user) = user(&app, &asker, &id).await? else {
        return Err(ScicatError::not_found(format!("User: {id} not found")));
    };
    let mut claims = shown(&user);
    claims.insert("groups".to_owned(), json!(user.groups));
    Ok(signed(&app, &asker, Value::Object(claims), life_s))
}

/// Parses `"2h"`, `"30 minutes"`, `3600` or `"never"` into seconds; at most 100 years.
fn life_s(value: &Value) -> Option<i64> {
    let life_s = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) if text == "never" => return Some(NEVER_S),
        Value::String(text) => {
            let text = text.trim();
            let is_sign = |(at, it): (usize, u8)| at == 0 && it == b'-';
            let is_number = |it: &(usize, u8)| is_sign(*it) || it.1.is_ascii_digit() || it.1 == b'.';
            let n_digits = text.bytes().enumerate().take_while(is_number).count();
            let (number, unit) = text.split_at(n_digits);
            number.parse::<f64>().ok()? * unit_s(unit.trim())?
        }
        _ => return None,
    };
    // Within the limits the conversion only drops a fraction of a second. A negative lifetime gives an expired token,
    // with which clients can test how they handle expiry.
    #[expect(clippy::cast_possible_truncation, reason = "not beyond 100 years of seconds")]
    (0.0 != life_s && life_s.abs() <= NEVER_S as f64).then_some(if life_s < 0.0 {
        life_s.floor() as i64
    } else {
        life_s.ceil() as i64
    })
}

fn unit_s(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        "y" | "year" | "years" => 31_536_000.0,
        _ => return None,
    })
}

/// `POST /users/password` `{"currentPassword","newPassword","confirmPassword"}`: changes the caller's own password.
async fn change_own_password(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    let id = myself(&asker)?.id.clone();
    let body = app.object(&headers, body).await?;
    require_current(&app, &asker, &id, &body).await?;
    set_password(&app, &asker, &id, &body).await?;
    Ok(answer::json(StatusCode::OK, &json!({"message": "Password updated successfully"})))
}

/// `PATCH /users/{id}/password` `{"newPassword","confirmPassword"}`: for admins; users must also send their current
/// one.
async fn change_password(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    require_own(&asker, &id)?;
    let body = app.object(&headers, body).await?;
    if !asker.rights.is_admin {
        require_current(&app, &asker, &id, &body).await?;
    }
    set_password(&app, &asker, &id, &body).await?;
    let message = format!("Password updated successfully for userId: {id}");
    Ok(answer::json(StatusCode::OK, &json!({"message": message})))
}

async fn require_current(
    app: &Scicat,
    asker: &Asker,
    id: &str,
    body: &Map<String, Value>,
) -> Result<(), ScicatError> {
    let wrong = || ScicatError::bad_request("Current password is incorrect");
    let password = Password::new(text(body, "currentPassword")).map_err(|_| wrong())?;
    let user = user(app, asker, id).await?;
    match app.context.accounts().check(user, password).await? {
        Login::Welcome(_) => Ok(()),
        Login::Refused => Err(wrong()),
    }
}

async fn set_password(
    app: &Scicat,
    asker: &Asker,
    id: &str,
    body: &Map<String, Value>,
) -> Result<(), ScicatError> {
    let new = text(body, "newPassword");
    if new.is_empty() {
        return Err(ScicatError::bad_request(json!(["newPassword should not be empty"])));
    }
    if body.get("confirmPassword").is_some_and(|it| it.as_str() != Some(new)) {
        return Err(ScicatError::bad_request("New password and confirmation password do not match"));
    }
    let password = Password::new(new).map_err(|error| ScicatError::bad_request(error.to_string()))?;
    app.context.accounts().set_password(asker.db.tenant(), id, password).await?;
    Ok(())
}

/// `{"authorization":…}`: whether the user may create datasets at all.
async fn may_create_datasets(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    require_own(&asker, &id)?;
    let may_create = match user(&app, &asker, &id).await? {
        Some(user) => {
            let caller = Caller::of(user, app.context.accounts().everyone());
            Rights::of(caller, &app.settings).has_create_role()
        }
        None => false,
    };
    Ok(answer::json(StatusCode::OK, &json!({"authorization": may_create})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_are_read() {
        for (value, expected) in [
            (json!("2h"), Some(7_200)),
            (json!("30 minutes"), Some(1_800)),
            (json!("90"), Some(90)),
            (json!(90.0), Some(90)),
            (json!("1.5d"), Some(129_600)),
            (json!("never"), Some(NEVER_S)),
            (json!("101y"), None),
            (json!("-5"), Some(-5)),
            (json!("-1h"), Some(-3_600)),
            (json!(0), None),
            (json!("soon"), None),
            (json!("."), None),
            (json!(true), None),
        ] {
            assert_eq!(life_s(&value), expected, "{value}");
        }
    }
}
