//! Copies files from one store to another.

use crate::blobs::Blobs;
use crate::upload::fill;
use crate::{Blob, Result};

impl Blobs {
    /// Copies a file into another store, under its own key; returns false if it is already there. Its
    /// checksum is verified on the way.
    /// compared on the way.
    pub async fn copy(&self, to: &Self, tenant: &str, blob: &Blob) -> Result<bool> {
        if to.has(tenant, blob).await? {
            return Ok(false);
        }
        let source = self.get(tenant, blob, None).await?;
        fill(to.begin_as(tenant, blob.key.clone())?, source).await.map(|_| true)
    }
}
