//! Counts kept up by the difference: how many records of a class have a value.
//!
//! A transaction gathers its differences here; they are written together before the commit, so that a
//! thousand inserts of one type cost one update of its count.

use std::collections::HashMap;

use crate::document::Taken;
use crate::session::{Cell, Session};
use crate::{Class, Kind, Result};

/// Stands for all classes together.
pub(crate) const ALL_CLASSES: i64 = 0;

/// The facet that counts records themselves, under the empty value.
pub(crate) const RECORDS: &str = "";

/// Differences not written yet, by kind, facet, class and value.
#[derive(Debug, Default)]
pub(crate) struct Counters(HashMap<(&'static str, &'static str), Counts>);

/// Differences of one facet of one kind, by class and value.
type Counts = HashMap<(i64, String), i64>;

impl Counters {
    /// Counts a record in (`difference` 1) or out (-1).
    pub(crate) fn count(&mut self, kind: &'static Kind, taken: &Taken, difference: i64) {
        self.add(kind.name, RECORDS, taken.class, "", difference);
        for (facet, value) in &taken.counted {
            self.add(kind.name, kind.facets[*facet].name, taken.class, value, difference);
        }
    }

    fn add(&mut self, kind: &'static str, facet: &'static str, class: Class, value: &str, difference: i64) {
        let counts = self.0.entry((kind, facet)).or_default();
        for class in [ALL_CLASSES, class.0] {
            *counts.entry((class, value.to_owned())).or_default() += difference;
        }
    }

    /// Takes over the differences of a part that succeeded.
    pub(crate) fn absorb(&mut self, part: Self) {
        for (key, counts) in part.0 {
            let own = self.0.entry(key).or_default();
            for (value, difference) in counts {
                *own.entry(value).or_default() += difference;
            }
        }
    }

    /// Writes the differences, in the order of their keys, so that concurrent writers meet in one order.
    pub(crate) fn flush(&mut self, session: &mut Session<'_>) -> Result<()> {
        let mut all: Vec<_> = self
            .0
            .drain()
            .flat_map(|((kind, facet), counts)| {
                counts.into_iter().map(move |((class, value), n)| (kind, facet, class, value, n))
            })
            .filter(|it| it.4 != 0)
            .collect();
        all.sort_unstable();
        for (kind, facet, class, value, difference) in all {
            let values = [kind.into(), facet.into(), class.into(), Cell::Text(value), difference.into()];
            session.execute(ADD, &values)?;
            if difference < 0 {
                session.execute(DROP_ZERO, &values[..4])?;
            }
        }
        Ok(())
    }
}

const ADD: &str = "INSERT INTO facet (kind, facet, class, value, n) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT (kind, facet, class, value) DO UPDATE SET n = facet.n + excluded.n";
const DROP_ZERO: &str =
    "DELETE FROM facet WHERE kind = ?1 AND facet = ?2 AND class = ?3 AND value = ?4 AND n = 0";
