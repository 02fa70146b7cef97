//! Login: tokens, expiring tokens in cookies, refreshing, logout, passwords (section 1.2 of the contract).
//!
//! Accounts are those of the server; a FOLIO user is a record of `/users` with the account's UUID. For an account
//! created by the command, this record is created at its first login.

pub(crate) mod events;
pub(crate) mod reset;

use std::fmt::Write as _;
use std::sync::Arc;

use axum::response::Response;
use http::header::SET_COOKIE;
use http::{HeaderName, HeaderValue, StatusCode};
use pinakes_accounts::{Login, Password, User, user};
use pinakes_http::{Db, answer, entrance};
use pinakes_store::{Column, Expr, Index, Kind, Txn, Type, Weight};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::platform::app::{Call, Folio};
use crate::platform::collection::{self, Writer};
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};
use crate::users::composite::composite;
use crate::users::user::{USERS, account_of, record_of};

/// Header with a token that cannot be refreshed.
const X_OKAPI_TOKEN: HeaderName = HeaderName::from_static("x-okapi-token");
/// Names of the cookies.
const ACCESS_COOKIE: &str = "folioAccessToken";
const REFRESH_COOKIE: &str = "folioRefreshToken";

/// Valid refresh tokens, by the SHA-256 of their text.
pub(crate) static REFRESH_TOKEN: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("userId", Type::Text)],
    indexes: &[Index::on(&["userId"])],
    ..Kind::named("folio_refresh_token")
};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/authn/login", Access::Anybody, login)
        .post("/authn/login-with-expiry", Access::Anybody, login_with_expiry)
        .post("/authn/refresh", Access::Anybody, refresh)
        .post("/authn/logout", Access::Anybody, log_out)
        .post("/authn/logout-all", Access::User, log_out_everywhere)
        .post("/authn/update", Access::User, change_password)
        .post("/authn/credentials", Access::to("login.item.post"), create_credentials)
        .delete("/authn/credentials", Access::to("login.item.delete"), delete_credentials)
        .get("/authn/credentials-existence", Access::to("login.credentials-existence.get"), credentials_exist)
        .post("/authn/password/repeatable", Access::to("login.password.validate"), is_password_new)
        .with(reset::routes)
        .with(events::routes)
        .post("/bl-users/login", Access::Anybody, bl_login)
        .post("/bl-users/login-with-expiry", Access::Anybody, bl_login_with_expiry)
}

async fn login(mut call: Call) -> Answer {
    let user = logged_in(&mut call).await?;
    let token = lasting_token(&call.app, call.asker.tenant(), &user);
    let refresh_token = new_refresh_token(&call.app, call.db(), &user).await?;
    let body = json!({
        "okapiToken": token, "refreshToken": refresh_token, "user": {"id": user.uuid.to_string()},
    });
    let mut response = answer::with_header(json_answer(StatusCode::CREATED, &body), X_OKAPI_TOKEN, &token);
    let (access_s, refresh_s) = (call.app.settings.login_token_s, call.app.settings.refresh_token_s);
    set_cookies(
        &mut response,
        [access_cookie(&token, access_s), refresh_cookie_of(&refresh_token, refresh_s)],
    );
    Ok(response)
}

/// Answers `invalid` if the user already has that password: `{"userId","password"}`.
async fn is_password_new(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = required_text(&body, "userId")?;
    let id = Uuid::parse_str(id).map_err(|_| collection::not_a_uuid("userId", id))?;
    let password = required_text(&body, "password")?;
    let account = call.db().read(Weight::Point, move |view| user::by_uuid(view, id)).await?;
    let hash = account.and_then(|it| it.password);
    let is_old = match Password::new(password) {
        Ok(password) => {
            let (accounts, name) = (call.app.context.accounts(), format!("password of {id}"));
            accounts.is_secret(call.db().tenant(), &name, password, hash).await?
        }
        Err(_) => false,
    };
    let result = if is_old { "invalid" } else { "valid" };
    Ok(json_answer(StatusCode::OK, &json!({"result": result})))
}

async fn login_with_expiry(mut call: Call) -> Answer {
    let user = logged_in(&mut call).await?;
    let pair = Pair::new(&call, &user).await?;
    Ok(pair.put(json_answer(StatusCode::CREATED, &pair.expirations())))
}

async fn bl_login(mut call: Call) -> Answer {
    let user = logged_in(&mut call).await?;
    let token = lasting_token(&call.app, call.asker.tenant(), &user);
    let body = composite(&call, user).await?;
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &body), X_OKAPI_TOKEN, &token))
}

