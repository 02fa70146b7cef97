//! Identities: what a login service says about a user. They are derived from the accounts, so conditions on them are
//! converted to conditions on accounts.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use pinakes_accounts::sign_in::strategy;
use pinakes_accounts::{USER, User, user};
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Value as Condition, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, QueryText, Scicat, json_parameter};
use crate::condition::{self, Language};
use crate::dates;
use crate::error::{Answer, ScicatError};
use crate::filter;
use crate::users::account::{myself, require_own};

pub(super) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/users/my/identity", get(my_identity))
        .route("/api/v3/users/{id}/useridentity", get(identity))
        .route("/api/v3/useridentities/findone", get(find_one))
        .route("/api/v3/useridentities/isvalidemail", get(is_valid_email))
}

/// Returns a user as its login service describes it.
fn shown(user: &User, everyone: &[String]) -> Value {
    let email = user.email.as_deref().unwrap_or_default();
    let mut groups = user.groups.clone();
    if user.global {
        groups.push(pinakes_accounts::GLOBAL_GROUP.to_owned());
    }
    groups.extend(everyone.iter().filter(|it| !user.groups.contains(it)).cloned());
    json!({
        "authStrategy": strategy(user), "credentials": {}, "externalId": user.username, "provider": strategy(user),
        "userId": user.id,
        "profile": {
            "username": user.username,
            "displayName": user.display_name.as_deref().unwrap_or(&user.username),
            "email": email, "emails": [{"value": email}], "accessGroups": groups,
            "id": user.external_id.as_deref().unwrap_or(&user.username), "thumbnailPhoto": "",
        },
        "created": dates::format_ms(user.created_at_ms), "modified": dates::format_ms(user.updated_at_ms),
        "_id": user.id, "__v": 0, "id": user.id,
    })
}

async fn my_identity(app: State<Scicat>, asker: Asker) -> Answer {
    Ok(answer::json(StatusCode::OK, &shown(myself(&asker)?, app.context.accounts().everyone())))
}

async fn identity(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    require_own(&asker, &id)?;
    Ok(match crate::users::account::user(&app, &asker, &id).await? {
        Some(user) => answer::json(StatusCode::OK, &shown(&user, app.context.accounts().everyone())),
        None => answer::empty(StatusCode::OK),
    })
}

/// Fields of identities in conditions, and where accounts store them.
const NAMES: [(&str, &str); 11] = [
    ("_id", "id"),
    ("userId", "id"),
    ("externalId", "username"),
    ("profile.id", "username"),
    ("profile.username", "username"),
    ("profile.displayName", "displayName"),
    ("profile.email", "email"),
    ("profile.emails.value", "email"),
    ("profile.emails.0.value", "email"),
    ("profile.accessGroups", "groups"),
    ("id", "id"),
];

/// Converts the condition of a filter to one over accounts. Fields that accounts do not have match nothing.
fn condition(query: &QueryText, headers: &HeaderMap) -> Result<Expr, ScicatError> {
    let filter = match filter::text("filter", query, headers)? {
        None => Value::Null,
        Some(text) => json_parameter("filter", text)?,
    };
    match filter.get("where") {
        None | Some(Value::Null) => Ok(Expr::All),
        Some(Value::Object(map)) => {
            condition::parse(&with_names_of_accounts(map.clone()), &USER, Language::LoopBack)
        }
        Some(other) => Err(ScicatError::bad_request(format!("where must be an object, found {other}"))),
    }
}

fn with_names_of_accounts(map: Map<String, Value>) -> Map<String, Value> {
    let part = |(name, value): (String, Value)| match value {
        Value::Array(list) if ["and", "or", "$and", "$or", "$nor"].contains(&name.as_str()) => {
            let inside = |it: Value| match it {
                Value::Object(map) => Value::Object(with_names_of_accounts(map)),
                other => other,
            };
            (name, Value::Array(list.into_iter().map(inside).collect()))
        }
        value => {
            let known = NAMES.iter().find(|(ours, _)| *ours == name);
            // Accounts contain passwords, so only the listed fields can be queried.
            (known.map_or_else(|| format!("identity.{name}"), |(_, theirs)| (*theirs).to_owned()), value)
        }
    };
    map.into_iter().map(part).collect()
}

/// `GET /useridentities/findOne?filter=`: admins can find anyone, others only themselves.
async fn find_one(app: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    let own_id = myself(&asker)?.id.clone();
    let mut condition = condition(&query, &headers)?;
    if !asker.rights.is_admin {
        condition = condition.and(Expr::Is("id".into(), Condition::Text(own_id)));
    }
    let query = Query::filter(condition).window(0, 1);
    let users = asker.db.read(Weight::Scan, move |view| user::find(view, &query)).await?;
    match users.first() {
        Some(user) => Ok(answer::json(StatusCode::OK, &shown(user, app.context.accounts().everyone()))),
        None if asker.rights.is_admin => Ok(answer::empty(StatusCode::OK)),
        // The answer does not reveal whether another user matches.
        None => Err(crate::users::account::refused()),
    }
}

/// `GET /useridentities/isValidEmail?filter={"where":{"profile.email":"a@b.ch"}}`: whether a user has that address, as
/// `true` or `false`.
///
/// Errors: 400 for any condition other than one whole address, as others could be used to find out addresses letter by
/// letter.
async fn is_valid_email(_: State<Scicat>, asker: Asker, query: QueryText, headers: HeaderMap) -> Answer {
    myself(&asker)?;
    let filter =
        filter::text("filter", &query, &headers)?.map(|it| json_parameter("filter", it)).transpose()?;
    let address =
        filter.as_ref().and_then(|it| it.get("where")).and_then(whole_address).ok_or_else(|| {
            ScicatError::bad_request(
                "filter must be {\"where\":{\"profile.email\":\"…\"}} with a whole address",
            )
        })?;
    let condition = Expr::Is("email".into(), Condition::Text(address));
    let count = asker.db.read(Weight::Scan, move |view| user::count(view, &condition)).await?;
    Ok(answer::json(StatusCode::OK, &(0 < count)))
}

/// Returns the address that a condition on identities names, if it contains nothing else.
fn whole_address(condition: &Value) -> Option<String> {
    let map = condition.as_object().filter(|it| it.len() == 1)?;
    let (name, value) = map.iter().next()?;
    if !["profile.email", "profile.emails.value", "profile.emails.0.value"].contains(&name.as_str()) {
        return None;
    }
    value
        .as_str()
        .or_else(|| value.as_object().filter(|it| it.len() == 1)?.get("$eq")?.as_str())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_names_reach_accounts() {
        let Value::Object(map) = json!({
            "or": [{"profile.email": "a@b.ch"}, {"password": {"like": "argon"}}], "userId": "1",
        }) else {
            unreachable!("an object")
        };
        assert_eq!(
            Value::Object(with_names_of_accounts(map)),
            json!({"or": [{"email": "a@b.ch"}, {"identity.password": {"like": "argon"}}], "id": "1"})
        );
    }
}
