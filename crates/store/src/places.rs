//! Slots for concurrent scans, which are released while a client is slow.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{Result, StoreError};

/// A slot for a scan. Released when dropped.
#[derive(Debug)]
pub struct ScanPlace {
    scans: Arc<Semaphore>,
    parking: Arc<Semaphore>,
    at: At,
}

/// The state of the scan; the permits are only held, never read.
#[derive(Debug)]
enum At {
    Scans(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit),
    Parking(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit),
    Nowhere,
}

impl ScanPlace {
    pub(crate) async fn take(scans: Arc<Semaphore>, parking: Arc<Semaphore>) -> Result<Self> {
        let permit = scans.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        Ok(Self { scans, parking, at: At::Scans(permit) })
    }

    /// Releases the slot to another scan while this one waits for its client. Returns false when too many scans wait
    /// already: the slot is kept.
    pub fn leave(&mut self) -> bool {
        if matches!(self.at, At::Parking(_)) {
            return true;
        }
        let Ok(parked) = self.parking.clone().try_acquire_owned() else { return false };
        self.at = At::Parking(parked);
        true
    }

    /// Waits for a slot again.
    ///
    /// Errors: the store is closing.
    pub async fn take_again(&mut self) -> Result<()> {
        if matches!(self.at, At::Scans(_)) {
            return Ok(());
        }
        let permit = self.scans.clone().acquire_owned().await;
        self.at = permit.map_or(At::Nowhere, At::Scans);
        if matches!(self.at, At::Nowhere) { Err(StoreError::Closed) } else { Ok(()) }
    }
}
