//! Lists of members ([`Kind::members`]): their chunks, the members that satisfy a condition, and the records that may have
//! such members.

use std::ops::ControlFlow;

use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::cell::Cell;
use crate::chunks::{each_chunk, listed};
use crate::eval::matches;
use crate::index::needed_of_members;
use crate::parts::Parts;
use crate::scan::Scan;
use crate::{Expr, Kind, Path, Query, Record, Result, StoreError, View};

/// A condition on single members, prepared for many of them.
#[derive(Debug)]
pub struct MemberFilter {
    condition: Expr,
    parts: Parts,
}

impl MemberFilter {
    /// Returns what finds the members that satisfy `condition`, whose paths begin at a member, and reads what they have
    /// at `paths`. No more of a member is parsed than both need.
    pub fn new(condition: Expr, paths: &[Path]) -> Self {
        let parts = Parts::of(&condition).with(paths);
        Self { condition, parts }
    }

    /// Returns the condition.
    pub fn condition(&self) -> &Expr {
        &self.condition
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
        visit: impl FnMut(u64, u32, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(list) = record.list else { return Ok(()) };
        let sql = &self.statements(kind)?.members;
        each_chunk(&mut self.session, sql, list, from, visit)
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
        let (mut flow, mut damage) = (ControlFlow::Continue(()), None);
        let mut text = Vec::new();
        self.members(kind, record, 0, |first, _, chunk| {
            listed(chunk, &mut text);
            match filter.parts.parse(&text) {
                Ok(Json::Array(members)) => {
                    for (position, member) in (first..).zip(&members) {
                        if flow.is_continue() && matches(&filter.condition, member) {
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

    /// Returns the ids of records that satisfy `filter`, among which are all with a member that satisfies `of_member`:
    /// those whose members have the trigrams that it needs at a path of [`Kind::patterns`]. `None` where it needs none,
    /// no search index tells, or more than `most` are left.
    pub fn with_members(
        &mut self,
        kind: &'static Kind,
        filter: &Expr,
        of_member: &Expr,
        most: u64,
    ) -> Result<Option<Vec<String>>> {
        let needed = needed_of_members(kind, of_member);
        if needed.is_empty() {
            return Ok(None);
        }
        let query = Query::filter(filter.clone());
        let scan = Scan::of(self, kind, &query)?;
        let keys = scan.by_index_alone(self, |_, found| found.with_members(&needed, most))?;
        let Some(keys) = keys else { return Ok(None) };
        let condition = self.session.flavour().in_set("r.key", 1);
        let sql = format!("SELECT r.id FROM \"k_{}\" r WHERE {condition}", kind.name);
        Ok(Some(self.session.all(&sql, &[Cell::Ints(keys)], |row| row.text(0))?))
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
