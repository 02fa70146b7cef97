//! Assigning and revoking roles: `…/assignments` of collections and datasets (section 8 of the contract), and the log
//! of these changes.

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::asker::Asker;
use crate::error::ApiError;
use crate::grants::{self, Assigned, GRANT, Grant, Place, grant_id};
use crate::groups::membership;
use crate::roles::{self, Role};
use crate::{envelope, permissions, stored, users};

/// Log of role assignments: the body is a [`Change`], the id that of the assignment.
pub(crate) static HISTORY: Kind = Kind {
    columns: &[Column::one("object", Type::Integer), Column::one("dataset", Type::Integer)],
    indexes: &[Index::on(&["object"]), Index::on(&["dataset"])],
    ..Kind::named("dataverse_assignment_history")
};

/// A role assignment with its revocation, if it was revoked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    /// The object that it applies to.
    pub object: i64,
    /// The dataset, if the object is one of its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<i64>,
    /// The assignee.
    pub assignee: String,
    /// The role's short name.
    pub role: String,
    /// Who assigned it.
    pub assigned_by: String,
    /// When it was assigned.
    pub assigned_at: String,
    /// Who revoked it.
    #[serde(default)]
    pub revoked_by: Option<String>,
    /// When it was revoked.
    #[serde(default)]
    pub revoked_at: Option<String>,
}

/// The object on which roles are assigned, with what answers show of it.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// Its number.
    pub id: i64,
    /// Its name: that of a collection, or the title of a dataset.
    pub name: String,
    /// `Dataverse`, `Dataset` or `DataFile`.
    pub ty: &'static str,
    /// The persistent identifier of a dataset.
    pub pid: Option<String>,
    /// The dataset of a file.
    pub dataset: Option<i64>,
}

/// Who makes a change, and when.
#[derive(Debug, Clone)]
pub(crate) struct Actor {
    /// The caller, in the form of role assignments.
    pub who: String,
    /// The current time.
    pub now: String,
    /// Whether a log is kept.
    pub keeps_history: bool,
}

/// Assigns a role on an object. Returns the assignment with its number.
///
/// Errors: 409 `Role has already been granted.`
pub(crate) fn assign(
    txn: &mut Txn<'_>,
    actor: &Actor,
    point: &Point,
    assignee: &str,
    role: &Role,
    id: i64,
) -> Result<Assigned, ApiError> {
    let key = grant_id(point.id, assignee);
    let stored: Option<Grant> = stored::get(txn, &GRANT, &key)?;
    let mut grant = stored.unwrap_or_else(|| Grant {
        object: point.id,
        assignee: assignee.to_owned(),
        roles: Vec::new(),
    });
    if grant.roles.iter().any(|it| it.role == role.id) {
        return Err(ApiError::conflict("Role has already been granted."));
    }
    let assigned = Assigned { id, role: role.id };
    grant.roles.push(assigned.clone());
    stored::put(txn, &GRANT, &key, &grant)?;
    if actor.keeps_history {
        let change = Change {
            object: point.id,
            dataset: point.dataset,
            assignee: assignee.to_owned(),
            role: role.alias.clone(),
            assigned_by: actor.who.clone(),
            assigned_at: actor.now.clone(),
            revoked_by: None,
            revoked_at: None,
        };
        stored::put(txn, &HISTORY, &id.to_string(), &change)?;
    }
    Ok(assigned)
}

/// Revokes an assignment. Returns its assignee and role; `None` if there is no such assignment on the object.
pub(crate) fn revoke(
    txn: &mut Txn<'_>,
    actor: &Actor,
    object: i64,
    id: i64,
) -> Result<Option<(String, i64)>, ApiError> {
    for mut grant in grants::grants_on(txn, object)? {
        let Some(place) = grant.roles.iter().position(|it| it.id == id) else { continue };
        let role = grant.roles.remove(place).role;
        let key = grant_id(object, &grant.assignee);
        if grant.roles.is_empty() {
            txn.delete(&GRANT, &key)?;
        } else {
            stored::put(txn, &GRANT, &key, &grant)?;
        }
        if let Some(mut change) = stored::get::<Change>(txn, &HISTORY, &id.to_string())? {
            (change.revoked_by, change.revoked_at) = (Some(actor.who.clone()), Some(actor.now.clone()));
            stored::put(txn, &HISTORY, &id.to_string(), &change)?;
        }
        return Ok(Some((grant.assignee, role)));
    }
    Ok(None)
}

