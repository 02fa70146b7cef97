//! A snapshot of a tenant: reading by id, by query, by identifier, by link; counts and facets.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use crate::budget::Budget;
use crate::cell::Cell;
use crate::classes::Classes;
use crate::counters::CHANGES;
use crate::error::outdated;
use crate::identifiers;
use crate::index::{Indexes, Remembered, Snapshots};
use crate::kind_statements::KindStatements;
use crate::pace::Pace;
use crate::pending_links;
use crate::postgres::Side;
use crate::reads::Reads;
use crate::remake::{self, Remake, Remakes, Remaking, UnderWay};
use crate::row::Row;
use crate::session::{Flavour, HORIZON, Session, State};
use crate::statements::Statements;
use crate::{Change, Class, Kind, Limits, Record, Result};

/// State that all sessions of a tenant share.
pub(crate) struct Shared {
    pub(crate) kinds: &'static [&'static Kind],
    pub(crate) statements: Statements,
    pub(crate) classes: Classes,
    /// The session that stores classes, in the engine that has one.
    pub(crate) side: Option<Side>,
    /// The search indexes, once they are open.
    pub(crate) indexes: OnceLock<Arc<Indexes>>,
    /// Kinds that are being rebuilt.
    pub(crate) remakes: Remakes,
    /// How often declarations had changed when the tenant was opened; see [`remake::declared`].
    pub(crate) declared: AtomicI64,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
}

impl Shared {
    /// Returns the published search indexes.
    pub(crate) fn published(&self) -> Option<Arc<Snapshots>> {
        self.indexes.get().map(|it| it.current())
    }
}

/// A snapshot: what it reads does not change while it lives.
pub struct View<'a> {
    pub(crate) session: Session<'a>,
    pub(crate) state: State,
    pub(crate) shared: &'a Shared,
    /// Kinds that were being rebuilt before the snapshot began, as far as this process knows.
    pub(crate) remakes: Option<Arc<UnderWay>>,
    /// The search indexes as they were before the snapshot began; `None` where there are none.
    pub(crate) indexes: Option<Arc<Snapshots>>,
    /// Limits the statements of the embedded engine outside transactions.
    pub(crate) pace: Option<&'a Pace>,
    /// What it has read.
    pub(crate) reads: Reads,
    /// What it has asked the search indexes already.
    pub(crate) remembered: Remembered,
}

impl<'a> View<'a> {
    /// Returns the number of member lists that no record has taken over yet.
    pub fn n_staged_lists(&mut self) -> Result<u64> {
        let n = self.session.first("SELECT count(*) FROM staging", &[], |row| row.int(0))?;
        Ok(n.unwrap_or(0).cast_unsigned())
    }

    /// Returns the class fields of a class of `kind` as an object. See [`Kind::class_fields`].
    pub fn class(&mut self, kind: &'static Kind, class: Class) -> Result<Arc<Json>> {
        if let Some(fields) = self.remaking(kind).and_then(|it| it.class(class)) {
            return Ok(fields);
        }
        if !self.shared.classes.knows(kind, class) {
            self.require_declared()?;
        }
        self.shared.classes.fields(&mut self.session, self.state, kind, class)
    }

    /// Returns the records that carry an identifier: (kind, id). DOIs (scheme `doi`) match in any case, with or without
    /// resolver.
    pub fn by_identifier(&mut self, scheme: &str, value: &str) -> Result<Vec<(String, String)>> {
        self.require_identifiers(scheme)?;
        let sql = "SELECT kind, id FROM identifier WHERE scheme = ?1 AND value = ?2 ORDER BY kind, id";
        let key = identifiers::key(scheme, value);
        self.session.all(sql, &[scheme.into(), key.as_str().into()], |row| Ok((row.text(0)?, row.text(1)?)))
    }

    /// Returns at most `limit` distinct values of a scheme after `after`, in byte order.
    pub fn identifiers(&mut self, scheme: &str, after: &str, limit: u32) -> Result<Vec<String>> {
        self.require_identifiers(scheme)?;
        let sql =
            "SELECT DISTINCT value FROM identifier WHERE scheme = ?1 AND ?2 < value ORDER BY value LIMIT ?3";
        let values = [scheme.into(), after.into(), u64::from(limit).into()];
        self.session.all(sql, &values, |row| row.text(0))
    }

