//! Administration of users: `/api/admin/authenticatedUsers`, `/api/admin/superuser`, mail confirmation, passwords.

use http::Method;
use pinakes_store::{Direction, Expr, Pattern, Query, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::blocks::validate::is_email;
use crate::error::{Answer, ApiError};
use crate::grants::{GRANT, grant_id, grants_to};
use crate::routing::Routes;
use crate::users::builtin::{log_in, make, read_user};
use crate::users::{self, USER, User, removal, traces};
use crate::{clock, envelope, groups, stored, tokens};

/// Default number of users per page of `list-users`.
const PAGE_USERS: i64 = 25;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/authenticatedUsers", list)
        .post("/admin/authenticatedUsers", create)
        .get("/admin/authenticatedUsers/{name}", show)
        .delete("/admin/authenticatedUsers/{name}", delete)
        .delete("/admin/authenticatedUsers/id/{number}", delete)
        .post("/admin/authenticatedUsers/{name}/deactivate", deactivate)
        .post("/admin/authenticatedUsers/id/{number}/deactivate", deactivate)
        .put("/admin/authenticatedUsers/convert/builtin2shib", convert)
        .put("/admin/authenticatedUsers/convert/builtin2oauth", convert)
        .put("/admin/authenticatedUsers/id/{number}/convertShibToBuiltIn", convert_back)
        .put("/admin/authenticatedUsers/id/{number}/convertRemoteToBuiltIn", convert_back)
        .get("/admin/list-users", search)
        .post("/admin/superuser/{name}", toggle_superuser)
        .put("/admin/superuser/{name}", set_superuser)
        .get("/admin/confirmEmail/{number}", show_confirmation)
        .post("/admin/confirmEmail/{number}", ask_confirmation)
        .elsewhere(Method::GET, "/confirmemail.xhtml", confirm)
        .post("/admin/validatePassword", validate_password)
        .get("/admin/authenticationProviders", providers)
        .post("/admin/authenticationProviders", add_provider)
        .get("/admin/authenticationProviders/{id}", show_provider)
        .get("/admin/authenticationProviders/{id}/enabled", is_provider_enabled)
        .get("/admin/authenticationProviderFactories", provider_factories)
}

/// Returns the user that the path names, by name or number. Errors: 400.
fn named(view: &mut View<'_>, name: &str, number: &str) -> Result<User, ApiError> {
    if number.is_empty() {
        return users::identified(view, name)
            .map_err(|_| ApiError::bad_request(format!("User {name} not found.")));
    }
    let found = match number.parse() {
        Ok(id) => users::by_id(view, id)?,
        Err(_) => None,
    };
    found.ok_or_else(|| ApiError::bad_request(format!("User with id {number} not found.")))
}

fn path_user(call: &Call) -> (String, String) {
    (call.param("name").to_owned(), call.param("number").to_owned())
}

async fn list(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let all = |view: &mut View<'_>| stored::find::<User>(view, &USER, &Query::filter(Expr::All));
    let all = call.db().read(Weight::Scan, all).await?;
    envelope::ok(all.iter().map(User::json).collect::<Vec<Value>>())
}

/// Creates a user of another identity provider, without a password.
async fn create(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    let identifier = body.get("identifier").and_then(Value::as_str).unwrap_or_default();
    let name = identifier.trim_start_matches('@').to_owned();
    body.insert("userName".into(), name.into());
    let mut user = read_user(&call.app, &body)?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    user.authentication_provider_id = text("authenticationProviderId").unwrap_or_else(|| "builtin".into());
    user.persistent_user_id = text("persistentUserId").unwrap_or_else(|| user.name.clone());
    let (user, _) = make(&call, user, None).await?;
    envelope::ok(user.json())
}

async fn show(call: Call) -> Answer {
    let (name, number) = path_user(&call);
    let user = call.db().read(Weight::Point, move |view| named(view, &name, &number)).await;
    let user = user.map_err(|error| ApiError::not_found(error.message))?;
    envelope::ok(user.json())
}

async fn delete(call: Call) -> Answer {
    let (name, number) = path_user(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let user = named(txn, &name, &number)?;
        let reasons = traces::what_keeps(txn, &user)?;
        if !reasons.is_empty() {
            return Err(ApiError::bad_request(format!(
                "Could not delete Authenticated User {} because {}.",
                user.identifier(),
                reasons.join("; ")
            )));
        }
        removal::remove(txn, &user)?;
        Ok(user.identifier())
    };
    let identifier = call.db().write(write).await?;
    call.app.context.accounts().changed();
    envelope::message(format!("AuthenticatedUser {identifier} deleted. "))
}

