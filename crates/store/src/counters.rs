//! Counts kept up by the difference: how many records of a class have a value.
//!
//! A transaction gathers its differences here; they are written together before the commit, so that a
//! thousand inserts of one type cost one update of its count.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use crate::document::Taken;
use crate::postgres::PgSession;
use crate::session::{Cell, Session};
use crate::{Class, Kind, Result};

/// Stands for all classes together.
pub(crate) const ALL_CLASSES: i64 = 0;

/// The facet that counts records themselves, under the empty value.
pub(crate) const RECORDS: &str = "";

/// The facet that counts changes of a kind, where sequence numbers alone do not tell that content is new.
pub(crate) const CHANGES: &str = "*";

/// Differences not written yet, by kind, facet and class. Those of all classes together are summed when they are
/// written.
#[derive(Debug, Default)]
pub(crate) struct Counters(HashMap<(&'static str, &'static str, i64), Counts>);

/// Differences of one facet of one class, by value.
type Counts = HashMap<String, i64>;

impl Counters {
    /// Counts a record in (`difference` 1) or out (-1).
    pub(crate) fn count(&mut self, kind: &'static Kind, taken: &Taken, difference: i64) {
        add(self.of(kind.name, RECORDS, taken.class), "", difference);
        for of_facet in taken.counted.chunk_by(|a, b| a.0 == b.0) {
            let counts = self.of(kind.name, kind.facets[of_facet[0].0].name, taken.class);
            for (_, value) in of_facet {
                add(counts, value, difference);
            }
        }
    }

    /// Notes a change of a record, for [`CHANGES`].
    pub(crate) fn note_change(&mut self, kind: &'static Kind) {
        add(self.0.entry((kind.name, CHANGES, ALL_CLASSES)).or_default(), "", 1);
    }

    fn of(&mut self, kind: &'static str, facet: &'static str, class: Class) -> &mut Counts {
        self.0.entry((kind, facet, class.0)).or_default()
    }

    /// Takes over the differences of a part that succeeded.
    pub(crate) fn absorb(&mut self, part: Self) {
        for (key, counts) in part.0 {
            match self.0.entry(key) {
                Entry::Vacant(vacant) => {
                    vacant.insert(counts);
                }
                Entry::Occupied(mut own) => {
                    for (value, difference) in counts {
                        *own.get_mut().entry(value).or_default() += difference;
                    }
                }
            }
        }
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
        let mut all = BTreeMap::new();
        for ((kind, facet, class), counts) in self.0.drain() {
            for (value, difference) in counts {
                *all.entry((kind, facet, ALL_CLASSES, value.clone())).or_insert(0) += difference;
                if class != ALL_CLASSES {
                    *all.entry((kind, facet, class, value)).or_insert(0) += difference;
                }
            }
        }
        let changed = all.into_iter().filter(|it| it.1 != 0);
        changed.map(|((kind, facet, class, value), n)| (kind, facet, class, value, n)).collect()
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

fn add(counts: &mut Counts, value: &str, difference: i64) {
    match counts.get_mut(value) {
        Some(n) => *n += difference,
        None => {
            counts.insert(value.to_owned(), difference);
        }
    }
}

const ADD: &str = "INSERT INTO facet (kind, facet, class, value, n) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT (kind, facet, class, value) DO UPDATE SET n = facet.n + excluded.n";
const DROP_ZERO: &str =
    "DELETE FROM facet WHERE kind = ?1 AND facet = ?2 AND class = ?3 AND value = ?4 AND n = 0";