async fn bl_login_with_expiry(mut call: Call) -> Answer {
    let user = logged_in(&mut call).await?;
    let pair = Pair::new(&call, &user).await?;
    let mut body = composite(&call, user).await?;
    body["tokenExpiration"] = pair.expirations();
    Ok(pair.put(json_answer(StatusCode::CREATED, &body)))
}

/// Authenticates the user by the name and password in the body.
///
/// Errors: 400 if one of them is missing; 401 `Wrong username or wrong password or account blocked`, as in
/// mod-login-keycloak (mod-login used 422).
async fn logged_in(call: &mut Call) -> Result<Arc<User>, FolioError> {
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let Some(password) = text("password") else {
        return Err(FolioError::bad_request("You must provide a password"));
    };
    let accounts = call.app.context.accounts();
    let tenant = call.db().tenant();
    let found = match (text("username"), text("userId").map(Uuid::parse_str)) {
        (Some(name), _) => accounts.by_username(tenant, name).await?,
        (None, Some(Ok(id))) => call.db().read(Weight::Point, move |view| user::by_uuid(view, id)).await?,
        (None, Some(Err(_))) => None,
        (None, None) => return Err(FolioError::bad_request("You must provide a username or userId")),
    };
    let Ok(password) = Password::new(password) else { return Err(wrong()) };
    let tried = found.as_ref().map_or(Uuid::nil(), |it| it.uuid).to_string();
    match accounts.check(found, password).await? {
        Login::Welcome(user) => {
            remember(call, &user).await?;
            unless_full(
                events::succeeded(call, &user.uuid.to_string()).await,
                "failed logins are still counted",
            )?;
            Ok(user)
        }
        Login::Refused => {
            // The same work is done for an unknown name, so that timing does not reveal which names exist.
            let now_ms = call.app.now_ms();
            let written = call.db().write(move |txn| events::failed(txn, &tried, now_ms)).await;
            unless_full(written, "the failed login is not counted")?;
            Err(wrong())
        }
    }
}

fn wrong() -> FolioError {
    let fault = Fault::new("Wrong username or wrong password or account blocked")
        .ty("error")
        .code("wrong.username.or.wrong.password.or.account.blocked");
    FolioError::faults(StatusCode::UNAUTHORIZED, vec![fault])
}

/// Creates the missing record of a user with an account; if the disk is full, this is left to the next login.
async fn remember(call: &Call, user: &User) -> Result<(), FolioError> {
    let id = user.uuid.to_string();
    let wanted = id.clone();
    if call.db().read(Weight::Point, move |view| view.has(&USERS.kind, &wanted)).await? {
        return Ok(());
    }
    let body = record_of(user);
    let writer = Writer::of(call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if !txn.has(&USERS.kind, &id)? {
            collection::insert(txn, &writer(), &USERS, body.clone())?;
        }
        Ok(())
    };
    unless_full(call.db().write(write).await, "no record of the user was made")
}

/// Lets a login succeed when the disk is full: what could not be stored is logged.
fn unless_full(written: Result<(), FolioError>, missed: &str) -> Result<(), FolioError> {
    match written {
        Err(error) if error.status == StatusCode::INSUFFICIENT_STORAGE => {
            tracing::warn!("logged in, but {missed}: the disk is full");
            Ok(())
        }
        written => written,
    }
}

/// Builds the claims that name a user of a tenant.
fn claims(tenant: &str, user: &User) -> Map<String, Value> {
    let value = json!({
        "sub": user.username, "user_id": user.uuid.to_string(), "type": "access", "tenant": tenant,
    });
    value.as_object().cloned().unwrap_or_default()
}

fn lasting_token(app: &Folio, tenant: &str, user: &User) -> String {
    app.context.accounts().sign_for(tenant, claims(tenant, user), app.settings.login_token_s)
}

/// Creates a refresh token: the client gets its text, its hash is stored. If the disk is full, it is not stored and
/// will be refused when it is used.
async fn new_refresh_token(app: &Folio, db: &Db, user: &User) -> Result<String, FolioError> {
    let text = hex(&app.context.entropy().bytes::<32>());
    let id = hash(&text);
    let (user, now_ms) = (user.uuid.to_string(), app.now_ms());
    let body = json!({"id": id, "userId": user, "expiresMs": now_ms + app.settings.refresh_token_s * 1_000});
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        drop_refresh_tokens(txn, &user, |expires_ms| expires_ms <= now_ms)?;
        txn.insert(&REFRESH_TOKEN, &id, &body)?;
        Ok(())
    };
    unless_full(db.write(write).await, "the refresh token is not kept")?;
    Ok(text)
}