/// Deletes the assignments, and their log, of an object that is being deleted.
pub(crate) fn remove_all(txn: &mut Txn<'_>, object: i64) -> Result<(), ApiError> {
    for grant in grants::grants_on(txn, object)? {
        txn.delete(&GRANT, &grant_id(object, &grant.assignee))?;
    }
    let filter =
        Expr::Or(vec![Expr::Is("object".into(), object.into()), Expr::Is("dataset".into(), object.into())]);
    for record in txn.find(&HISTORY, &Query::filter(filter))? {
        txn.delete(&HISTORY, &record.id)?;
    }
    Ok(())
}

/// Returns one assignment as JSON.
pub(crate) fn json(
    view: &mut View<'_>,
    point: &Point,
    assignee: &str,
    assigned: &Assigned,
) -> Result<Value, ApiError> {
    let role = roles::by_id(view, assigned.role)?;
    let name = assignee_name(view, assignee)?;
    Ok(envelope::object(json!({
        "id": assigned.id,
        "assignee": assignee,
        "assigneeName": name,
        "roleId": assigned.role,
        "roleName": role.as_ref().map(|it| it.name.clone()),
        "roleDescription": role.as_ref().map(|it| it.description.clone()),
        "_roleAlias": role.as_ref().map(|it| it.alias.clone()),
        "definitionPointId": point.id,
        "definitionPointName": point.name,
        "definitionPointType": point.ty,
        "definitionPointGlobalId": point.pid,
    }))
    .into())
}

/// Lists all assignments on an object, in the order in which they were made.
pub(crate) fn list(view: &mut View<'_>, point: &Point) -> Result<Vec<Value>, ApiError> {
    let mut all = Vec::new();
    for grant in grants::grants_on(view, point.id)? {
        all.extend(grant.roles.into_iter().map(|it| (it.id, grant.assignee.clone(), it)));
    }
    all.sort_by_key(|it| it.0);
    all.iter().map(|(_, assignee, assigned)| json(view, point, assignee, assigned)).collect()
}

/// Returns the display name of an assignee.
pub(crate) fn assignee_name(view: &mut View<'_>, assignee: &str) -> Result<Option<String>, ApiError> {
    Ok(match assignee {
        ":guest" => Some("Guest".to_owned()),
        ":authenticated-users" => Some("Authenticated Users".to_owned()),
        ":AllUsers" => Some("Everyone (including guests)".to_owned()),
        _ if assignee.starts_with('!') => Some("Preview URL Enabled".to_owned()),
        _ if assignee.starts_with('&') => membership::name_of(view, assignee)?,
        _ => match assignee.strip_prefix('@') {
            Some(name) => users::by_name(view, name)?.map(|it| it.display_name()),
            None => None,
        },
    })
}

/// Returns the assignee that a body names, in the form in which assignments store it.
///
/// Errors: 400 `Assignee not found`; 403 for a deactivated user, with `what` they cannot be given.
pub(crate) fn find_assignee(view: &mut View<'_>, text: &str, what: &str) -> Result<String, ApiError> {
    if let Some(name) = text.strip_prefix('@')
        && let Some(user) = users::by_name(view, name)?
    {
        if user.deactivated {
            return Err(ApiError::forbidden(format!(
                "User {} is deactivated and cannot be {what}.",
                user.name
            )));
        }
        return Ok(user.identifier());
    }
    match assignee_name(view, text)? {
        Some(_) if !text.starts_with('@') => Ok(text.to_owned()),
        _ => Err(ApiError::bad_request("Assignee not found")),
    }
}

/// Checks that the caller holds all permissions of the role that they assign. Errors: 401.
pub(crate) fn check_holds(
    view: &mut View<'_>,
    asker: &Asker,
    place: Place,
    role: &Role,
) -> Result<(), ApiError> {
    let held = permissions::held(view, asker, place)?;
    match role.permissions.iter().all(|it| held.contains(it)) {
        true => Ok(()),
        false => Err(permissions::refusal(asker)),
    }
}

