//! Migration from format 2 to 3: class numbers derived from a cryptographic hash.
//!
//! Before, class numbers were 63 bits of FNV-1a, for which somebody can construct fields with a given number, and a
//! class with a known number was not compared. So the stored classes are not trusted: the class of each body is
//! computed. Where all agree with what is stored, the numbers are replaced; a kind with a mismatch is rebuilt from its
//! bodies.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::Value as Json;

use crate::document::{class_of, class_text};
use crate::format::refuse_company;
use crate::kind::differ_in_indexes_only;
use crate::session::{Flavour, Session};
use crate::users::Users;
use crate::{Kind, Result, StoreError};

/// The first format with these class numbers.
const FORMAT: i64 = 3;
/// Bodies checked in one step.
const STEP_ROWS: usize = 1_000;
/// Table of old and new numbers of the current kind.
const NUMBERS: &str = "CREATE TABLE class_number (old bigint PRIMARY KEY, new bigint NOT NULL)";

/// Migrates a tenant from format `found` to [`FORMAT`], in the current transaction.
///
/// Errors: other processes have the tenant open and would go on with the old numbers.
pub(crate) fn migrate(
    session: &mut Session<'_>,
    kinds: &[&'static Kind],
    place: &str,
    found: i64,
    users: Users,
) -> Result<()> {
    if FORMAT <= found {
        return Ok(());
    }
    refuse_company(place, found, users)?;
    tracing::info!(place, from = found, to = FORMAT, "renumbering the classes of records");
    for name in session.all("SELECT name FROM kind ORDER BY name", &[], |row| row.text(0))? {
        let kind = kinds.iter().find(|it| it.name == name);
        if renumber(session, &name, kind.copied())? == Outcome::Remake {
            // A kind with a mismatch is rebuilt, now or when the kind is next declared.
            let sql = "UPDATE kind SET declaration = '' WHERE name = ?1";
            session.execute(sql, &[name.as_str().into()])?;
        }
    }
    Ok(())
}

/// What is left to do for a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    /// Rebuild it: its tables do not agree with its bodies.
    Remake,
}

fn renumber(session: &mut Session<'_>, name: &str, kind: Option<&'static Kind>) -> Result<Outcome> {
    let sql = "SELECT class, fields FROM class WHERE kind = ?1 ORDER BY row";
    let classes = session.all(sql, &[name.into()], |row| Ok((row.int(0)?, row.text(1)?)))?;
    let texts: HashMap<i64, &str> = classes.iter().map(|(number, text)| (*number, text.as_str())).collect();
    let sql = "SELECT declaration FROM kind WHERE name = ?1";
    let declaration = session.first(sql, &[name.into()], |row| row.text(0))?.unwrap_or_default();
    let is_declared = |kind: &&'static Kind| {
        declaration == kind.declaration() || differ_in_indexes_only(&declaration, &kind.declaration())
    };
    let is_true = match kind.filter(is_declared) {
        Some(kind) => {
            let n_false = n_false(session, kind, &texts)?;
            if 0 < n_false {
                tracing::warn!(kind = name, n_false, "records had a wrong class; rebuilding the kind");
            }
            n_false == 0
        }
        // It is rebuilt anyway.
        None => false,
    };
    if !is_true {
        session.execute("DELETE FROM class WHERE kind = ?1", &[name.into()])?;
        return Ok(Outcome::Remake);
    }
    session.batch(NUMBERS)?;
    for (old, text) in &classes {
        let new = class_of(text).0;
        session
            .execute("INSERT INTO class_number (old, new) VALUES (?1, ?2)", &[(*old).into(), new.into()])?;
    }
    let mut tables = vec![format!("\"k_{name}\""), "class".to_owned(), "facet".to_owned()];
    if session.flavour() == Flavour::Sqlite {
        tables.push("facet_list".to_owned());
    }
    for table in tables {
        let of_kind = if table.starts_with('"') { "TRUE" } else { "kind = ?1" };
        let values = [name.into()];
        let sql = format!(
            "UPDATE {table} SET class = (SELECT new FROM class_number WHERE old = {table}.class) \
             WHERE {of_kind} AND class IN (SELECT old FROM class_number)"
        );
        session.execute(&sql, if of_kind == "TRUE" { &[] } else { &values })?;
    }
    session.batch("DROP TABLE class_number")?;
    Ok(Outcome::Done)
}

/// Counts the records whose class has another text than their body yields.
fn n_false(session: &mut Session<'_>, kind: &'static Kind, texts: &HashMap<i64, &str>) -> Result<u64> {
    let flavour = session.flavour();
    let sql = format!(
        "SELECT r.key, r.class, {} FROM {} WHERE ?1 < r.key ORDER BY r.key LIMIT {STEP_ROWS}",
        flavour.body(),
        flavour.rows_with_bodies(kind.name)
    );
    let (mut last, mut n_false) = (i64::MIN, 0);
    loop {
        let rows = session.all(&sql, &[last.into()], |row| Ok((row.int(0)?, row.int(1)?, row.bytes(2)?)))?;
        let Some(end) = rows.last() else { return Ok(n_false) };
        last = end.0;
        for (key, class, body) in &rows {
            let fields = class_fields(kind, body)
                .map_err(|error| StoreError::Damaged(format!("{}: body of row {key}: {error}", kind.name)))?;
            n_false += u64::from(texts.get(class).copied() != Some(class_text(kind, &fields).as_str()));
        }
    }
}

/// Parses only the class fields of a body.
fn class_fields(kind: &Kind, body: &[u8]) -> serde_json::Result<Json> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    ClassFields(kind.class_fields).deserialize(&mut reader)
}

/// Deserialises an object, keeping only the members with these names.
struct ClassFields(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for ClassFields {
    type Value = Json;
    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Json, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ClassFields {
    type Value = Json;

    fn expecting(&self, into: &mut fmt::Formatter<'_>) -> fmt::Result {
        into.write_str("a record's object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut kept = serde_json::Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if self.0.contains(&name.as_str()) {
                kept.insert(name, members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Json::Object(kept))
    }
}