/// Deletes those of a user's refresh tokens whose expiration satisfies `is_to_go`.
fn drop_refresh_tokens(
    txn: &mut Txn<'_>,
    user: &str,
    is_to_go: impl Fn(i64) -> bool,
) -> Result<(), FolioError> {
    let query = pinakes_store::Query::filter(Expr::Is("userId".into(), user.into()));
    for record in txn.find(&REFRESH_TOKEN, &query)? {
        let expires_ms = record.json()?.get("expiresMs").and_then(Value::as_i64).unwrap_or(0);
        if is_to_go(expires_ms) {
            txn.delete(&REFRESH_TOKEN, &record.id)?;
        }
    }
    Ok(())
}

fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// An access token and a refresh token with their expirations.
struct Pair {
    access: String,
    refresh: String,
    access_s: i64,
    refresh_s: i64,
    now_ms: i64,
}

impl Pair {
    async fn new(call: &Call, user: &User) -> Result<Self, FolioError> {
        let app = &call.app;
        let (access_s, refresh_s) = (app.settings.access_token_s, app.settings.refresh_token_s);
        let tenant = call.asker.tenant();
        let access = app.context.accounts().sign_for(tenant, claims(tenant, user), access_s);
        let refresh = new_refresh_token(app, call.db(), user).await?;
        Ok(Self { access, refresh, access_s, refresh_s, now_ms: app.now_ms() })
    }

    fn expirations(&self) -> Value {
        json!({
            "accessTokenExpiration": dates::seconds(self.now_ms + self.access_s * 1_000),
            "refreshTokenExpiration": dates::seconds(self.now_ms + self.refresh_s * 1_000),
        })
    }

    fn put(&self, mut response: Response) -> Response {
        let cookies =
            [access_cookie(&self.access, self.access_s), refresh_cookie_of(&self.refresh, self.refresh_s)];
        set_cookies(&mut response, cookies);
        response
    }
}

fn cookie(name: &str, value: &str, life_s: i64, path: &str) -> String {
    format!("{name}={value}; Max-Age={life_s}; Path={path}; Secure; HTTPOnly; SameSite=Lax")
}

fn access_cookie(token: &str, life_s: i64) -> String {
    cookie(ACCESS_COOKIE, token, life_s, "/")
}

fn refresh_cookie_of(token: &str, life_s: i64) -> String {
    cookie(REFRESH_COOKIE, token, life_s, "/authn")
}

fn set_cookies(response: &mut Response, cookies: [String; 2]) {
    for cookie in cookies {
        if let Ok(value) = HeaderValue::try_from(cookie) {
            response.headers_mut().append(SET_COOKIE, value);
        }
    }
}

fn without_cookies() -> Response {
    let gone = |name: &str, path: &str| {
        format!(
            "{name}=; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0; Path={path}; Secure; HTTPOnly; SameSite=Lax"
        )
    };
    let mut response = answer::empty(StatusCode::NO_CONTENT);
    set_cookies(&mut response, [gone(ACCESS_COOKIE, "/"), gone(REFRESH_COOKIE, "/authn")]);
    response
}

/// Exchanges a refresh token, which is valid once, for a new pair.
async fn refresh(mut call: Call) -> Answer {
    let refused = || {
        FolioError::unprocessable(
            Fault::new("Unable to refresh the token").ty("error").code("token.refresh.unprocessable"),
        )
    };
    let given = match entrance::cookie(&call.headers, REFRESH_COOKIE) {
        Some(cookie) => Some(cookie.to_owned()),
        None => {
            let body = call.object().await.unwrap_or_default();
            body.get("refreshToken").and_then(Value::as_str).map(str::to_owned)
        }
    };
    let id =
        hash(&given.ok_or_else(|| FolioError::bad_request("The request must have a refresh token cookie"))?);
    let now_ms = call.app.now_ms();
    let taken = call.db().write(move |txn| txn.delete(&REFRESH_TOKEN, &id)).await?;
    let token = taken.ok_or_else(refused)?.json()?;
    let is_good = token.get("expiresMs").and_then(Value::as_i64).is_some_and(|end_ms| now_ms < end_ms);
    let user = token.get("userId").and_then(Value::as_str).and_then(|it| Uuid::parse_str(it).ok());
    let Some(user) = user.filter(|_| is_good) else { return Err(refused()) };
    let user = call.db().read(Weight::Point, move |view| user::by_uuid(view, user)).await?;
    let user = user.filter(|it| it.active).ok_or_else(refused)?;
    let pair = Pair::new(&call, &user).await?;
    Ok(pair.put(json_answer(StatusCode::CREATED, &pair.expirations())))
}

