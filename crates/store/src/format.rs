//! The version of the table layout, and who may change it.

use crate::users::Users;
use crate::{Result, StoreError};

/// Version of the table layout; a file with a larger one was written by a newer program. 2: lists are counted as
/// wholes, which a program that knows only 1 would not add up. 3: classes are numbered by a cryptographic hash. 4: text
/// is in the search index, beside the file.
pub(crate) const FORMAT: i64 = 4;

/// Refuses to change tables while a program of a former format has them open.
pub(crate) fn refuse_company(place: &str, found: i64, users: Users) -> Result<()> {
    if users == Users::None {
        return Ok(());
    }
    Err(StoreError::Unavailable(format!(
        "{place} has store format {found} and is in use; stop the servers and commands of the version before, \
         then start one of this version, which brings it to format {FORMAT}"
    )))
}
