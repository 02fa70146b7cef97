//! Uploads of files.

use std::fmt;
use std::io::Read;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, WriteMultipart};
use sha2::{Digest as _, Sha256};

use crate::blob::hexadecimal;
use crate::{Blob, BlobError, Blobs, Result};

/// Maximum number of concurrent parts of one upload.
const PARTS_AT_ONCE: usize = 2;

/// An upload. If it is dropped before [`Upload::finish`], nothing of it stays.
pub struct Upload {
    blobs: Blobs,
    path: Path,
    key: String,
    hash: Sha256,
    length: u64,
    /// The bytes before the first part is full: a small file is sent in one request.
    begun: BytesMut,
    parts: Option<WriteMultipart>,
}

impl Upload {
    pub(crate) fn new(blobs: Blobs, path: Path, key: String) -> Self {
        Self { blobs, path, key, hash: Sha256::new(), length: 0, begun: BytesMut::new(), parts: None }
    }

    /// Returns the number of bytes written so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Takes the next piece; waits if the store is slower than the source.
    ///
    /// Errors: the file becomes too large; the store fails. Nothing is kept in these cases.
    pub async fn write(&mut self, piece: Bytes) -> Result<()> {
        let written = self.write_piece(piece).await;
        if written.is_err() {
            self.abort_parts().await;
        }
        written
    }

    async fn write_piece(&mut self, piece: Bytes) -> Result<()> {
        let settings = self.blobs.settings();
        let (most_bytes, part_bytes) = (settings.file_bytes, settings.part_bytes);
        self.length += piece.len() as u64;
        if most_bytes < self.length {
            return Err(BlobError::TooLarge { most_bytes });
        }
        self.hash.update(&piece);
        if self.parts.is_none() && self.begun.len() + piece.len() <= part_bytes {
            self.begun.extend_from_slice(&piece);
            return Ok(());
        }
        let parts = match &mut self.parts {
            Some(parts) => parts,
            None => {
                let upload = self.blobs.inner().store.put_multipart(&self.path).await?;
                let parts = self.parts.insert(WriteMultipart::new_with_chunk_size(upload, part_bytes));
                parts.put(std::mem::take(&mut self.begun).freeze());
                parts
            }
        };
        parts.wait_for_capacity(PARTS_AT_ONCE).await?;
        parts.put(piece);
        Ok(())
    }

    /// Completes the file and makes it durable, under its key. Until a record names it, it belongs to nobody.
    pub async fn finish(mut self) -> Result<Blob> {
        match self.parts.take() {
            Some(parts) => {
                parts.finish().await?;
            }
            None => {
                let whole = std::mem::take(&mut self.begun).freeze();
                self.blobs.inner().store.put(&self.path, whole.into()).await?;
            }
        }
        self.blobs.keep_folder(&self.path).await?;
        let sha256 = hexadecimal(&std::mem::take(&mut self.hash).finalize());
        Ok(Blob { key: std::mem::take(&mut self.key), length: self.length, sha256 })
    }

    /// Aborts the upload.
    pub async fn abort(mut self) {
        self.abort_parts().await;
    }

    async fn abort_parts(&mut self) {
        if let Some(parts) = self.parts.take()
            && let Err(error) = parts.abort().await
        {
            tracing::warn!(%error, "the parts of an aborted upload remain until the bucket's lifecycle rule removes them");
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        let give_up = async move {
            if let Err(error) = parts.abort().await {
                tracing::warn!(%error, "the parts of an aborted upload remain until the bucket's lifecycle rule removes them");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(give_up)),
            Err(_) => self.blobs.block_on(give_up),
        }
    }
}

impl Blobs {
    /// Starts an upload of a tenant. The file exists when [`Upload::finish`] has returned, and is owned when a record
    /// names it.
    pub fn begin(&self, tenant: &str) -> Result<Upload> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)
            .map_err(|error| BlobError::Unavailable(format!("no randomness: {error}")))?;
        self.begin_as(tenant, hexadecimal(&random))
    }

    pub(crate) fn begin_as(&self, tenant: &str, key: String) -> Result<Upload> {
        let path = self.path(tenant, &key)?;
        Ok(Upload::new(self.clone(), path, key))
    }

    /// Writes a whole stream as a file of a tenant. If the stream ends in an error, nothing is kept.
    ///
    /// Errors: [`BlobError::Source`] with the stream's error; it is too long; the store fails.
    pub async fn put<E: fmt::Display>(
        &self,
        tenant: &str,
        stream: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Blob> {
        fill(self.begin(tenant)?, stream).await
    }

    /// Does the same for blocking callers. Must not be called on a thread that drives a runtime.
    pub fn put_blocking(&self, tenant: &str, mut source: impl Read) -> Result<Blob> {
        let mut upload = self.begin(tenant)?;
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => return self.block_on(upload.finish()),
                Ok(n) => self.block_on(upload.write(Bytes::copy_from_slice(&buffer[..n])))?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.block_on(upload.abort());
                    return Err(BlobError::Source(error.to_string()));
                }
            }
        }
    }
}

/// Number of bytes that a blocking caller reads and passes on at once.
pub(crate) const COPY_BYTES: usize = 64 << 10;

pub(crate) async fn fill<E: fmt::Display>(
    mut upload: Upload,
    stream: impl Stream<Item = Result<Bytes, E>>,
) -> Result<Blob> {
    let mut stream = std::pin::pin!(stream);
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => upload.write(piece).await?,
            Err(error) => {
                upload.abort().await;
                return Err(BlobError::Source(error.to_string()));
            }
        }
    }
    upload.finish().await
}
