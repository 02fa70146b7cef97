//! `/settings/entries` (mod-settings): settings of the tenant and of single users. Each has a scope, and permissions
//! name scopes: a caller who may read entries at all sees only those of the scopes granted.

use std::collections::BTreeSet;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Query, Search, Txn, Type, Value as StoreValue, View, Weight};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{self, Collection, Kinds, Lock, Metadata, Missing, Page, Schema, Writer};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::{self, Access};
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// `/settings/entries`.
pub(crate) static SETTINGS: Collection = Collection {
    permission: "mod-settings.entries",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("scope", Type::Folded),
            Column::at("name", "key", Type::Folded),
            Column::one("userId", Type::Text),
        ],
        indexes: &[Index::on(&["scope", "name", "userId"])],
        search: Search::Folded,
        ..Kind::named("folio_setting")
    },
    schema: Schema {
        required: &["scope", "key", "value"],
        types: &[("scope", Kinds::Text), ("key", Kinds::Text)],
        ..Schema::OPEN
    },
    names: Names { whole: &["scope", "key"], ..Names::PLAIN },
    metadata: Metadata::Off,
    is_served: false,
    ..Collection::named("/settings/entries", "items", "settings")
};

/// Maximum number of spellings of a scope and a key, in capitals or not, among which the same entry is looked for.
const SPELLINGS_MAX: u64 = 100;

/// The permission that lets roles read entries.
const READ: &str = "mod-settings.entries.collection.get";
/// Maximum number of entries in one answer.
const ENTRIES: u64 = 10_000;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let item = "/settings/entries/{id}";
    routes
        .get("/settings/entries", Access::to(READ), list)
        .post("/settings/entries", Access::to("mod-settings.entries.item.post"), create)
        .get(item, Access::to("mod-settings.entries.item.get"), show)
        .put(item, Access::to("mod-settings.entries.item.put"), replace)
        .delete(item, Access::to("mod-settings.entries.item.delete"), remove)
}

/// What a caller does with an entry, in the terms of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Read,
    Write,
}

impl Act {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// Whose entries a permission covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The tenant's: entries without a user.
    Tenant,
    /// Any user's.
    Users,
    /// The caller's own.
    Own,
}

impl Whose {
    const ALL: [Self; 3] = [Self::Tenant, Self::Users, Self::Own];

    /// Returns the prefix of a permission, `mod-settings.global.read.`, to which the scope is appended.
    fn permission(self, act: Act) -> String {
        let whose = match self {
            Self::Tenant => "global",
            Self::Users => "users",
            Self::Own => "owner",
        };
        format!("mod-settings.{whose}.{}.", act.name())
    }
}

/// The scopes granted to a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scopes {
    All,
    These(BTreeSet<String>),
}

impl Scopes {
    fn has(&self, scope: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(list) => list.contains(scope),
        }
    }

    fn condition(&self) -> Expr {
        match self {
            Self::All => Expr::All,
            Self::These(list) if list.is_empty() => Expr::Nothing,
            // The column is folded to one case, but permissions distinguish case.
            Self::These(list) => {
                let among = |of: fn(String) -> StoreValue| {
                    Expr::In("scope".into(), list.iter().cloned().map(of).collect())
                };
                among(StoreValue::Folded).and(among(StoreValue::Text))
            }
        }
    }
}

/// The entries that a caller may read or write.
#[derive(Debug, Clone)]
struct Reach {
    user: String,
    tenant: Scopes,
    users: Scopes,
    own: Scopes,
}

impl Reach {
    fn of(call: &Call, act: Act) -> Self {
        let (settings, caller) = (&call.app.settings, &call.asker.caller);
        let names = permissions::names(settings, caller);
        let reads_by_role = act == Act::Read && permissions::holds_by_role(settings, caller, READ);
        let [tenant, users, own] = Whose::ALL.map(|whose| {
            let prefix = whose.permission(act);
            // A permission set that covers every name with this prefix, or the admin role; staff read all entries
            // except those of other users.
            let is_any = permissions::holds(settings, caller, &format!("{prefix}\u{1}"));
            if is_any || reads_by_role && whose != Whose::Users {
                return Scopes::All;
            }
            Scopes::These(names.iter().filter_map(|it| it.strip_prefix(&prefix)).map(str::to_owned).collect())
        });
        Self { user: call.asker.user_id().unwrap_or_default(), tenant, users, own }
    }

    fn takes(&self, entry: &Map<String, Value>) -> bool {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let scope = text("scope");
        match text("userId") {
            "" => self.tenant.has(scope),
            user => self.users.has(scope) || user == self.user && self.own.has(scope),
        }
    }

    fn condition(&self) -> Expr {
        let has_user = Expr::Exists("userId".into());
        let is_own = Expr::Is("userId".into(), self.user.as_str().into());
        Expr::Or(vec![
            Expr::Not(Box::new(has_user.clone())).and(self.tenant.condition()),
            has_user.and(self.users.condition()),
            is_own.and(self.own.condition()),
        ])
    }
}

