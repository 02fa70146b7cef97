//! Counts kept up by the difference: how many records of a class have a value.
//!
//! A transaction gathers its differences here; they are written together before the commit, so that a
//! thousand inserts of one type cost one update of its count.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::document::{CountedValues, Taken};
use crate::postgres::PgSession;
use crate::session::{Cell, Session};
use crate::{Class, Kind, Result};

/// Stands for all classes together.
pub(crate) const ALL_CLASSES: i64 = 0;

/// The facet that counts records themselves, under the empty value.
pub(crate) const RECORDS: &str = "";

/// The facet that counts changes of a kind, where sequence numbers alone do not tell that content is new.
pub(crate) const CHANGES: &str = "*";

/// Differences not written yet. Those of all classes together are summed when they are written.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Records, by kind and class.
    records: HashMap<(&'static str, Class), i64>,
    /// Records with a list of values, by kind, facet, class and list: a thousand records with the same hundred
    /// values are one entry.
    lists: HashMap<(&'static str, &'static str, Class, Arc<CountedValues>), i64>,
    /// Changes, by kind, for [`CHANGES`].
    changes: HashMap<&'static str, i64>,
}

impl Counters {
    /// Counts a record in (`difference` 1) or out (-1).
    pub(crate) fn count(&mut self, kind: &'static Kind, taken: &Taken, difference: i64) {
        *self.records.entry((kind.name, taken.class)).or_default() += difference;
        for (facet, values) in &taken.counted {
            let list = (kind.name, kind.facets[*facet].name, taken.class, values.clone());
            *self.lists.entry(list).or_default() += difference;
        }
    }

    /// Notes a change of a record, for [`CHANGES`].
    pub(crate) fn note_change(&mut self, kind: &'static Kind) {
        *self.changes.entry(kind.name).or_default() += 1;
    }

    /// Takes over the differences of a part that succeeded.
    pub(crate) fn absorb(&mut self, part: Self) {
        fn add<K: Eq + Hash>(own: &mut HashMap<K, i64>, part: HashMap<K, i64>) {
            for (key, difference) in part {
                *own.entry(key).or_default() += difference;
            }
        }
        add(&mut self.records, part.records);
        add(&mut self.lists, part.lists);
        add(&mut self.changes, part.changes);
    }

    /// Writes the differences, in the order of their keys, so that concurrent writers meet in one order.
    pub(crate) fn flush(&mut self, session: &mut Session<'_>) -> Result<()> {
        let all = self.drain();
        if let Session::Postgres(session) = session {
            if !all.is_empty() {
                let values = postgres_values(&all, session.slot);
                session.execute(ADD_ALL, &values)?;
            }
            return Ok(());
        }
        for (kind, facet, class, value, difference) in all {
            let values = [kind.into(), facet.into(), class.into(), Cell::Text(value), difference.into()];
            session.execute(ADD, &values)?;
            if difference < 0 {
                session.execute(DROP_ZERO, &values[..4])?;
            }
        }
        Ok(())
    }

    /// Writes the differences in one flight with the commit.
    pub(crate) fn commit(mut self, session: &mut PgSession) -> Result<()> {
        let all = self.drain();
        if all.is_empty() {
            return session.commit(None);
        }
        let values = postgres_values(&all, session.slot);
        session.commit(Some((ADD_ALL, &values)))
    }

    fn drain(&mut self) -> Vec<Difference> {
        let lists: Vec<_> = self.lists.drain().filter(|it| it.1 != 0).collect();
        let mut all = Vec::new();
        for ((kind, class), difference) in self.records.drain() {
            all.extend([ALL_CLASSES, class.0].map(|class| (kind, RECORDS, class, "", difference)));
        }
        for ((kind, facet, class, list), difference) in &lists {
            for value in list.values() {
                let at = |class| (*kind, *facet, class, value.as_str(), *difference);
                all.extend([ALL_CLASSES, class.0].map(at));
            }
        }
        all.extend(self.changes.drain().map(|(kind, n)| (kind, CHANGES, ALL_CLASSES, "", n)));
        all.sort_unstable();
        let same_place = all.chunk_by(|a, b| (a.0, a.1, a.2, a.3) == (b.0, b.1, b.2, b.3));
        let sums = same_place
            .map(|it| (it[0].0, it[0].1, it[0].2, it[0].3.to_owned(), it.iter().map(|it| it.4).sum()));
        sums.filter(|it| it.4 != 0).collect()
    }
}

/// Kind, facet, class, value, difference.
type Difference = (&'static str, &'static str, i64, String, i64);

/// The slot, then a list for each column.
fn postgres_values(all: &[Difference], slot: i64) -> [Cell; 6] {
    let texts =
        |text: fn(&Difference) -> &str| Cell::Set(all.iter().map(|it| Cell::from(text(it))).collect());
    [
        slot.into(),
        texts(|it| it.0),
        texts(|it| it.1),
        Cell::Ints(all.iter().map(|it| it.2).collect()),
        texts(|it| &it.3),
        Cell::Ints(all.iter().map(|it| it.4).collect()),
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
