//! Uploaded files: stored in the tenant as lists of bytes, so that any server that runs the job can read them, and so
//! that an acknowledged upload is as durable as an acknowledged record.

use std::io::{self, Read};
use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use pinakes_http::Db;
use pinakes_http::body::Pieces;
use pinakes_store::{Column, Document, Index, Kind, ListId, StoreError, Tenant, Txn, Type};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::platform::error::FolioError;
use crate::platform::limits::{READ_BYTES, WRITE_BYTES};

/// Parts of files, by id; a position in the list is a byte offset.
pub(crate) static FILE_PART: Kind = Kind {
    columns: &[Column::at("upload", "key", Type::Text), Column::one("etag", Type::Text)],
    indexes: &[Index::on(&["upload"])],
    members: Some("bytes"),
    ..Kind::named("folio_file_part")
};

/// A received part.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedPart {
    pub(crate) id: String,
    pub(crate) n_bytes: u64,
    /// Digest of the bytes.
    pub(crate) etag: String,
}

/// Receives a body into a new part. The part becomes visible only when it is complete.
pub(crate) async fn receive(
    db: &Db,
    id: String,
    key: String,
    mut pieces: Pieces,
) -> Result<ReceivedPart, FolioError> {
    let list = db.write(|txn| txn.new_list(&FILE_PART)).await?;
    let received = receive_into(db, list, &mut pieces).await;
    let (n_bytes, etag) = match received {
        Ok(received) => received,
        Err(error) => {
            if let Err(error) = db.write(move |txn| txn.discard_list(&FILE_PART, list)).await {
                tracing::warn!(%error, "the bytes of a failed upload remain until the next start");
            }
            return Err(error);
        }
    };
    let body = json!({"id": id, "key": key, "etag": etag, "nBytes": n_bytes});
    let document = Document::new(&FILE_PART, id.as_str(), &body)?.with_list(list, n_bytes);
    db.write(move |txn| -> Result<(), StoreError> {
        // A part that is sent again replaces the first one.
        match txn.has(&FILE_PART, document.id())? {
            true => txn.update_document(&document).map(drop),
            false => txn.insert_document(&document).map(drop),
        }
    })
    .await?;
    Ok(ReceivedPart { id, n_bytes, etag })
}

async fn receive_into(db: &Db, list: ListId, pieces: &mut Pieces) -> Result<(u64, String), FolioError> {
    let (mut digest, mut n_bytes, mut waiting) = (Sha256::new(), 0_u64, BytesMut::new());
    loop {
        let piece = pieces.next().await?;
        if let Some(piece) = &piece {
            digest.update(piece);
            waiting.extend_from_slice(piece);
        }
        while WRITE_BYTES <= waiting.len() || (piece.is_none() && !waiting.is_empty()) {
            let n = waiting.len().min(WRITE_BYTES);
            let chunk = waiting.split_to(n).freeze();
            append(db, list, n_bytes, chunk).await?;
            n_bytes += n as u64;
        }
        if piece.is_none() {
            break;
        }
    }
    let hex: String = digest.finalize().iter().take(16).map(|it| format!("{it:02x}")).collect();
    Ok((n_bytes, hex))
}

async fn append(db: &Db, list: ListId, position: u64, chunk: Bytes) -> Result<(), FolioError> {
    let n = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
    db.write(move |txn| txn.append_members(&FILE_PART, list, position, n, chunk.clone())).await?;
    Ok(())
}

/// Stores the content of a reader as a part of the upload `key`.
pub(crate) fn store(
    tenant: &Tenant,
    id: String,
    key: &str,
    bytes: &mut dyn Read,
) -> Result<ReceivedPart, FileError> {
    let list = tenant.write_blocking(|txn| txn.new_list(&FILE_PART))?;
    let mut n_bytes = 0_u64;
    loop {
        let mut chunk = vec![0; WRITE_BYTES];
        let mut n = 0;
        while n < chunk.len() {
            match bytes.read(&mut chunk[n..])? {
                0 => break,
                more => n += more,
            }
        }
        if n == 0 {
            break;
        }
        chunk.truncate(n);
        let (chunk, at) = (Bytes::from(chunk), n_bytes);
        let count = u32::try_from(n).unwrap_or(u32::MAX);
        tenant.write_blocking(move |txn: &mut Txn<'_>| {
            txn.append_members(&FILE_PART, list, at, count, chunk.clone())
        })?;
        n_bytes += n as u64;
    }
    let body = json!({"id": id, "key": key, "etag": "", "nBytes": n_bytes});
    let document = Document::new(&FILE_PART, id.as_str(), &body)?.with_list(list, n_bytes);
    tenant.write_blocking(move |txn: &mut Txn<'_>| txn.insert_document(&document).map(drop))?;
    Ok(ReceivedPart { id, n_bytes, etag: String::new() })
}

/// Why a file could not be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The input cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A stored file as a stream, starting at any byte.
pub(crate) struct StoredFile {
    tenant: Tenant,
    /// Ids and lengths of the parts.
    parts: Vec<(String, u64)>,
    at: u64,
    /// Byte offset at which reading ends.
    end: u64,
    buffer: Bytes,
}

impl StoredFile {
    /// Opens a file by its parts: `[["id", n], …]`.
    pub(crate) fn new(tenant: Tenant, parts: &Value, from: u64, to: Option<u64>) -> Self {
        let parts: Vec<(String, u64)> = parts
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| Some((it.get(0)?.as_str()?.to_owned(), it.get(1)?.as_u64()?)))
            .collect();
        let length = parts.iter().map(|it| it.1).sum();
        Self { tenant, parts, at: from, end: to.unwrap_or(length).min(length), buffer: Bytes::new() }
    }

    /// Returns its length in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut start = 0;
        let place = self.parts.iter().find(|(_, length)| {
            let is_it = self.at < start + length;
            if !is_it {
                start += length;
            }
            is_it
        });
        let Some((id, _)) = place.filter(|_| self.at < self.end) else { return Ok(()) };
        let (id, from) = (id.clone(), self.at - start);
        let read = self.tenant.read_blocking(move |view| -> Result<Bytes, StoreError> {
            let record = view.get(&FILE_PART, &id)?.ok_or_else(|| {
                StoreError::Damaged(format!("the uploaded part {id} is not there any more"))
            })?;
            let mut bytes = BytesMut::new();
            view.members(&FILE_PART, &record, from, |position, _, chunk| {
                let skip = usize::try_from(from.saturating_sub(position)).unwrap_or(usize::MAX);
                bytes.extend_from_slice(chunk.get(skip..).unwrap_or_default());
                if bytes.len() < READ_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            Ok(bytes.freeze())
        });
        let mut bytes = read.map_err(|error| io::Error::other(error.to_string()))?;
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        bytes.truncate(left);
        self.at += bytes.len() as u64;
        self.buffer = bytes;
        Ok(())
    }
}

impl Read for StoredFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.buffer.is_empty() {
            self.fill()?;
        }
        let n = out.len().min(self.buffer.len());
        out[..n].copy_from_slice(&self.buffer.split_to(n));
        Ok(n)
    }
}
