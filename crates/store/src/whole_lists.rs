//! Counts of long lists as wholes: one row for each list in each class, so that a record with a hundred metadata keys
//! changes one number instead of two hundred.
//!
//! Such a count is in addition to those in table `facet`, for its class and for all classes together. Only lists of
//! [`Counts::Strings`] are counted this way: no condition and no query plan needs their values. They are added to
//! `facet` when a file is opened by the only process that has it open. Only in the embedded engine; in PostgreSQL,
//! sessions count in rows of their own slots, which are summed.

use std::collections::{HashMap, HashSet};

use crate::cell::Cell;
use crate::counters::{Count, Counted, Counters, List};
use crate::marks::MarkHasher;
use crate::session::Session;
use crate::{Class, Counts, Kind, Result, StoreError};

/// Creates the table, as part of a file's layout. Row numbers are never reused: another process may have deleted a row.
pub(crate) const TABLE: &str = "CREATE TABLE IF NOT EXISTS facet_list (row INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, facet TEXT NOT NULL, class INTEGER NOT NULL, list TEXT NOT NULL, n INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS facet_list_facet ON facet_list (kind, facet);";

/// Maximum number of rows that a process creates: reading the facet reads them all.
const MOST_ROWS: usize = 1_024;
/// Maximum number of remembered lists that occurred once; with more, all are forgotten.
const MOST_MET: usize = 4_096;

/// The rows that this process has created in a file.
#[derive(Debug, Default)]
pub(crate) struct WholeLists {
    rows: HashMap<Counted, i64, MarkHasher>,
    /// Lists that have occurred in one batch so far: most that occur in two occur in many.
    met: HashSet<Counted, MarkHasher>,
}

/// How a batch changes [`WholeLists`] once it is committed.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    made: Vec<(Counted, i64)>,
    gone: Vec<Counted>,
    met: Vec<Counted>,
}

impl WholeLists {
    /// Moves the lists that have a row, or are to get one, out of the counts to be written value by value, and writes
    /// them.
    pub(crate) fn flush(&self, counters: &mut Counters, session: &mut Session<'_>) -> Result<Changed> {
        let mut changed = Changed::default();
        for list in counters.take_long_lists() {
            let at = list.0;
            match self.rows.get(&at) {
                Some(row) => {
                    let sql = "UPDATE facet_list SET n = n + ?1 WHERE row = ?2";
                    if session.execute(sql, &[list.1.0.into(), (*row).into()])? == 1 {
                        continue;
                    }
                    changed.gone.push(at);
                }
                None if self.met.contains(&at) && self.rows.len() + changed.made.len() < MOST_ROWS => {
                    changed.made.push((at, insert(session, &list)?));
                    continue;
                }
                None => changed.met.push(at),
            }
            counters.put_back(list);
        }
        Ok(changed)
    }

    /// Applies a batch after its commit.
    pub(crate) fn committed(&mut self, batch: Changed) {
        self.rows.extend(batch.made);
        for gone in batch.gone {
            self.rows.remove(&gone);
        }
        if MOST_MET < self.met.len() + batch.met.len() {
            self.met.clear();
        }
        self.met.extend(batch.met);
    }
}

fn insert(session: &mut Session<'_>, (list, (n, values)): &List) -> Result<i64> {
    let texts: Vec<&str> = values.values().collect();
    let json = serde_json::to_string(&texts).map_err(|error| StoreError::Damaged(error.to_string()))?;
    let row =
        [list.kind.name.into(), list.facet_name().into(), list.class.0.into(), Cell::Text(json), (*n).into()];
    let sql = "INSERT INTO facet_list (kind, facet, class, list, n) VALUES (?1, ?2, ?3, ?4, ?5)";
    session.execute(sql, &row)?;
    Ok(session.embedded()?.last_insert_rowid())
}

/// Returns the rows of a facet: class, list as JSON, number of records that have it.
fn rows(session: &mut Session<'_>, kind: &Kind, facet: &str) -> Result<Vec<(i64, String, i64)>> {
    let sql = "SELECT class, list, n FROM facet_list WHERE kind = ?1 AND facet = ?2 AND n <> 0";
    session.all(sql, &[kind.name.into(), facet.into()], |row| Ok((row.int(0)?, row.text(1)?, row.int(2)?)))
}

fn values(kind: &Kind, list: &str) -> Result<Vec<String>> {
    serde_json::from_str(list)
        .map_err(|error| StoreError::Damaged(format!("{}: a list that is counted: {error}", kind.name)))
}

/// Returns each list of a facet that is counted as a whole, with its class and the number of records that have it.
pub(crate) fn by_class(
    session: &mut Session<'_>,
    kind: &Kind,
    facet: &str,
) -> Result<Vec<(Class, Vec<String>, i64)>> {
    let rows = rows(session, kind, facet)?;
    rows.into_iter().map(|(class, list, n)| Ok((Class(class), values(kind, &list)?, n))).collect()
}

/// Returns the lists summed over all classes, or over some.
pub(crate) fn summed(
    session: &mut Session<'_>,
    kind: &Kind,
    facet: &str,
    classes: Option<&[i64]>,
) -> Result<Vec<(Vec<String>, i64)>> {
    let mut sums: HashMap<String, i64> = HashMap::new();
    for (class, list, n) in rows(session, kind, facet)? {
        if classes.is_none_or(|classes| classes.contains(&class)) {
            *sums.entry(list).or_default() += n;
        }
    }
    sums.into_iter().map(|(list, n)| Ok((values(kind, &list)?, n))).collect()
}

/// Adds the rows of a kind to the counts of single values.
pub(crate) fn fold(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    for facet in kind.facets.iter().filter(|it| matches!(it.counts, Counts::Strings(_))) {
        let lists = by_class(session, kind, facet.name)?;
        let counts: Vec<Count<'_>> = lists
            .iter()
            .flat_map(|(class, values, n)| {
                values.iter().map(|value| (kind.name, facet.name, *class, value.as_str(), *n))
            })
            .collect();
        Counters::default().flush_with(session, &counts)?;
    }
    forget(session, kind)
}

/// Drops the rows of a kind.
pub(crate) fn forget(session: &mut Session<'_>, kind: &Kind) -> Result<()> {
    session.execute("DELETE FROM facet_list WHERE kind = ?1", &[kind.name.into()]).map(|_| ())
}
