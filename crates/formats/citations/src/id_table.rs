//! The table of a catalogue: local id, tab, DOI; one row per record, no header, no quoting.
//!
//! Ids are compared byte for byte. DOIs keep the catalogue's spelling beside the normalised one, because
//! answers repeat what the catalogue says while joins need the normal form.

use std::io::{self, Read};

use crate::doi::{Dirt, normalise_into};
use crate::lines::{Chunks, LINE_LEN_MAX_BYTES};
use crate::problem::{Reason, excerpt};

/// Longest local id accepted, in bytes.
pub const LOCAL_ID_LEN_MAX_BYTES: usize = 1024;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRow<'a> {
    /// The catalogue's id of the record, as it is.
    pub id: &'a [u8],
    /// The DOI as the catalogue spells it, without white space around it.
    pub spelled: &'a [u8],
    /// The DOI, normalised like values typed by people ([`Dirt::Cut`]).
    pub doi: &'a [u8],
}

/// Receives a row, or why it is invalid, with its line number.
pub type TellRow<'a, E> = dyn FnMut(u64, Result<IdRow<'_>, Reason>) -> Result<(), E> + 'a;

/// Reads a table and passes on every row, or why it is invalid, with its line number, from 1. Empty lines are
/// skipped.
///
/// # Errors
/// Errors of the stream or of `tell`.
pub fn read_id_table<E: From<io::Error>>(source: &mut dyn Read, tell: &mut TellRow<'_, E>) -> Result<(), E> {
    let mut chunks = Chunks::new(source);
    let mut doi = Vec::new();
    while let Some(chunk) = chunks.next_chunk()? {
        for &line in &chunk.overlong {
            tell(line, Err(Reason::TooLong { max: LINE_LEN_MAX_BYTES }))?;
        }
        for (line, bytes) in chunk.lines().filter(|(_, bytes)| !bytes.is_empty()) {
            doi.clear();
            tell(line, row(bytes, &mut doi))?;
        }
    }
    Ok(())
}

fn row<'a>(line: &'a [u8], doi: &'a mut Vec<u8>) -> Result<IdRow<'a>, Reason> {
    let n_fields = 1 + memchr::memchr_iter(b'\t', line).count();
    let tab = memchr::memchr(b'\t', line).filter(|_| n_fields == 2);
    let tab = tab.ok_or(Reason::FieldCount { found: n_fields, expected: 2 })?;
    let (id, spelled) = (&line[..tab], line[tab + 1..].trim_ascii());
    if id.is_empty() {
        return Err(Reason::NoIdentifier { column: "id" });
    }
    if LOCAL_ID_LEN_MAX_BYTES < id.len() {
        return Err(Reason::TooLong { max: LOCAL_ID_LEN_MAX_BYTES });
    }
    let not_a_doi = |error| Reason::NotADoi { column: "doi", value: excerpt(spelled), error };
    normalise_into(spelled, Dirt::Cut, doi).map_err(not_a_doi)?;
    Ok(IdRow { id, spelled, doi })
}
