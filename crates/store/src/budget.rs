//! One budget of bytes shared by all requests of a server, for request bodies and responses held in memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::{Result, StoreError};

/// How long a request waits for others to release bytes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Unit of accounting, in bytes.
const UNIT_BYTES: u64 = 1 << 10;

/// The bytes that requests may hold at once. Clones share the budget.
#[derive(Debug, Clone)]
pub struct Budget {
    units: Arc<Semaphore>,
    most: u64,
}

impl Budget {
    /// Returns a budget of `most` bytes.
    pub fn new(most: u64) -> Self {
        let n_units =
            usize::try_from(most / UNIT_BYTES).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
        Self { units: Arc::new(Semaphore::new(n_units)), most }
    }

    /// Returns an empty reservation.
    pub fn nothing(&self) -> Held {
        Held { budget: self.clone(), permit: None }
    }

    /// Returns the number of bytes held now.
    pub fn held_bytes(&self) -> u64 {
        self.most.saturating_sub(self.units.available_permits() as u64 * UNIT_BYTES)
    }

    fn refusal(&self) -> StoreError {
        StoreError::Crowded { held_bytes: self.most, retry_after_s: 1 }
    }
}

/// A reservation of bytes, released when dropped.
#[derive(Debug)]
pub struct Held {
    budget: Budget,
    permit: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// Reserves more bytes if they are available.
    ///
    /// Errors: [`StoreError::Crowded`].
    pub fn try_grow(&mut self, bytes: u64) -> Result<()> {
        let taken = self.budget.units.clone().try_acquire_many_owned(n_units(bytes));
        self.take(taken.ok())
    }

    /// Reserves more bytes, waiting briefly for others to release some.
    ///
    /// Errors: [`StoreError::Crowded`].
    pub async fn grow(&mut self, bytes: u64) -> Result<()> {
        let taken = timeout(PATIENCE, self.budget.units.clone().acquire_many_owned(n_units(bytes))).await;
        self.take(taken.ok().and_then(std::result::Result::ok))
    }

    /// Takes over the reservation of another.
    pub fn absorb(&mut self, mut other: Self) {
        match (&mut self.permit, other.permit.take()) {
            (Some(own), Some(others)) => own.merge(others),
            (own, others) => *own = own.take().or(others),
        }
    }

    fn take(&mut self, taken: Option<OwnedSemaphorePermit>) -> Result<()> {
        let Some(taken) = taken else { return Err(self.budget.refusal()) };
        match &mut self.permit {
            Some(permit) => permit.merge(taken),
            None => self.permit = Some(taken),
        }
        Ok(())
    }
}

fn n_units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_bounded_and_comes_back() {
        let budget = Budget::new(10 << 10);
        let (mut one, mut other) = (budget.nothing(), budget.nothing());
        assert!(one.try_grow(4 << 10).is_ok() && one.try_grow(1).is_ok());
        assert_eq!(budget.held_bytes(), 5 << 10);
        assert!(matches!(other.try_grow(6 << 10), Err(StoreError::Crowded { held_bytes: 10_240, .. })));
        assert!(other.try_grow(5 << 10).is_ok());
        other.absorb(one);
        assert_eq!(budget.held_bytes(), 10 << 10);
        drop(other);
        assert_eq!(budget.held_bytes(), 0);
    }
}
