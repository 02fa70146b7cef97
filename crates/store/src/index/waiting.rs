//! Waiting for the search indexes: of checks and tests, and of commands that complete them before they end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Indexes;
use crate::tenant::UNBOUNDED;
use crate::{Result, StoreError, Tenant, Weight};

/// Between two looks at how far indexes are, when none was published meanwhile: records may have gone.
const LOOK: Duration = Duration::from_secs(1);

impl Tenant {
    /// Waits until all that is committed now is in the search indexes, for so long at most; tells whether it is. A search
    /// never needs this: it looks at what is not in them itself.
    pub fn wait_for_indexes(&self, timeout: Duration) -> Result<bool> {
        let until = Instant::now() + timeout;
        loop {
            // How long other reads may take is no bound of this one.
            let waiting = self.read_for(Weight::Scan, UNBOUNDED, |view| {
                let Some(indexes) = view.shared.indexes.get() else { return Ok::<_, StoreError>(None) };
                // Taken before the look, so that nothing is missed that is published after it.
                let seen = indexes.current();
                Ok((!indexes.is_current(&mut view.session)?).then(|| (Arc::clone(indexes), seen)))
            })?;
            let left = until.saturating_duration_since(Instant::now());
            match waiting {
                None => return Ok(true),
                Some(_) if left.is_zero() => return Ok(false),
                Some((indexes, seen)) => indexes.wait_for_other(&seen, left.min(LOOK)),
            }
        }
    }

    /// Completes the search indexes with all processors, for a command that answers nobody meanwhile. `tell` hears about once
    /// a second how many changes are left to take, of the kind that is worked on.
    ///
    /// Errors: they cannot be completed now, as when the disk is full or another process keeps them. What is missing is
    /// taken whenever the tenant is open.
    pub fn complete_indexes(&self, tell: &mut dyn FnMut(u64)) -> Result<()> {
        let indexes = self.read_for(Weight::Scan, UNBOUNDED, |view| {
            Ok::<_, StoreError>(view.shared.indexes.get().cloned())
        })?;
        let Some(indexes) = indexes else { return Ok(()) };
        // A kind is indexed when it has been rebuilt.
        self.finish_remakes()?;
        let hurry = Hurry::begin(&indexes);
        while !self.wait_for_indexes(LOOK)? {
            tell(hurry.0.standing()?);
        }
        Ok(())
    }
}

/// While it is there, the builder takes all processors.
struct Hurry<'i>(&'i Indexes);

impl<'i> Hurry<'i> {
    fn begin(indexes: &'i Indexes) -> Self {
        indexes.set_hurried(true);
        Self(indexes)
    }
}

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.0.set_hurried(false);
    }
}
