//! A site's own permissions and sets: `POST /perms/permissions`.

use std::collections::BTreeSet;

use pinakes_accounts::user;
use pinakes_store::{Column, Expr, Index, Kind, Query, Record, Search, Txn, Type, Value as StoreValue, View};
use serde_json::Value;
use uuid::Uuid;

use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// A site's own permissions: `{id, permissionName, displayName, description, subPermissions, …}`.
pub(crate) static PERMISSION: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("permissionName", Type::Text), Column::many("subPermissions", Type::Text)],
    indexes: &[Index::unique(&["permissionName"])],
    ..Kind::named("folio_permission")
};

/// Maximum number of names in an expanded list: what is beyond is not expanded.
const NAMES: usize = 20_000;

/// Returns the names, and those in the sets among them, at any depth; each once.
pub(crate) fn expanded(view: &mut View<'_>, names: &[String]) -> Result<Vec<String>, FolioError> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut all: Vec<String> = names.iter().filter(|it| seen.insert((*it).clone())).cloned().collect();
    let mut at = 0;
    while at < all.len() && all.len() < NAMES {
        let wanted: Vec<StoreValue> = all[at..].iter().map(|it| StoreValue::Text(it.clone())).collect();
        at = all.len();
        let sets = view.find(&PERMISSION, &Query::filter(Expr::In("permissionName".into(), wanted)))?;
        for set in sets.iter().map(Record::json) {
            let below = set?;
            let below = below.get("subPermissions").and_then(Value::as_array).into_iter().flatten();
            all.extend(
                below.filter_map(Value::as_str).filter(|it| seen.insert((*it).to_owned())).map(str::to_owned),
            );
        }
    }
    Ok(all)
}

/// Updates the effective permissions of users after the change of a set.
pub(super) fn follow(txn: &mut Txn<'_>, now_ms: i64) -> Result<(), FolioError> {
    let given = Expr::Exists("permissions".into());
    for record in txn.find(&PERMISSION_USER, &Query::filter(given))? {
        let body = record.json()?;
        let uuid = text_at(&body, "userId").and_then(|it| Uuid::parse_str(it).ok()).unwrap_or_default();
        let Some(account) = user::by_uuid(txn, uuid)? else { continue };
        let whole = expanded(txn, &listed_in(&body))?;
        if whole != account.permissions {
            user::change(txn, &account.id, now_ms, |it| it.permissions = whole)?;
        }
    }
    Ok(())
}

/// Permission users: `{id, userId, permissions, metadata}`.
pub(crate) static PERMISSION_USER: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("userId", Type::Text), Column::many("permissions", Type::Text)],
    indexes: &[Index::unique(&["userId"])],
    search: Search::Folded,
    joins: &["userId"],
    ..Kind::named("folio_permission_user")
};

pub(crate) fn listed_in(body: &Value) -> Vec<String> {
    let list = body.get("permissions").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
