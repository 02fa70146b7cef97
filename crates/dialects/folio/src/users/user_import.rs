//! `/user-import`: imports many users at once, as a university's own system sends them (section 11 of the contract).
//!
//! Users are identified by `externalSystemId`. Groups, address types and departments are given by name, the preferred
//! contact by a word; a user who cannot be imported is reported and the others continue. Departments may come with the
//! users.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_store::{Expr, Kind, Query, Txn, Value as StoreValue, View};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{Lock, Missing, Writer, insert, put};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::users::user::{ADDRESS_TYPES, DEPARTMENTS, GROUPS, USERS};

/// Words for contact types, and FOLIO's numbers for them.
const CONTACTS: [(&str, &str); 5] =
    [("mail", "001"), ("email", "002"), ("text", "003"), ("phone", "004"), ("mobile", "005")];

/// Adds the route.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/user-import", Access::to("user-import.post"), import)
}

/// Options of an import.
#[derive(Debug, Clone, Copy)]
struct Wishes {
    /// Whether users of the same source who are not in the list are made inactive.
    deactivates_missing: bool,
    /// Whether properties that are not given are kept.
    keeps_other_fields: bool,
}

async fn import(mut call: Call) -> Answer {
    let body = call.object().await?;
    let Some(Value::Array(users)) = body.get("users").cloned() else {
        return Err(FolioError::unprocessable(Fault::missing("users")));
    };
    let most = call.app.settings.batch_records;
    if most < users.len() {
        let message = format!("at most {most} users are taken at once, {} were given", users.len());
        return Err(FolioError::text(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let departments = body.get("included").and_then(|it| it.get("departments")).and_then(Value::as_array);
    let departments = departments.cloned().unwrap_or_default();
    if !departments.is_empty() {
        let writer = Writer::of(&call);
        call.db().write(move |txn| take_departments(txn, &writer(), &departments)).await?;
    }
    let flag = |name: &str| body.get(name).and_then(Value::as_bool).unwrap_or(false);
    let wishes = Wishes {
        deactivates_missing: flag("deactivateMissingUsers"),
        keeps_other_fields: flag("updateOnlyPresentFields"),
    };
    let source = body.get("sourceType").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (mut n_created, mut n_updated) = (0_u64, 0_u64);
    let (mut failed, mut seen) = (Vec::new(), BTreeSet::new());
    for user in &users {
        let Value::Object(user) = user else { continue };
        let id = user.get("externalSystemId").and_then(Value::as_str).unwrap_or_default();
        let full = if source.is_empty() { id.to_owned() } else { format!("{source}_{id}") };
        seen.insert(pinakes_store::fold(&full));
        let (writer, given, wanted) = (Writer::of(&call), user.clone(), full.clone());
        // One at a time, so that a refused user does not affect others.
        let written = call.db().write(move |txn| one(txn, &writer(), &given, &wanted, wishes)).await;
        match written {
            Ok(true) => n_created += 1,
            Ok(false) => n_updated += 1,
            Err(error) => failed.push(json!({
                "externalSystemId": full, "username": user.get("username"), "errorMessage": error.message(),
            })),
        }
    }
    if wishes.deactivates_missing {
        let writer = Writer::of(&call);
        call.db().write(move |txn| deactivate(txn, &writer(), &source, &seen)).await?;
    }
    call.app.context.accounts().changed();
    let message = match (failed.is_empty(), users.is_empty()) {
        (_, true) => "No users to import.",
        (true, _) => "Users were imported successfully.",
        _ => "Users were imported with errors.",
    };
    Ok(json_answer(
        StatusCode::OK,
        &json!({
            "message": message, "createdRecords": n_created, "updatedRecords": n_updated,
            "failedRecords": failed.len(), "failedUsers": failed, "totalRecords": users.len(),
        }),
    ))
}

/// Stores the departments that an import brings with it (`included.departments`). A known one, by code or else by name,
/// gets what is given.
fn take_departments(txn: &mut Txn<'_>, writer: &Writer, given: &[Value]) -> Result<(), FolioError> {
    for department in given.iter().filter_map(Value::as_object) {
        let mut known = None;
        for name in ["code", "name"] {
            let text = department.get(name).and_then(Value::as_str).filter(|_| known.is_none());
            if let Some(text) = text {
                let same = Expr::Is(name.into(), StoreValue::Folded(pinakes_store::fold(text)));
                known = txn.first(&DEPARTMENTS.kind, same)?;
            }
        }
        let Some(record) = known else {
            insert(txn, writer, &DEPARTMENTS, department.clone())?;
            continue;
        };
        if let Value::Object(mut body) = record.json()? {
            body.extend(department.clone());
            put(txn, writer, &DEPARTMENTS, &record.id, body, Missing::Refuse, Lock::Ignored)?;
        }
    }
    Ok(())
}

/// Creates or updates one user; returns whether it was created.
fn one(
    txn: &mut Txn<'_>,
    writer: &Writer,
    given: &Map<String, Value>,
    external_id: &str,
    wishes: Wishes,
) -> Result<bool, FolioError> {
    if external_id.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("externalSystemId")));
    }
    let mut user = given.clone();
    user.insert("externalSystemId".to_owned(), external_id.into());
    resolve(txn, &mut user)?;
    let same = Expr::Is("externalSystemId".into(), StoreValue::Folded(external_id.to_owned()));
    let Some(record) = txn.first(&USERS.kind, same)? else {
        insert(txn, writer, &USERS, user)?;
        return Ok(true);
    };
    if wishes.keeps_other_fields
        && let Value::Object(mut old) = record.json()?
    {
        let personal = user.shift_remove("personal");
        if let (Some(Value::Object(personal)), Some(Value::Object(kept))) =
            (personal, old.get_mut("personal"))
        {
            kept.extend(personal);
        }
        old.extend(user);
        user = old;
    }
    put(txn, writer, &USERS, &record.id, user, Missing::Refuse, Lock::Ignored)?;
    Ok(false)
}

