//! Chunks of members ([`crate::Kind::members`]), as they are stored.

use std::ops::ControlFlow;

use crate::kind_statements::STEP_CHUNKS;
use crate::session::{Flavour, Session};
use crate::{ListId, Result};

/// Passes the chunks of a list to `visit`, from member `from` (counted from 0) on, until it breaks: (position of the
/// chunk's first member, members in it, their JSON joined by commas). The first chunk may begin before `from`. `sql`:
/// see [`crate::kind_statements::KindStatements::members`].
pub(crate) fn each_chunk(
    session: &mut Session<'_>,
    sql: &str,
    list: ListId,
    mut from: u64,
    mut visit: impl FnMut(u64, u32, &[u8]) -> ControlFlow<()>,
) -> Result<()> {
    let mut is_done = false;
    while !is_done {
        let mut n_chunks = 0;
        session.rows(sql, &[list.0.into(), from.into()], |row| {
            let (position, n) = (row.int(0)?.cast_unsigned(), u32::try_from(row.int(1)?).unwrap_or(u32::MAX));
            n_chunks += 1;
            from = position + u64::from(n);
            let flow = visit(position, n, &row.bytes(2)?);
            is_done = flow.is_break();
            Ok(flow)
        })?;
        // The embedded engine yields one chunk at a time; the database sends all that was requested.
        is_done |= session.flavour() == Flavour::Sqlite || n_chunks < STEP_CHUNKS;
    }
    Ok(())
}

/// Writes the members of a chunk as a JSON list.
pub(crate) fn listed(chunk: &[u8], into: &mut Vec<u8>) {
    into.clear();
    into.push(b'[');
    into.extend_from_slice(chunk);
    into.push(b']');
}
