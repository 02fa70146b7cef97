//! A transaction of a tenant: creating, changing and deleting records. All or nothing.

use std::ops::{Deref, DerefMut};

use serde_json::Value as Json;

use crate::cell::Cell;
use crate::classes::{StoredClasses, number_taken};
use crate::columns::one_columns;
use crate::counters::{self, Counters};
use crate::document::Taken;
use crate::kind::IndexShare;
use crate::narrow::{
    Head, LinkPlace, change_row, drop_references, insert_many, shown, write_references, write_row,
};
use crate::pending_links;
use crate::postgres::records::{self, Kept};
use crate::postgres::{self, bulk};
use crate::remake;
use crate::session::{Flavour, Session};
use crate::sqlite;
use crate::{Class, Document, Facet, Kind, ListId, Record, Result, StoreError, Uniqueness, View};

/// Numbers that a tenant assigns in order.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Numbers {
    /// The number of the last change.
    pub(crate) sequence: u64,
    /// The number of the last list of members.
    pub(crate) list: u64,
}

impl Numbers {
    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

/// A transaction. Reads through it (it is a [`View`]) see its own writes.
pub struct Txn<'a> {
    pub(crate) view: View<'a>,
    pub(crate) counters: Counters,
    pub(crate) numbers: Numbers,
    pub(crate) n_bytes: usize,
    /// Classes that this transaction stored or found stored.
    pub(crate) classes: StoredClasses,
    /// Whether indexes were dropped or created, which the engine's count of changed rows does not show.
    pub(crate) touched_schema: bool,
    /// Classes of earlier transactions that will be committed together with this one.
    pub(crate) batch_classes: &'a StoredClasses,
}

/// What a write returns about the record written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Version after the write.
    pub version: u64,
    /// Sequence number of the change.
    pub sequence: u64,
    /// Class of the record.
    pub class: Class,
}

impl<'a> Deref for Txn<'a> {
    type Target = View<'a>;
    fn deref(&self) -> &View<'a> {
        &self.view
    }
}

impl DerefMut for Txn<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.view
    }
}