/// Deactivates a user: removes their roles, groups and token, and blocks logging in.
async fn deactivate(call: Call) -> Answer {
    let (name, number) = path_user(&call);
    let (now, now_ms) = (call.app.now(), call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let mut user = named(txn, &name, &number)?;
        if user.deactivated {
            return Err(ApiError::bad_request(format!("User {} is already deactivated.", user.name)));
        }
        for grant in grants_to(txn, &[user.identifier()])? {
            txn.delete(&GRANT, &grant_id(grant.object, &grant.assignee))?;
        }
        groups::remove_member(txn, &user.identifier())?;
        tokens::remove(txn, "user", user.id)?;
        if let Some(account) = &user.account {
            pinakes_accounts::user::change(txn, account, now_ms, |it| it.active = false)?;
        }
        (user.deactivated, user.deactivated_time, user.superuser) = (true, Some(now.clone()), false);
        users::put(txn, &user)?;
        Ok(user.name)
    };
    let name = call.db().write(write).await?;
    call.app.context.accounts().changed();
    envelope::message(format!("User {name} has been deactivated."))
}

/// Checks that no other user has a mail address. Errors: 400.
fn require_free(view: &mut View<'_>, user: &User, email: &str) -> Result<(), ApiError> {
    match users::by_email(view, email)? {
        Some(other) if other.id != user.id => Err(ApiError::bad_request(format!(
            "User {} could not be converted: the mail address {email} belongs to another user.",
            user.name
        ))),
        _ => Ok(()),
    }
}

/// Converts an account with a password to an identity provider: body `mail:password:new mail`, for OAuth followed by
/// `:provider:id there`.
async fn convert(mut call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let text = call.text().await?;
    let refused = |reason: &str| ApiError::bad_request(json!([reason]).to_string());
    let mut parts = text.split(':');
    let (Some(email), Some(password)) = (parts.next(), parts.next()) else {
        return Err(refused("Problem getting user to convert: expected mail:password:new mail"));
    };
    let wanted = email.to_owned();
    let user = call.db().read(Weight::Point, move |view| users::by_email(view, &wanted)).await?;
    let user = user.ok_or_else(|| refused(&format!("User to convert not found: {email}")))?;
    if user.deactivated {
        return Err(refused("builtin account has been deactivated"));
    }
    if log_in(&call, &user.name, password).await?.is_none() {
        return Err(refused("User doesn't know password."));
    }
    let new_email = parts.next().unwrap_or(email).to_owned();
    if !is_email(&new_email) {
        return Err(refused(&format!("The new mail address {new_email:?} is no mail address.")));
    }
    let is_shib = call.uri.path().ends_with("shib");
    let provider = match (is_shib, parts.next()) {
        (true, _) => "shib".to_owned(),
        (false, named) => named.unwrap_or("orcid").to_owned(),
    };
    let id_there = parts.next().filter(|it| !is_shib && !it.is_empty()).map(str::to_owned);
    let write = move |txn: &mut Txn<'_>| -> Result<User, ApiError> {
        let mut user = user.clone();
        require_free(txn, &user, &new_email)?;
        if let Some(account) = user.account.take() {
            pinakes_accounts::user::remove(txn, &account)?;
        }
        user.email.clone_from(&new_email);
        user.authentication_provider_id.clone_from(&provider);
        if let Some(id) = &id_there {
            user.persistent_user_id.clone_from(id);
        }
        if is_shib {
            user.affiliation = Some("TestShib Test IdP".to_owned());
        }
        users::put(txn, &user)?;
        Ok(user)
    };
    let user = call.db().write(write).await?;
    call.app.context.accounts().changed();
    envelope::ok(envelope::object(json!({
        "email": user.email, "first name": user.first_name, "last name": user.last_name,
        "affiliation": user.affiliation, "changing to this provider": user.authentication_provider_id,
        "id": user.id, "username": user.name,
    })))
}

/// Converts an account of an identity provider back to a local one: the body is the new mail address.
async fn convert_back(mut call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let email = call.text().await?;
    if !is_email(&email) {
        return Err(ApiError::bad_request(format!(
            "Could not convert the user: {email:?} is no mail address."
        )));
    }
    let (name, number) = path_user(&call);
    let mut account = call.app.context.accounts().new_user("");
    let write = move |txn: &mut Txn<'_>| -> Result<User, ApiError> {
        let mut user = named(txn, &name, &number)?;
        if user.account.is_none() {
            account.username.clone_from(&user.name);
            pinakes_accounts::user::insert(txn, &account)?;
            user.account = Some(account.id.clone());
        }
        require_free(txn, &user, &email)?;
        user.email.clone_from(&email);
        user.authentication_provider_id = "builtin".to_owned();
        user.persistent_user_id.clone_from(&user.name);
        users::put(txn, &user)?;
        Ok(user)
    };
    let user = call.db().write(write).await?;
    envelope::ok(json!({"email": user.email, "username": user.name}))
}

