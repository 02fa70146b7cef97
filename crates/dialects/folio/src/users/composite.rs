//! A user with what belongs to the user: group, permissions, service points, sponsors (mod-users-bl).

use std::sync::Arc;

use http::StatusCode;
use pinakes_accounts::{Caller, User, user};
use pinakes_store::{Expr, Query, Record, View, Weight};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::places;
use crate::platform::app::Call;
use crate::platform::collection::{self, Page};
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions;
use crate::platform::values::json_answer;
use crate::users::perms::{self, sets};
use crate::users::user::{GROUPS, PROXIES_FOR, SERVICE_POINTS_USERS, USERS, record_of};

/// What a composite shows beside the user's record.
#[derive(Debug, Clone, Copy)]
struct Parts {
    group: bool,
    permissions: bool,
    /// Permissions as records, those within sets included, instead of names.
    is_expanded: bool,
    proxies: bool,
    points: bool,
}

impl Parts {
    /// Reads `?include=groups&include=perms…` and `?expandPermissions=true`. Without `include` everything is shown.
    fn of(call: &Call) -> Self {
        let named =
            |name: &str| call.query.all("include").flat_map(|it| it.split(',')).any(|it| it.trim() == name);
        let is_all = call.query.get("include").is_none_or(str::is_empty);
        let is_expanded = call.query.is_true("expandPermissions") || named("expanded_perms");
        Self {
            group: is_all || named("groups"),
            permissions: is_all || is_expanded || named("perms"),
            is_expanded,
            proxies: is_all || named("proxiesfor"),
            points: is_all || named("servicepoints"),
        }
    }
}

pub(crate) async fn show_self(call: Call) -> Answer {
    let Some(user) = call.asker.caller.user.clone() else { return Err(FolioError::not_found("")) };
    let body = composite(&call, user).await?;
    Ok(json_answer(StatusCode::OK, &body))
}

pub(crate) async fn by_username(call: Call) -> Answer {
    let name = call.param("name").to_owned();
    let wanted = name.clone();
    let found = call
        .db()
        .read(Weight::Point, move |view| {
            view.first(&USERS.kind, Expr::Is("username".into(), pinakes_store::Value::Folded(wanted.clone())))
        })
        .await?;
    let record = found.ok_or_else(|| FolioError::not_found(format!("No user found by username {name}")))?;
    of_record(&call, record.json()?).await
}

pub(crate) async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let wanted = id.clone();
    let found = call.db().read(Weight::Point, move |view| view.get(&USERS.kind, &wanted)).await?;
    let record = found.ok_or_else(|| FolioError::not_found(format!("No user found by id {id}")))?;
    of_record(&call, record.json()?).await
}

/// Lists composites: `?query&offset&limit&include`.
pub(crate) async fn list(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let (records, total) = collection::page_of(view, &USERS, &page)?;
        Ok((records.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?, total))
    };
    let (records, total) = call.db().read(Weight::Scan, read).await?;
    let mut list = Vec::new();
    for record in records {
        list.push(whole(&call, record).await?);
    }
    Ok(json_answer(StatusCode::OK, &json!({"compositeUsers": list, "totalRecords": total})))
}

async fn of_record(call: &Call, record: Value) -> Answer {
    let body = whole(call, record).await?;
    Ok(json_answer(StatusCode::OK, &body))
}

async fn whole(call: &Call, record: Value) -> Result<Value, FolioError> {
    let uuid = text_at(&record, "id").and_then(|it| Uuid::parse_str(it).ok()).unwrap_or_default();
    let account = call.db().read(Weight::Point, move |view| user::by_uuid(view, uuid)).await?;
    let caller = Caller { user: account.map(Arc::new), ..Caller::anonymous() };
    joined(call, record, caller).await
}

/// Returns a user with group, permissions, service points and the users on whose behalf they may borrow.
pub(crate) async fn composite(call: &Call, account: Arc<User>) -> Result<Value, FolioError> {
    let id = account.uuid.to_string();
    let record = call.db().read(Weight::Point, move |view| view.get(&USERS.kind, &id)).await?;
    let record = match record {
        Some(record) => record.json()?,
        None => Value::Object(record_of(&account)),
    };
    let caller = call.asker.caller.clone();
    let caller = match caller.user {
        Some(_) => caller,
        // During a login there is no caller yet.
        None => permissions::caller_of(&account),
    };
    joined(call, record, caller).await
}

async fn joined(call: &Call, record: Value, caller: Caller) -> Result<Value, FolioError> {
    let parts = Parts::of(call);
    let id = text_at(&record, "id").unwrap_or_default().to_owned();
    let group = text_at(&record, "patronGroup").filter(|_| parts.group).map(str::to_owned);
    let user = id.clone();
    let (settings, built_in) = (Arc::clone(&call.app.settings), Arc::clone(&call.app.permissions));
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let group = match &group {
            Some(id) => view.get(&GROUPS.kind, id)?.map(|it| it.json()).transpose()?,
            None => None,
        };
        let names = permissions::names(&settings, &caller);
        let held: Vec<Value> = match parts.is_expanded {
            true => {
                let mut names = sets::expanded(view, &names)?;
                let by_role = |it: &&str| permissions::holds_by_role(&settings, &caller, it);
                let known = built_in.iter().filter_map(|it| text_at(it, "permissionName"));
                names.extend(known.filter(|it| !it.ends_with(".all")).filter(by_role).map(str::to_owned));
                names.sort_unstable();
                names.dedup();
                perms::catalogue::by_names(view, &built_in, &names)?
            }
            false => names.into_iter().map(Value::from).collect(),
        };
        let points = if parts.points { Some(points_of(view, &user)?) } else { None };
        let query = Query::filter(Expr::Is("proxyUserId".into(), user.as_str().into()));
        let proxies: Vec<Value> = match parts.proxies {
            true => {
                view.find(&PROXIES_FOR.kind, &query)?.iter().map(Record::json).collect::<Result<_, _>>()?
            }
            false => Vec::new(),
        };
        Ok((group, held, points, proxies))
    };
    let (group, held, points, proxies) = call.db().read(Weight::Scan, read).await?;
    let mut body = json!({"user": record});
    if parts.permissions {
        body["permissions"] = json!({"id": id, "userId": id, "permissions": held});
    }
    if parts.proxies {
        body["proxiesFor"] = proxies.into();
    }
    if let Some(group) = group {
        body["patronGroup"] = group;
    }
    if let Some(points) = points {
        body["servicePointsUser"] = points;
    }
    Ok(body)
}

/// Returns where a user works, with the service points' records.
fn points_of(view: &mut View<'_>, user: &str) -> Result<Value, FolioError> {
    let Some(points) = view.first(&SERVICE_POINTS_USERS.kind, Expr::Is("userId".into(), user.into()))? else {
        return Ok(json!({"userId": user, "servicePointsIds": [], "servicePoints": []}));
    };
    let mut points = points.json()?;
    let ids: Vec<String> = points["servicePointsIds"]
        .as_array()
        .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let found = view.get_many(&places::SERVICE_POINTS.kind, &ids)?;
    let found: Result<Vec<Value>, _> = found.iter().flatten().map(Record::json).collect();
    points["servicePoints"] = Value::Array(found?);
    Ok(points)
}
