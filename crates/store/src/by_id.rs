//! Reading by id. Where each statement takes a round trip, a snapshot keeps what it has read ([`Reads`]), and reads
//! together what it will be asked for one by one.
//!
//! [`Reads`]: crate::reads::Reads

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::cell::Cell;
use crate::reads::ANSWER_RECORDS;
use crate::session::Flavour;
use crate::view::record;
use crate::{Kind, Record, Result, View};

/// Maximum number of records of several kinds that are read ahead: for more, one statement for each kind is little.
const AHEAD_RECORDS: usize = 256;

impl View<'_> {
    /// Returns whether each read takes a round trip.
    pub fn is_remote(&self) -> bool {
        self.session.flavour() == Flavour::Postgres
    }

    /// Returns the record with this id.
    pub fn get(&mut self, kind: &'static Kind, id: &str) -> Result<Option<Record>> {
        if let Some(found) = self.reads.get(kind, id) {
            return Ok(found.clone());
        }
        let sql = &self.statements(kind)?.by_id;
        let has_list = kind.members.is_some();
        let mut found = self.session.first(sql, &[id.into()], |row| record(&row, has_list))?;
        self.classify(kind, found.as_mut_slice())?;
        if self.is_remote() {
            self.reads.limit();
            self.reads.room(kind, found.as_slice()).by_id.insert(id.to_owned(), found.clone());
        }
        Ok(found)
    }

    /// Returns whether a record with this id exists. Reads no body.
    pub fn has(&mut self, kind: &'static Kind, id: &str) -> Result<bool> {
        if let Some(found) = self.reads.get(kind, id) {
            return Ok(found.is_some());
        }
        let sql = &self.statements(kind)?.has;
        Ok(self.session.first(sql, &[id.into()], |_| Ok(()))?.is_some())
    }

    /// Reads the records with these ids together, so that [`View::get`] finds them without a round trip for each. Does
    /// nothing in the embedded engine. Who has many ids names them in steps of a page.
    pub fn read_ahead(&mut self, kind: &'static Kind, ids: impl IntoIterator<Item = String>) -> Result<()> {
        if !self.is_remote() {
            return Ok(());
        }
        let ids = self.unread(kind, ids);
        if ids.is_empty() {
            return Ok(());
        }
        let found = self.all_of(kind, &ids)?;
        self.reads.limit();
        for (id, found) in ids.into_iter().zip(found) {
            self.reads.room(kind, found.as_slice()).by_id.insert(id, found);
        }
        Ok(())
    }

    /// Reads a few records of several kinds ahead, in one statement: see [`View::read_ahead`]. Names each kind once. Does
    /// nothing for many.
    pub fn read_ahead_of(&mut self, wanted: &[(&'static Kind, Vec<&str>)]) -> Result<()> {
        if !self.is_remote() || AHEAD_RECORDS < wanted.iter().map(|it| it.1.len()).sum() {
            return Ok(());
        }
        let (mut parts, mut values, mut unread) = (Vec::new(), Vec::new(), Vec::new());
        for (kind, ids) in wanted {
            let ids = self.unread(kind, ids.iter().filter(|it| !it.is_empty()).map(|it| (*it).to_owned()));
            // A record with a list of members has more columns.
            if kind.members.is_some() {
                self.read_ahead(kind, ids)?;
                continue;
            }
            if !ids.is_empty() {
                let records = &self.statements(kind)?.records;
                let n = values.len();
                parts
                    .push(format!("SELECT p.*, {n}::bigint FROM ({records} WHERE r.id = ANY(?{})) p", n + 1));
                values.push(Cell::Set(ids.iter().cloned().map(Cell::Text).collect()));
                unread.push((*kind, ids));
            }
        }
        if parts.is_empty() {
            return Ok(());
        }
        let mut found: Vec<Vec<Record>> = unread.iter().map(|_| Vec::new()).collect();
        self.session.rows(&parts.join(" UNION ALL "), &values, |row| {
            let n = usize::try_from(row.int(6)?).unwrap_or(usize::MAX);
            if let Some(list) = found.get_mut(n) {
                list.push(record(&row, false)?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.reads.limit();
        for ((kind, ids), mut found) in unread.into_iter().zip(found) {
            self.classify(kind, &mut found)?;
            let room = self.reads.room(kind, &found);
            room.by_id.extend(ids.into_iter().map(|id| (id, None)));
            room.by_id.extend(found.into_iter().map(|it| (it.id.clone(), Some(it))));
        }
        Ok(())
    }

    /// Returns those ids of which nothing was read, each once.
    fn unread(&self, kind: &'static Kind, ids: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut ids: Vec<String> = ids.into_iter().filter(|it| self.reads.get(kind, it).is_none()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns the whole records that a statement of a database reads.
    pub(crate) fn records(&mut self, kind: &'static Kind, sql: &str, values: &[Cell]) -> Result<Vec<Record>> {
        let name = format!("{sql} {values:?}");
        if let Some(found) = self.reads.answer(kind, &name) {
            return Ok(found);
        }
        let has_list = kind.members.is_some();
        let mut found = self.session.all(sql, values, |row| record(&row, has_list))?;
        self.classify(kind, &mut found)?;
        if found.len() <= ANSWER_RECORDS {
            self.reads.limit();
            self.reads.room(kind, &found).answers.insert(name, found.clone());
        }
        Ok(found)
    }

    /// Returns the records with these ids, in the order of the ids, `None` where there is none.
    pub fn get_many(&mut self, kind: &'static Kind, ids: &[String]) -> Result<Vec<Option<Record>>> {
        let is_few = ids.len() <= ANSWER_RECORDS || ids.iter().all(|id| self.reads.get(kind, id).is_some());
        if !self.is_remote() || !is_few {
            return self.all_of(kind, ids);
        }
        self.read_ahead(kind, ids.iter().cloned())?;
        ids.iter().map(|id| self.get(kind, id)).collect()
    }

    fn all_of(&mut self, kind: &'static Kind, ids: &[String]) -> Result<Vec<Option<Record>>> {
        let sql = &self.statements(kind)?.by_ids;
        let has_list = kind.members.is_some();
        let set = Cell::Set(ids.iter().map(|id| Cell::Text(id.clone())).collect());
        let mut found = self.session.all(sql, &[set], |row| record(&row, has_list))?;
        self.classify(kind, &mut found)?;
        let by_id: HashMap<&str, &Record> = found.iter().map(|it| (it.id.as_str(), it)).collect();
        Ok(ids.iter().map(|id| by_id.get(id.as_str()).map(|it| (*it).clone())).collect())
    }
}
