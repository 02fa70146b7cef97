//! Checks that an index agrees with the records: each is in it once, as of its last change.

use std::collections::HashMap;

use super::layout::{KEY, SEQUENCE};
use crate::{Kind, Result, View};

/// Returns the inconsistencies; none where no index is published.
pub(crate) fn check(view: &mut View<'_>, kind: &'static Kind) -> Result<Vec<String>> {
    let Some(snapshot) = view.indexes.as_ref().and_then(|it| it.get(kind.name).cloned()) else {
        return Ok(Vec::new());
    };
    let mut lines = Vec::new();
    match snapshot.searcher.index().validate_checksum() {
        Ok(damaged) if damaged.is_empty() => {}
        Ok(damaged) => lines.push(format!("the search index has {} damaged files", damaged.len())),
        Err(error) => lines.push(format!("the search index cannot be read: {error}")),
    }
    let mut held: HashMap<i64, i64> = HashMap::new();
    let mut n_twice = 0_u64;
    for segment in snapshot.searcher.segment_readers() {
        let (keys, sequences) = (segment.fast_fields().i64(KEY)?, segment.fast_fields().i64(SEQUENCE)?);
        for doc in segment.doc_ids_alive() {
            let (Some(key), Some(sequence)) = (keys.first(doc), sequences.first(doc)) else { continue };
            n_twice += u64::from(held.insert(key, sequence).is_some());
        }
    }
    if n_twice != 0 {
        lines.push(format!("{n_twice} records are in the search index more than once"));
    }
    let (mut n_missing, mut n_old) = (0_u64, 0_u64);
    let sql = format!("SELECT key, sequence FROM \"k_{}\"", kind.name);
    let covered = snapshot.covered.cast_signed();
    view.session.rows(&sql, &[], |row| {
        let (key, sequence) = (row.int(0)?, row.int(1)?);
        match held.remove(&key) {
            _ if covered < sequence => {}
            None => n_missing += 1,
            Some(found) if found != sequence => n_old += 1,
            Some(_) => {}
        }
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    // Records deleted since the commit are still in it.
    let sql = "SELECT count(*) FROM tombstone WHERE kind = ?1 AND ?2 < sequence";
    let n_deleted =
        view.session.first(sql, &[kind.name.into(), covered.into()], |row| row.int(0))?.unwrap_or(0);
    if n_deleted.cast_unsigned() < held.len() as u64 {
        lines.push(format!("{} records are in the search index that are not there", held.len()));
    }
    for (n, what) in
        [(n_missing, "are not in the search index"), (n_old, "are in the search index as they were")]
    {
        if n != 0 {
            lines.push(format!("{n} records {what}"));
        }
    }
    Ok(lines)
}
