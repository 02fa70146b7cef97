//! Incrementally maintained counts: how many records of a class have a value.
//!
//! A transaction accumulates its differences here; they are written together before the commit, so that a thousand
//! inserts of one type cost one update of its count.

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rusqlite::CachedStatement;

use crate::cell::Cell;
use crate::document::{CountedValues, Taken};
use crate::marks::{Mark, MarkHasher};
use crate::postgres::PgSession;
use crate::session::{Flavour, Session};
use crate::{Class, Counts, Facet, Kind, Result};

/// The pseudo-class that stands for all classes together.
pub(crate) const ALL_CLASSES: i64 = 0;

/// The facet that counts records themselves, under the empty value.
pub(crate) const RECORDS: &str = "";

/// The facet that counts changes of a kind where sequence numbers alone do not show new content.
pub(crate) const CHANGES: &str = "*";

/// The facet that marks the lists of a kind as not up to date: a bulk load counts in memory.
pub(crate) const BEHIND: &str = "?";

/// Maximum number of counts that bulk loads keep in memory; with more, they are written.
const COUNTS_PUT_OFF: usize = 1_000_000;

/// A list of values, or one value, that a facet counts in the records of a class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) kind: &'static Kind,
    /// Index of the facet.
    facet: usize,
    pub(crate) class: Class,
    /// Mark of the list or the value.
    mark: Mark,
}

impl Counted {
    pub(crate) fn facet_name(&self) -> &'static str {
        self.kind.facets[self.facet].name
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.mark, it.class, it.facet);
        of(self) == of(other) && std::ptr::eq(self.kind, other.kind)
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.mark.hash(state);
        state.write_u64(self.class.0.cast_unsigned());
        state.write_u64(self.facet as u64);
    }
}

/// How many records have each list, with the values of the list.
type Lists = HashMap<Counted, (i64, Arc<CountedValues>), MarkHasher>;
/// An entry of [`Lists`].
pub(crate) type List = (Counted, (i64, Arc<CountedValues>));

