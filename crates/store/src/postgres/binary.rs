//! Rows in the binary format of COPY (PostgreSQL's documentation, "COPY", file formats).

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio_postgres::types::{IsNull, Kind, ToSql as _, Type as PgType};

use crate::cell::Cell;
use crate::{Result, StoreError};

/// Bytes of rows sent at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Header of a binary COPY: its signature, no flags, no extension.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Trailer of a binary COPY.
const TAIL: i16 = -1;

/// The fields of the current row.
pub(super) struct Fields<'c> {
    out: &'c mut BytesMut,
    types: std::slice::Iter<'c, PgType>,
}

impl Fields<'_> {
    fn next_type(&mut self) -> Result<&PgType> {
        self.types.next().ok_or_else(|| StoreError::Damaged("a row has more fields than columns".to_owned()))
    }

    /// Appends a field from a cell.
    pub(super) fn put(&mut self, cell: &Cell) -> Result<()> {
        let ty = self.next_type()?.clone();
        put(self.out, cell, &ty)
    }

    /// Appends a field of bytes as the database stores them.
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.next_type()?;
        self.out.put_i32(length(bytes.len())?);
        self.out.put_slice(bytes);
        Ok(())
    }

    /// Appends a one-dimensional list, none of whose elements is absent.
    pub(super) fn put_list<'v>(&mut self, list: impl ExactSizeIterator<Item = &'v Cell>) -> Result<()> {
        let ty = self.next_type()?.clone();
        let Kind::Array(of) = ty.kind() else {
            return Err(StoreError::Damaged(format!("a list for a column of type {ty}")));
        };
        let at = self.out.len();
        self.out.put_i32(0);
        self.out.put_i32(i32::from(list.len() != 0));
        self.out.put_i32(0);
        self.out.put_u32(of.oid());
        if list.len() != 0 {
            self.out.put_i32(length(list.len())?);
            self.out.put_i32(1);
        }
        for cell in list {
            put(self.out, cell, of)?;
        }
        set_length(self.out, at)
    }
}

fn put(out: &mut BytesMut, cell: &Cell, ty: &PgType) -> Result<()> {
    let at = out.len();
    out.put_i32(-1);
    match cell.to_sql(ty, out) {
        Ok(IsNull::Yes) => Ok(()),
        Ok(IsNull::No) => set_length(out, at),
        Err(error) => Err(StoreError::Damaged(format!("{cell:?} as {ty}: {error}"))),
    }
}

/// Sets the length at `at` to the number of bytes that follow it.
fn set_length(out: &mut BytesMut, at: usize) -> Result<()> {
    let n = length(out.len() - at - 4)?;
    out[at..at + 4].copy_from_slice(&n.to_be_bytes());
    Ok(())
}

fn length(n: usize) -> Result<i32> {
    i32::try_from(n)
        .map_err(|_| StoreError::Query(format!("{n} bytes are more than a field of the database holds")))
}

/// Rows in binary format, in chunks.
pub(super) struct Chunks<'c, I: Iterator> {
    types: &'c [PgType],
    rows: std::iter::Peekable<I>,
    is_begun: bool,
}

impl<'c, I: Iterator> Chunks<'c, I> {
    /// Returns the chunks of rows with columns of these types.
    pub(super) fn new(types: &'c [PgType], rows: I) -> Self {
        Self { types, rows: rows.peekable(), is_begun: false }
    }
}

impl<R: FnOnce(&mut Fields<'_>) -> Result<()>, I: Iterator<Item = R>> Iterator for Chunks<'_, I> {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Result<Bytes>> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if !is_first && self.rows.peek().is_none() {
            return None;
        }
        let mut out = BytesMut::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
        if is_first {
            out.put_slice(HEAD);
        }
        while out.len() < CHUNK_BYTES
            && let Some(row) = self.rows.next()
        {
            out.put_i16(i16::try_from(self.types.len()).unwrap_or(i16::MAX));
            let written = row(&mut Fields { out: &mut out, types: self.types.iter() });
            if let Err(error) = written {
                return Some(Err(error));
            }
        }
        if self.rows.peek().is_none() {
            out.put_i16(TAIL);
        }
        Some(Ok(out.freeze()))
    }
}