/// Lists the users whose name, mail address, given or family name contains the term, by page.
async fn search(call: Call) -> Answer {
    call.asker.superuser("Forbidden. You must be a superuser.")?;
    let term = call.query.filled("searchTerm").unwrap_or_default().to_owned();
    let asked_page = call.query.number("selectedPage")?.unwrap_or(1);
    let per_page = call.query.number("itemsPerPage")?.unwrap_or(PAGE_USERS).clamp(1, 1000);
    let find = move |view: &mut View<'_>| -> Result<(i64, i64, Vec<User>), ApiError> {
        let mut filter = Expr::All;
        for word in term.split_whitespace() {
            let pattern = Pattern::new(&regex::escape(word), "i")?;
            let fields = ["name", "firstName", "lastName", "email", "affiliation"];
            let places = fields.map(|it| Expr::Regex(it.into(), pattern.clone()));
            filter = filter.and(Expr::Or(places.to_vec()));
        }
        let n_all = i64::try_from(view.count(&USER, &filter)?).unwrap_or(i64::MAX);
        let n_pages = (n_all + per_page - 1) / per_page;
        let page = if (1..=n_pages).contains(&asked_page) { asked_page } else { 1 };
        let query = Query::filter(filter)
            .sorted("name", Direction::Ascending)
            .window(((page - 1) * per_page).unsigned_abs(), per_page.unsigned_abs());
        Ok((n_all, page, stored::find(view, &USER, &query)?))
    };
    let (n_all, page, found) = call.db().read(Weight::Scan, find).await?;
    let n_pages = (n_all + per_page - 1) / per_page;
    let users: Vec<Value> = found.iter().map(listed).collect();
    let first = (page - 1) * per_page;
    envelope::ok(json!({
        "userCount": n_all,
        "selectedPage": page,
        "pagination": {
            "isNecessary": 1 < n_pages,
            "numResults": n_all,
            "numResultsString": n_all.to_string(),
            "docsPerPage": per_page,
            "selectedPageNumber": page,
            "pageCount": n_pages,
            "hasPreviousPageNumber": 1 < page,
            "previousPageNumber": if 1 < page { page - 1 } else { 1 },
            "hasNextPageNumber": page < n_pages,
            "nextPageNumber": if page < n_pages { page + 1 } else { page },
            "startCardNumber": if n_all == 0 { 0 } else { first + 1 },
            "endCardNumber": (first + per_page).min(n_all),
            "pageNumberList": (1..=n_pages).collect::<Vec<i64>>(),
        },
        "bundleStrings": {},
        "users": users,
    }))
}

fn listed(user: &User) -> Value {
    let map = json!({
        "id": user.id, "userIdentifier": user.name, "lastName": user.last_name, "firstName": user.first_name,
        "email": user.email, "affiliation": user.affiliation, "position": user.position,
        "isSuperuser": user.superuser, "authenticationProvider": user.authentication_provider_id, "roles": "",
        "createdTime": user.created_time, "lastLoginTime": user.last_login_time,
        "lastApiUseTime": user.last_api_use_time,
        "deactivated": user.deactivated, "deactivatedTime": user.deactivated_time,
        "rateLimitTier": user.rate_limit_tier,
    });
    envelope::object(map).into()
}

async fn toggle_superuser(call: Call) -> Answer {
    superuser(call, None).await
}

async fn set_superuser(mut call: Call) -> Answer {
    let text = call.text().await?;
    let wanted = match text.to_ascii_lowercase().as_str() {
        "true" => true,
        "false" => false,
        _ => return Err(ApiError::bad_request(format!("The body is {text:?}; expected true or false."))),
    };
    superuser(call, Some(wanted)).await
}

async fn superuser(call: Call, wanted: Option<bool>) -> Answer {
    let name = call.param("name").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<User, ApiError> {
        let mut user = users::identified(txn, &name)?;
        if user.deactivated {
            return Err(ApiError::bad_request("You cannot make a deactivated user a superuser."));
        }
        user.superuser = wanted.unwrap_or(!user.superuser);
        users::put(txn, &user)?;
        Ok(user)
    };
    let user = call.db().write(write).await?;
    let done = if user.superuser { "set as" } else { "removed as" };
    envelope::message(format!("User {} {done} a superuser.", user.identifier()))
}

