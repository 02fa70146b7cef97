//! Forgotten passwords and names, and changing one's own password (mod-users-bl).
//!
//! A link to set a password holds a token that is good for nothing else: it names a record of
//! [`super::login::reset`], and works once, until that record's end. Who forgot password or name needs no token to
//! say so; the answer goes to the address in the user's record.

use http::{HeaderMap, StatusCode};
use pinakes_accounts::jwt::Verified;
use pinakes_accounts::{Login, Password, User};
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Record, Txn, Value as StoreValue, View, Weight};
use serde_json::{Map, Value, json};

use crate::circulation::notices::messages::{self, Told};
use crate::configuration::records::CONFIGURATIONS;
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::limits::{MAIL_PAUSE_MS, RESET_HOURS};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};
use crate::users::login::reset;
use crate::users::password_rules;
use crate::users::user::USERS;

/// What a token of a link is for; a token with `aud` is refused as a login.
const AUDIENCE: &str = "password-reset";
/// Properties by which somebody who forgot a password is found.
const OF_PASSWORD: [&str; 4] = ["username", "personal.email", "personal.phone", "personal.mobilePhone"];
/// Properties by which somebody who forgot the name is found.
const OF_USERNAME: [&str; 3] = ["personal.email", "personal.phone", "personal.mobilePhone"];

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .post("/bl-users/forgotten/password", Access::Anybody, forgot_password)
        .post("/bl-users/forgotten/username", Access::Anybody, forgot_username)
        .post("/bl-users/password-reset/link", to("users-bl.password-reset-link.generate"), make_link)
        .post("/bl-users/password-reset/validate", Access::Anybody, validate)
        .post("/bl-users/password-reset/reset", Access::Anybody, set)
        .post("/bl-users/settings/myprofile/password", Access::User, change)
}

fn refused(code: &str, message: String) -> FolioError {
    FolioError::unprocessable(Fault::new(message).ty("error").code(code))
}

/// Finds the one active user of whom a property is `{"id"}`.
///
/// Errors: 400 if there is none; 422 if there are several, or the user is inactive.
async fn located(call: &mut Call, fields: &'static [&'static str]) -> Result<Value, FolioError> {
    let body = call.object().await?;
    let given = required_text(&body, "id")?.trim().to_owned();
    if given.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("id")));
    }
    let wanted = given.clone();
    let read = move |view: &mut View<'_>| -> Result<Vec<Value>, FolioError> {
        let is = |path: &&str| Expr::Is((*path).into(), StoreValue::Folded(wanted.clone()));
        let query = Query::filter(Expr::Or(fields.iter().map(is).collect())).window(0, 2);
        Ok(view.find(&USERS.kind, &query)?.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?)
    };
    let mut found = call.db().read(Weight::Scan, read).await?;
    let is_single = found.len() == 1;
    let Some(user) = found.pop() else {
        return Err(FolioError::bad_request(format!("User is not found: {given}")));
    };
    if !is_single {
        let message = "Multiple users associated with the same identifier";
        return Err(refused("forgotten.password.found.multiple.users", message.to_owned()));
    }
    if user["active"].as_bool() != Some(true) {
        return Err(refused("forgotten.password.found.inactive", "User is not active".to_owned()));
    }
    Ok(user)
}

