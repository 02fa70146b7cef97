//! A kind whose declaration has changed: everything that it governs is made anew from the bodies, in the embedded engine.
//!
//! It is done in steps, each a transaction of a bounded number of rows, so that a kill costs one of them: how far it has come
//! stands in the file. Meanwhile the kind is known by no declaration, its old rows stay where they are, and the new ones
//! gather beside them. So a program of the version before, if it is started then, begins with its own declaration from the old
//! rows. Who has the file open alone takes the steps one by one, and nobody sees the kind between them. Where others have it
//! open as well, all steps are one transaction, and they see what was before or what comes after.
//!
//! Classes stay: what a server knows of them never becomes untrue.

use crate::counters::Counters;
use crate::document::Taken;
use crate::narrow::{Head, write_references, write_row};
use crate::pending_links;
use crate::schema::{
    Changed, create_beside, create_fixed_indexes, create_indexes, create_rows, drop_made_indexes, know,
};
use crate::session::Session;
use crate::statements::KindStatements;
use crate::txn::ensure_class;
use crate::users::Users;
use crate::whole_lists;
use crate::{Kind, Result, StoreError};

/// Rows made anew in one step.
const STEP_ROWS: i64 = 1_000;
/// What stands for the declaration of a kind that is being made anew.
const UNDER_WAY: &str = "";
/// Begins the name of what says how far it has come; the rest is the kind's.
const MARK: &str = "remake:";

/// What a step has left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Steps,
    Nothing,
}

/// Begins to make kinds anew, in the transaction under way; those that are left, to be made in steps. None are where others
/// have the file open.
pub(crate) fn begin_all(
    session: &mut Session<'_>,
    changed: Vec<Changed>,
    users: Users,
) -> Result<Vec<&'static Kind>> {
    for it in &changed {
        begin(session, it)?;
        if users == Users::Others {
            while step(session, it.kind)? == Left::Steps {}
        }
    }
    Ok(changed.into_iter().filter(|_| users == Users::None).map(|it| it.kind).collect())
}

/// Begins, unless it is begun.
fn begin(session: &mut Session<'_>, changed: &Changed) -> Result<()> {
    let kind = changed.kind;
    let name = kind.name;
    if changed.declaration == UNDER_WAY && mark(session, kind)?.is_some() {
        return Ok(());
    }
    forget(session, kind)?;
    drop_made_indexes(session, kind)?;
    for table in changed.tables.split_whitespace() {
        session.batch(&format!("DROP TABLE {table}"))?;
    }
    for sql in [
        "DELETE FROM facet WHERE kind = ?1",
        "DELETE FROM identifier WHERE kind = ?1",
        "DELETE FROM link WHERE kind = ?1",
    ] {
        session.execute(sql, &[name.into()])?;
    }
    pending_links::forget(session, name)?;
    whole_lists::forget(session, kind)?;
    create_rows(session, kind, &rows_table(kind))?;
    create_beside(session, kind)?;
    know(session, kind, UNDER_WAY)?;
    let sql = "INSERT INTO meta (name, value, text) VALUES (?1, ?2, ?3)";
    let values = [mark_name(kind).as_str().into(), i64::MIN.into(), kind.declaration().as_str().into()];
    session.execute(sql, &values).map(|_| ())
}

/// Takes the next step.
pub(crate) fn step(session: &mut Session<'_>, kind: &'static Kind) -> Result<Left> {
    let Some(last) = mark(session, kind)? else {
        return Err(StoreError::Unavailable(format!(
            "{} was being made anew for this version, and another version has begun to make it its own; run one of them",
            kind.name
        )));
    };
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
    if session.first(sql, &[rows_table(kind).as_str().into()], |_| Ok(()))?.is_some() {
        if let Some(last) = take_over(session, kind, last)? {
            let sql = "UPDATE meta SET value = ?2 WHERE name = ?1";
            session.execute(sql, &[mark_name(kind).as_str().into(), last.into()])?;
        } else {
            let name = kind.name;
            session.batch(&format!(
                "DROP TABLE \"k_{name}\"; ALTER TABLE \"{}\" RENAME TO \"k_{name}\"",
                rows_table(kind)
            ))?;
            create_fixed_indexes(session, kind)?;
        }
        return Ok(Left::Steps);
    }
    create_indexes(session, kind)?;
    forget(session, kind)?;
    know(session, kind, &kind.declaration())?;
    Ok(Left::Nothing)
}

/// Forgets that a kind was being made anew, with what was made.
fn forget(session: &mut Session<'_>, kind: &Kind) -> Result<()> {
    session.batch(&format!("DROP TABLE IF EXISTS \"{}\"", rows_table(kind)))?;
    session.execute("DELETE FROM meta WHERE name = ?1", &[mark_name(kind).as_str().into()]).map(|_| ())
}

/// Where the new rows gather.
fn rows_table(kind: &Kind) -> String {
    format!("new_{}", kind.name)
}

fn mark_name(kind: &Kind) -> String {
    format!("{MARK}{}", kind.name)
}

/// The last row that was taken over for this declaration.
fn mark(session: &mut Session<'_>, kind: &Kind) -> Result<Option<i64>> {
    let sql = "SELECT m.value FROM meta m, kind k WHERE m.name = ?1 AND m.text = ?2 AND k.name = ?3 AND k.declaration = ?4";
    let values = [
        mark_name(kind).as_str().into(),
        kind.declaration().as_str().into(),
        kind.name.into(),
        UNDER_WAY.into(),
    ];
    session.first(sql, &values, |row| row.int(0))
}

/// Makes the rows that come next anew; the key of the last, `None` when there is none left.
fn take_over(session: &mut Session<'_>, kind: &'static Kind, last: i64) -> Result<Option<i64>> {
    let name = kind.name;
    let had_list = session
        .first(&format!("SELECT 1 FROM pragma_table_info('k_{name}') WHERE name = 'list'"), &[], |_| Ok(()))?
        .is_some();
    let list = if had_list && kind.members.is_some() { "o.list, o.n_members" } else { "NULL, 0" };
    let sql = format!(
        "SELECT o.key, o.id, o.version, o.sequence, b.body, {list} FROM \"k_{name}\" o JOIN \"b_{name}\" b ON b.key = o.key \
         WHERE ?1 < o.key ORDER BY o.key LIMIT {STEP_ROWS}"
    );
    let rows = session.all(&sql, &[last.into()], |row| {
        let list = row.optional_int(5)?.map(|list| (list, row.int(6).unwrap_or(0)));
        Ok((row.int(0)?, row.text(1)?, row.int(2)?, row.int(3)?, row.bytes(4)?, list))
    })?;
    let statements = KindStatements::into_table(kind, &rows_table(kind));
    let mut counters = Counters::default();
    let end = rows.last().map(|it| it.0);
    for (key, id, version, sequence, body, list) in rows {
        let body = serde_json::from_slice(&body)
            .map_err(|error| StoreError::Damaged(format!("{name} {id:?}: {error}")))?;
        let taken = Taken::from(kind, &body);
        ensure_class(session, kind, &taken)?;
        let head = Head { key: Some(key), id: &id, version, sequence, list };
        write_row(session, &statements, kind, head, &taken)?;
        write_references(session, &statements, kind, key, &id, &taken)?;
        counters.count(kind, &taken, 1);
    }
    counters.flush(session)?;
    Ok(end)
}
