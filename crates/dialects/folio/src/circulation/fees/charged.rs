//! What fees and accounts are called: those that the server charges by itself, and what is settled.

use serde_json::Value;

use crate::circulation::records::text;
use crate::platform::collection::Collection;

/// Kind of accounts.
pub(crate) const ACCOUNT: &str = "folio_account";
/// Status of an account that is settled.
pub(crate) const CLOSED: &str = "Closed";

/// The kinds of fees that circulation charges by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Automatic {
    OverdueFine,
    LostItem,
    LostItemProcessing,
    LostItemActualCost,
}

impl Automatic {
    /// Its name among `/feefines`, and in accounts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OverdueFine => "Overdue fine",
            Self::LostItem => "Lost item fee",
            Self::LostItemProcessing => "Lost item processing fee",
            Self::LostItemActualCost => "Lost item fee (actual cost)",
        }
    }

    /// Its id in a new tenant.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::OverdueFine => "9523cb96-e752-40c2-89da-60f3961a488d",
            Self::LostItem => "cf238f9f-7018-47b7-b815-bb2db798e19f",
            Self::LostItemProcessing => "c7dede15-aa48-45ed-860b-f996540180e0",
            Self::LostItemActualCost => "73785370-3bd3-4d92-942d-ae2268e02ded",
        }
    }

    /// Whether an account is of this kind.
    pub(crate) fn is_of(self, account: &Value) -> bool {
        text(account, "feeFineType") == self.name()
    }
}

/// A collection by its names.
pub(crate) const fn plain(
    path: &'static str,
    list: &'static str,
    table: &'static str,
    kind: &'static str,
    permission: &'static str,
) -> Collection {
    Collection { table, permission, ..Collection::named(path, list, kind) }
}
