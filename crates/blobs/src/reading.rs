//! Reads a file and verifies its checksum.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use object_store::GetOptions;
use sha2::{Digest as _, Sha256};

use crate::blob::hexadecimal;
use crate::{Blob, BlobError, Blobs, Result};

/// The pieces of a file, or of a range of it. The last piece of a whole file is only returned if the checksum of
/// all pieces is right.
pub struct Reading {
    pieces: BoxStream<'static, object_store::Result<Bytes>>,
    blob: Blob,
    /// Set for a whole file; a range has no checksum of its own.
    hash: Option<Sha256>,
    left: u64,
    is_done: bool,
}

impl Reading {
    pub(crate) fn of(
        blob: &Blob,
        range: &Range<u64>,
        pieces: BoxStream<'static, object_store::Result<Bytes>>,
    ) -> Self {
        let left = range.end - range.start;
        let hash = (left == blob.length).then(Sha256::new);
        Self { pieces, blob: blob.clone(), hash, left, is_done: false }
    }

    pub(crate) fn empty(blob: &Blob) -> Self {
        let pieces = futures_util::stream::empty().boxed();
        Self { pieces, blob: blob.clone(), hash: None, left: 0, is_done: true }
    }

    /// Returns the number of bytes still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    fn accept(&mut self, piece: Bytes) -> Result<Bytes> {
        if let Some(hash) = &mut self.hash {
            hash.update(&piece);
        }
        match self.left.checked_sub(piece.len() as u64) {
            Some(left) => self.left = left,
            None => return Err(self.damaged("more bytes".to_owned(), format!("{} bytes", self.blob.length))),
        }
        if self.left == 0 {
            self.compare()?;
        }
        Ok(piece)
    }

    fn compare(&mut self) -> Result<()> {
        let Some(hash) = self.hash.take() else { return Ok(()) };
        let found = hexadecimal(&hash.finalize());
        if found == self.blob.sha256 {
            return Ok(());
        }
        Err(self.damaged(format!("SHA-256 {found}"), self.blob.sha256.clone()))
    }

    fn end(&mut self) -> Result<()> {
        if self.left != 0 {
            let found = format!("{} bytes less", self.left);
            return Err(self.damaged(found, format!("{} bytes", self.blob.length)));
        }
        self.compare()
    }

    fn damaged(&self, found: String, expected: String) -> BlobError {
        BlobError::Damaged { key: self.blob.key.clone(), found, expected }
    }
}

impl Stream for Reading {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_done {
            return Poll::Ready(None);
        }
        let item = match ready!(self.pieces.poll_next_unpin(context)) {
            Some(Ok(piece)) => Some(self.accept(piece)),
            Some(Err(error)) => Some(Err(error.into())),
            None => {
                self.is_done = true;
                self.end().err().map(Err)
            }
        };
        self.is_done |= matches!(item, Some(Err(_)));
        Poll::Ready(item)
    }
}

/// A file as a plain reader, for blocking code.
pub struct BlobReader {
    blobs: Blobs,
    reading: Reading,
    piece: Bytes,
}

impl BlobReader {
    pub(crate) fn of(blobs: Blobs, reading: Reading) -> Self {
        Self { blobs, reading, piece: Bytes::new() }
    }
}

impl io::Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.blobs.block_on(self.reading.next()) {
                Some(piece) => self.piece = piece.map_err(io::Error::other)?,
                None => return Ok(0),
            }
        }
        let n = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..n]);
        Ok(n)
    }
}

impl Blobs {
    /// Reads a file, or a range of its bytes. A whole file is verified with its checksum: if it differs, there is
    /// an error instead of the last piece.
    pub async fn get(&self, tenant: &str, blob: &Blob, range: Option<Range<u64>>) -> Result<Reading> {
        let path = self.path(tenant, &blob.key)?;
        if let Some(Range { start, end }) = range.clone()
            && (end < start || blob.length < end)
        {
            return Err(BlobError::Range { start, end, length: blob.length });
        }
        let asked = range.clone().unwrap_or(0..blob.length);
        if range.is_some() && asked.is_empty() {
            return Ok(Reading::empty(blob));
        }
        let options = GetOptions::default().with_range(range.map(object_store::GetRange::Bounded));
        let found = self.0.store.get_opts(&path, options).await.map_err(|error| missing(error, &blob.key))?;
        if found.meta.size != blob.length {
            return Err(BlobError::Damaged {
                key: blob.key.clone(),
                found: format!("{} bytes", found.meta.size),
                expected: format!("{} bytes", blob.length),
            });
        }
        Ok(Reading::of(blob, &asked, found.into_stream()))
    }

    /// Does the same for blocking callers. Must not be called on a thread that drives a runtime.
    pub fn reader(&self, tenant: &str, blob: &Blob, range: Option<Range<u64>>) -> Result<BlobReader> {
        let reading = self.block_on(self.get(tenant, blob, range))?;
        Ok(BlobReader::of(self.clone(), reading))
    }
}

pub(crate) fn missing(error: object_store::Error, key: &str) -> BlobError {
    match error {
        object_store::Error::NotFound { .. } => BlobError::Missing { key: key.to_owned() },
        other => other.into(),
    }
}