/// Replaces the names in an import with ids.
fn resolve(txn: &mut Txn<'_>, user: &mut Map<String, Value>) -> Result<(), FolioError> {
    let mut names = Names(HashMap::new());
    if let Some(group) = user.get("patronGroup").and_then(Value::as_str).map(str::to_owned) {
        let id = names.id(txn, &GROUPS.kind, "group", &group)?;
        let id = id.ok_or_else(|| unknown("patron group", &group))?;
        user.insert("patronGroup".to_owned(), id.into());
    }
    if let Some(Value::Array(departments)) = user.get_mut("departments") {
        for department in departments {
            let name = department.as_str().unwrap_or_default().to_owned();
            let id = names.id(txn, &DEPARTMENTS.kind, "name", &name)?;
            *department = id.ok_or_else(|| unknown("department", &name))?.into();
        }
    }
    let Some(Value::Object(personal)) = user.get_mut("personal") else { return Ok(()) };
    if let Some(word) = personal.get("preferredContactTypeId").and_then(Value::as_str) {
        let number =
            CONTACTS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, number)| *number);
        let number = number.unwrap_or("002");
        personal.insert("preferredContactTypeId".to_owned(), number.into());
    }
    let Some(Value::Array(addresses)) = personal.get_mut("addresses") else { return Ok(()) };
    for address in addresses {
        let Some(name) = text_at(address, "addressTypeId").map(str::to_owned) else { continue };
        let id = names.id(txn, &ADDRESS_TYPES.kind, "addressType", &name)?;
        address["addressTypeId"] = id.ok_or_else(|| unknown("address type", &name))?.into();
    }
    Ok(())
}

fn unknown(what: &str, name: &str) -> FolioError {
    FolioError::unprocessable(Fault::new(format!("there is no {what} named {name:?}")).with(what, name))
}

/// Ids by name, or by id, each looked up once.
struct Names(HashMap<(&'static str, String), Option<String>>);

impl Names {
    fn id(
        &mut self,
        view: &mut View<'_>,
        kind: &'static Kind,
        field: &str,
        name: &str,
    ) -> Result<Option<String>, FolioError> {
        let key = (kind.name, name.to_owned());
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        let is_it = Expr::Or(vec![
            Expr::Is(field.into(), StoreValue::Folded(name.to_owned())),
            Expr::Ids(vec![name.to_lowercase()]),
        ]);
        let found = view.first(kind, is_it)?.map(|it| it.id);
        self.0.insert(key, found.clone());
        Ok(found)
    }
}

/// Makes users inactive whom their source no longer lists.
fn deactivate(
    txn: &mut Txn<'_>,
    writer: &Writer,
    source: &str,
    seen: &BTreeSet<String>,
) -> Result<(), FolioError> {
    let prefix = if source.is_empty() { String::new() } else { format!("{}_", pinakes_store::fold(source)) };
    let mut missing = Vec::new();
    txn.for_each(&USERS.kind, &Query::filter(Expr::Is("active".into(), true.into())), |record| {
        missing.push(record);
        ControlFlow::Continue(())
    })?;
    for record in missing {
        let Value::Object(mut user) = record.json()? else { continue };
        let id = user.get("externalSystemId").and_then(Value::as_str).map(pinakes_store::fold);
        if id.is_some_and(|id| id.starts_with(&prefix) && !seen.contains(&id)) {
            user.insert("active".to_owned(), false.into());
            put(txn, writer, &USERS, &record.id, user, Missing::Refuse, Lock::Ignored)?;
        }
    }
    Ok(())
}
