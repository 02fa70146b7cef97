//! Accounts with a password: `/api/builtin-users` (section 8 of the contract).

use http::StatusCode;
use pinakes_accounts::{Login, Password};
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Call, Dataverse};
use crate::blocks::validate::is_email;
use crate::envelope;
use crate::error::{Answer, ApiError};
use crate::notifications::{self, Notice};
use crate::routing::Routes;
use crate::tokens::{self, Token};
use crate::users::{self, User};
use crate::{clock, site_settings};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/builtin-users", create)
        .post("/builtin-users/{password}/{key}", create_with_path)
        .post("/builtin-users/{password}/{key}/{notify}", create_with_path)
        .get("/builtin-users/{name}/api-token", show_token)
}

async fn create(mut call: Call) -> Answer {
    let password = call.query.get("password").unwrap_or_default().to_owned();
    let key = call.query.get("key").map(str::to_owned);
    create_user(&mut call, password, key).await
}

async fn create_with_path(mut call: Call) -> Answer {
    let (password, key) = (call.param("password").to_owned(), call.param("key").to_owned());
    create_user(&mut call, password, Some(key)).await
}

/// Creates a user with a password. Errors: 503 if no key is set, 401 for a wrong key, 400 for names that are taken or
/// invalid.
async fn create_user(call: &mut Call, password: String, key: Option<String>) -> Answer {
    let set = call.db().read(Weight::Point, |view| site_settings::get(view, ":BuiltinUsersKey")).await?;
    match set.as_deref() {
        None | Some("") => {
            let message =
                "No key configured for built-in users; set :BuiltinUsersKey to make users over the API.";
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        Some(set) if Some(set) != key.as_deref() => return Err(ApiError::unauthorized("Bad api key ")),
        Some(_) => {}
    }
    let body = call.object().await?;
    let user = read_user(&call.app, &body)?;
    let password = Password::new(password).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let made = make(call, user, Some(password)).await?;
    let (user, token) = made;
    let account = json!({
        "id": user.id, "userName": user.name, "firstName": user.first_name, "lastName": user.last_name,
        "affiliation": user.affiliation, "position": user.position, "email": user.email,
    });
    envelope::ok(json!({
        "user": envelope::object(account),
        "authenticatedUser": user.json(),
        "apiToken": token,
    }))
}

/// Stores a user with an account, a token and the welcome notification. Returns the user and the text of the token.
pub(crate) async fn make(
    call: &Call,
    user: User,
    password: Option<Password>,
) -> Result<(User, String), ApiError> {
    let accounts = call.app.context.accounts();
    let mut account = accounts.new_user(user.name.clone());
    if let Some(password) = password {
        account.password = Some(call.app.hash(password).await?);
        (account.email, account.first_name, account.last_name) =
            (Some(user.email.clone()), Some(user.first_name.clone()), Some(user.last_name.clone()));
    }
    let has_account = account.password.is_some();
    let ids = call.ids(2).await?;
    let (app, tenant, now) = (call.app.clone(), call.tenant().to_owned(), call.app.now());
    let write = move |txn: &mut Txn<'_>| -> Result<(User, String), ApiError> {
        let (mut ids, mut user) = (ids, user.clone());
        user.id = ids.next()?;
        let taken =
            |what: &str, value: &str| ApiError::bad_request(format!("{what} '{value}' already exists"));
        if users::by_name(txn, &user.name)?.is_some() {
            return Err(taken("username", &user.name));
        }
        if users::by_email(txn, &user.email)?.is_some() {
            return Err(taken("email", &user.email));
        }
        if has_account {
            let stored = pinakes_accounts::user::insert(txn, &account);
            if matches!(stored, Err(pinakes_accounts::AccountsError::UsernameTaken(_))) {
                return Err(taken("username", &user.name));
            }
            stored?;
            user.account = Some(account.id.clone());
        }
        users::put(txn, &user)?;
        let token = Token::of_user(&app, user.id);
        let text = token.text(&app, &tenant);
        tokens::insert(txn, &text, &token)?;
        notifications::send(txn, ids.next()?, &now, user.id, Notice::of("CREATEACC"))?;
        Ok((user, text))
    };
    call.db().write(write).await
}

