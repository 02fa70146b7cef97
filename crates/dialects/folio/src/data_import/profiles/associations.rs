//! Associations of child profiles with parent profiles.

use pinakes_store::{Expr, Query, StoreError, Txn, View};
use serde_json::{Map, Value, json};

use super::{ASSOCIATION, ProfileType, defaults};

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the associations whose `name` is `id`, FOLIO's defaults first.
fn by(view: &mut View<'_>, name: &str, id: &str) -> Result<Vec<Value>, StoreError> {
    let own = defaults("associations").iter().filter(|it| text(it, name) == id);
    let mut list: Vec<Value> = own.cloned().collect();
    for record in view.find(&ASSOCIATION, &Query::filter(Expr::Is(name.into(), id.into())))? {
        list.push(record.json()?);
    }
    Ok(list)
}

/// Returns the association with an id.
pub(super) fn by_id(view: &mut View<'_>, id: &str) -> Result<Option<Value>, StoreError> {
    if let Some(own) = defaults("associations").iter().find(|it| text(it, "id") == id) {
        return Ok(Some(own.clone()));
    }
    view.get(&ASSOCIATION, id)?.map(|it| it.json()).transpose()
}

/// Returns the associations with the children of a profile, in order: those within `job` if it has any, else those that
/// apply wherever the profile is used.
pub(super) fn below(view: &mut View<'_>, master: &str, job: Option<&str>) -> Result<Vec<Value>, StoreError> {
    let all = by(view, "masterProfileId", master)?;
    let is_of = |it: &&Value| job.is_some_and(|job| text(it, "jobProfileId") == job);
    let is_free = |it: &&Value| text(it, "jobProfileId").is_empty();
    let mut list: Vec<Value> = all.iter().filter(is_of).cloned().collect();
    if list.is_empty() {
        list = all.iter().filter(is_free).cloned().collect();
    }
    if list.is_empty() && job.is_none() {
        list = all;
    }
    list.sort_by_key(|it| it.get("order").and_then(Value::as_i64).unwrap_or(0));
    Ok(list)
}

/// Returns the associations with the parents of a profile.
pub(super) fn above(view: &mut View<'_>, detail: &str) -> Result<Vec<Value>, StoreError> {
    by(view, "detailProfileId", detail)
}

/// Returns all associations between two types of profiles.
pub(super) fn between(
    view: &mut View<'_>,
    master: Option<ProfileType>,
    detail: Option<ProfileType>,
) -> Result<Vec<Value>, StoreError> {
    let mut list = defaults("associations").to_vec();
    for record in view.find(&ASSOCIATION, &Query::filter(Expr::All))? {
        list.push(record.json()?);
    }
    list.retain(|it| {
        master.is_none_or(|sort| text(it, "masterProfileType") == sort.type_name())
            && detail.is_none_or(|sort| text(it, "detailProfileType") == sort.type_name())
    });
    Ok(list)
}

/// Adds the relations of a profile; a null master stands for the profile itself. Returns them as they are stored.
pub(super) fn add(
    txn: &mut Txn<'_>,
    sort: ProfileType,
    id: &str,
    relations: &[Value],
    new_id: &dyn Fn() -> String,
) -> Result<Vec<Value>, StoreError> {
    let mut added = Vec::with_capacity(relations.len());
    for relation in relations {
        let Value::Object(relation) = relation else { continue };
        let mut stored = relation.clone();
        let own = |map: &Map<String, Value>, name: &str| {
            map.get(name).and_then(Value::as_str).map(str::to_owned).filter(|it| !it.is_empty())
        };
        let association = own(&stored, "id").unwrap_or_else(new_id);
        stored.insert("id".into(), association.as_str().into());
        for (name, type_name) in
            [("masterProfileId", "masterProfileType"), ("detailProfileId", "detailProfileType")]
        {
            if own(&stored, name).is_none() {
                stored.insert(name.into(), id.into());
                stored.insert(type_name.into(), sort.type_name().into());
            }
        }
        stored.entry("order").or_insert_with(|| json!(0));
        stored.entry("triggered").or_insert_with(|| json!(false));
        if sort == ProfileType::Job {
            stored.insert("jobProfileId".into(), id.into());
        }
        let stored = Value::Object(stored);
        txn.put(&ASSOCIATION, &association, &stored)?;
        added.push(stored);
    }
    Ok(added)
}

/// Removes the relations listed for deletion.
pub(super) fn remove(txn: &mut Txn<'_>, id: &str, relations: &[Value]) -> Result<(), StoreError> {
    for relation in relations {
        let master = Some(text(relation, "masterProfileId")).filter(|it| !it.is_empty()).unwrap_or(id);
        let detail = Some(text(relation, "detailProfileId")).filter(|it| !it.is_empty()).unwrap_or(id);
        for found in by(txn, "masterProfileId", master)? {
            let same_reaction =
                relation.get("reactTo").is_none_or(|it| it.is_null() || Some(it) == found.get("reactTo"));
            if text(&found, "detailProfileId") == detail && same_reaction {
                txn.delete(&ASSOCIATION, text(&found, "id"))?;
            }
        }
    }
    Ok(())
}

/// Removes the associations with all children of a profile, and those that belong to it if it is a job profile.
pub(super) fn remove_all(txn: &mut Txn<'_>, id: &str) -> Result<(), StoreError> {
    for name in ["masterProfileId", "jobProfileId"] {
        for record in txn.find(&ASSOCIATION, &Query::filter(Expr::Is(name.into(), id.into())))? {
            txn.delete(&ASSOCIATION, &record.id)?;
        }
    }
    Ok(())
}
