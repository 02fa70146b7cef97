//! Searches among the members ([`Kind::members`]) of all records: those that satisfy a condition, in the order of their
//! records or in one of their own. Of most records the search index tells that they have none of a page, and their
//! members are not read.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::cell::Cell;
use crate::eval::{matches, sort_value, value_at};
use crate::index::{SortBy, number_bound, text_bound};
use crate::members::MemberFilter;
use crate::scan::Scan;
use crate::sorted_rows::{SortedRows, directed};
use crate::{Direction, Expr, Kind, Limits, Order, Path, Query, Record, Result, StoreError, View, explain};

/// Maximum number of records that are looked through in the order of their keys because the search index says that they
/// may have such a member: with more, all are, in the order asked for.
const CANDIDATES_MAX: usize = 50_000;
/// Records read in the first step. Each further one reads [`GROWTH`] times as many, up to [`STEP_RECORDS`]: a page often
/// lies in the first records.
const FIRST_RECORDS: u64 = 100;
const GROWTH: u64 = 4;
const STEP_RECORDS: u64 = 10_000;
/// Records whose members are read in one step where each may have such members, and in the first step along an order of
/// members; each further one of these reads twice as many, up to [`STEP_SORTED`].
const STEP_KEYS: usize = 16;
const STEP_SORTED: usize = 1_024;
/// Records up to which an order of members is followed before all records are put in that order.
const NEAR_RECORDS: u64 = 1_000;
/// Members before a page from which records are passed over by their numbers of members.
const FAR_MEMBERS: u64 = 1_000;

/// Which members are wanted.
#[derive(Debug, Clone)]
pub struct MemberQuery {
    /// The records, and their order; its window does not count.
    pub records: Query,
    /// A condition on a member; its paths begin there.
    pub of_member: Expr,
    /// An order by what members have at paths, which begin there. Members that it does not tell apart, and all of them
    /// where it is empty, come in the order of their records and of their list.
    pub order: Vec<Order>,
    /// Members that are left out at the beginning.
    pub skip: u64,
    /// Maximum number of members.
    pub limit: u64,
}

/// A member: its record, and its position in the record's list, counted from 0.
pub type Member = (Arc<Record>, u64);

