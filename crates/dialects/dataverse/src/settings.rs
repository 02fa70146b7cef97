//! The configuration of the dialect, table `[dataverse]`.

use serde::Deserialize;

/// Settings made by the operator. Those that curators change at run time are records (`site_settings.rs`).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// URL at which clients reach the server, e.g. `https://data.example.org`; empty to use the request's `Host`.
    pub site_url: String,
    /// Name of the root collection of a new tenant, which is the publisher of its datasets.
    pub root_name: String,
    /// Password of the superuser `dataverseAdmin` of a new tenant; if empty, no such user is created.
    pub admin_password: String,
    /// Value of the setting `:BuiltinUsersKey` in a new tenant; if empty, it is not set.
    pub builtin_users_key: String,
    /// Whether every account may create collections and datasets in the root collection of a new tenant.
    pub open_deposit: bool,
    /// Who may call `/api/admin` and `/api/builtin-users`.
    pub admin_access: AdminAccess,
    /// The key that callers of those paths must send if `admin_access` is `key`.
    pub admin_unblock_key: String,
    /// Protocol of new persistent identifiers.
    pub pid_protocol: String,
    /// Authority of new persistent identifiers.
    pub pid_authority: String,
    /// Prefix of their identifiers.
    pub pid_shoulder: String,
    /// Name of the storage driver in storage identifiers.
    pub storage_driver: String,
    /// Label of the storage driver.
    pub storage_label: String,
    /// Mail address of the installation.
    pub system_email: String,
    /// Whether datasets with missing metadata are accepted if the caller asks for it (`doNotValidate`).
    pub incomplete_metadata: bool,
    /// Whether changes of role assignments are logged and shown.
    pub role_assignment_history: bool,
    /// Identifiers in one answer of the OAI-PMH provider.
    pub oai_identifiers: u32,
    /// Records in one answer of the OAI-PMH provider.
    pub oai_records: u32,
    /// Whether a guestbook is answered when access to a restricted file is requested, unless the dataset specifies it.
    pub guestbook_at_request: bool,
    /// How long an upload waits for its tables to be read, in seconds.
    pub ingest_wait_s: u32,
    /// Addresses that may send linked data notifications to `/api/inbox`; `*` for all.
    pub inbox_allowed_hosts: Vec<String>,
}

/// Who may call `/api/admin` and `/api/builtin-users`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdminAccess {
    /// Programs on this machine, without credentials, but neither proxies nor pages of other sites in a browser.
    Loopback,
    /// Callers who send the unblock key.
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
            ingest_wait_s: 10,
            inbox_allowed_hosts: Vec::new(),
        }
    }
}
