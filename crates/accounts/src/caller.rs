//! Who is asking: a user with the groups that count for this request, or nobody.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use crate::user::User;

/// The group of users marked `global`.
pub const GLOBAL_GROUP: &str = "globalaccess";

/// Who is asking. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user; none for an anonymous caller.
    pub user: Option<Arc<User>>,
    /// The groups that count: the user's, `globalaccess` for global users, those the site gives everyone;
    /// fewer when an API token is restricted. Without doubles.
    pub groups: Arc<[String]>,
    /// Claims of the JSON web token that was shown, if one was.
    pub claims: Option<Arc<Map<String, Value>>>,
}

static ANONYMOUS: LazyLock<Caller> =
    LazyLock::new(|| Caller { user: None, groups: Arc::from([]), claims: None });

impl Caller {
    /// Nobody in particular.
    pub fn anonymous() -> Self {
        ANONYMOUS.clone()
    }

    /// A user with all groups it has, and those that everyone has.
    pub fn of(user: User, everyone: &[String]) -> Self {
        let mut groups = user.groups.clone();
        groups.extend(user.global.then(|| GLOBAL_GROUP.to_owned()));
        groups.extend_from_slice(everyone);
        Self { groups: without_doubles(groups), user: Some(Arc::new(user)), claims: None }
    }

    /// The same with no other groups than these.
    pub(crate) fn restricted(mut self, to: &[String]) -> Self {
        self.groups = self.groups.iter().filter(|it| to.contains(it)).cloned().collect();
        self
    }

    /// Whether nobody has logged in.
    pub fn is_anonymous(&self) -> bool {
        self.user.is_none()
    }

    /// The user's name.
    pub fn username(&self) -> Option<&str> {
        self.user.as_deref().map(|it| it.username.as_str())
    }

    /// Whether the caller belongs to the group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|it| it == group)
    }

    /// Whether the caller belongs to one of the groups. `#all` stands for every user who logged in.
    pub fn is_in_any(&self, groups: &[String]) -> bool {
        groups.iter().any(|it| (it == "#all" && !self.is_anonymous()) || self.is_in(it))
    }

    /// Whether the user holds the permission.
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