async fn forgot_password(mut call: Call) -> Answer {
    let user = located(&mut call, &OF_PASSWORD).await?;
    if was_told(&call, &user).await? {
        return Ok(answer::empty(StatusCode::NO_CONTENT));
    }
    let settings = call.db().read(Weight::Scan, LinkSettings::read).await?;
    // Anybody can ask with any name of a host, so the link must not lead to the one asked.
    match settings.host.clone() {
        Some(host) => drop(link(&call, &user, settings, &host).await?),
        None => tracing::warn!(
            tenant = call.asker.tenant(),
            "a password was forgotten, but no link is sent: no entry FOLIO_HOST of the module USERSBL in \
             /configurations/entries says where it leads"
        ),
    }
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn forgot_username(mut call: Call) -> Answer {
    let user = located(&mut call, &OF_USERNAME).await?;
    if !was_told(&call, &user).await? {
        let text = format!("Your user name is: {}", text_at(&user, "username").unwrap_or_default());
        let context = json!({"user": user});
        tell(&call, &user, "USERNAME_LOCATED_EVENT", context, ("Your user name", &text)).await?;
    }
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Makes a link for `{"userId"}`, sends it to the user, and returns it.
async fn make_link(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = required_text(&body, "userId")?.to_owned();
    let wanted = id.clone();
    let found = call.db().read(Weight::Point, move |view| view.get(&USERS.kind, &wanted)).await?;
    let missing = || refused("user.not-found", format!("User with id '{id}' is not found"));
    let user = found.ok_or_else(missing)?.json()?;
    let settings = call.db().read(Weight::Scan, LinkSettings::read).await?;
    let host = settings.host.clone().unwrap_or_else(|| call.origin.clone());
    let link = link(&call, &user, settings, &host).await?;
    Ok(json_answer(StatusCode::OK, &json!({"link": link})))
}

/// The site's settings for links: the entries of the module USERSBL.
struct LinkSettings {
    host: Option<String>,
    path: String,
    life_ms: i64,
    told_life: (String, String),
}

impl LinkSettings {
    fn read(view: &mut View<'_>) -> Result<Self, FolioError> {
        let of_module = Expr::Is("module".into(), StoreValue::Folded("USERSBL".to_owned()));
        let entries = view.find(&CONFIGURATIONS.kind, &Query::filter(of_module).window(0, 100))?;
        let entries = entries.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?;
        let value = |code: &str| {
            let entry = entries.iter().find(|it| text_at(it, "code") == Some(code))?;
            text_at(entry, "value").filter(|it| !it.is_empty()).map(str::to_owned)
        };
        let unit = value("RESET_PASSWORD_LINK_EXPIRATION_UNIT_OF_TIME").unwrap_or_else(|| "hours".to_owned());
        let number = value("RESET_PASSWORD_LINK_EXPIRATION_TIME").and_then(|it| it.parse::<i64>().ok());
        let number = number.filter(|it| 0 < *it && *it <= 100_000).unwrap_or(RESET_HOURS);
        let unit_ms = match unit.as_str() {
            "minutes" => 60_000,
            "days" => 86_400_000,
            "weeks" => 604_800_000,
            _ => 3_600_000,
        };
        Ok(Self {
            host: value("FOLIO_HOST"),
            path: value("RESET_PASSWORD_UI_PATH").unwrap_or_else(|| "/reset-password".to_owned()),
            life_ms: number * unit_ms,
            told_life: (number.to_string(), unit),
        })
    }
}

/// Makes a link with which a user can set a password, and sends it.
async fn link(call: &Call, user: &Value, settings: LinkSettings, host: &str) -> Result<String, FolioError> {
    let user_id = text_at(user, "id").unwrap_or_default().to_owned();
    if text_at(user, "username").is_none_or(str::is_empty) {
        let message = "User without username cannot reset password".to_owned();
        return Err(refused("user.absent-username", message));
    }
    let (id, now_ms) = (call.app.new_uuid(), call.app.now_ms());
    let until = dates::rmb(now_ms + settings.life_ms);
    let action = id.clone();
    let write = move |txn: &mut Txn<'_>| reset::store(txn, &action, &user_id, &until);
    let has_password = call.db().write(write).await?;
    let tenant = call.asker.tenant();
    let claims = json!({"aud": AUDIENCE, "tenant": tenant, "passwordResetActionId": id});
    let claims = claims.as_object().cloned().unwrap_or_default();
    let token = call.app.context.accounts().sign_for(tenant, claims, settings.life_ms / 1_000);
    let link = format!("{}{}/{token}?tenant={tenant}", host.trim_end_matches('/'), settings.path);
    let (time, unit) = settings.told_life;
    let context = json!({"user": user, "link": link, "expirationTime": time, "expirationUnitOfTime": unit});
    let event = if has_password { "RESET_PASSWORD_EVENT" } else { "CREATE_PASSWORD_EVENT" };
    let text = format!("Set your password at {link}. This works once, within {time} {unit}.");
    tell(call, user, event, context, ("Set your password", &text)).await?;
    Ok(link)
}

/// Says whether something was just sent to the user: then nothing else is at the wish of somebody who may not be the
/// user.
async fn was_told(call: &Call, user: &Value) -> Result<bool, FolioError> {
    let (user, since_ms) = (user.clone(), call.app.now_ms() - MAIL_PAUSE_MS);
    let read = move |view: &mut View<'_>| messages::was_told_since(view, &user, since_ms);
    call.db().read(Weight::Scan, read).await
}

/// Sends a user the message that the site has for an event, otherwise a subject and a text of our own.
async fn tell(
    call: &Call,
    user: &Value,
    event: &'static str,
    context: Value,
    (subject, text): (&'static str, &str),
) -> Result<(), FolioError> {
    let (user, text) = (user.clone(), text.to_owned());
    let writer = Writer::of(call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        match messages::tell(txn, &writer, event, &user, "en", &context)? {
            Told::Sent => Ok(()),
            Told::NoSuchEvent => messages::write_to(txn, &writer, &user, subject, &text),
        }
    };
    call.db().write(write).await
}

/// Returns the id of the record that a link's token names.
fn action_of(call: &Call, headers: &HeaderMap) -> Result<String, FolioError> {
    let bearer = |text: &str| text.strip_prefix("Bearer ").map(str::to_owned);
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let token = header("x-okapi-token").or_else(|| header("authorization").as_deref().and_then(bearer));
    let token = token.ok_or_else(|| {
        FolioError::text(StatusCode::UNAUTHORIZED, "Token missing, access requires a link's token")
    })?;
    let tenant = call.asker.tenant();
    let of = |claims: &Map<String, Value>| {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let is_ours = text("aud") == Some(AUDIENCE) && text("tenant") == Some(tenant);
        text("passwordResetActionId").filter(|_| is_ours).map(str::to_owned)
    };
    let invalid = || {
        FolioError::text(
            StatusCode::UNAUTHORIZED,
            "Invalid token: it is not that of a link to set a password",
        )
    };
    match call.app.context.accounts().verify(tenant, &token) {
        Verified::Valid(claims) => of(&claims).ok_or_else(invalid),
        Verified::Expired(claims) => Err(expired(&of(&claims).ok_or_else(invalid)?)),
        Verified::Invalid(_) => Err(invalid()),
    }
}

fn expired(id: &str) -> FolioError {
    refused("link.expired", format!("PasswordReset Action with id = {id} is expired"))
}

/// Returns the pending reset of a link with its user's record.
///
/// Errors: 401 without a link's token; 422 `link.used`, `link.expired`, `link.invalid`.
async fn pending(call: &Call) -> Result<(String, Value), FolioError> {
    let id = action_of(call, &call.headers)?;
    let (wanted, now_ms) = (id.clone(), call.app.now_ms());
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let used = || refused("link.used", format!("PasswordResetAction with id = {wanted} is not found"));
        let action = view.get(&reset::RESET_ACTION, &wanted)?.ok_or_else(used)?.json()?;
        if reset::is_over(&action, now_ms) {
            return Err(expired(&wanted));
        }
        let user = text_at(&action, "userId").unwrap_or_default();
        let missing = || refused("link.invalid", format!("User with id = {user} in not found"));
        Ok(view.get(&USERS.kind, user)?.ok_or_else(missing)?.json()?)
    };
    Ok((id, call.db().read(Weight::Point, read).await?))
}

async fn validate(call: Call) -> Answer {
    pending(&call).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Sets the password of the link's user: `{"newPassword"}`.
async fn set(mut call: Call) -> Answer {
    let (id, user) = pending(&call).await?;
    let body = call.object().await?;
    let new = required_text(&body, "newPassword")?.to_owned();
    unless_broken(&call, &user, &new, StatusCode::UNPROCESSABLE_ENTITY).await?;
    let is_new = reset::set_password(&call, &id, Password::new(new)?).await?;
    told_changed(&call, &user, is_new).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Changes the caller's own password: `{"username","password","newPassword","userId"}`.
///
/// Errors: 400 with the rules that the new password breaks; 401 for a wrong old one.
async fn change(mut call: Call) -> Answer {
    let body = call.object().await?;
    let text = |name: &str| required_text(&body, name).map(str::to_owned);
    let (old, new) = (text("password")?, text("newPassword")?);
    let Some(caller) = call.asker.caller.user.clone() else { return Err(wrong()) };
    let is_own = |name: &str, own: &str| {
        body.get(name).and_then(Value::as_str).is_none_or(|it| it.eq_ignore_ascii_case(own))
    };
    if !is_own("username", &caller.username) || !is_own("userId", &caller.uuid.to_string()) {
        return Err(wrong());
    }
    let user = record(&call, &caller).await?;
    unless_broken(&call, &user, &new, StatusCode::BAD_REQUEST).await?;
    let accounts = call.app.context.accounts();
    let Ok(old) = Password::new(old) else { return Err(wrong()) };
    let Login::Welcome(account) = accounts.check(Some((*caller).clone()), old).await? else {
        return Err(wrong());
    };
    accounts.set_password(call.db().tenant(), &account.id, Password::new(new)?).await?;
    told_changed(&call, &user, false).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

fn wrong() -> FolioError {
    FolioError::text(StatusCode::UNAUTHORIZED, "Invalid credentials")
}

async fn record(call: &Call, account: &User) -> Result<Value, FolioError> {
    let id = account.uuid.to_string();
    let found = call.db().read(Weight::Point, move |view| view.get(&USERS.kind, &id)).await?;
    Ok(found.map(|it| it.json()).transpose()?.unwrap_or_default())
}

/// Refuses a password that breaks the tenant's rules, with a fault for each.
async fn unless_broken(
    call: &Call,
    user: &Value,
    password: &str,
    status: StatusCode,
) -> Result<(), FolioError> {
    let (name, password) = (text_at(user, "username").unwrap_or_default().to_owned(), password.to_owned());
    let read = move |view: &mut View<'_>| password_rules::broken(view, &password, &name);
    let broken = call.db().read(Weight::Scan, read).await?;
    if broken.is_empty() {
        return Ok(());
    }
    let fault = |it: String| Fault::new(it.clone()).ty("error").code(it);
    Err(FolioError::faults(status, broken.into_iter().map(fault).collect()))
}

/// Tells users that their password was changed, if the site has a message for that.
async fn told_changed(call: &Call, user: &Value, is_new: bool) -> Result<(), FolioError> {
    let event = if is_new { "PASSWORD_CREATED_EVENT" } else { "PASSWORD_CHANGED_EVENT" };
    let (user, writer) = (user.clone(), Writer::of(call));
    let context = json!({"user": user});
    let write =
        move |txn: &mut Txn<'_>| messages::tell(txn, &writer(), event, &user, "en", &context).map(drop);
    call.db().write(write).await
}
