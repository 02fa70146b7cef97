//! The session beside the others: makes the tables, holds the sign that the tenant is open, stores classes.
//!
//! A class is stored at once, in a transaction of its own: it never changes and says nothing of any record, so
//! writers need not wait for each other's commits to use it. One server adds at a time, so that the rows of
//! classes are committed in their order and whoever has read up to one has read all before it.

use std::sync::{Arc, Mutex, PoisonError};

use super::pool::Pool;
use super::schema::{self, Sweep};
use super::session::PgSession;
use crate::classes::Classes;
use crate::document::Taken;
use crate::session::Session;
use crate::view::State;
use crate::{Kind, Result, StoreError};

/// See the module.
pub(crate) struct Side {
    pool: Arc<Pool>,
    schema: String,
    session: Mutex<Option<PgSession>>,
}

impl Side {
    pub(super) fn new(pool: Arc<Pool>, schema: &str) -> Self {
        Self { pool, schema: schema.to_owned(), session: Mutex::new(None) }
    }

    /// Brings the tables to the declared kinds and says that the tenant is open.
    pub(super) fn open(&self, kinds: &[&'static Kind]) -> Result<()> {
        let mut session = self.pool.connect(&self.schema)?;
        let alone = "SELECT CASE WHEN pg_try_advisory_lock(hashtextextended(current_schema() || '/open', 0)) THEN 1::bigint ELSE 0 END";
        let is_alone = Session::Postgres(&mut session).first(alone, &[], |row| row.int(0))? == Some(1);
        let sweep = if is_alone { Sweep::All } else { Sweep::Keep };
        schema::apply(&mut session, kinds, sweep)?;
        session.batch(PRESENT)?;
        if is_alone {
            session.batch("SELECT pg_advisory_unlock(hashtextextended(current_schema() || '/open', 0))")?;
        }
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        Ok(())
    }

    /// Stores the class of a record, if it is new; finds out when two classes have one number.
    pub(crate) fn ensure_class(&self, classes: &Classes, kind: &'static Kind, taken: &Taken) -> Result<()> {
        let mut place = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if place.as_ref().is_none_or(|it| it.is_broken) {
            let mut session = self.pool.connect(&self.schema)?;
            session.batch(PRESENT)?;
            *place = Some(session);
        }
        let Some(session) = place.as_mut() else { return Err(StoreError::Closed) };
        let number = taken.class;
        if !classes.is_committed(kind, number) {
            classes.read(&mut Session::Postgres(session), kind)?;
        }
        if !classes.is_committed(kind, number) {
            session.begin("BEGIN", None);
            session
                .batch("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '/classes', 0))")?;
            let values = [kind.name.into(), number.0.into(), taken.class_text.as_str().into()];
            session.commit(Some((super::ADD_CLASS, &values)))?;
            classes.read(&mut Session::Postgres(session), kind)?;
        }
        let stored = classes.fields(&mut Session::Postgres(session), State::Committed, kind, number)?;
        let is_same =
            serde_json::from_str::<serde_json::Value>(&taken.class_text).is_ok_and(|own| own == *stored);
        if is_same {
            return Ok(());
        }
        Err(StoreError::Damaged(format!(
            "{}: {} and {stored} have one class number",
            kind.name, taken.class_text
        )))
    }
}

/// Says that a server has the tenant open, as long as the session lives.
const PRESENT: &str = "SELECT pg_advisory_lock_shared(hashtextextended(current_schema() || '/open', 0))";