impl View<'_> {
    /// Returns a page of members.
    ///
    /// Errors: members are not JSON; the page, or what an order of members has up to its end, holds more than
    /// [`crate::Limits::page_rows`] members.
    pub fn find_members(&mut self, kind: &'static Kind, query: &MemberQuery) -> Result<Vec<Member>> {
        match query.order.first() {
            _ if query.limit == 0 => Ok(Vec::new()),
            Some(first) => self.sorted_members(kind, query, first),
            None => self.members_in_turn(kind, query),
        }
    }

    /// Returns the number of members that satisfy a condition, of all records that satisfy `filter`.
    ///
    /// Errors: members are not JSON.
    pub fn count_such_members(
        &mut self,
        kind: &'static Kind,
        filter: &Expr,
        of_member: &Expr,
    ) -> Result<u64> {
        if matches!(of_member, Expr::All) {
            return self.count_members(kind, filter);
        }
        let such = MemberFilter::new(of_member.clone(), &[]);
        let mut n = 0;
        let mut add = |view: &mut Self, record: Record| {
            view.each_member(kind, &record, &such, |_, _| {
                n += 1;
                ControlFlow::Continue(())
            })
        };
        let records = Query::filter(filter.clone());
        let scan = Scan::of(self, kind, &records)?;
        let told = scan.by_index_alone(self, |_, found| {
            let n_told = found.take_members(of_member)?;
            found.narrow_to_members(of_member)?;
            Ok(found.keys(&[], None, 0, None)?.map(|keys| (n_told, keys)))
        })?;
        match told {
            Some((n_told, keys)) => {
                note(kind, keys.len(), "looked through");
                self.each_of_keys(kind, &keys, add)?;
                Ok(n_told + n)
            }
            None => {
                self.for_each_in_steps(kind, &records, &mut add)?;
                Ok(n)
            }
        }
    }

    /// Returns the ids of the records of a query that have a member which satisfies a condition.
    ///
    /// Errors: members are not JSON.
    pub fn find_with_member(
        &mut self,
        kind: &'static Kind,
        query: &Query,
        of_member: &Expr,
    ) -> Result<Vec<String>> {
        let such = MemberFilter::new(of_member.clone(), &[]);
        let (mut ids, mut n_found) = (Vec::new(), 0);
        self.each_candidate(kind, query, of_member, |view, record| {
            if query.limit.is_some_and(|limit| limit <= ids.len() as u64) {
                return Ok(ControlFlow::Break(()));
            }
            if view.each_member(kind, &record, &such, |_, _| ControlFlow::Break(()))?.is_break() {
                n_found += 1;
                if query.skip < n_found {
                    ids.push(record.id);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(ids)
    }

    /// Returns a page of members in the order of their records.
    fn members_in_turn(&mut self, kind: &'static Kind, query: &MemberQuery) -> Result<Vec<Member>> {
        let such = MemberFilter::new(query.of_member.clone(), &[]);
        let is_each = matches!(query.of_member, Expr::All);
        let most = self.shared.limits.page_rows;
        let limit = query.limit.min(most.saturating_add(1));
        let far = self.far_into(kind, query)?;
        let (mut page, mut left) = (Vec::new(), far.as_ref().map_or(query.skip, |it| it.1));
        let add = |view: &mut Self, record: Record| {
            let record = Arc::new(record);
            let flow = |page: &Vec<Member>| {
                if limit <= page.len() as u64 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            if is_each {
                let skipped = left.min(record.n_members);
                left -= skipped;
                let n_wanted = limit - page.len() as u64;
                let positions = skipped..record.n_members.min(skipped.saturating_add(n_wanted));
                page.extend(positions.map(|it| (record.clone(), it)));
                return Ok(flow(&page));
            }
            view.each_member(kind, &record, &such, |position, _| {
                if 0 < left {
                    left -= 1;
                    return ControlFlow::Continue(());
                }
                page.push((record.clone(), position));
                flow(&page)
            })
        };
        match far {
            Some((keys, _)) => self.each_of_keys(kind, &keys, add)?,
            None => self.each_candidate(kind, &query.records, &query.of_member, add)?,
        }
        check_number(kind, page.len(), most)?;
        Ok(page)
    }

    /// Returns the records, in order, from the one on in which a page far from the beginning begins, and how many of their
    /// members are before it. `None` where members must be read to tell, or no search index tells their numbers.
    fn far_into(&mut self, kind: &'static Kind, query: &MemberQuery) -> Result<Option<(Vec<i64>, u64)>> {
        if query.skip < FAR_MEMBERS || !matches!(query.of_member, Expr::All) {
            return Ok(None);
        }
        let records = Query { skip: 0, limit: None, ..query.records.clone() };
        let scan = Scan::of(self, kind, &records)?;
        let Some(rows) = scan.by_index_alone(self, |_, found| found.members_by_key().map(Some))? else {
            return Ok(None);
        };
        let mut keys: Vec<i64> = match records.order.is_empty() {
            true => rows.iter().map(|it| it.0).collect(),
            false => scan.keys(self)?,
        };
        let (mut n_before, mut left) = (0, query.skip);
        for key in &keys {
            let Ok(at) = rows.binary_search_by_key(key, |it| it.0) else { return Ok(None) };
            if left < rows[at].1 {
                break;
            }
            left -= rows[at].1;
            n_before += 1;
        }
        keys.drain(..n_before);
        Ok(Some((keys, left)))
    }

    /// Passes the records of a query to `visit`, in order, until it breaks; those that cannot have a member which satisfies a
    /// condition may be left out.
    fn each_candidate(
        &mut self,
        kind: &'static Kind,
        records: &Query,
        of_member: &Expr,
        visit: impl FnMut(&mut Self, Record) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let records = Query { skip: 0, limit: None, ..records.clone() };
        match self.candidates(kind, &records, of_member)? {
            Some(keys) => self.each_of_keys(kind, &keys, visit),
            None => self.for_each_in_steps(kind, &records, visit),
        }
    }

    /// Passes the records of a query without a window to `visit`, in order, until it breaks.
    fn for_each_in_steps(
        &mut self,
        kind: &'static Kind,
        records: &Query,
        mut visit: impl FnMut(&mut Self, Record) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (mut skip, mut limit) = (0, FIRST_RECORDS);
        loop {
            let found = self.find(kind, &records.clone().window(skip, limit))?;
            let is_last = (found.len() as u64) < limit;
            for record in found {
                if visit(self, record)?.is_break() {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
            skip += limit;
            limit = STEP_RECORDS.min(limit * GROWTH);
        }
    }

    /// Passes the records of rows to `visit`, in their order, until it breaks.
    fn each_of_keys(
        &mut self,
        kind: &'static Kind,
        keys: &[i64],
        mut visit: impl FnMut(&mut Self, Record) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        for step in keys.chunks(STEP_KEYS) {
            let records = self.by_keys(kind, step)?;
            self.read_members_ahead(kind, &records)?;
            for record in records {
                if visit(self, record)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the records of a query, in order, without those that cannot have a member which satisfies a condition. `None`
    /// where the search index excludes none, or leaves too many.
    fn candidates(
        &mut self,
        kind: &'static Kind,
        records: &Query,
        of_member: &Expr,
    ) -> Result<Option<Vec<i64>>> {
        if matches!(of_member, Expr::All) {
            return Ok(None);
        }
        let scan = Scan::of(self, kind, &Query::filter(records.filter.clone()))?;
        let keys = scan.by_index_alone(self, |_, found| {
            let is_told = found.narrow_to_members(of_member)? && found.count() <= CANDIDATES_MAX as u64;
            if is_told { found.keys(&[], None, 0, None) } else { Ok(None) }
        })?;
        let Some(keys) = keys else { return Ok(None) };
        note(kind, keys.len(), "looked through");
        if records.order.is_empty() {
            return Ok(Some(keys));
        }
        let condition = self.session.flavour().in_set("r.key", 1);
        let sql = format!("SELECT r.id FROM \"k_{}\" r WHERE {condition}", kind.name);
        let ids = self.session.all(&sql, &[Cell::Ints(keys)], |row| row.text(0))?;
        let in_order = Query { filter: Expr::Ids(ids), ..records.clone() };
        Scan::of(self, kind, &in_order)?.keys(self).map(Some)
    }

    /// Returns a page of members in an order of their own. No more than their sort keys up to the end of the page are held.
    fn sorted_members(
        &mut self,
        kind: &'static Kind,
        query: &MemberQuery,
        first: &Order,
    ) -> Result<Vec<Member>> {
        let mut sorting = Sorting::of(query, &self.shared.limits);
        let near = self.rows_by_first_member(kind, query, first, Some(NEAR_RECORDS))?;
        let Some(near) = near else {
            let mut place = 0;
            self.each_candidate(kind, &query.records, &query.of_member, |view, record| {
                place += 1;
                sorting.read(view, kind, record, place)?;
                Ok(ControlFlow::Continue(()))
            })?;
            return Ok(sorting.rows.page());
        };
        let n_near = near.keys.len();
        note(kind, n_near, "in the order of what members begin with");
        if sorting.follow(self, kind, &near, first)?.is_break() || (n_near as u64) < NEAR_RECORDS {
            return Ok(sorting.rows.page());
        }
        if let Some(mut rest) = self.rows_by_first_member(kind, query, first, None)? {
            rest.keys.drain(..n_near);
            let _ = sorting.follow(self, kind, &rest, first)?;
        }
        Ok(sorting.rows.page())
    }

    /// Returns the records, of those that may have a member which satisfies the condition, in the order in which the members
    /// of each begin, at most so many. `None` where no search index tells.
    fn rows_by_first_member(
        &mut self,
        kind: &'static Kind,
        query: &MemberQuery,
        first: &Order,
        limit: Option<u64>,
    ) -> Result<Option<Rows>> {
        let declared = kind
            .member_values
            .iter()
            .find(|it| kind.below_member(it).is_some_and(|below| first.path.is_dotted(below)));
        // Members that the order does not tell apart come in the order of their records, which is that of their keys.
        let Some(path) = declared.filter(|_| query.records.order.is_empty()) else { return Ok(None) };
        let order = [
            (SortBy::Members(Path::dotted(path), first.direction), first.direction),
            (SortBy::Key, Direction::Ascending),
        ];
        let scan = Scan::of(self, kind, &Query::filter(query.records.filter.clone()))?;
        scan.by_index_alone(self, |_, found| {
            found.narrow_to_members(&query.of_member)?;
            let anywhere = found.changed_keys().collect();
            Ok(found.keys(&order, None, 0, limit)?.map(|keys| Rows { keys, anywhere }))
        })
    }
}

/// Records in the order in which the members of each begin.
struct Rows {
    keys: Vec<i64>,
    /// Those of them whose place is not known, which come first.
    anywhere: HashSet<i64>,
}

/// Sorts members by what they have at the paths of an order. The place of a member is that of its record, and its
/// position.
struct Sorting<'q> {
    query: &'q MemberQuery,
    such: MemberFilter,
    rows: SortedRows<Member>,
    most: u64,
}

impl<'q> Sorting<'q> {
    fn of(query: &'q MemberQuery, limits: &Limits) -> Self {
        let paths: Vec<Path> = query.order.iter().map(|it| it.path.clone()).collect();
        let such = MemberFilter::new(query.of_member.clone(), &paths);
        let rows = SortedRows::of(&query.order, query.skip, Some(query.limit), limits);
        Self { query, such, rows, most: limits.page_rows }
    }

    /// Adds the members of records in the order of a path, in steps, until none of those behind can be in the page.
    fn follow(
        &mut self,
        view: &mut View<'_>,
        kind: &'static Kind,
        rows: &Rows,
        first: &Order,
    ) -> Result<ControlFlow<()>> {
        let (mut left, mut n) = (rows.keys.as_slice(), STEP_KEYS);
        while !left.is_empty() {
            let (step, rest) = left.split_at(n.min(left.len()));
            let mut last = None;
            let records = view.by_keys(kind, step)?;
            view.read_members_ahead(kind, &records)?;
            for record in records {
                let key = record.key;
                let begin = self.read(view, kind, record, key)?;
                last = begin.filter(|_| !rows.anywhere.contains(&key)).map(|it| (it, key)).or(last);
            }
            self.rows.cut();
            if last.is_some_and(|(begin, key)| self.is_behind(begin.as_ref(), key, first)) {
                return Ok(ControlFlow::Break(()));
            }
            (left, n) = (rest, STEP_SORTED.min(2 * n));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds the members of a record that satisfy the condition, and returns what comes first of all its members in the
    /// order; `None` if one of them has what the search index does not tell.
    fn read(
        &mut self,
        view: &mut View<'_>,
        kind: &'static Kind,
        record: Record,
        place: i64,
    ) -> Result<Option<Option<Json>>> {
        let record = Arc::new(record);
        let (mut begin, mut is_told, mut kept) = (None::<Option<Json>>, true, Ok(()));
        let Self { query, such, rows, most } = self;
        let _ = view.each_parsed(kind, &record, &such.parts, |position, member| {
            let value = |it: &Order| value_at(member, it.path.as_steps()).map(sort_value);
            let values: Vec<Option<Json>> = query.order.iter().map(value).collect();
            if let (Some(own), Some(order)) = (values.first(), query.order.first()) {
                is_told &= member.is_object()
                    && matches!(own, None | Some(Json::Null | Json::Number(_) | Json::String(_)));
                let is_before =
                    |it: &Option<Json>| directed(own.as_ref(), it.as_ref(), order.direction).is_lt();
                if begin.as_ref().is_none_or(is_before) {
                    begin = Some(own.clone());
                }
            }
            if matches(&such.condition, member) {
                kept = rows.add(values, (place, position), (record.clone(), position));
            }
            if kept.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        kept?;
        check_number(kind, rows.n_up_to_the_end(), *most)?;
        Ok(is_told.then(|| begin.flatten()))
    }

    /// Returns whether no record behind one, whose members begin with a value, has a member for the page.
    fn is_behind(&self, begin: Option<&Json>, key: i64, first: &Order) -> bool {
        let Some((values, (place, _))) = self.rows.last() else { return false };
        let own = values.first().and_then(Option::as_ref);
        let in_direction = |compared: Ordering| match first.direction {
            Direction::Ascending => compared,
            Direction::Descending => compared.reverse(),
        };
        // As far as the index tells numbers and texts apart.
        let compared = match (begin, own) {
            (Some(Json::Number(begin)), Some(Json::Number(own))) => {
                let (Some(begin), Some(own)) = (begin.as_f64(), own.as_f64()) else { return false };
                let Some(compared) = number_bound(begin, first.direction).partial_cmp(&own) else {
                    return false;
                };
                in_direction(compared)
            }
            (Some(Json::String(begin)), Some(Json::String(own))) => {
                in_direction(text_bound(begin, first.direction).as_slice().cmp(own.as_bytes()))
            }
            _ => directed(begin, own, first.direction),
        };
        let is_alone = self.query.order.len() == 1;
        compared.is_gt() || compared.is_eq() && is_alone && place < key
    }
}

/// Errors: more members than a page may hold.
fn check_number(kind: &Kind, n_members: usize, most: u64) -> Result<()> {
    if n_members as u64 <= most {
        return Ok(());
    }
    let name = kind.members.unwrap_or_default();
    Err(StoreError::Query(format!(
        "a page of {name}, or what is sorted up to its end, holds more than {most}; ask for fewer with a limit, or narrow \
         the search down"
    )))
}

/// Notes how many records may have members of an answer, if somebody asks.
fn note(kind: &Kind, n_records: usize, how: &str) {
    explain::note(|| format!("{} members: {n_records} records by the search index, {how}", kind.name));
}
