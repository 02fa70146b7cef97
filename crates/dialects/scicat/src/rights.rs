//! Access rights: the only place where the dialect decides who may do what (section 3 of the contract).
//!
//! Rights add up over all groups of the caller. What no right allows is refused.

use pinakes_accounts::Caller;
use pinakes_store::{Expr, Value};
use serde_json::Value as Json;

use crate::settings::Settings;

/// The rights of a caller, determined once per request.
#[derive(Debug, Clone)]
pub struct Rights {
    caller: Caller,
    /// May do everything except delete.
    pub is_admin: bool,
    /// May delete datasets, blocks and attachments.
    pub may_delete: bool,
    /// May create datasets of own groups.
    pub may_create: bool,
    /// May create datasets of own groups with a chosen pid.
    pub may_choose_pid: bool,
    /// May create datasets of any group, and add blocks and attachments to any.
    pub is_privileged: bool,
    /// May read everything and patch any lifecycle.
    pub may_update_lifecycles: bool,
}

impl Rights {
    /// Determines the rights of `caller` at this site.
    pub fn of(caller: Caller, settings: &Settings) -> Self {
        let has = |groups: &[String]| caller.is_in_any(groups);
        Self {
            is_admin: has(&settings.admin_groups),
            may_delete: has(&settings.delete_groups),
            may_create: has(&settings.create_dataset_groups),
            may_choose_pid: has(&settings.create_dataset_with_pid_groups),
            is_privileged: caller.is_in_any(&without_all(&settings.create_dataset_privileged_groups)),
            may_update_lifecycles: has(&settings.update_dataset_lifecycle_groups),
            caller,
        }
    }

    /// Returns the caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Says whether the caller's role allows creating any dataset at all.
    pub fn has_create_role(&self) -> bool {
        self.is_admin || self.is_privileged || self.may_create || self.may_choose_pid
    }

    /// Says whether the caller may create a dataset of `owner_group`, with or without a given pid.
    pub fn may_create_dataset(&self, owner_group: &str, has_pid: bool) -> bool {
        let owns = self.caller.is_in(owner_group);
        self.is_admin || self.is_privileged || owns && (self.may_choose_pid || self.may_create && !has_pid)
    }

    /// Says whether the caller's role allows changing any dataset at all.
    pub fn has_update_role(&self) -> bool {
        self.has_create_role()
    }

    /// Says whether the caller may change a record whose class fields are `class`.
    pub fn may_update(&self, class: &Json) -> bool {
        self.is_admin || self.has_create_role() && self.owns(class)
    }

    /// Says whether the caller may add blocks to a dataset whose class fields are `class`.
    pub fn may_add_to(&self, class: &Json) -> bool {
        self.is_privileged || self.may_update(class)
    }

    /// Says whether the caller's role allows patching any lifecycle at all.
    pub fn has_lifecycle_role(&self) -> bool {
        self.may_update_lifecycles || self.has_update_role()
    }

    /// Says whether the caller may patch the lifecycle of a dataset.
    pub fn may_update_lifecycle(&self, class: &Json) -> bool {
        self.may_update_lifecycles || self.may_update(class)
    }

    /// Says whether the caller is in the owner group.
    pub fn owns(&self, class: &Json) -> bool {
        class.get("ownerGroup").and_then(Json::as_str).is_some_and(|group| self.caller.is_in(group))
    }

    /// Says whether the caller sees every record.
    pub fn sees_all(&self) -> bool {
        self.is_admin || self.may_update_lifecycles
    }

    /// Says whether the caller may read a record whose class fields are `class`.
    pub fn may_read(&self, class: &Json) -> bool {
        let is_published = class.get("isPublished").and_then(Json::as_bool) == Some(true);
        is_published || self.is_member(class)
    }

    /// Says whether the caller has access to a record by groups, role or sharing, whether or not it is published.
    pub fn is_member(&self, class: &Json) -> bool {
        self.sees_all() || self.owns(class) || self.has_access(class) || self.is_shared_with(class)
    }

    fn has_access(&self, class: &Json) -> bool {
        texts(class, "accessGroups").any(|group| self.caller.is_in(group))
    }

