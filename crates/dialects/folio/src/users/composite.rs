//! A user with what belongs to the user: group, permissions, service points, sponsors (mod-users-bl).

use std::collections::HashMap;
use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use pinakes_accounts::{Caller, User, user};
use pinakes_store::{Expr, Query, Record, Value as StoreValue, View, Weight};
use serde_json::{Value, json};

use crate::places;
use crate::platform::app::Call;
use crate::platform::collection::{self, Page};
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions;
use crate::platform::settings::Settings;
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
    let wanted = Expr::Is("username".into(), pinakes_store::Value::Folded(name.clone()));
    let missing = || FolioError::not_found(format!("No user found by username {name}"));
    one(&call, wanted).await?.ok_or_else(missing)
}

pub(crate) async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let missing = || FolioError::not_found(format!("No user found by id {id}"));
    one(&call, Expr::Is("id".into(), id.as_str().into())).await?.ok_or_else(missing)
}

/// Answers with the first composite that satisfies a condition, if there is any.
async fn one(call: &Call, wanted: Expr) -> Result<Option<Response>, FolioError> {
    let composer = Composer::of(call);
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let found = view.first(&USERS.kind, wanted.clone())?;
        composer.of_records(view, found.as_slice())
    };
    let found = call.db().read(Weight::Scan, read).await?.pop();
    Ok(found.map(|it| json_answer(StatusCode::OK, &it)))
}

