//! Access control: the only place where permissions are checked.
//!
//! Every route names the FOLIO permission that it requires: the one of `data/permissions.tsv` if FOLIO has the route,
//! otherwise that of the route's own declaration. A caller holds the permissions granted to the user individually or as
//! sets (`inventory.all`), and those of the roles that the user's groups stand for. Everything not granted is refused.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use http::{Method, StatusCode};
use pinakes_accounts::{Caller, User};

use crate::platform::error::FolioError;
use crate::platform::settings::Settings;

/// What a route requires of its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Nothing, not even a token: login, the gateway's own version.
    Anybody,
    /// A valid token.
    User,
    /// A permission.
    Permission(Cow<'static, str>),
    /// A permission of a user of the default tenant, which manages the others.
    Supertenant(&'static str),
}

/// FOLIO's own table: the permission that its modules require on each route, so that imported grants have the same
/// meaning here.
static FOLIO: LazyLock<HashMap<(&str, String), &str>> = LazyLock::new(|| {
    let rows = include_str!("../../data/permissions.tsv").lines().skip(1);
    rows.filter_map(|row| {
        let mut fields = row.split('\t');
        Some(((fields.next()?, pattern(fields.next()?)), fields.next()?))
    })
    .collect()
});

/// Returns a path without the names of its parameters, which differ and do not matter.
fn pattern(path: &str) -> String {
    let parts = path.split('/').map(|it| if it.starts_with('{') { "{}" } else { it });
    parts.collect::<Vec<_>>().join("/")
}

impl Access {
    /// Replaces the permission with FOLIO's if FOLIO has the route. Routes that are open here stay open.
    pub(crate) fn named_as_in_folio(self, method: &Method, path: &str) -> Self {
        match (&self, FOLIO.get(&(method.as_str(), pattern(path)))) {
            (Self::Permission(_), Some(name)) => Self::to(name),
            _ => self,
        }
    }

    /// Requires a permission.
    pub fn to(permission: &'static str) -> Self {
        Self::Permission(Cow::Borrowed(permission))
    }

    /// Requires a permission whose name was computed.
    pub fn owned(permission: String) -> Self {
        Self::Permission(Cow::Owned(permission))
    }
}

/// A role, which grants permissions to its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Admin,
    Librarian,
    Desk,
    Reader,
}

/// Prefix of permissions on which person works at which service point.
const WHO_WORKS_WHERE: &str = "inventory-storage.service-points-users.";
/// Prefixes of permissions that only admins hold.
const ADMINISTRATION: [&str; 32] = [
    "users-bl.password-reset-link.",
    "validation.rules.",
    "oai-pmh.configuration-settings.",
    "users.",
    "user-tenants.",
    "users-keycloak.",
    "locale.item.put",
    "perms.",
    "login.",
    "okapi.",
    "configuration.",
    "mod-settings.",
    "user-import.",
    "usergroups.",
    "proxiesfor.",
    "departments.",
    "addresstypes.",
    "inventory-storage.hrid-settings.item.put",
    "circulation.rules.",
    "circulation.loans.collection.delete",
    "circulation.requests.collection.delete",
    WHO_WORKS_WHERE,
    "circulation.settings.",
    "circulation-storage.circulation-rules.",
    "circulation-storage.loan-policies.",
    "circulation-storage.request-policies.",
    "circulation-storage.patron-notice-policies.",
    "circulation-storage.fixed-due-date-schedules.",
    "circulation-storage.staff-slips.",
    "circulation-storage.cancellation-reasons.",
    "circulation-storage.scheduled-request-expiration.",
    "service-points-users.",
];
/// Prefixes of permissions on credentials and accounts elsewhere, which only admins may even read.
const SECRETS: [&str; 2] =
    ["organizations-storage.interfaces.credentials.", "organizations.banking-information."];
/// Prefixes of permissions on records that are not about persons, which readers may read.
const IMPERSONAL: [&str; 15] = [
    "authority-heading-types.",
    "authority-identifier-types.",
    "browse.",
    "instance-authority.",
    "inventory-storage.",
    "inventory.",
    "instance-authority-links.",
    "search.",
    "oai-pmh.",
    "source-storage.",
    "tags.",
    "usergroups.",
    "departments.",
    "addresstypes.",
    "locale.",
];
/// Prefixes of permissions that check-out and check-in require.
const DESK: [&str; 5] = [
    "circulation.",
    "circulation-storage.",
    "check-in-storage.",
    "automated-patron-blocks.",
    "patron-blocks.automated-patron-blocks.",
];

/// Suffixes of permissions that change nothing: queries too long for a URL are sent by POST.
const READING: [&str; 6] = [
    ".suggestions.post",
    ".get",
    ".retrieve.collection.post",
    ".items-and-holdings.collection.post",
    ".enrichedinstances.collection.post",
    "instance-authority-links.authorities.bulk.post",
];

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Admin => "pinakes.admin",
            Self::Librarian => "pinakes.librarian",
            Self::Desk => "pinakes.desk",
            Self::Reader => "pinakes.reader",
        }
    }

    fn grants(self, permission: &str) -> bool {
        let begins = |list: &[&str]| list.iter().any(|it| permission.starts_with(it));
        let reads = READING.iter().any(|it| permission.ends_with(it));
        match self {
            Self::Admin => true,
            _ if begins(&SECRETS) => false,
            Self::Librarian => reads || !begins(&ADMINISTRATION),
            Self::Desk => reads || begins(&DESK) && !begins(&ADMINISTRATION),
            Self::Reader => reads && begins(&IMPERSONAL) && !permission.starts_with(WHO_WORKS_WHERE),
        }
    }
}