async fn log_out(call: Call) -> Answer {
    if let Some(id) = entrance::cookie(&call.headers, REFRESH_COOKIE).map(hash) {
        call.db().write(move |txn| txn.delete(&REFRESH_TOKEN, &id).map(drop)).await?;
    }
    Ok(without_cookies())
}

async fn log_out_everywhere(call: Call) -> Answer {
    let user = call.asker.user_id().unwrap_or_default();
    call.db().write(move |txn| drop_refresh_tokens(txn, &user, |_| true)).await?;
    Ok(without_cookies())
}

/// Changes the password of a user who gives the old one: `{username, password, newPassword}`; without `username`, the
/// caller's.
async fn change_password(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (old, new) = (required_text(&body, "password")?, required_text(&body, "newPassword")?);
    let Some(caller) = call.asker.caller.user.clone() else { return Err(wrong()) };
    let accounts = call.app.context.accounts();
    let user = match body.get("username").and_then(Value::as_str).filter(|it| *it != caller.username) {
        Some(name) => accounts.by_username(call.db().tenant(), name).await?,
        None => Some((*caller).clone()),
    };
    let Ok(old) = Password::new(old) else { return Err(wrong()) };
    let Login::Welcome(user) = accounts.check(user, old).await? else { return Err(wrong()) };
    accounts.set_password(call.db().tenant(), &user.id, Password::new(new)?).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Sets the password of a user who has none yet: `{userId, password}`.
async fn create_credentials(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = required_text(&body, "userId")?;
    let bad = |message: String| FolioError::unprocessable(Fault::new(message).ty("error").with("userId", id));
    let uuid = Uuid::parse_str(id).map_err(|_| bad(format!("userId {id} is no UUID")))?;
    let password = Password::new(required_text(&body, "password")?)?;
    let found = call
        .db()
        .read(Weight::Point, move |view| -> Result<_, FolioError> {
            let record = view.get(&USERS.kind, &uuid.to_string())?;
            Ok((record.map(|it| it.json()).transpose()?, user::by_uuid(view, uuid)?))
        })
        .await?;
    let accounts = call.app.context.accounts();
    let tenant = call.db().tenant();
    match found {
        (_, Some(account)) if account.password.is_some() => {
            return Err(bad(format!("There already exists credentials for user id: {id}")));
        }
        (_, Some(account)) => drop(accounts.set_password(tenant, &account.id, password).await?),
        (Some(record), None) => {
            let account = account_of(&record, uuid, call.app.now_ms())
                .ok_or_else(|| bad(format!("User {id} has no username")))?;
            accounts.create(tenant, account, Some(password)).await?;
        }
        (None, None) => return Err(bad(format!("No user found with id {id}"))),
    }
    accounts.changed();
    Ok(json_answer(StatusCode::CREATED, &json!({"userId": id})))
}

async fn delete_credentials(call: Call) -> Answer {
    let id = call.query.get("userId").and_then(|it| Uuid::parse_str(it).ok());
    let Some(id) = id else { return Err(FolioError::bad_request("userId must be a UUID")) };
    let missing = || FolioError::not_found("No credentials found for that user");
    let account = call.db().read(Weight::Point, move |view| user::by_uuid(view, id)).await?;
    let account = account.filter(|it| it.password.is_some()).ok_or_else(missing)?;
    call.app.context.accounts().change(call.db().tenant(), &account.id, |user| user.password = None).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn credentials_exist(call: Call) -> Answer {
    let id = call.query.get("userId").unwrap_or_default();
    let Ok(id) = Uuid::parse_str(id) else { return Err(FolioError::bad_request("userId must be a UUID")) };
    let account = call.db().read(Weight::Point, move |view| user::by_uuid(view, id)).await?;
    let exist = account.is_some_and(|it| it.password.is_some());
    Ok(json_answer(StatusCode::OK, &json!({"credentialsExist": exist})))
}