/// Returns the token that confirms a user's address, derived from the secret, the user and the address.
fn confirmation(call: &Call, user: &User) -> String {
    let purpose = format!("dataverse mail address {} {}", user.id, user.email);
    let bytes = call.app.context.accounts().derived(call.tenant(), &purpose);
    let mut half = [0; 16];
    half.copy_from_slice(&bytes[..16]);
    format!("{}-{}", user.id, uuid::Builder::from_random_bytes(half).into_uuid())
}

/// Answers with the token of an address that waits for confirmation.
async fn show_confirmation(call: Call) -> Answer {
    let (name, number) = path_user(&call);
    let user = call.db().read(Weight::Point, move |view| named(view, &name, &number)).await?;
    if user.email_last_confirmed.is_some() && !user.confirmation_asked {
        let message = format!("No confirm email token exists for {}", user.identifier());
        return Err(ApiError::bad_request(message));
    }
    let expires = clock::precise(call.app.now_ms() + 24 * 3600 * 1000);
    envelope::ok(json!({"token": confirmation(&call, &user), "expires": expires}))
}

async fn ask_confirmation(call: Call) -> Answer {
    let (name, number) = path_user(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<User, ApiError> {
        let mut user = named(txn, &name, &number)?;
        user.confirmation_asked = true;
        users::put(txn, &user)?;
        Ok(user)
    };
    let user = call.db().write(write).await?;
    envelope::message(format!("Confirm email token created for {}.", user.identifier()))
}

/// Answers with the page that the link of a confirmation mail opens.
async fn confirm(call: Call) -> Answer {
    let token = call.query.get("token").unwrap_or_default().to_owned();
    // The original sends this page with status 200 in either case.
    let page = |text: &'static str| Ok(pinakes_http::answer::text(http::StatusCode::OK, text));
    let user = match token.split('-').next().and_then(|it| it.parse::<i64>().ok()) {
        Some(id) => call.db().read(Weight::Point, move |view| users::by_id(view, id)).await?,
        None => None,
    };
    let Some(user) = user.filter(|it| confirmation(&call, it) == token) else {
        return page("The link is broken, or was used already.");
    };
    let now = call.app.now();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut user = user.clone();
        (user.email_last_confirmed, user.confirmation_asked) = (Some(now.clone()), false);
        users::put(txn, &user)
    };
    call.db().write(write).await?;
    page("Your email address is confirmed.")
}

/// Length from which on a password need not mix kinds of characters.
const GOOD_STRENGTH_CHARACTERS: usize = 20;

async fn validate_password(mut call: Call) -> Answer {
    let bytes = call.bytes().await?;
    let password = String::from_utf8_lossy(&bytes);
    let mut errors: Vec<&str> = Vec::new();
    if password.chars().count() < GOOD_STRENGTH_CHARACTERS {
        let has_digit = password.chars().any(|it| it.is_ascii_digit());
        let has_letter = password.chars().any(char::is_alphabetic);
        if !has_digit {
            errors.push("INSUFFICIENT_DIGIT");
        }
        if !has_letter {
            errors.push("INSUFFICIENT_ALPHABETICAL");
        }
        if !(has_digit && has_letter) {
            errors.extend(["INSUFFICIENT_CHARACTERISTICS", "NO_GOODSTRENGTH"]);
        }
        if password.chars().count() < 6 {
            errors.push("TOO_SHORT");
        }
    }
    envelope::ok(json!({"password": password, "errors": errors}))
}

async fn providers(_: Call) -> Answer {
    envelope::ok(json!([builtin_provider()]))
}

fn builtin_provider() -> Value {
    json!({
        "id": "builtin", "factoryAlias": "BuiltinAuthenticationProvider", "title": "Dataverse Local",
        "subtitle": "", "factoryData": "", "enabled": true,
    })
}

/// Checks that the provider is this server's own. Errors: 404 for others.
fn require_provider(call: &Call) -> Result<(), ApiError> {
    let id = call.param("id");
    match id {
        "builtin" => Ok(()),
        _ => Err(ApiError::not_found(format!("Can't find an authentication provider with id '{id}'"))),
    }
}

async fn show_provider(call: Call) -> Answer {
    require_provider(&call)?;
    envelope::ok(builtin_provider())
}

async fn is_provider_enabled(call: Call) -> Answer {
    require_provider(&call)?;
    envelope::message("true")
}

async fn add_provider(mut call: Call) -> Answer {
    let body: Map<String, Value> = call.object().await?;
    envelope::created("/admin/authenticationProviders", body)
}

async fn provider_factories(_: Call) -> Answer {
    envelope::ok(json!([{"alias": "BuiltinAuthenticationProvider", "info": "Accounts with a password"}]))
}