fn roles(settings: &Settings, caller: &Caller) -> impl Iterator<Item = Role> {
    let held = [
        (Role::Admin, caller.is_in_any(&settings.admin_groups)),
        (Role::Librarian, caller.is_in_any(&settings.librarian_groups)),
        (Role::Desk, caller.is_in_any(&settings.desk_groups)),
        (Role::Reader, caller.is_in_any(&settings.reader_groups)),
    ];
    held.into_iter().filter(|(_, is)| *is).map(|(role, _)| role)
}

/// Checks whether the caller holds a permission.
pub fn holds(settings: &Settings, caller: &Caller, permission: &str) -> bool {
    let given =
        caller.user.as_deref().is_some_and(|user| user.permissions.iter().any(|it| covers(it, permission)));
    given || holds_by_role(settings, caller, permission)
}

/// Checks whether the caller holds a permission by a role alone.
pub(crate) fn holds_by_role(settings: &Settings, caller: &Caller, permission: &str) -> bool {
    roles(settings, caller).any(|role| role.grants(permission))
}

/// Checks whether one permission includes another: `a.all` includes everything that begins with `a.`, any other only
/// itself.
fn covers(held: &str, wanted: &str) -> bool {
    held == wanted
        || held.strip_suffix("all").is_some_and(|base| base.ends_with('.') && wanted.starts_with(base))
}

/// Returns the names of the permissions reported to a caller; roles are named as sets.
pub fn names(settings: &Settings, caller: &Caller) -> Vec<String> {
    let mut names = caller.user.as_deref().map(|it| it.permissions.clone()).unwrap_or_default();
    names.extend(roles(settings, caller).map(|it| it.name().to_owned()));
    names
}

/// Returns the caller that a user will be who is about to log in.
pub fn caller_of(user: &User) -> Caller {
    let groups = user.groups.clone().into();
    Caller { user: Some(Arc::new(user.clone())), groups, claims: None }
}

/// Checks that the caller holds what a route requires.
///
/// Errors: 403 `Access for user '{name}' ({id}) requires permission: {permission}`.
pub(crate) fn check(
    settings: &Settings,
    caller: &Caller,
    tenant: &str,
    default_tenant: &str,
    access: &Access,
) -> Result<(), FolioError> {
    let permission = match access {
        Access::Anybody | Access::User => return Ok(()),
        Access::Permission(permission) => permission.as_ref(),
        Access::Supertenant(permission) if tenant == default_tenant => permission,
        Access::Supertenant(_) => {
            let message = format!("Access requires a user of the tenant {default_tenant}");
            return Err(FolioError::text(StatusCode::FORBIDDEN, message));
        }
    };
    if holds(settings, caller, permission) {
        return Ok(());
    }
    let (name, id) = match caller.user.as_deref() {
        Some(user) => (user.username.as_str(), user.uuid.to_string()),
        None => ("", String::new()),
    };
    let message = format!("Access for user '{name}' ({id}) requires permission: {permission}");
    Err(FolioError::text(StatusCode::FORBIDDEN, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_grant_what_they_are_for() {
        for (permission, granted) in [
            ("users.item.post", [true, false, false, false]),
            ("users.collection.get", [true, true, true, false]),
            ("inventory-storage.items.item.post", [true, true, false, false]),
            ("inventory-storage.items.item.get", [true, true, true, true]),
            ("circulation.check-out-by-barcode.post", [true, true, true, false]),
            ("circulation.loans.collection.get", [true, true, true, false]),
            ("inventory-storage.service-points-users.collection.get", [true, true, true, false]),
            ("inventory-storage.instances.retrieve.collection.post", [true, true, true, true]),
            ("configuration.entries.collection.get", [true, true, true, false]),
            ("usergroups.collection.get", [true, true, true, true]),
            ("something.new.item.get", [true, true, true, false]),
            ("something.new.item.post", [true, true, false, false]),
            ("circulation.rules.put", [true, false, false, false]),
            ("okapi.proxy.tenants.post", [true, false, false, false]),
            ("organizations-storage.interfaces.credentials.item.get", [true, false, false, false]),
        ] {
            let roles = [Role::Admin, Role::Librarian, Role::Desk, Role::Reader];
            assert_eq!(roles.map(|it| it.grants(permission)), granted, "{permission}");
        }
    }

    #[test]
    fn sets_cover_what_they_begin() {
        assert!(covers("inventory.all", "inventory.items.item.get"));
        assert!(covers("inventory.items.item.get", "inventory.items.item.get"));
        assert!(!covers("inventory.all", "inventory-storage.items.item.get"));
        assert!(!covers("all", "inventory.items.item.get"));
        assert!(!covers("inventory", "inventory.items.item.get"));
    }
}
