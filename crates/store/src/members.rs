//! Lists of members ([`Kind::members`]): their chunks, and those members of a record that satisfy a condition.

use std::collections::HashMap;
use std::ops::ControlFlow;

use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::cell::Cell;
use crate::chunks::{each_chunk, listed};
use crate::eval::matches;
use crate::parts::Parts;
use crate::reads::Chunk;
use crate::{Expr, Kind, ListId, Path, Record, Result, StoreError, View};

/// Maximum number of members that are read ahead.
const AHEAD_MEMBERS: u64 = 2_000;

/// A condition on single members, prepared for many of them.
#[derive(Debug)]
pub struct MemberFilter {
    pub(crate) condition: Expr,
    pub(crate) parts: Parts,
}

impl MemberFilter {
    /// Returns what finds the members that satisfy `condition`, whose paths begin at a member, and reads what they have
    /// at `paths`. No more of a member is parsed than both need.
    pub fn new(condition: Expr, paths: &[Path]) -> Self {
        let parts = Parts::of(&condition).with(paths);
        Self { condition, parts }
    }
}

impl View<'_> {
    /// Passes the members of a record's list to `visit` in chunks, from member `from` (counted from 0) on, until it
    /// breaks: (position of the chunk's first member, members in it, their JSON joined by commas). The first chunk may
    /// begin before `from`.
    pub fn members(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        from: u64,
        mut visit: impl FnMut(u64, u32, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(list) = record.list else { return Ok(()) };
        if let Some(chunks) = self.reads.chunks(kind, list) {
            for chunk in chunks.iter().filter(|it| from < it.first + u64::from(it.n)) {
                if visit(chunk.first, chunk.n, &chunk.bytes).is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let sql = &self.statements(kind)?.members;
        each_chunk(&mut self.session, sql, list, from, visit)
    }

    /// Reads the members of some records together, so that [`View::members`] finds them without a round trip for each. Does
    /// nothing in the embedded engine, or for many.
    pub fn read_members_ahead<'r>(
        &mut self,
        kind: &'static Kind,
        records: impl IntoIterator<Item = &'r Record>,
    ) -> Result<()> {
        if !self.is_remote() || kind.members.is_none() {
            return Ok(());
        }
        let (mut lists, mut n_members) = (Vec::new(), 0);
        for record in records {
            let list = record.list.filter(|list| self.reads.chunks(kind, *list).is_none());
            lists.extend(list);
            n_members += if list.is_some() { record.n_members } else { 0 };
        }
        if lists.is_empty() || AHEAD_MEMBERS < n_members {
            return Ok(());
        }
        let sql = &self.statements(kind)?.members_of_lists;
        let ids = Cell::Ints(lists.iter().map(|it| it.0).collect());
        let mut found: HashMap<i64, Vec<Chunk>> = lists.iter().map(|it| (it.0, Vec::new())).collect();
        self.session.rows(sql, &[ids], |row| {
            let n = u32::try_from(row.int(2)?).unwrap_or(u32::MAX);
            let chunk = Chunk { first: row.int(1)?.cast_unsigned(), n, bytes: row.bytes(3)? };
            if let Some(chunks) = found.get_mut(&row.int(0)?) {
                chunks.push(chunk);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.reads.limit();
        found.into_iter().for_each(|(list, chunks)| self.reads.keep_chunks(kind, ListId(list), chunks));
        Ok(())
    }

    /// Passes the members of a record that satisfy a condition to `visit`, until it breaks: the position of each,
    /// counted from 0, and what it has at the paths of the filter.
    ///
    /// Errors: a chunk is not JSON.
    pub fn each_member(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        filter: &MemberFilter,
        mut visit: impl FnMut(u64, &Json) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.each_parsed(kind, record, &filter.parts, |position, member| {
            if matches(&filter.condition, member) {
                visit(position, member)
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    /// Passes parts of each member of a record to `visit`, until it breaks, with its position.
    ///
    /// Errors: as [`View::each_member`].
    pub(crate) fn each_parsed(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        parts: &Parts,
        mut visit: impl FnMut(u64, &Json) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let (mut flow, mut damage) = (ControlFlow::Continue(()), None);
        let mut text = Vec::new();
        self.members(kind, record, 0, |first, _, chunk| {
            listed(chunk, &mut text);
            match parts.parse(&text) {
                Ok(Json::Array(members)) => {
                    for (position, member) in (first..).zip(&members) {
                        if flow.is_continue() {
                            flow = visit(position, member);
                        }
                    }
                }
                Ok(_) => {}
                Err(error) => damage = Some(error),
            }
            if damage.is_some() { ControlFlow::Break(()) } else { flow }
        })?;
        damage.map_or(Ok(flow), |error| Err(damaged(kind, record, &error)))
    }

    /// Returns the members of a record at some positions, counted from 0, which ascend; a position after the last member
    /// is left out.
    ///
    /// Errors: a chunk is not JSON.
    pub fn members_at(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        positions: &[u64],
    ) -> Result<Vec<Json>> {
        let (mut found, mut damage) = (Vec::with_capacity(positions.len()), None);
        let (mut left, mut text) = (positions, Vec::new());
        while let Some(position) = left.first() {
            let n_before = left.len();
            self.members(kind, record, *position, |first, n, chunk| {
                let end = first + u64::from(n);
                let (here, later) = left.split_at(left.partition_point(|it| *it < end));
                left = later;
                listed(chunk, &mut text);
                match taken(&text, here.iter().map(|it| it - first)) {
                    Ok(members) => found.extend(members),
                    Err(error) => damage = Some(error),
                }
                // Chunks without any are not read.
                if damage.is_none() && left.first() == Some(&end) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
            if let Some(error) = damage {
                return Err(damaged(kind, record, &error));
            }
            if left.len() == n_before {
                break;
            }
        }
        Ok(found)
    }
}

/// Returns the elements of a JSON list at some positions.
fn taken(list: &[u8], positions: impl Iterator<Item = u64>) -> serde_json::Result<Vec<Json>> {
    let raw: Vec<&RawValue> = serde_json::from_slice(list)?;
    let wanted = positions.filter_map(|it| raw.get(usize::try_from(it).ok()?));
    wanted.map(|it| serde_json::from_str(it.get())).collect()
}

fn damaged(kind: &Kind, record: &Record, error: &serde_json::Error) -> StoreError {
    StoreError::Damaged(format!("{} {:?}: its members are not JSON: {error}", kind.name, record.id))
}