fn forbidden(scope: &str) -> FolioError {
    FolioError::text(StatusCode::FORBIDDEN, format!("No permission to write entries of the scope {scope}"))
}

async fn list(call: Call) -> Answer {
    let (page, reach) = (Page::of(&call)?, Reach::of(&call, Act::Read));
    let read = move |view: &mut View<'_>| -> Result<(Vec<Value>, u64), FolioError> {
        let (asked, order) = collection::expr_of(view, page.collections, &SETTINGS, &page.cql)?;
        let filter = asked.and(reach.condition());
        let n_all = view.count(&SETTINGS.kind, &filter)?;
        let limit = page.limit.min(ENTRIES);
        let query = Query { filter, order, skip: page.offset, limit: Some(limit), after: None };
        let found = if limit == 0 { Vec::new() } else { view.find(&SETTINGS.kind, &query)? };
        Ok((found.iter().map(|it| it.json()).collect::<Result<_, _>>()?, n_all))
    };
    let (items, n_all) = call.db().read(Weight::Scan, read).await?;
    let info = json!({"totalRecords": n_all, "facets": [], "diagnostics": []});
    Ok(json_answer(StatusCode::OK, &json!({"items": items, "totalRecords": n_all, "resultInfo": info})))
}

/// Returns an entry; 404 if it is not for the caller.
async fn show(call: Call) -> Answer {
    let (id, reach) = (call.uuid_param("id")?, Reach::of(&call, Act::Read));
    let wanted = id.clone();
    let read = move |view: &mut View<'_>| -> Result<Option<Value>, FolioError> {
        Ok(view.get(&SETTINGS.kind, &wanted)?.map(|it| it.json()).transpose()?)
    };
    let found = call.db().read(Weight::Point, read).await?;
    let entry = found.filter(|it| it.as_object().is_some_and(|it| reach.takes(it)));
    Ok(json_answer(StatusCode::OK, &entry.ok_or_else(|| SETTINGS.not_found(&id))?))
}

/// Refuses a second entry with the same key and scope for the tenant, or for the same user.
///
/// Errors: 400.
fn check_only(view: &mut View<'_>, id: Option<&str>, entry: &Map<String, Value>) -> Result<(), FolioError> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let (scope, key, user) = (text("scope"), text("key"), text("userId"));
    let is = |path: &str, text: &str| Expr::Is(path.into(), StoreValue::Folded(text.to_owned()));
    let named = is("scope", scope).and(is("key", key));
    let of_user = Some(user).filter(|it| !it.is_empty()).map(StoreValue::from);
    let alike = collection::with_or_without(Query::filter(named), "userId", of_user);
    for other in view.find(&SETTINGS.kind, &alike.window(0, SPELLINGS_MAX))? {
        let body = other.json()?;
        let of = |name: &str| text_at(&body, name).unwrap_or_default();
        let is_same = of("scope") == scope && of("key") == key && of("userId") == user;
        if is_same && id != Some(other.id.as_str()) {
            let message = format!("An entry of the scope {scope} and the key {key} is there: {}", other.id);
            return Err(FolioError::bad_request(message));
        }
    }
    Ok(())
}

fn check_writable(reach: &Reach, entry: &Map<String, Value>) -> Result<(), FolioError> {
    let scope = entry.get("scope").and_then(Value::as_str).unwrap_or_default();
    if reach.takes(entry) { Ok(()) } else { Err(forbidden(scope)) }
}

/// Creates an entry; like mod-settings, answers without a body.
async fn create(mut call: Call) -> Answer {
    let (body, reach) = (call.object().await?, Reach::of(&call, Act::Write));
    check_writable(&reach, &body)?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        check_only(txn, None, &body)?;
        collection::insert(txn, &writer(), &SETTINGS, body.clone()).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Checks that the caller may write the stored entry that is to be changed or deleted.
fn writable(view: &mut View<'_>, id: &str, reach: &Reach) -> Result<(), FolioError> {
    let before = view.get(&SETTINGS.kind, id)?.ok_or_else(|| SETTINGS.not_found(id))?.json()?;
    check_writable(reach, before.as_object().unwrap_or(&Map::new()))
}

async fn replace(mut call: Call) -> Answer {
    let (id, reach) = (call.uuid_param("id")?, Reach::of(&call, Act::Write));
    let body = call.object().await?;
    check_writable(&reach, &body)?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        writable(txn, &id, &reach)?;
        check_only(txn, Some(&id), &body)?;
        collection::put(txn, &writer(), &SETTINGS, &id, body.clone(), Missing::Refuse, Lock::Checked)
            .map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn remove(call: Call) -> Answer {
    let (id, reach) = (call.uuid_param("id")?, Reach::of(&call, Act::Write));
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        writable(txn, &id, &reach)?;
        collection::delete(txn, &writer(), &SETTINGS, &id).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
