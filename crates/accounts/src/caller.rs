//! The caller of a request: a user with the groups that apply, or anonymous.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use crate::user::User;

/// The group of users marked `global`.
pub const GLOBAL_GROUP: &str = "globalaccess";

/// The caller of a request. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user; `None` for an anonymous caller.
    pub user: Option<Arc<User>>,
    /// The groups that apply: the user's, `globalaccess` for global users, and those that the site gives
    /// everyone; fewer if an API token is restricted. Without duplicates.
    pub groups: Arc<[String]>,
    /// Claims of the JSON web token that was sent, if any.
    pub claims: Option<Arc<Map<String, Value>>>,
}

static ANONYMOUS: LazyLock<Caller> =
    LazyLock::new(|| Caller { user: None, groups: Arc::from([]), claims: None });

impl Caller {
    /// Returns the anonymous caller.
    pub fn anonymous() -> Self {
        ANONYMOUS.clone()
    }

    /// Returns the caller for a user with all of its groups, and those that everyone has.
    pub fn of(user: User, everyone: &[String]) -> Self {
        let mut groups = user.groups.clone();
        groups.extend(user.global.then(|| GLOBAL_GROUP.to_owned()));
        groups.extend_from_slice(everyone);
        Self { groups: without_doubles(groups), user: Some(Arc::new(user)), claims: None }
    }

    /// Restricts the caller to these groups.
    pub(crate) fn restricted(mut self, to: &[String]) -> Self {
        self.groups = self.groups.iter().filter(|it| to.contains(it)).cloned().collect();
        self
    }

    /// Says whether the caller is anonymous.
    pub fn is_anonymous(&self) -> bool {
        self.user.is_none()
    }

    /// Returns the user's name.
    pub fn username(&self) -> Option<&str> {
        self.user.as_deref().map(|it| it.username.as_str())
    }

    /// Says whether the caller belongs to the group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|it| it == group)
    }

    /// Says whether the caller belongs to one of the groups. `#all` stands for every logged-in user.
    pub fn is_in_any(&self, groups: &[String]) -> bool {
        groups.iter().any(|it| (it == "#all" && !self.is_anonymous()) || self.is_in(it))
    }

    /// Says whether the user has the permission.
    pub fn may(&self, permission: &str) -> bool {
        self.user.as_deref().is_some_and(|it| it.permissions.iter().any(|held| held == permission))
    }
}

fn without_doubles(groups: Vec<String>) -> Arc<[String]> {
    let mut seen = std::collections::HashSet::with_capacity(groups.len());
    groups.into_iter().filter(|it| seen.insert(it.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::Entropy;

    #[test]
    fn groups_are_joined_once_and_restricted() {
        let mut user = User::new("a", 0, &Entropy::seeded(1));
        user.groups = vec!["g1".into(), "g2".into()];
        user.global = true;
        user.permissions = vec!["inventory.all".into()];
        let caller = Caller::of(user, &["site".into(), "g1".into()]);
        assert_eq!(caller.groups.to_vec(), ["g1", "g2", "globalaccess", "site"]);
        assert!(caller.is_in_any(&["#all".into()]) && !caller.is_in_any(&["g3".into()]));
        assert!(caller.may("inventory.all") && !caller.may("users.all"));
        let fewer = caller.restricted(&["g2".into(), "admin".into()]);
        assert_eq!(fewer.groups.to_vec(), ["g2"]);
    }

    #[test]
    fn nobody_is_in_no_group() {
        let nobody = Caller::anonymous();
        assert!(nobody.is_anonymous() && !nobody.is_in_any(&["#all".into()]) && !nobody.may("x"));
    }
}