impl Txn<'_> {
    /// Creates a record.
    ///
    /// Errors: the id, or a value of a unique index, is taken.
    pub fn insert(&mut self, kind: &'static Kind, id: &str, body: &Json) -> Result<Written> {
        self.insert_document(&Document::new(kind, id, body)?)
    }

    /// Creates a record from a document that was prepared outside the transaction.
    pub fn insert_document(&mut self, document: &Document) -> Result<Written> {
        let kind = document.kind;
        let taken = &document.taken;
        self.require_unique(kind)?;
        self.ensure_class(kind, taken)?;
        if self.view.session.flavour() == Flavour::Postgres {
            return self.insert_row(document);
        }
        self.insert_narrow(document, 1)
    }

    /// Inserts one record in the engine where it is a narrow row and a body.
    fn insert_narrow(&mut self, document: &Document, version: u64) -> Result<Written> {
        let (kind, taken) = (document.kind, &document.taken);
        let sequence = self.next_sequence();
        let statements = self.view.statements(kind)?;
        let session = &mut self.view.session;
        let key = write_row(session, statements, kind, Head::new(document, version, sequence), taken)?;
        session.execute(&statements.insert_body, &[key.into(), Cell::Blob(document.body.clone())])?;
        write_references(session, statements, kind, key, &document.id, taken)?;
        self.adopt(document)?;
        self.count(kind, Some(key), taken, taken.class, 1)?;
        self.n_bytes += document.body.len();
        Ok(Written { version, sequence, class: taken.class })
    }

    /// Creates records of one kind with the versions they have elsewhere.
    pub(crate) fn insert_stored(&mut self, documents: &[(Document, u64)]) -> Result<()> {
        if self.view.session.flavour() == Flavour::Postgres {
            let (list, kept): (Vec<_>, Vec<_>) = documents
                .iter()
                .map(|(document, version)| {
                    (document, Some(Kept { key: None, version: version.cast_signed(), sequence: None }))
                })
                .unzip();
            return self.insert_rows(&list, &kept);
        }
        for (document, version) in documents {
            self.ensure_class(document.kind, &document.taken)?;
            self.insert_narrow(document, *version)?;
        }
        Ok(())
    }

    /// Writes the tombstone of a record that was deleted elsewhere.
    pub(crate) fn note_deletion(&mut self, kind: &str, id: &str) -> Result<()> {
        if self.view.session.flavour() == Flavour::Postgres {
            let sql = format!(
                "INSERT INTO tombstone (sequence, kind, id) VALUES ({}, ?1, ?2) ON CONFLICT DO NOTHING",
                records::SEQUENCE
            );
            return self.view.session.execute(&sql, &[kind.into(), id.into()]).map(|_| ());
        }
        let sequence = self.next_sequence();
        let sql = "INSERT INTO tombstone (sequence, kind, id) VALUES (?1, ?2, ?3)";
        self.view.session.execute(sql, &[sequence.into(), kind.into(), id.into()]).map(|_| ())
    }

    /// Creates many records, in bulk where the engine can.
    ///
    /// Errors: an id, or a value of a unique index, is taken; nothing of the transaction is then kept.
    pub fn insert_documents(&mut self, documents: &[Document]) -> Result<()> {
        if self.view.session.flavour() == Flavour::Postgres {
            let of_kind = documents.chunk_by(|a, b| std::ptr::eq(a.kind, b.kind));
            return of_kind
                .map(|it| it.iter().collect::<Vec<_>>())
                .try_for_each(|it| self.insert_rows(&it, &[]));
        }
        documents.iter().try_for_each(|document| self.insert_document(document).map(|_| ()))
    }

    /// Inserts many records of one kind in the engine where each is a narrow row and a body; returns which were
    /// inserted.
    fn insert_narrow_rows(&mut self, documents: &[&Document]) -> Result<Vec<bool>> {
        let Some(first) = documents.first() else { return Ok(Vec::new()) };
        let kind = first.kind;
        self.require_unique(kind)?;
        for document in documents {
            self.ensure_class(kind, &document.taken)?;
        }
        let statements = self.view.statements(kind)?;
        let (session, numbers) = (&mut self.view.session, &mut self.numbers);
        let is_load = !kind.links.is_empty() && counters::is_behind(session, kind.name)?;
        let place = if is_load { LinkPlace::Pending } else { LinkPlace::InOrder };
        let keys = insert_many(session, statements, kind, documents, place, || numbers.next_sequence())?;
        for (document, key) in documents.iter().zip(&keys).filter(|it| it.1.is_some()) {
            self.adopt(document)?;
            self.count(kind, *key, &document.taken, document.taken.class, 1)?;
            self.n_bytes += document.body.len();
        }
        Ok(keys.iter().map(Option::is_some).collect())
    }

    /// Inserts one record in the engine where it is one row.
    fn insert_row(&mut self, document: &Document) -> Result<Written> {
        let kind = document.kind;
        let statements = self.view.statements(kind)?;
        let placed = match &mut self.view.session {
            Session::Postgres(session) => records::insert_record(session, statements, document, None)?,
            Session::Sqlite(_) | Session::Asked(_) => None,
        };
        let Some(placed) = placed else { return Err(self.taken_value(document, None)?) };
        self.adopt(document)?;
        self.count_in(document)?;
        Ok(written(placed, document))
    }

    /// Inserts many records of one kind in the engine where each is one row.
    fn insert_rows(&mut self, documents: &[&Document], kept: &[Option<Kept>]) -> Result<()> {
        let placed = self.place_rows(documents, kept)?;
        for (document, is_placed) in documents.iter().zip(placed) {
            if !is_placed {
                return Err(self.taken_value(document, None)?);
            }
        }
        Ok(())
    }

    /// Inserts those whose ids and unique values are free; returns which were inserted.
    fn place_rows(&mut self, documents: &[&Document], kept: &[Option<Kept>]) -> Result<Vec<bool>> {
        let Some(first) = documents.first() else { return Ok(Vec::new()) };
        self.require_unique(first.kind)?;
        for document in documents {
            self.ensure_class(document.kind, &document.taken)?;
        }
        let (kind, statements) = (first.kind, self.view.statements(first.kind)?);
        let placed = match &mut self.view.session {
            Session::Postgres(session) => bulk::insert_many(session, statements, kind, documents, kept)?,
            Session::Sqlite(_) | Session::Asked(_) => return Err(StoreError::Closed),
        };
        for (document, _) in documents.iter().zip(&placed).filter(|it| it.1.is_some()) {
            self.adopt(document)?;
            self.count_in(document)?;
        }
        Ok(placed.iter().map(Option::is_some).collect())
    }

    /// Creates those of many records whose ids and unique values are free, in bulk where the engine can; returns for
    /// each whether it was created.
    pub fn insert_missing(&mut self, documents: &[&Document]) -> Result<Vec<bool>> {
        let mut made = Vec::with_capacity(documents.len());
        for of_kind in documents.chunk_by(|a, b| std::ptr::eq(a.kind, b.kind)) {
            made.extend(match self.view.session.flavour() {
                Flavour::Sqlite => self.insert_narrow_rows(of_kind)?,
                Flavour::Postgres => self.place_rows(of_kind, &[])?,
            });
        }
        Ok(made)
    }

    /// Notes that records of a kind were written, in the engine that keeps what it has read.
    fn changed(&mut self, kind: &'static Kind) {
        self.counters.note_change(kind);
        self.view.reads.forget(kind);
    }

    fn count_in(&mut self, document: &Document) -> Result<()> {
        self.count(document.kind, None, &document.taken, document.taken.class, 1)?;
        self.changed(document.kind);
        self.n_bytes += document.body.len();
        Ok(())
    }

    /// Adds a record of a class to the counts (1) or removes it (-1). During a rebuild, a record that no step has
    /// reached yet is not part of the counts being rebuilt.
    fn count(
        &mut self,
        kind: &'static Kind,
        key: Option<i64>,
        taken: &Taken,
        class: Class,
        difference: i64,
    ) -> Result<()> {
        match self.view.remake(kind)? {
            None => self.counters.count(kind, taken, difference),
            Some(remake) => {
                let is_counted = |it: &Facet| remake.counts(it.name, key);
                self.counters.count_partly(kind, taken, class, difference, is_counted);
            }
        }
        Ok(())
    }

    /// Updates the counts for a changed record.
    fn count_change(
        &mut self,
        kind: &'static Kind,
        key: i64,
        (before, class): (&Taken, Class),
        after: &Taken,
    ) -> Result<()> {
        if before.counted != after.counted || class != after.class || before.class != after.class {
            self.count(kind, Some(key), before, class, -1)?;
            self.count(kind, Some(key), after, after.class, 1)?;
        }
        Ok(())
    }

    /// Returns the class stored in a record's row: it may be one of a former declaration.
    fn class_in_row(&mut self, kind: &'static Kind, key: i64, taken: &Taken) -> Result<Class> {
        if self.view.remaking(kind).is_none_or(|it| !it.lacks_classes()) {
            return Ok(taken.class);
        }
        let sql = format!("SELECT class FROM \"k_{}\" WHERE key = ?1", kind.name);
        let found = self.view.session.first(&sql, &[key.into()], |row| row.int(0))?;
        Ok(found.map_or(taken.class, Class))
    }

    /// Checks that uniqueness can be checked. Errors: a value may have to be unique and cannot be looked up yet.
    fn require_unique(&mut self, kind: &'static Kind) -> Result<()> {
        let is_lacking = self.view.remaking(kind).is_some_and(|it| it.lacks_unique(kind));
        if is_lacking && self.view.remake(kind)?.is_some() { Err(remake::not_yet(kind)) } else { Ok(()) }
    }

    /// Returns the error that names the value of a document that another record has; `own` is the document's own key.
    fn taken_value(&mut self, document: &Document, own: Option<i64>) -> Result<StoreError> {
        let kind = document.kind;
        if own.is_none() && self.has(kind, &document.id)? {
            return Ok(StoreError::Duplicate { kind: kind.name, column: "id", value: document.id.clone() });
        }
        for index in kind.indexes.iter().filter(|it| it.uniqueness.refuses()) {
            let mut values = vec![own.unwrap_or(i64::MIN).into()];
            let mut conditions = String::new();
            for name in index.columns {
                let place = one_columns(kind).position(|it| it.name == *name);
                let cell =
                    place.map_or(Cell::Int(document.taken.class.0), |it| document.taken.cells[it].clone());
                values.push(cell);
                conditions.push_str(&format!(" AND \"{name}\" = ?{}", values.len()));
            }
            if let Uniqueness::UniqueAmong(column, value) = index.uniqueness {
                let own = one_columns(kind).position(|it| it.name == column);
                if own.map(|it| &document.taken.cells[it]) != Some(&Cell::Text(value.to_owned())) {
                    continue;
                }
                conditions.push_str(&index.uniqueness.condition_sql().replace(" WHERE ", " AND "));
            }
            let sql = format!("SELECT 1 FROM \"k_{}\" WHERE key <> ?1{conditions}", kind.name);
            let is_taken = self.view.session.first(&sql, &values, |_| Ok(()))?.is_some();
            if let (true, Some(column), Some(value)) = (is_taken, index.columns.last(), values.pop()) {
                return Ok(StoreError::Duplicate { kind: kind.name, column, value: shown(value) });
            }
        }
        Ok(StoreError::Conflict(format!("{} {:?} was written by another", kind.name, document.id)))
    }

    /// Replaces the body of a record.
    ///
    /// Errors: there is no such record; a value of a unique index is taken.
    pub fn update(&mut self, kind: &'static Kind, id: &str, body: &Json) -> Result<Written> {
        self.update_document(&Document::new(kind, id, body)?)
    }

    /// Replaces a record by a document; its list of members stays unless the document brings one.
    pub fn update_document(&mut self, document: &Document) -> Result<Written> {
        let (kind, id) = (document.kind, document.id.as_str());
        self.require_unique(kind)?;
        let Some(old) = self.get(kind, id)? else {
            return Err(StoreError::Missing { kind: kind.name, id: id.to_owned() });
        };
        let before = Taken::from(kind, &old.json()?);
        let class = self.class_in_row(kind, old.key, &before)?;
        let taken = &document.taken;
        self.ensure_class(kind, taken)?;
        let brings_list = document.list.map(|(list, _)| list).filter(|it| old.list != Some(*it));
        if let (Some(_), Some(list)) = (brings_list, old.list) {
            self.drop_list(kind, list)?;
        }
        if self.view.session.flavour() == Flavour::Postgres {
            return self.update_row(document, &old, (&before, class), brings_list.is_some());
        }
        let sequence = self.next_sequence();
        let statements = self.view.statements(kind)?;
        let session = &mut self.view.session;
        let version = old.version + 1;
        change_row(session, statements, document, old.key, version, sequence)?;
        session.execute(&statements.update_body, &[old.key.into(), Cell::Blob(document.body.clone())])?;
        if before.many != taken.many || before.identifiers != taken.identifiers || before.links != taken.links
        {
            pending_links::settle(session)?;
            drop_references(session, statements, kind, old.key, id, &before)?;
            write_references(session, statements, kind, old.key, id, taken)?;
        }
        if brings_list.is_some() {
            self.adopt(document)?;
        }
        self.count_change(kind, old.key, (&before, class), taken)?;
        self.n_bytes += document.body.len();
        Ok(Written { version, sequence, class: taken.class })
    }

    /// Replaces a record in the engine where it is one row.
    fn update_row(
        &mut self,
        document: &Document,
        old: &Record,
        (before, class): (&Taken, Class),
        brings_list: bool,
    ) -> Result<Written> {
        let (kind, taken) = (document.kind, &document.taken);
        let statements = self.view.statements(kind)?;
        let Session::Postgres(session) = &mut self.view.session else { return Err(StoreError::Closed) };
        let placed = match records::update_record(session, statements, document, old.key) {
            Err(StoreError::Postgres { code, .. }) if code == UNIQUE_VIOLATION => {
                return Err(self.taken_value(document, Some(old.key))?);
            }
            result => result?,
        };
        let session = &mut self.view.session;
        if before.identifiers != taken.identifiers || before.links != taken.links {
            drop_references(session, statements, kind, old.key, &document.id, before)?;
            write_references(session, statements, kind, old.key, &document.id, taken)?;
        }
        if brings_list {
            self.adopt(document)?;
        }
        self.count_change(kind, old.key, (before, class), taken)?;
        self.changed(kind);
        self.n_bytes += document.body.len();
        Ok(written(placed, document))
    }

    /// Creates the record or replaces its body.
    pub fn put(&mut self, kind: &'static Kind, id: &str, body: &Json) -> Result<Written> {
        if self.has(kind, id)? { self.update(kind, id, body) } else { self.insert(kind, id, body) }
    }

    /// Deletes a record with its members and returns it; leaves a tombstone. `None` if there was none.
    pub fn delete(&mut self, kind: &'static Kind, id: &str) -> Result<Option<Record>> {
        let Some(old) = self.get(kind, id)? else { return Ok(None) };
        let before = Taken::from(kind, &old.json()?);
        let class = self.class_in_row(kind, old.key, &before)?;
        if let Some(list) = old.list {
            self.drop_list(kind, list)?;
        }
        let statements = self.view.statements(kind)?;
        if let Session::Postgres(session) = &mut self.view.session {
            records::delete_record(session, statements, &old, kind)?;
            self.count(kind, Some(old.key), &before, class, -1)?;
            self.changed(kind);
            return Ok(Some(old));
        }
        let sequence = self.next_sequence();
        let session = &mut self.view.session;
        pending_links::settle(session)?;
        drop_references(session, statements, kind, old.key, id, &before)?;
        session.execute(&statements.delete_row, &[old.key.into()])?;
        session.execute(&statements.delete_body, &[old.key.into()])?;
        let sql = "INSERT INTO tombstone (sequence, kind, id) VALUES (?1, ?2, ?3)";
        session.execute(sql, &[sequence.into(), kind.name.into(), id.into()])?;
        self.count(kind, Some(old.key), &before, class, -1)?;
        Ok(Some(old))
    }

    /// Creates a list of members that belongs to no record yet: it is deleted if the server stops before a document
    /// takes it over with [`Document::with_list`].
    pub fn new_list(&mut self, kind: &Kind) -> Result<ListId> {
        let list = ListId(self.next_list()?);
        let sql = "INSERT INTO staging (kind, list) VALUES (?1, ?2)";
        self.view.session.execute(sql, &[kind.name.into(), list.0.into()])?;
        Ok(list)
    }

    /// Appends a chunk of `n` members, their JSON joined by commas, to a list; the chunk's first member
    /// has position `position`.
    pub fn append_members(
        &mut self,
        kind: &Kind,
        list: ListId,
        position: u64,
        n: u32,
        chunk: bytes::Bytes,
    ) -> Result<()> {
        self.n_bytes += chunk.len();
        let sql = &self.view.statements(kind)?.insert_members;
        let values = [list.0.into(), position.into(), i64::from(n).into(), Cell::Blob(chunk)];
        if self.view.session.execute(sql, &values)? == 1 {
            return Ok(());
        }
        Err(StoreError::Query(format!("{}: the list was discarded; write it again", kind.name)))
    }

    /// Deletes a list that no record took over; one that a record has taken over meanwhile stays.
    pub fn discard_list(&mut self, kind: &Kind, list: ListId) -> Result<()> {
        let sql = "DELETE FROM staging WHERE kind = ?1 AND list = ?2";
        if self.view.session.execute(sql, &[kind.name.into(), list.0.into()])? == 1 {
            self.drop_list(kind, list)?;
        }
        Ok(())
    }

    /// Deletes every record of a kind; leaves a tombstone for each. Returns how many there were.
    pub fn clear(&mut self, kind: &'static Kind) -> Result<u64> {
        let sql = format!("SELECT id FROM \"k_{}\" ORDER BY key", kind.name);
        let ids = self.view.session.all(&sql, &[], |row| row.text(0))?;
        for id in &ids {
            self.delete(kind, id)?;
        }
        Ok(ids.len() as u64)
    }

    /// Prepares an empty kind for a bulk load: drops its declared indexes until [`crate::Tenant::make_indexes`]; the
    /// embedded engine also counts facets in memory and defers links. Returns whether it did so: not for a kind that
    /// has records or a unique index, or that is being rebuilt. Everything is restored at the next start in any case.
    pub fn defer_indexes(&mut self, kind: &'static Kind) -> Result<bool> {
        let sql = format!("SELECT 1 FROM \"k_{}\" LIMIT 1", kind.name);
        let is_empty = self.view.session.first(&sql, &[], |_| Ok(()))?.is_none();
        let has_unique = kind.indexes.iter().any(|it| it.uniqueness.refuses());
        let is_put_off = is_empty && !has_unique && self.view.remake(kind)?.is_none();
        if is_put_off {
            self.touched_schema = true;
            let session = &mut self.view.session;
            match session.flavour() {
                Flavour::Postgres => postgres::schema::drop_indexes(session, kind)?,
                Flavour::Sqlite => {
                    sqlite::schema::drop_indexes(session, kind)?;
                    counters::mark_behind(session, kind.name)?;
                    self.counters.begin_load(kind);
                }
            }
        }
        Ok(is_put_off)
    }

    /// Ends a bulk load of the embedded engine: writes its counts and links.
    pub(crate) fn end_load(&mut self, kind: &'static Kind) -> Result<()> {
        self.counters.end_load(kind);
        pending_links::settle(&mut self.view.session)
    }

    /// Builds the missing declared indexes, in the embedded engine.
    pub(crate) fn make_indexes(&mut self, kind: &'static Kind) -> Result<()> {
        self.touched_schema = true;
        sqlite::schema::create_indexes(&mut self.view.session, kind)
    }

    /// Builds a part of them, in a database.
    pub(crate) fn make_some_indexes(&mut self, kind: &'static Kind, share: IndexShare) -> Result<()> {
        if let Session::Postgres(session) = &mut self.view.session {
            session.unbounded()?;
        }
        postgres::schema::create_share(&mut self.view.session, kind, share)
    }

    fn next_list(&mut self) -> Result<i64> {
        if self.view.session.flavour() == Flavour::Postgres {
            let next = self.view.session.first("SELECT nextval('lists')", &[], |row| row.int(0))?;
            return next.ok_or_else(|| StoreError::Damaged("no number for a list".into()));
        }
        self.numbers.list += 1;
        Ok(self.numbers.list.cast_signed())
    }

    fn next_sequence(&mut self) -> u64 {
        self.numbers.next_sequence()
    }

    pub(crate) fn ensure_class(&mut self, kind: &'static Kind, taken: &Taken) -> Result<()> {
        if self.view.shared.classes.is_committed(kind, taken)
            || self.classes.has(kind, taken)
            || self.batch_classes.has(kind, taken)
        {
            return Ok(());
        }
        match &self.view.shared.side {
            Some(side) => side.ensure_class(&self.view.shared.classes, kind, taken)?,
            None => ensure_class(&mut self.view.session, kind, taken)?,
        }
        self.classes.add(kind, taken);
        Ok(())
    }

    fn adopt(&mut self, document: &Document) -> Result<()> {
        let Some((list, _)) = document.list else { return Ok(()) };
        let sql = "DELETE FROM staging WHERE kind = ?1 AND list = ?2";
        let kind = document.kind.name;
        if self.view.session.execute(sql, &[kind.into(), list.0.into()])? == 1 {
            return Ok(());
        }
        Err(StoreError::Query(format!(
            "{kind} {:?}: its list of members was discarded, or belongs to another record; write the list again",
            document.id
        )))
    }

    fn drop_list(&mut self, kind: &Kind, list: ListId) -> Result<()> {
        let statements = self.view.statements(kind)?;
        let session = &mut self.view.session;
        session.execute(&statements.delete_members, &[list.0.into()])?;
        session.execute(
            "DELETE FROM staging WHERE kind = ?1 AND list = ?2",
            &[kind.name.into(), list.0.into()],
        )?;
        Ok(())
    }
}

/// Stores the class of a record if it is new.
///
/// Errors: its number stands for other class fields.
pub(crate) fn ensure_class(session: &mut Session<'_>, kind: &Kind, taken: &Taken) -> Result<()> {
    let sql =
        "INSERT INTO class (kind, class, fields) VALUES (?1, ?2, ?3) ON CONFLICT (kind, class) DO NOTHING";
    let values = [kind.name.into(), taken.class.0.into(), (&*taken.class_text).into()];
    if session.execute(sql, &values)? == 1 {
        return Ok(());
    }
    let sql = "SELECT fields FROM class WHERE kind = ?1 AND class = ?2";
    let stored = session.first(sql, &values[..2], |row| row.text(0))?;
    if stored.as_deref() == Some(&*taken.class_text) { Ok(()) } else { Err(number_taken(kind, taken)) }
}

/// PostgreSQL's code for a violation of a unique index.
const UNIQUE_VIOLATION: &str = "23505";

fn written(placed: records::Placed, document: &Document) -> Written {
    Written {
        version: placed.version.cast_unsigned(),
        sequence: placed.sequence.cast_unsigned(),
        class: document.taken.class,
    }
}