/// Parses a user. Errors: 400 that names the field.
pub(crate) fn read_user(app: &Dataverse, body: &Map<String, Value>) -> Result<User, ApiError> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    let needed =
        |name: &str| text(name).ok_or_else(|| ApiError::bad_request(format!("Field '{name}' is mandatory")));
    let name = needed("userName")?;
    if !is_username(name) {
        return Err(ApiError::bad_request(format!(
            "The username {name:?} cannot be used: it takes 2 to 60 letters, digits, '.', '_', '-' or '@'."
        )));
    }
    let email = needed("email")?;
    if !is_email(email) {
        return Err(ApiError::bad_request(format!("{email} is not a valid email address.")));
    }
    Ok(User {
        name: name.to_owned(),
        first_name: text("firstName").unwrap_or_default().to_owned(),
        last_name: text("lastName").unwrap_or_default().to_owned(),
        email: email.to_owned(),
        affiliation: text("affiliation").map(str::to_owned),
        position: text("position").map(str::to_owned),
        created_time: app.now(),
        authentication_provider_id: "builtin".to_owned(),
        persistent_user_id: name.to_owned(),
        rate_limit_tier: 1,
        ..User::default()
    })
}

/// Returns whether a text is a valid user name.
pub(crate) fn is_username(name: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-' | b'@');
    (2..=60).contains(&name.len()) && name.bytes().all(is_part)
}

/// Answers with the user's token in exchange for the password. Errors: 403 unless the site allows it, 400 for a wrong
/// password.
async fn show_token(call: Call) -> Answer {
    let allowed = |view: &mut View<'_>| site_settings::is_true(view, ":AllowApiTokenLookupViaApi", false);
    if !call.db().read(Weight::Point, allowed).await? {
        return Err(ApiError::forbidden("This API endpoint has been disabled."));
    }
    let name = call.param("name").to_owned();
    let password = call.query.get("password").unwrap_or_default();
    let user = log_in(&call, &name, password).await?;
    let user = user.ok_or_else(|| ApiError::bad_request("Bad username or password"))?;
    let id = user.id;
    let found = call.db().read(Weight::Point, move |view| tokens::of_user(view, id)).await?;
    match found {
        Some(token) if token.expires_at_ms.is_none_or(|end_ms| call.app.now_ms() < end_ms) => {
            envelope::message(token.text(&call.app, call.tenant()))
        }
        _ => {
            let text = recreate(&call, id).await?.0;
            envelope::message(text)
        }
    }
}

/// Returns the user with this name (or mail address) and password.
pub(crate) async fn log_in(call: &Call, name: &str, password: &str) -> Result<Option<User>, ApiError> {
    let Ok(password) = Password::new(password) else { return Ok(None) };
    let wanted = name.to_owned();
    let find = move |view: &mut View<'_>| -> Result<_, ApiError> {
        let named = users::by_name(view, &wanted)?;
        let user = if named.is_some() { named } else { users::by_email(view, &wanted)? };
        let account = match user.as_ref().and_then(|it| it.account.as_deref()) {
            Some(id) => pinakes_accounts::user::by_id(view, id)?,
            None => None,
        };
        Ok((user, account))
    };
    let (user, account) = call.db().read(Weight::Point, find).await?;
    match call.app.context.accounts().check(account, password).await? {
        Login::Welcome(_) => Ok(user.filter(|it| !it.deactivated)),
        Login::Refused => Ok(None),
    }
}

/// Replaces a user's token by a new one. Returns its text and expiry.
pub(crate) async fn recreate(call: &Call, user: i64) -> Result<(String, String), ApiError> {
    let token = Token::of_user(&call.app, user);
    let text = token.text(&call.app, call.tenant());
    let expires = clock::precise(token.expires_at_ms.unwrap_or_default());
    let stored = text.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        tokens::remove(txn, "user", user)?;
        tokens::insert(txn, &stored, &token)
    };
    call.db().write(write).await?;
    Ok((text, expires))
}
