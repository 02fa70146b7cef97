//! Waiting for the search indexes: for checks and tests, and for commands that complete them before they end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Indexes;
use crate::tenant::UNBOUNDED;
use crate::{Result, StoreError, Tenant, Weight};

/// Interval between progress checks when no index was published meanwhile: records may have been deleted.
const LOOK: Duration = Duration::from_secs(1);

impl Tenant {
    /// Waits until everything committed so far is in the search indexes, for at most `timeout`; returns whether it is.
    /// A search never needs this: it reads what is missing itself.
    pub fn wait_for_indexes(&self, timeout: Duration) -> Result<bool> {
        let until = Instant::now() + timeout;
        loop {
            // The time limit of other reads does not apply to this one.
            let waiting = self.read_for(Weight::Scan, UNBOUNDED, |view| {
                let Some(indexes) = view.shared.indexes.get() else { return Ok::<_, StoreError>(None) };
                // Fetched before the check, so that nothing published after it is missed.
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

    /// Completes the search indexes with all processors, for a command that serves no requests meanwhile. About once a
    /// second, `tell` receives the number of changes left to index, of the current kind.
    ///
    /// Errors: they cannot be completed now, for example when the disk is full or another process maintains them. The
    /// missing changes are indexed whenever the tenant is open.
    pub fn complete_indexes(&self, tell: &mut dyn FnMut(u64)) -> Result<()> {
        let hurry = self.hurry_indexes();
        let Some(indexes) = &hurry.0 else { return Ok(()) };
        // A kind is indexed only after it has been rebuilt.
        self.finish_remakes()?;
        while !self.wait_for_indexes(LOOK)? {
            tell(indexes.standing()?);
        }
        Ok(())
    }

    /// Lets the search indexes be built with all processors until the result is dropped, for a command that serves no
    /// requests meanwhile.
    pub fn hurry_indexes(&self) -> Hurry {
        let indexes = self.shared().indexes.get().cloned();
        indexes.iter().for_each(|it| it.hurry());
        Hurry(indexes)
    }
}

/// While it exists, the search indexes of a tenant are built with all processors.
#[must_use]
pub struct Hurry(Option<Arc<Indexes>>);

impl Drop for Hurry {
    fn drop(&mut self) {
        self.0.iter().for_each(|it| it.calm());
    }
}
