//! The configuration of the dialect, table `[dataverse]`.

use serde::Deserialize;

/// Settings that the operator gives. What a curator changes while the server runs are records (`site_settings.rs`).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where clients reach the server, e.g. `https://data.example.org`; empty: as the request's `Host` says.
    pub site_url: String,
    /// Name of the root collection of a new tenant, which publications name as their publisher.
    pub root_name: String,
    /// Password of the superuser `dataverseAdmin` of a new tenant; empty: no such user is made.
    pub admin_password: String,
    /// Value that the setting `:BuiltinUsersKey` has in a new tenant; empty: it is not set.
    pub builtin_users_key: String,
    /// Whether every account may create collections and datasets in the root collection of a new tenant.
    pub open_deposit: bool,
    /// Who may call `/api/admin` and `/api/builtin-users`.
    pub admin_access: AdminAccess,
    /// The key that callers of those paths state when `admin_access` is `key`.
    pub admin_unblock_key: String,
    /// Protocol of new persistent identifiers.
    pub pid_protocol: String,
    /// Authority of new persistent identifiers.
    pub pid_authority: String,
    /// What their identifiers begin with.
    pub pid_shoulder: String,
    /// Name of the storage driver in storage identifiers.
    pub storage_driver: String,
    /// Label of the storage driver.
    pub storage_label: String,
    /// Where mail to the installation is said to go.
    pub system_email: String,
    /// Whether datasets with missing metadata are taken when the caller asks for it (`doNotValidate`).
    pub incomplete_metadata: bool,
    /// Whether changes of role assignments are kept and shown.
    pub role_assignment_history: bool,
    /// Identifiers in one answer of the OAI-PMH provider.
    pub oai_identifiers: u32,
    /// Records in one answer of the OAI-PMH provider.
    pub oai_records: u32,
    /// Whether a guestbook is answered when access to a restricted file is asked for, in datasets that do not say so themselves.
    pub guestbook_at_request: bool,
    /// Addresses that may send linked data notifications to `/api/inbox`; `*` for every one.
    pub inbox_allowed_hosts: Vec<String>,
}

/// Who may call `/api/admin` and `/api/builtin-users`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdminAccess {
    /// Programs on this machine, without a credential: no proxy, and no page of another site in a browser.
    Loopback,
    /// Whoever states the unblock key.
    Key,
    /// Nobody.
    Nobody,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            site_url: String::new(),
            root_name: "Root".to_owned(),
            admin_password: String::new(),
            builtin_users_key: String::new(),
            open_deposit: false,
            admin_access: AdminAccess::Loopback,
            admin_unblock_key: String::new(),
            pid_protocol: "doi".to_owned(),
            pid_authority: "10.5072".to_owned(),
            pid_shoulder: "FK2/".to_owned(),
            storage_driver: "file1".to_owned(),
            storage_label: "Filesystem".to_owned(),
            system_email: String::new(),
            incomplete_metadata: false,
            role_assignment_history: true,
            oai_identifiers: 100,
            oai_records: 10,
            guestbook_at_request: false,
            inbox_allowed_hosts: Vec::new(),
        }
    }
}