/// Differences that are not written yet. Those for all classes together are summed when they are written.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Records, by kind and class.
    records: HashMap<(&'static str, Class), i64>,
    /// Records by list of values: a thousand records with the same hundred values are one entry.
    lists: Lists,
    /// Changes, by kind, for [`CHANGES`].
    changes: HashMap<&'static str, i64>,
    /// Bulk loads that began (true) or ended (false), by kind.
    loads: Vec<(&'static str, bool)>,
}

impl Counters {
    /// Adds a record to the counts (`difference` 1) or removes it (-1).
    pub(crate) fn count(&mut self, kind: &'static Kind, taken: &Taken, difference: i64) {
        *self.records.entry((kind.name, taken.class)).or_default() += difference;
        self.count_lists(kind, taken, difference);
    }

    /// Moves a counted record to another class; its facets are unchanged.
    pub(crate) fn move_record(&mut self, kind: &'static Kind, from: Class, to: Class) {
        if from != to {
            *self.records.entry((kind.name, from)).or_default() -= 1;
            *self.records.entry((kind.name, to)).or_default() += 1;
        }
    }

    /// Adds or removes a record of a class, with only those of its facets that are `meant`.
    pub(crate) fn count_partly(
        &mut self,
        kind: &'static Kind,
        taken: &Taken,
        class: Class,
        difference: i64,
        meant: impl Fn(&Facet) -> bool,
    ) {
        *self.records.entry((kind.name, class)).or_default() += difference;
        self.count_facets(kind, taken, difference, meant);
    }

    /// Counts some facets of a record that is already counted.
    pub(crate) fn count_facets(
        &mut self,
        kind: &'static Kind,
        taken: &Taken,
        difference: i64,
        meant: impl Fn(&Facet) -> bool,
    ) {
        for (facet, values) in taken.counted.iter().filter(|it| meant(&kind.facets[it.0])) {
            let list = Counted { kind, facet: *facet, class: taken.class, mark: values.mark() };
            self.lists.entry(list).or_insert_with(|| (0, Arc::clone(values))).0 += difference;
        }
    }

    /// Records a change of a record, for [`CHANGES`].
    pub(crate) fn note_change(&mut self, kind: &'static Kind) {
        *self.changes.entry(kind.name).or_default() += 1;
    }

    /// Begins a load: from here on, lists of a kind may be counted in memory; see [`PutOff`].
    pub(crate) fn begin_load(&mut self, kind: &'static Kind) {
        self.loads.push((kind.name, true));
    }

    /// Ends a load: the lists are written with this transaction.
    pub(crate) fn end_load(&mut self, kind: &'static Kind) {
        self.loads.push((kind.name, false));
    }

    /// Returns whether no load begins or ends.
    pub(crate) fn loads_nothing(&self) -> bool {
        self.loads.is_empty()
    }

    /// Counts the lists of a record that is already counted.
    pub(crate) fn count_lists(&mut self, kind: &'static Kind, taken: &Taken, difference: i64) {
        self.count_facets(kind, taken, difference, |_| true);
    }

    /// Returns the number of accumulated lists.
    pub(crate) fn n_lists(&self) -> usize {
        self.lists.len()
    }

    /// Merges the differences of a part that succeeded.
    pub(crate) fn absorb(&mut self, part: Self) {
        fn add<K: Eq + Hash>(own: &mut HashMap<K, i64>, part: HashMap<K, i64>) {
            for (key, difference) in part {
                *own.entry(key).or_default() += difference;
            }
        }
        add(&mut self.records, part.records);
        for (list, (difference, values)) in part.lists {
            self.lists.entry(list).or_insert((0, values)).0 += difference;
        }
        add(&mut self.changes, part.changes);
        self.loads.extend(part.loads);
    }

    /// Writes the differences in key order, so that concurrent writers lock counts in the same order.
    pub(crate) fn flush(&mut self, session: &mut Session<'_>) -> Result<()> {
        self.flush_with(session, &[])
    }

    /// Writes the differences together with others.
    pub(crate) fn flush_with(&mut self, session: &mut Session<'_>, more: &[Count<'_>]) -> Result<()> {
        let lists = self.take_lists();
        let all = self.drain(&lists, more);
        if let Session::Postgres(session) = session {
            if !all.is_empty() {
                let values = postgres_values(&all, session.slot);
                session.execute(ADD_ALL, &values)?;
            }
            return Ok(());
        }
        let connection = session.embedded()?;
        let mut add = connection.prepare_cached(ADD)?;
        for it in &all {
            it.bind_place(&mut add)?;
            add.raw_bind_parameter(5, it.n)?;
            add.raw_execute()?;
            if it.n < 0 {
                let mut drop_zero = connection.prepare_cached(DROP_ZERO)?;
                it.bind_place(&mut drop_zero)?;
                drop_zero.raw_execute()?;
            }
        }
        Ok(())
    }

    /// Sends the differences in one flight with the commit.
    pub(crate) fn commit(mut self, session: &mut PgSession) -> Result<()> {
        let lists = self.take_lists();
        let all = self.drain(&lists, &[]);
        if all.is_empty() {
            return session.commit(None);
        }
        let values = postgres_values(&all, session.slot);
        session.commit(Some((ADD_ALL, &values)))
    }

    /// Removes and returns the lists that may be counted as wholes.
    pub(crate) fn take_long_lists(&mut self) -> Vec<List> {
        let is_long = |list: &Counted, counted: &mut (i64, Arc<CountedValues>)| {
            let counts = list.kind.facets[list.facet].counts;
            counted.0 != 0 && matches!(counts, Counts::Strings(_)) && counted.1.is_long()
        };
        self.lists.extract_if(is_long).collect()
    }

    /// Puts such a list back, to be counted value by value.
    pub(crate) fn put_back(&mut self, (list, counted): List) {
        self.lists.insert(list, counted);
    }

    fn take_lists(&mut self) -> Vec<List> {
        self.lists.drain().filter(|it| it.1.0 != 0).collect()
    }

    /// Returns the amount to add to each count, in key order.
    fn drain<'d>(&mut self, lists: &'d [List], more: &[Count<'d>]) -> Vec<Difference<'d>> {
        let mut facets: BTreeMap<(&'static str, &'static str), Vec<InFacet<'d>>> = BTreeMap::new();
        for (kind, facet, class, value, n) in more {
            let counts = facets.entry((kind, facet)).or_default();
            counts.extend([ALL_CLASSES, class.0].map(|class| (class, *value, *n)));
        }
        for ((kind, class), difference) in self.records.drain() {
            let counts = facets.entry((kind, RECORDS)).or_default();
            counts.extend([ALL_CLASSES, class.0].map(|class| (class, "", difference)));
        }
        for (list, (difference, values)) in lists {
            let counts = facets.entry((list.kind.name, list.facet_name())).or_default();
            for value in values.values() {
                counts.extend([ALL_CLASSES, list.class.0].map(|class| (class, value, *difference)));
            }
        }
        for (kind, n) in self.changes.drain() {
            facets.entry((kind, CHANGES)).or_default().push((ALL_CLASSES, "", n));
        }
        let mut all = Vec::new();
        for ((kind, facet), mut counts) in facets {
            counts.sort_unstable();
            let same_place = counts.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
            let sums = same_place.map(|it| (it[0].0, it[0].1, it.iter().map(|it| it.2).sum()));
            let changed = sums.filter(|it: &InFacet<'_>| it.2 != 0);
            all.extend(changed.map(|(class, value, n)| Difference { kind, facet, class, value, n }));
        }
        all
    }
}

/// Counts of bulk loads into empty kinds that are not written yet: a million records of random values change a million
/// counts over and over, which costs only a tenth as much in memory. Readers that find [`BEHIND`] compute the counts
/// themselves; a tenant left in that state has its counts recomputed from the bodies when it is opened.
#[derive(Debug, Default)]
pub(crate) struct PutOff {
    kinds: Vec<&'static str>,
    counts: HashMap<Counted, (i64, String), MarkHasher>,
}

/// How a batch changes [`PutOff`] once it is committed.
#[derive(Debug, Default)]
pub(crate) struct Settlement {
    kinds: Vec<&'static str>,
    kept: Lists,
    /// Whether the deferred counts are written with the batch.
    is_written: bool,
    /// Kinds whose load ended.
    pub(crate) ended: Vec<&'static str>,
}

/// Kind, facet, class, value, difference.
pub(crate) type Count<'a> = (&'static str, &'static str, Class, &'a str, i64);

impl PutOff {
    /// Returns whether no load is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Writes the differences except those that can wait, plus deferred ones that can wait no longer.
    pub(crate) fn flush(&self, counters: &mut Counters, session: &mut Session<'_>) -> Result<Settlement> {
        let mut now = Settlement { kinds: self.kinds.clone(), ..Settlement::default() };
        for (kind, begins) in std::mem::take(&mut counters.loads) {
            if begins {
                now.kinds.push(kind);
            } else if now.kinds.contains(&kind) {
                now.kinds.retain(|it| *it != kind);
                now.ended.push(kind);
            }
        }
        now.is_written = !now.ended.is_empty() || COUNTS_PUT_OFF < self.counts.len();
        if !now.is_written {
            if !now.kinds.is_empty() {
                now.kept = counters.lists.extract_if(|list, _| now.kinds.contains(&list.kind.name)).collect();
            }
            counters.flush(session)?;
            return Ok(now);
        }
        let counts = self
            .counts
            .iter()
            .map(|(it, (n, value))| (it.kind.name, it.facet_name(), it.class, value.as_str(), *n));
        counters.flush_with(session, &counts.collect::<Vec<_>>())?;
        now.ended.iter().try_for_each(|kind| unmark_behind(session, kind))?;
        Ok(now)
    }

    /// Applies a batch after its commit.
    pub(crate) fn committed(&mut self, batch: Settlement) {
        self.kinds = batch.kinds;
        if batch.is_written {
            self.counts = HashMap::default();
        }
        for (list, (n, values)) in batch.kept {
            for (mark, value) in values.marked_values() {
                let value = || (0, value.clone());
                self.counts.entry(Counted { mark: *mark, ..list }).or_insert_with(value).0 += n;
            }
        }
    }

    /// Ends every load.
    pub(crate) fn end(&self, counters: &mut Counters) {
        counters.loads.extend(self.kinds.iter().map(|kind| (*kind, false)));
    }
}

/// Marks the lists of a kind as not up to date.
pub(crate) fn mark_behind(session: &mut Session<'_>, kind: &str) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO facet (kind, facet, class, value, n) VALUES (?1, ?2, ?3, '', 1)";
    session.execute(sql, &[kind.into(), BEHIND.into(), ALL_CLASSES.into()]).map(|_| ())
}

/// Removes that mark.
pub(crate) fn unmark_behind(session: &mut Session<'_>, kind: &str) -> Result<()> {
    session
        .execute("DELETE FROM facet WHERE kind = ?1 AND facet = ?2", &[kind.into(), BEHIND.into()])
        .map(|_| ())
}

/// Returns whether the lists of a kind are not up to date; never so in PostgreSQL.
pub(crate) fn is_behind(session: &mut Session<'_>, kind: &str) -> Result<bool> {
    if session.flavour() == Flavour::Postgres {
        return Ok(false);
    }
    let sql = "SELECT 1 FROM facet WHERE kind = ?1 AND facet = ?2 AND class = ?3 AND value = ''";
    Ok(session.first(sql, &[kind.into(), BEHIND.into(), ALL_CLASSES.into()], |_| Ok(()))?.is_some())
}

/// Class, value, difference.
type InFacet<'d> = (i64, &'d str, i64);