    fn is_shared_with(&self, class: &Json) -> bool {
        let email = self.caller.user.as_deref().and_then(|user| user.email.as_deref());
        email.is_some_and(|email| texts(class, "sharedWith").any(|it| it == email))
    }

    /// Returns the condition on the records that the caller may see in lists.
    pub fn visible(&self) -> Expr {
        if self.sees_all() {
            return Expr::All;
        }
        let published = Expr::Is("isPublished".into(), Value::Boolean(true));
        if self.caller.is_anonymous() {
            return published;
        }
        let mut ways = vec![self.in_own_groups(), published];
        if let Some(email) = self.caller.user.as_deref().and_then(|user| user.email.clone()) {
            ways.push(Expr::Is("sharedWith".into(), Value::Text(email)));
        }
        Expr::Or(ways)
    }

    /// Returns the condition that a record belongs to the caller by owner or access group.
    pub fn in_own_groups(&self) -> Expr {
        let groups: Vec<Value> = self.caller.groups.iter().map(|it| Value::Text(it.clone())).collect();
        Expr::Or(vec![Expr::In("ownerGroup".into(), groups.clone()), Expr::In("accessGroups".into(), groups)])
    }

    /// Returns the rights to records other than datasets, to which lifecycle rights do not apply: members of
    /// `keepers`, the groups that administer such records, see and change all of them, as admins do.
    pub fn of_keeper(&self, keepers: &[String]) -> Self {
        let is_admin = self.is_admin || self.caller.is_in_any(keepers);
        Self { is_admin, may_update_lifecycles: false, ..self.clone() }
    }

    /// Says whether the caller's role allows writing any attachment at all.
    pub fn has_attachment_role(&self, settings: &Settings) -> bool {
        let has = |groups: &[String]| self.caller.is_in_any(groups);
        self.is_admin || has(&settings.attachment_groups) || has(&settings.attachment_privileged_groups)
    }

    /// Says whether the caller may create an attachment of `owner_group`.
    pub fn may_create_attachment(&self, settings: &Settings, owner_group: &str) -> bool {
        let owns = self.caller.is_in(owner_group) && self.caller.is_in_any(&settings.attachment_groups);
        self.is_admin || owns || self.caller.is_in_any(&settings.attachment_privileged_groups)
    }

    /// Says whether the caller may change an attachment whose class fields are `class`.
    pub fn may_update_attachment(&self, settings: &Settings, class: &Json) -> bool {
        self.is_admin || self.owns(class) && self.has_attachment_role(settings)
    }

    /// Says whether the caller may give an attachment of `before` to `owner_group`.
    pub fn may_give_attachment(&self, settings: &Settings, before: &Json, owner_group: &str) -> bool {
        let is_same = before.get("ownerGroup").and_then(Json::as_str) == Some(owner_group);
        is_same || self.may_create_attachment(settings, owner_group)
    }

    /// Says whether the caller's role allows writing any sample at all.
    pub fn has_sample_role(&self, settings: &Settings) -> bool {
        let has = |groups: &[String]| self.caller.is_in_any(groups);
        self.is_admin || has(&settings.sample_privileged_groups) || has(&settings.sample_groups)
    }

    /// Says whether the caller may create samples of `owner_group`, and attachments of such samples.
    pub fn may_create_sample(&self, settings: &Settings, owner_group: &str) -> bool {
        let owns = self.caller.is_in(owner_group) && self.caller.is_in_any(&settings.sample_groups);
        self.is_admin || owns || self.caller.is_in_any(&settings.sample_privileged_groups)
    }

    /// Says whether the caller may change samples of `owner_group`: callers who may create samples of any group may
    /// change only those of their own groups.
    pub fn may_update_sample(&self, settings: &Settings, owner_group: &str) -> bool {
        self.is_admin || self.caller.is_in(owner_group) && self.has_sample_role(settings)
    }
}

fn without_all(groups: &[String]) -> Vec<String> {
    groups.iter().filter(|it| *it != "#all").cloned().collect()
}

fn texts<'a>(class: &'a Json, field: &str) -> impl Iterator<Item = &'a str> {
    class.get(field).and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
}