/// Returns assignee and role from a body `{"assignee": …, "role": …}`.
pub(crate) fn read_body(body: &Map<String, Value>) -> Result<(String, String), ApiError> {
    let text = |name: &str| {
        let value = body.get(name).and_then(Value::as_str);
        value.ok_or_else(|| ApiError::bad_request(format!("Field '{name}' is mandatory")))
    };
    Ok((text("assignee")?.to_owned(), text("role")?.to_owned()))
}

/// Returns the caller as actor, with the current time.
pub(crate) fn actor(call: &crate::app::Call) -> Actor {
    actor_of(&call.app, &call.asker)
}

/// Returns the actor for a caller.
pub(crate) fn actor_of(app: &crate::app::Dataverse, asker: &Asker) -> Actor {
    Actor { who: asker.identifier(), now: app.now(), keeps_history: app.settings.role_assignment_history }
}

/// Returns the log of an object (or of the files of a dataset), newest first.
pub(crate) fn history(view: &mut View<'_>, path: &str, object: i64) -> Result<Vec<Change>, ApiError> {
    let mut all: Vec<Change> = stored::find_by(view, &HISTORY, path, object)?;
    all.reverse();
    Ok(all)
}

/// Joins changes of several files of a dataset that were made within one minute by the same user for the same assignee
/// and role into one line. Returns the numbers of the objects of each line, and the change.
fn joined(changes: &[Change]) -> Vec<(String, Change)> {
    let mut lines: Vec<(Vec<i64>, Change)> = Vec::new();
    let minute = |text: &str| text.get(..16).unwrap_or(text).to_owned();
    let of_line = |it: &Change| {
        let revoked = it.revoked_at.as_deref().map(minute);
        let who = (it.assignee.clone(), it.role.clone(), it.assigned_by.clone(), it.revoked_by.clone());
        (it.dataset, who, minute(&it.assigned_at), revoked)
    };
    for change in changes {
        let is_of_file = change.dataset.is_some();
        match lines.iter_mut().find(|it| is_of_file && of_line(&it.1) == of_line(change)) {
            Some(line) => line.0.push(change.object),
            None => lines.push((vec![change.object], change.clone())),
        }
    }
    let shown = lines.into_iter().map(|(mut objects, change)| {
        objects.sort_unstable();
        (objects.iter().map(i64::to_string).collect::<Vec<_>>().join(", "), change)
    });
    shown.collect()
}

/// The columns of the log as CSV.
const CSV_HEAD: &str = "Defined On,Assignee,Role,Assigned By,Assignment Date,Revoked By,Revocation Date";

/// Returns the log as JSON, or as CSV if `Accept` asks for `text/csv`.
pub(crate) fn history_answer(call: &crate::app::Call, changes: &[Change]) -> crate::error::Answer {
    let wants_csv = call.header("accept").is_some_and(|it| it.contains("text/csv"));
    let changes = joined(changes);
    if !wants_csv {
        let items = changes.iter().map(|(objects, it)| {
            json!({
                "definedOn": objects, "assigneeIdentifier": it.assignee, "roleName": it.role,
                "assignedBy": it.assigned_by, "assignedAt": it.assigned_at,
                "revokedBy": it.revoked_by, "revokedAt": it.revoked_at,
            })
        });
        return envelope::ok(items.collect::<Vec<Value>>());
    }
    let mut csv = format!("{CSV_HEAD}\n");
    for (objects, it) in &changes {
        let objects = if objects.contains(',') { format!("\"{objects}\"") } else { objects.clone() };
        let revoked = (it.revoked_by.as_deref().unwrap_or(""), it.revoked_at.as_deref().unwrap_or(""));
        csv.push_str(&format!(
            "{},{},{},{},{},{},{}\n",
            objects, it.assignee, it.role, it.assigned_by, it.assigned_at, revoked.0, revoked.1
        ));
    }
    let text = http::HeaderValue::from_static("text/csv");
    Ok(pinakes_http::answer::bytes(http::StatusCode::OK, text, csv))
}