    /// Returns at most `limit` records that link to a record, from after (kind, id) `after`.
    pub fn links_to(
        &mut self,
        kind: &Kind,
        id: &str,
        relation: &str,
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<(String, String)>> {
        self.require_links(kind, relation)?;
        let sql = format!(
            "SELECT kind, id FROM {} WHERE to_kind = ?1 AND target = ?2 AND relation = ?3 \
             AND (kind, id) > (?4, ?5) ORDER BY kind, id LIMIT ?6",
            pending_links::source(&mut self.session)?
        );
        let values = [
            kind.name.into(),
            id.into(),
            relation.into(),
            after.0.into(),
            after.1.into(),
            u64::from(limit).into(),
        ];
        self.session.all(&sql, &values, |row| Ok((row.text(0)?, row.text(1)?)))
    }

    /// Returns links of one relation whose targets lie in the range from `low` to below `high`: at most `limit` pairs
    /// (target, id), ordered by target and id, from after (target, id) `after`. For kinds whose links are composed of
    /// several values: those with the same leading values form a range.
    pub fn links_within(
        &mut self,
        kind: &Kind,
        relation: &str,
        (low, high): (&str, &str),
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<(String, String)>> {
        self.require_links(kind, relation)?;
        // One range of the index in its order. SQLite, which would sort all links of each target if it knew that the
        // columns in the middle of the order have one value, is not told so.
        let hidden = if self.session.flavour() == Flavour::Sqlite { "+" } else { "" };
        let sql = format!(
            "SELECT target, id FROM {} WHERE to_kind = ?1 AND (target, relation, kind, id) > (?2, ?3, ?1, ?4) \
             AND target < ?5 AND {hidden}relation = ?3 AND {hidden}kind = ?1 \
             ORDER BY target, relation, kind, id LIMIT ?6",
            pending_links::source(&mut self.session)?
        );
        let after = if after.0 < low { (low, "") } else { after };
        let values = [
            kind.name.into(),
            after.0.into(),
            relation.into(),
            after.1.into(),
            high.into(),
            u64::from(limit).into(),
        ];
        self.session.all(&sql, &values, |row| Ok((row.text(0)?, row.text(1)?)))
    }

    /// Returns a number such that [`View::changes`] after it yields the changes after this snapshot.
    pub fn sequence(&mut self) -> Result<u64> {
        if self.session.flavour() == Flavour::Postgres {
            let sql = format!("SELECT {HORIZON} - 1");
            return Ok(self.session.first(&sql, &[], |row| row.int(0))?.unwrap_or(0).cast_unsigned());
        }
        let mut last = 0;
        for kind in self.shared.kinds {
            last = last.max(self.kind_sequence(kind)?);
        }
        Ok(last)
    }

    /// Returns a number that grows with every change of any record of `kind`, deletions included: equal numbers mean
    /// equal records. In the embedded engine it is the number of the last change.
    pub fn kind_sequence(&mut self, kind: &Kind) -> Result<u64> {
        if self.session.flavour() == Flavour::Postgres {
            let sql = "SELECT CAST(sum(n) AS bigint) FROM facet WHERE kind = ?1 AND facet = ?2 AND class = 0 AND value = ''";
            let n =
                self.session.first(sql, &[kind.name.into(), CHANGES.into()], |row| row.optional_int(0))?;
            return Ok(n.flatten().unwrap_or(0).cast_unsigned());
        }
        let sql = format!("SELECT {}", Flavour::Sqlite.last_change(kind.name));
        Ok(self.session.first(&sql, &[], |row| row.int(0))?.unwrap_or(0).cast_unsigned())
    }

    /// Returns changes after number `after`, oldest first: at most `limit`, plus the remaining ones with the number of
    /// the last. Where several servers write, changes are returned once no older one can appear any more.
    pub fn changes(&mut self, after: u64, limit: u32) -> Result<Vec<Change>> {
        let mut list = Vec::new();
        let window = match self.session.flavour() {
            Flavour::Sqlite => "ORDER BY sequence LIMIT ?2".to_owned(),
            Flavour::Postgres => {
                format!("AND sequence < {HORIZON} ORDER BY sequence FETCH FIRST ?2 ROWS WITH TIES")
            }
        };
        for kind in self.shared.kinds {
            let sql = format!("SELECT sequence, id FROM \"k_{}\" WHERE ?1 < sequence {window}", kind.name);
            list.extend(self.session.all(&sql, &[after.into(), u64::from(limit).into()], |row| {
                Ok(Change {
                    sequence: row.int(0)?.cast_unsigned(),
                    kind: kind.name.to_owned(),
                    id: row.text(1)?,
                    deleted: false,
                })
            })?);
        }
        let sql = format!("SELECT sequence, kind, id FROM tombstone WHERE ?1 < sequence {window}");
        list.extend(self.session.all(&sql, &[after.into(), u64::from(limit).into()], |row| {
            Ok(Change {
                sequence: row.int(0)?.cast_unsigned(),
                kind: row.text(1)?,
                id: row.text(2)?,
                deleted: true,
            })
        })?);
        list.sort_by_key(|it| it.sequence);
        let last = (limit as usize).checked_sub(1).and_then(|place| list.get(place)).map(|it| it.sequence);
        list.retain(|it| limit != 0 && last.is_none_or(|last| it.sequence <= last));
        Ok(list)
    }

    /// Returns deletions after number `after` in a tenant that nobody writes to: at most `limit`, plus the remaining
    /// ones with the number of the last.
    pub(crate) fn deletions(&mut self, after: u64, limit: u32) -> Result<Vec<Change>> {
        let window = match self.session.flavour() {
            Flavour::Sqlite => "LIMIT ?2",
            Flavour::Postgres => "FETCH FIRST ?2 ROWS WITH TIES",
        };
        let sql = format!(
            "SELECT sequence, kind, id FROM tombstone WHERE ?1 < sequence ORDER BY sequence {window}"
        );
        self.session.all(&sql, &[after.into(), u64::from(limit).into()], |row| {
            let (sequence, kind, id) = (row.int(0)?.cast_unsigned(), row.text(1)?, row.text(2)?);
            Ok(Change { sequence, kind, id, deleted: true })
        })
    }

    /// Returns what this process knows of a kind's rebuild, if there is one.
    pub(crate) fn remaking(&self, kind: &Kind) -> Option<Arc<Remaking>> {
        self.remakes.as_ref()?.get(kind.name).cloned()
    }

    /// Returns the progress of a kind's rebuild; `None` when nothing is missing.
    pub(crate) fn remake(&mut self, kind: &'static Kind) -> Result<Option<Remake>> {
        if self.remaking(kind).is_none() { Ok(None) } else { remake::read(&mut self.session, kind) }
    }

    /// Gives records the classes of the current declaration, where rows may have others.
    pub(crate) fn classify(&mut self, kind: &'static Kind, records: &mut [Record]) -> Result<()> {
        let Some(remaking) = self.remaking(kind).filter(|it| it.lacks_classes()) else { return Ok(()) };
        records.iter_mut().try_for_each(|it| remaking.classify(kind, it))
    }

    /// Checks that declarations are unchanged. Errors: another program has changed them since the tenant was opened.
    /// Writers find that out by themselves.
    pub(crate) fn require_declared(&mut self) -> Result<()> {
        if self.state == State::Open {
            return Ok(());
        }
        let declared = self.shared.declared.load(Ordering::Acquire);
        match &mut self.session {
            Session::Postgres(session) => session.require_declared(declared),
            Session::Asked(asked) => {
                asked.require_declared(declared);
                Ok(())
            }
            session @ Session::Sqlite(_) => {
                if remake::declared(session)? == declared {
                    Ok(())
                } else {
                    Err(outdated())
                }
            }
        }
    }

    /// Checks that identifiers can be looked up. Errors: some identifiers of a scheme are not rebuilt yet.
    fn require_identifiers(&mut self, scheme: &str) -> Result<()> {
        self.require_declared()?;
        self.require(|it, kind| it.lacks_identifiers(kind, scheme))
    }

    /// Checks that links can be looked up. Errors: some links of a relation to a kind are not rebuilt yet.
    fn require_links(&mut self, to: &Kind, relation: &str) -> Result<()> {
        self.require_declared()?;
        self.require(|it, kind| it.lacks_links(kind, to.name, relation))
    }

    fn require(&mut self, lacks: impl Fn(&Remaking, &Kind) -> bool) -> Result<()> {
        let Some(remakes) = self.remakes.clone() else { return Ok(()) };
        for kind in self.shared.kinds {
            let is_lacking = remakes.get(kind.name).is_some_and(|it| lacks(it, kind));
            if is_lacking && remake::read(&mut self.session, kind)?.is_some() {
                return Err(remake::not_yet(kind));
            }
        }
        Ok(())
    }

    /// Checks the time limit. Errors: the read took too long.
    pub(crate) fn check_pace(&self) -> Result<()> {
        self.pace.map_or(Ok(()), Pace::check)
    }

    /// Returns the records in these rows, in the order of the rows.
    pub(crate) fn by_keys(&mut self, kind: &'static Kind, keys: &[i64]) -> Result<Vec<Record>> {
        let sql = &self.statements(kind)?.by_key;
        let has_list = kind.members.is_some();
        if self.session.flavour() == Flavour::Postgres {
            let mut found =
                self.session.all(sql, &[Cell::Ints(keys.to_vec())], |row| record(&row, has_list))?;
            self.classify(kind, &mut found)?;
            let mut by_key: HashMap<i64, Record> = found.into_iter().map(|it| (it.key, it)).collect();
            return Ok(keys.iter().filter_map(|key| by_key.remove(key)).collect());
        }
        let mut list = Vec::with_capacity(keys.len());
        for key in keys {
            list.extend(self.session.first(sql, &[(*key).into()], |row| record(&row, has_list))?);
        }
        self.classify(kind, &mut list)?;
        Ok(list)
    }

    /// Returns the statements of a kind.
    pub(crate) fn statements(&self, kind: &Kind) -> Result<&'a KindStatements> {
        self.shared.statements.kind(kind)
    }
}

/// Reads a record from a row of the statements that read whole records: key, id, version, sequence, class, body, list,
/// length.
pub(crate) fn record(row: &Row<'_, '_>, has_list: bool) -> Result<Record> {
    Ok(Record {
        key: row.int(0)?,
        id: row.text(1)?,
        version: row.int(2)?.cast_unsigned(),
        sequence: row.int(3)?.cast_unsigned(),
        class: Class(row.int(4)?),
        body: row.bytes(5)?,
        list: if has_list { row.optional_int(6)?.map(crate::ListId) } else { None },
        n_members: if has_list { row.optional_int(7)?.unwrap_or(0).cast_unsigned() } else { 0 },
    })
}
