//! Texts of a catalogue as a whole, stored in a schema with the catalogue's own name.

use super::Cluster;

use crate::session::Session;
use crate::{Result, StoreError};

impl Cluster {
    /// Returns the text with a name. If there is none, stores the result of `make`; of servers that ask at the same
    /// time, all get the first one's.
    pub(crate) fn constant(
        &self,
        name: &str,
        make: impl FnOnce() -> Option<String>,
    ) -> Result<Option<String>> {
        let schema = &self.catalogue;
        let table = format!("\"{schema}\".constant");
        let look = |session: &mut Session<'_>| {
            let is_there = "SELECT 1 FROM pg_class WHERE oid = to_regclass(?1)";
            if session.first(is_there, &[table.as_str().into()], |_| Ok(()))?.is_none() {
                return Ok(None);
            }
            let sql = format!("SELECT value FROM {table} WHERE name = ?1");
            session.first(&sql, &[name.into()], |row| row.text(0))
        };
        if let Some(kept) = self.with_public(look)? {
            return Ok(Some(kept));
        }
        let Some(made) = make() else { return Ok(None) };
        let table_made = self.with_public(|session| {
            session.batch(&format!(
                "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('{schema}/constant', 0)); \
                 CREATE SCHEMA IF NOT EXISTS \"{schema}\"; \
                 CREATE TABLE IF NOT EXISTS {table} (name text COLLATE \"C\" PRIMARY KEY, value text NOT NULL); COMMIT"
            ))
        });
        match table_made {
            // A server that started at the same moment was first; the snapshot of the look-up above still shows
            // nothing.
            Err(StoreError::Postgres { code, .. })
                if ["23505", "42P06", "42P07"].contains(&code.as_str()) => {}
            other => other?,
        }
        self.with_public(|session| {
            let sql =
                format!("INSERT INTO {table} (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING");
            session.execute(&sql, &[name.into(), made.as_str().into()])
        })?;
        self.with_public(look)
    }
}
