//! The SQL of the statements used for every record, built once per kind when a tenant is opened.

use std::collections::HashMap;

use crate::columns::{many_table, one_columns};
use crate::kind_statements::KindStatements;
use crate::session::Flavour;
use crate::{Arity, Column, Kind, Result, StoreError};

/// The statements of all kinds of a tenant.
pub(crate) struct Statements(HashMap<&'static str, KindStatements>);

impl Statements {
    pub(crate) fn of(flavour: Flavour, kinds: &[&'static Kind]) -> Self {
        Self(kinds.iter().map(|kind| (kind.name, KindStatements::of(flavour, kind))).collect())
    }

    /// Returns the statements of `kind`. Errors: the catalogue was not opened with this kind.
    pub(crate) fn kind(&self, kind: &Kind) -> Result<&KindStatements> {
        self.0.get(kind.name).ok_or_else(|| StoreError::UnknownKind(kind.name.to_owned()))
    }
}

impl KindStatements {
    pub(crate) fn of(flavour: Flavour, kind: &'static Kind) -> Self {
        match flavour {
            Flavour::Sqlite => Self::of_sqlite(kind),
            Flavour::Postgres => crate::postgres::records::statements(kind),
        }
    }

    fn of_sqlite(kind: &'static Kind) -> Self {
        let name = kind.name;
        let record = |condition: &str| record_sql(kind, condition);
        let many = |sql: &dyn Fn(&str) -> String| -> Vec<String> {
            let text = |column: &Column| match column.arity {
                Arity::Many => sql(&many_table(kind, column)),
                Arity::One => String::new(),
            };
            kind.columns.iter().map(text).collect()
        };
        Self {
            insert_row: insert_row(kind),
            insert_body: format!("INSERT INTO \"b_{name}\" (key, body) VALUES (?1, ?2)"),
            update_row: update_row(kind, ""),
            update_row_and_list: update_row(kind, "list"),
            update_body: format!("UPDATE \"b_{name}\" SET body = ?2 WHERE key = ?1"),
            delete_row: format!("DELETE FROM \"k_{name}\" WHERE key = ?1"),
            delete_body: format!("DELETE FROM \"b_{name}\" WHERE key = ?1"),
            by_id: record("r.id = ?1"),
            by_ids: record(&Flavour::Sqlite.in_set("r.id", 1)),
            by_key: record("r.key = ?1"),
            records: String::new(),
            has: format!("SELECT 1 FROM \"k_{name}\" r WHERE r.id = ?1"),
            insert_many: many(&|table| format!("INSERT INTO {table} (value, key) VALUES (?1, ?2)")),
            delete_many: many(&|table| format!("DELETE FROM {table} WHERE value = ?1 AND key = ?2")),
            insert_members: format!(
                "INSERT INTO \"m_{name}\" (list, position, n, body) VALUES (?1, ?2, ?3, ?4)"
            ),
            members: format!(
                "SELECT position, n, body FROM \"m_{name}\" WHERE list = ?1 AND ?2 < position + n AND position >= \
                 coalesce((SELECT max(position) FROM \"m_{name}\" WHERE list = ?1 AND position <= ?2), 0) \
                 ORDER BY position"
            ),
            members_of_lists: String::new(),
            delete_members: format!("DELETE FROM \"m_{name}\" WHERE list = ?1"),
        }
    }
}

/// Returns the statement that reads whole records; see [`crate::view::record`].
fn record_sql(kind: &Kind, condition: &str) -> String {
    let list = if kind.members.is_some() { ", r.list, r.n_members" } else { "" };
    format!(
        "SELECT r.key, r.id, r.version, r.sequence, r.class, b.body{list} \
         FROM \"k_{0}\" r JOIN \"b_{0}\" b ON b.key = r.key WHERE {condition}",
        kind.name
    )
}

fn insert_row(kind: &'static Kind) -> String {
    let mut names = String::from("key, id, version, sequence, class");
    let mut n_values = 5;
    for column in one_columns(kind) {
        names.push_str(&format!(", \"{}\"", column.name));
        n_values += 1;
    }
    if kind.members.is_some() {
        names.push_str(", list, n_members");
        n_values += 2;
    }
    let marks: Vec<String> = (1..=n_values).map(|n| format!("?{n}")).collect();
    format!("INSERT INTO \"k_{}\" ({names}) VALUES ({})", kind.name, marks.join(", "))
}

/// Returns the statement that updates a row; `list` names the column of the list when the statement sets it too.
fn update_row(kind: &'static Kind, list: &str) -> String {
    let mut sets = String::from("version = ?2, sequence = ?3, class = ?4");
    let mut n_values = 4;
    for column in one_columns(kind) {
        n_values += 1;
        sets.push_str(&format!(", \"{}\" = ?{n_values}", column.name));
    }
    if !list.is_empty() {
        sets.push_str(&format!(", list = ?{}, n_members = ?{}", n_values + 1, n_values + 2));
    }
    format!("UPDATE \"k_{}\" SET {sets} WHERE key = ?1", kind.name)
}
