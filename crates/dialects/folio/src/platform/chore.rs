//! The input of recurring work on a tenant's data.

use pinakes_accounts::Entropy;
use pinakes_store::{Tenant, Txn};

use crate::platform::collection::{Collections, Writer};
use crate::platform::error::FolioError;

/// The input of a chore.
pub(crate) struct Parts {
    pub(crate) tenant: Tenant,
    /// Milliseconds since 1970.
    pub(crate) now_ms: i64,
    /// Id of the user who asked for it; `None` for a timer.
    pub(crate) user: Option<String>,
    pub(crate) entropy: Entropy,
    /// All collections.
    pub(crate) collections: Collections,
}

impl Parts {
    /// Calls a function for each of `ids`, each in a transaction of its own. Failures are logged and skipped.
    pub(crate) fn each(
        &self,
        what: &'static str,
        ids: Vec<String>,
        act: fn(&mut Txn<'_>, &Writer, &str) -> Result<(), FolioError>,
    ) -> Result<(), FolioError> {
        for id in ids {
            let (now_ms, user, entropy) = (self.now_ms, self.user.clone(), self.entropy.clone());
            let collections = self.collections;
            let wanted = id.clone();
            let done = self.tenant.write_blocking(move |txn: &mut Txn<'_>| {
                act(txn, &Writer::new(now_ms, user.clone(), entropy.clone(), collections), &wanted)
            });
            if let Err(error) = done {
                if error.status.is_server_error() {
                    return Err(error);
                }
                tracing::warn!(%error, id, tenant = self.tenant.name(), "{what}");
            }
        }
        Ok(())
    }
}

/// A chore.
pub(crate) type Chore = fn(&Parts) -> Result<(), FolioError>;
