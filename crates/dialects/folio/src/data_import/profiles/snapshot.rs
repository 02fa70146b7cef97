//! Snapshots: the tree of a profile at the time when a job started.

use pinakes_store::{Kind, StoreError, Txn, View};
use serde_json::{Value, json};

use super::{ProfileType, associations, get};

/// Snapshots, by id.
pub(crate) static PROFILE_SNAPSHOT: Kind =
    Kind { id_path: Some("id"), ..Kind::named("folio_profile_snapshot") };

/// Maximum depth of a tree; deeper ones are cycles.
const DEPTH_MAX: usize = 30;

/// Builds the tree of a profile; `None` if there is no such profile.
///
/// Errors: a reference to a profile that does not exist, or a cycle.
pub(crate) fn snapshot_of(
    view: &mut View<'_>,
    sort: ProfileType,
    id: &str,
    job: Option<&str>,
    new_id: &dyn Fn() -> String,
) -> Result<Option<Value>, SnapshotError> {
    let Some(content) = get(view, sort, id)? else { return Ok(None) };
    let job = job.or((sort == ProfileType::Job).then_some(id));
    node(view, sort, content, id, job, new_id, 0).map(Some)
}

/// Why a tree could not be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    /// A child does not exist.
    #[error("the {} profile {id} is part of this profile and does not exist", sort.word().to_lowercase())]
    Missing { sort: ProfileType, id: String },
    /// A cycle.
    #[error("the profile {0} is below itself")]
    Circle(String),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn node(
    view: &mut View<'_>,
    sort: ProfileType,
    content: Value,
    id: &str,
    job: Option<&str>,
    new_id: &dyn Fn() -> String,
    depth: usize,
) -> Result<Value, SnapshotError> {
    if DEPTH_MAX < depth {
        return Err(SnapshotError::Circle(id.to_owned()));
    }
    let mut children = Vec::new();
    for association in associations::below(view, id, job)? {
        let text = |name: &str| association.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(child_sort) = ProfileType::typed(text("detailProfileType")) else { continue };
        let child_id = text("detailProfileId").to_owned();
        let child = get(view, child_sort, &child_id)?
            .ok_or_else(|| SnapshotError::Missing { sort: child_sort, id: child_id.clone() })?;
        let mut made = node(view, child_sort, child, &child_id, job, new_id, depth + 1)?;
        if let Value::Object(made) = &mut made {
            made.insert("order".into(), association.get("order").cloned().unwrap_or_else(|| 0.into()));
            if let Some(react) = association.get("reactTo").filter(|it| !it.is_null()) {
                made.insert("reactTo".into(), react.clone());
            }
        }
        children.push(made);
    }
    Ok(json!({
        "id": new_id(),
        "profileId": id,
        "profileWrapperId": new_id(),
        "contentType": sort.type_name(),
        "order": 0,
        "content": content,
        "childSnapshotWrappers": children,
    }))
}

/// Stores a snapshot and returns its id.
pub(crate) fn store_snapshot(txn: &mut Txn<'_>, snapshot: &Value) -> Result<String, StoreError> {
    let id = snapshot.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    txn.put(&PROFILE_SNAPSHOT, &id, snapshot)?;
    Ok(id)
}
