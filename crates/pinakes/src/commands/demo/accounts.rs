//! The accounts of the demonstration.

/// An account to try.
pub(crate) struct Account {
    pub(super) name: &'static str,
    pub(super) password: &'static str,
    pub(super) groups: &'static [&'static str],
    pub(super) may: &'static str,
}

/// The accounts to try. Their passwords are public: a demo listens on loopback unless told otherwise.
pub(crate) const ACCOUNTS: [Account; 4] = [
    Account { name: "admin", password: "admin-demo", groups: &["admin"], may: "everything but delete" },
    Account {
        name: "ingestor",
        password: "ingestor-demo",
        groups: &["ingestor", "group1"],
        may: "create datasets for any group",
    },
    Account {
        name: "archivist",
        password: "archivist-demo",
        groups: &["archivemanager"],
        may: "delete, and change lifecycles",
    },
    Account {
        name: "ada",
        password: "ada-demo",
        groups: &["p1234", "demo"],
        may: "see and change what proposal p1234 measured",
    },
];