/// Lists composites: `?query&offset&limit&include`.
pub(crate) async fn list(call: Call) -> Answer {
    let (page, composer) = (Page::of(&call)?, Composer::of(&call));
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (records, total) = collection::page_of(view, &USERS, &page)?;
        let list = composer.of_records(view, &records)?;
        Ok(json!({"compositeUsers": list, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns a user with group, permissions, service points and the users on whose behalf they may borrow.
pub(crate) async fn composite(call: &Call, account: Arc<User>) -> Result<Value, FolioError> {
    let caller = call.asker.caller.clone();
    let caller = match caller.user {
        Some(_) => caller,
        // During a login there is no caller yet.
        None => permissions::caller_of(&account),
    };
    let composer = Composer::of(call);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let record = match view.get(&USERS.kind, &account.uuid.to_string())? {
            Some(record) => record.json()?,
            None => Value::Object(record_of(&account)),
        };
        composer
            .composites(view, vec![(record, caller.clone())])?
            .pop()
            .ok_or_else(|| FolioError::not_found(""))
    };
    call.db().read(Weight::Scan, read).await
}

/// Users for whom what belongs to them is read together.
const STEP_USERS: usize = 100;

/// Puts users together with what belongs to them.
struct Composer {
    parts: Parts,
    settings: Arc<Settings>,
    /// The permissions that every tenant has, as records.
    built_in: Arc<[Value]>,
}

impl Composer {
    fn of(call: &Call) -> Self {
        let (settings, built_in) = (Arc::clone(&call.app.settings), Arc::clone(&call.app.permissions));
        Self { parts: Parts::of(call), settings, built_in }
    }

    fn of_records(&self, view: &mut View<'_>, records: &[Record]) -> Result<Vec<Value>, FolioError> {
        let mut list = Vec::with_capacity(records.len());
        for step in records.chunks(STEP_USERS) {
            list.extend(self.of_step(view, step)?);
        }
        Ok(list)
    }

    fn of_step(&self, view: &mut View<'_>, records: &[Record]) -> Result<Vec<Value>, FolioError> {
        let uuids = records.iter().map(|it| it.id.as_str().into()).collect();
        let accounts = user::find(view, &Query::filter(Expr::In("uuid".into(), uuids)))?;
        let mut accounts: HashMap<String, User> =
            accounts.into_iter().map(|it| (it.uuid.to_string(), it)).collect();
        let users = records.iter().map(|record| {
            let user = accounts.remove(&record.id).map(Arc::new);
            Ok((record.json()?, Caller { user, ..Caller::anonymous() }))
        });
        let users = users.collect::<Result<Vec<_>, FolioError>>()?;
        self.composites(view, users)
    }

    fn composites(&self, view: &mut View<'_>, users: Vec<(Value, Caller)>) -> Result<Vec<Value>, FolioError> {
        let texts = |name: &str| -> Vec<String> {
            users.iter().filter_map(|it| text_at(&it.0, name)).map(str::to_owned).collect()
        };
        let ids: Vec<StoreValue> = texts("id").iter().map(|it| it.as_str().into()).collect();
        if self.parts.group {
            view.read_ahead(&GROUPS.kind, texts("patronGroup"))?;
        }
        let mut points: HashMap<String, Value> = HashMap::new();
        if self.parts.points {
            let of_users = Query::filter(Expr::In("userId".into(), ids.clone()));
            for record in view.find(&SERVICE_POINTS_USERS.kind, &of_users)? {
                let body = record.json()?;
                points.entry(text_at(&body, "userId").unwrap_or_default().to_owned()).or_insert(body);
            }
            view.read_ahead(&places::SERVICE_POINTS.kind, points.values().flat_map(service_points))?;
        }
        let mut proxies: HashMap<String, Vec<Value>> = HashMap::new();
        if self.parts.proxies {
            for record in view.find(&PROXIES_FOR.kind, &Query::filter(Expr::In("proxyUserId".into(), ids)))? {
                let body = record.json()?;
                proxies
                    .entry(text_at(&body, "proxyUserId").unwrap_or_default().to_owned())
                    .or_default()
                    .push(body);
            }
        }
        let mut list = Vec::with_capacity(users.len());
        for (record, caller) in users {
            let id = text_at(&record, "id").unwrap_or_default().to_owned();
            let group = text_at(&record, "patronGroup").filter(|_| self.parts.group).map(str::to_owned);
            let mut body = json!({"user": record});
            if self.parts.permissions {
                let held = self.held(view, &caller)?;
                body["permissions"] = json!({"id": id, "userId": id, "permissions": held});
            }
            if self.parts.proxies {
                body["proxiesFor"] = proxies.remove(&id).unwrap_or_default().into();
            }
            if let Some(group) = group.map(|it| view.get(&GROUPS.kind, &it)).transpose()?.flatten() {
                body["patronGroup"] = group.json()?;
            }
            if self.parts.points {
                body["servicePointsUser"] = points_of(view, &id, points.remove(&id))?;
            }
            list.push(body);
        }
        Ok(list)
    }

    /// Returns what a caller may do: names, or records if they are to be expanded.
    fn held(&self, view: &mut View<'_>, caller: &Caller) -> Result<Vec<Value>, FolioError> {
        let mut names = permissions::names(&self.settings, caller);
        if !self.parts.is_expanded {
            return Ok(names.into_iter().map(Value::from).collect());
        }
        names = sets::expanded(view, &names)?;
        let by_role = |it: &&str| permissions::holds_by_role(&self.settings, caller, it);
        let known = self.built_in.iter().filter_map(|it| text_at(it, "permissionName"));
        names.extend(known.filter(|it| !it.ends_with(".all")).filter(by_role).map(str::to_owned));
        names.sort_unstable();
        names.dedup();
        perms::catalogue::by_names(view, &self.built_in, &names)
    }
}

/// Returns the ids of the service points at which a user works.
fn service_points(points: &Value) -> Vec<String> {
    let ids = points["servicePointsIds"].as_array().into_iter().flatten();
    ids.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns where a user works, with the service points' records.
fn points_of(view: &mut View<'_>, user: &str, points: Option<Value>) -> Result<Value, FolioError> {
    let Some(mut points) = points else {
        return Ok(json!({"userId": user, "servicePointsIds": [], "servicePoints": []}));
    };
    let found = view.get_many(&places::SERVICE_POINTS.kind, &service_points(&points))?;
    let found: Result<Vec<Value>, _> = found.iter().flatten().map(Record::json).collect();
    points["servicePoints"] = Value::Array(found?);
    Ok(points)
}
