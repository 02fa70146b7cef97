//! The last step of an import: completing the search indexes.

use indicatif::ProgressBar;
use pinakes_store::Tenant;

use crate::terminal::{counted, warn};

/// Completes the search indexes, so that the server finds them ready. If that is not possible, warns that the server
/// will do it.
pub(super) fn complete_indexes(tenant: &Tenant, bar: &ProgressBar) {
    bar.set_message("making search indexes");
    let mut tell =
        |n_left| bar.set_message(format!("making search indexes, {} left", counted(n_left, "record")));
    if let Err(error) = tenant.complete_indexes(&mut tell) {
        bar.suspend(|| warn(format!("the search indexes are left to the server: {error}")));
    }
}