/// The amount to add to a count.
struct Difference<'d> {
    kind: &'static str,
    facet: &'static str,
    class: i64,
    value: &'d str,
    n: i64,
}

impl Difference<'_> {
    /// Binds the parameters that identify the count.
    fn bind_place(&self, statement: &mut CachedStatement<'_>) -> Result<()> {
        statement.raw_bind_parameter(1, self.kind)?;
        statement.raw_bind_parameter(2, self.facet)?;
        statement.raw_bind_parameter(3, self.class)?;
        Ok(statement.raw_bind_parameter(4, self.value)?)
    }
}

/// Returns the slot, followed by a list for each column.
fn postgres_values(all: &[Difference<'_>], slot: i64) -> [Cell; 6] {
    let texts = |text: &dyn Fn(&Difference<'_>) -> Cell| Cell::Set(all.iter().map(text).collect());
    [
        slot.into(),
        texts(&|it| it.kind.into()),
        texts(&|it| it.facet.into()),
        Cell::Ints(all.iter().map(|it| it.class).collect()),
        texts(&|it| it.value.into()),
        Cell::Ints(all.iter().map(|it| it.n).collect()),
    ]
}

const ADD_ALL: &str = "INSERT INTO facet (kind, facet, class, value, slot, n) \
     SELECT u.kind, u.facet, u.class, u.value, ?1, u.n \
     FROM unnest(?2::text[], ?3::text[], ?4::bigint[], ?5::text[], ?6::bigint[]) u (kind, facet, class, value, n) \
     ON CONFLICT (kind, facet, class, value, slot) DO UPDATE SET n = facet.n + excluded.n";

const ADD: &str = "INSERT INTO facet (kind, facet, class, value, n) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT (kind, facet, class, value) DO UPDATE SET n = facet.n + excluded.n";
const DROP_ZERO: &str =
    "DELETE FROM facet WHERE kind = ?1 AND facet = ?2 AND class = ?3 AND value = ?4 AND n = 0";
