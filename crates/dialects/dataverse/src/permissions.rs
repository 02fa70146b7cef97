//! Authorisation: the only place where it is decided (section 0.4 of the contract). Whatever is not granted is denied.
//!
//! A *grant* holds the roles of one assignee on one object, in a record with the id `{object}/{assignee}`, so that a
//! check reads a handful of records by id, however many assignments there are. Every collection is its own permission
//! root: for a file, grants on the file, its dataset and the dataset's collection count, and none above.

use std::collections::BTreeSet;

use pinakes_store::{Expr, JoinKeys, Query, View};

use crate::asker::{self, Asker};
use crate::collections::{self, COLLECTION, Collection};
use crate::error::ApiError;
use crate::grants::{self, GRANT, Grant, Permission, Place};
use crate::groups::membership;
use crate::{roles, stored};

/// A set of permissions.
pub(crate) type Permissions = BTreeSet<Permission>;

/// Returns the caller's permissions at a place.
///
/// Reads the grants of the caller's own names, then their roles, if any are not built in; the same for the groups that
/// the caller is in.
pub(crate) fn held(view: &mut View<'_>, asker: &Asker, place: Place) -> Result<Permissions, ApiError> {
    if asker.is_superuser() {
        return Ok(Permission::ALL.into_iter().collect());
    }
    let mut held = granted(view, &asker::own_names(asker), place)?;
    let groups = membership::of(view, asker)?;
    if !groups.is_empty() {
        held.extend(granted(view, &groups, place)?);
    }
    Ok(held)
}

/// Returns whether the caller has a permission at a place.
pub(crate) fn may(
    view: &mut View<'_>,
    asker: &Asker,
    place: Place,
    permission: Permission,
) -> Result<bool, ApiError> {
    if asker.is_superuser() || granted(view, &asker::own_names(asker), place)?.contains(&permission) {
        return Ok(true);
    }
    let groups = membership::of(view, asker)?;
    Ok(!groups.is_empty() && granted(view, &groups, place)?.contains(&permission))
}

/// Checks that the caller has a permission at a place. Errors: 401.
pub(crate) fn require(
    view: &mut View<'_>,
    asker: &Asker,
    place: Place,
    permission: Permission,
) -> Result<(), ApiError> {
    if may(view, asker, place, permission)? { Ok(()) } else { Err(refusal(asker)) }
}

/// Returns the 401 `User @name is not permitted to perform requested action.`
pub(crate) fn refusal(asker: &Asker) -> ApiError {
    ApiError::unauthorized(format!(
        "User {} is not permitted to perform requested action.",
        asker.identifier()
    ))
}

fn granted(view: &mut View<'_>, assignees: &[String], place: Place) -> Result<Permissions, ApiError> {
    let ids: Vec<String> = place
        .objects()
        .flat_map(|object| assignees.iter().map(move |it| grants::grant_id(object, it)))
        .collect();
    let mut assigned = BTreeSet::new();
    for record in view.get_many(&GRANT, &ids)?.into_iter().flatten() {
        let grant: Grant = stored::parsed(&record)?;
        assigned.extend(grant.roles.iter().map(|it| it.role));
    }
    let mut held = Permissions::new();
    for role in assigned {
        held.extend(roles::permissions_of(view, role)?);
    }
    Ok(held)
}

/// Maximum number of grants from which [`few_objects_with`] reads them all.
const FEW_GRANTS: u64 = 200;

/// Returns the objects on which any of these assignees holds one of the permissions; `None` if the assignees have too
/// many grants to read them all.
pub(crate) fn few_objects_with(
    view: &mut View<'_>,
    names: &[String],
    permissions: &[Permission],
) -> Result<Option<BTreeSet<i64>>, ApiError> {
    let grants = grants::some_grants_to(view, names, FEW_GRANTS + 1)?;
    if FEW_GRANTS < grants.len() as u64 {
        return Ok(None);
    }
    let mut objects = BTreeSet::new();
    for grant in grants {
        for assigned in &grant.roles {
            let held = roles::permissions_of(view, assigned.role)?;
            if permissions.iter().any(|it| held.contains(it)) {
                objects.insert(grant.object);
            }
        }
    }
    Ok(Some(objects))
}

/// One permission of the caller, to be checked at many places.
pub(crate) struct AtMany<'a> {
    asker: &'a Asker,
    permission: Permission,
    /// Where the caller holds it; `None` if that is checked place by place.
    objects: Option<BTreeSet<i64>>,
}

impl<'a> AtMany<'a> {
    /// Reads the caller's grants, if there are few.
    pub(crate) fn of(
        view: &mut View<'_>,
        asker: &'a Asker,
        permission: Permission,
    ) -> Result<Self, ApiError> {
        let names = membership::names_of(view, asker)?;
        let objects = few_objects_with(view, &names, &[permission])?;
        Ok(Self { asker, permission, objects })
    }

    /// Returns what [`may`] does.
    pub(crate) fn may(&self, view: &mut View<'_>, place: Place) -> Result<bool, ApiError> {
        match &self.objects {
            Some(objects) => Ok(self.asker.is_superuser() || place.objects().any(|it| objects.contains(&it))),
            None => may(view, self.asker, place, self.permission),
        }
    }
}

/// Returns the numbers of the objects on which the caller holds one of the permissions by grants on the object itself.
pub(crate) fn objects_with(
    view: &mut View<'_>,
    asker: &Asker,
    permissions: &[Permission],
) -> Result<JoinKeys, ApiError> {
    let names = membership::names_of(view, asker)?;
    let roles = roles::with_any_of(view, permissions)?;
    grants::objects_of(view, &names, &roles)
}

/// Returns the collections in which the caller holds a permission, or any permission, by assignments to them or to
/// their groups; all collections for superusers.
pub(crate) fn collections_with(
    view: &mut View<'_>,
    asker: &Asker,
    permission: Option<Permission>,
) -> Result<Vec<Collection>, ApiError> {
    if asker.is_superuser() {
        return stored::find(view, &COLLECTION, &Query::filter(Expr::All));
    }
    let names = membership::names_of(view, asker)?;
    let grants = match permission {
        Some(it) => {
            let roles = roles::with_any_of(view, &[it])?;
            grants::grants_of(view, &names, &roles)?
        }
        None => grants::grants_to(view, &names)?,
    };
    let found: BTreeSet<i64> = grants.into_iter().map(|it| it.object).collect();
    let mut list = Vec::new();
    for id in found {
        list.extend(collections::by_id(view, id)?);
    }
    Ok(list)
}

/// Returns users who hold a role with one of the permissions on one of the objects.
pub(crate) fn holders_of(
    view: &mut View<'_>,
    objects: &[i64],
    permissions: &[Permission],
) -> Result<Vec<i64>, ApiError> {
    let mut found = Vec::new();
    for object in objects {
        let query = Query::filter(Expr::Is("object".into(), (*object).into()));
        for grant in stored::find::<Grant>(view, &GRANT, &query)? {
            let mut holds = false;
            for assigned in &grant.roles {
                let held = roles::permissions_of(view, assigned.role)?;
                holds |= permissions.iter().any(|it| held.contains(it));
            }
            let Some(name) = grant.assignee.strip_prefix('@').filter(|_| holds) else { continue };
            if let Some(user) = crate::users::by_name(view, name)?
                && !found.contains(&user.id)
            {
                found.push(user.id);
            }
        }
    }
    Ok(found)
}
