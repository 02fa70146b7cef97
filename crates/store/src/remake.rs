//! Online rebuild of a kind whose declaration has changed: the differences are rebuilt from the bodies while reads and
//! writes go on.
//!
//! Rows and bodies stay where they are. One short transaction ([`begin`]) removes what the new declaration no longer
//! has, adds empty columns, and records what is missing: columns, facets, classes, identifiers, links, words, indexes.
//! What both declarations have in common is never touched. From then on writers write whole rows of the new
//! declaration, and steps of a bounded number of rows ([`step`]) do the same for the rows that nobody writes. Their
//! progress is stored in the tenant, and every transaction that depends on it reads it there, so any number of
//! processes may read, write and take steps at once, and a kill costs one step.
//!
//! Until the rebuild is complete, a search is planned without the missing parts ([`Remaking::made`]): the bodies decide
//! instead. Queries that only a table of references can answer are refused ([`StoreError::Remaking`]), and so are
//! writes to a kind with a unique index that is not built. The facets being rebuilt do not count a row until a step has
//! reached it.
//!
//! A program with another declaration starts over with its own. A program that has the tenant open with the former
//! declaration notices this in its next transaction ([`declared`]), and then neither writes nor searches any more. In a
//! database the short transaction waits for write transactions under way, which began with the former declaration.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::cell::Cell;
use crate::counters;
use crate::document::{Document, class_of, class_text};
use crate::error::outdated;
use crate::kind::{differ_in_indexes_only, sections};
use crate::session::{Flavour, Session};
use crate::{Class, Column, Facet, Index, Kind, Record, Result, StoreError, Text};

mod steps;

pub(crate) use steps::{Left, STEP_ROWS, not_unique, step};

/// Stored in place of the declaration of a kind that is being rebuilt.
pub(crate) const UNDER_WAY: &str = "";
/// Prefix of the name of the stored progress, followed by the kind's name.
const MARK: &str = "remake:";
/// Seconds after which a caller should retry what needs missing parts.
const RETRY_AFTER_S: u32 = 5;
/// Maximum number of cached classes of records that no step has reached.
const MOST_COMPUTED: usize = 100_000;

/// What of a kind is missing, and how far the rebuild is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Remake {
    declaration: String,
    /// Names of columns.
    columns: Vec<String>,
    /// Names of facets. All of them if the classes are missing.
    facets: Vec<String>,
    /// Indexes, by position in the declaration.
    indexes: Vec<usize>,
    classes: bool,
    identifiers: bool,
    links: bool,
    /// The column of words, in a database.
    words: bool,
    /// Columns of former declarations, which are emptied.
    gone: Vec<String>,
    /// Whether obsolete counts are removed already.
    #[serde(default)]
    drops_counts: bool,
    stage: Stage,
    /// How far the clearing of a table of references is.
    cursor: Vec<String>,
    /// The last row rebuilt so far.
    #[serde(skip)]
    last: i64,
}

/// The current stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// Removes counts that are obsolete or to be rebuilt.
    #[default]
    Facets,
    /// Removes such identifiers.
    Identifiers,
    /// Removes such links.
    Links,
    /// Rebuilds rows.
    Rows,
    /// Builds indexes, after all rows are rebuilt.
    Indexes,
}

impl Remake {
    /// Returns the differences between `kind` and the declaration in force.
    fn between(declaration: &str, kind: &'static Kind) -> Self {
        let own = kind.declaration();
        let (old, new) = (sections(declaration), sections(&own));
        let differs = |number: usize| match (&old, &new) {
            (Some(old), Some(new)) => old[number] != new[number],
            _ => true,
        };
        let has = |number: usize, text: &str| old.as_ref().is_some_and(|it| it[number].contains(text));
        let classes = differs(3);
        let columns: Vec<String> = kind
            .columns
            .iter()
            .filter(|it| !has(1, &format!("{it:?}")))
            .map(|it| it.name.to_owned())
            .collect();
        let facets = kind.facets.iter().filter(|it| classes || !has(2, &format!("{:?}", it.declared())));
        let is_made = |index: &Index| {
            has(8, &format!("{index:?}"))
                && !index.columns.iter().any(|name| columns.iter().any(|it| it == name))
        };
        Self {
            declaration: own.clone(),
            facets: facets.map(|it| it.name.to_owned()).collect(),
            indexes: (0..kind.indexes.len()).filter(|it| !is_made(&kind.indexes[*it])).collect(),
            classes,
            identifiers: differs(5),
            links: differs(6),
            words: differs(4),
            drops_counts: differs(2),
            columns,
            ..Self::default()
        }
    }

    /// Returns whether any row has to be rebuilt.
    fn has_rows(&self) -> bool {
        let lists = [&self.columns, &self.facets, &self.gone];
        lists.iter().any(|it| !it.is_empty()) || self.classes || self.identifiers || self.links || self.words
    }

    /// Returns whether anything has to be done apart from indexes.
    fn has_work(&self) -> bool {
        self.has_rows() || self.drops_counts
    }

    /// Returns whether all rows follow the new declaration.
    fn has_all_rows(&self) -> bool {
        self.stage == Stage::Indexes || !self.has_work()
    }

    /// Returns whether only indexes are left.
    pub(crate) fn is_at_indexes(&self) -> bool {
        self.stage == Stage::Indexes
    }

    fn lacks_column(&self, name: &str) -> bool {
        self.columns.iter().any(|it| it == name)
    }

    /// Returns whether the counts of a facet include the record of a row. New rows in a database have no key yet: a
    /// step will reach them.
    pub(crate) fn counts(&self, facet: &str, key: Option<i64>) -> bool {
        let is_made = match self.stage {
            Stage::Facets | Stage::Identifiers | Stage::Links => false,
            Stage::Rows => key.is_some_and(|it| it <= self.last),
            Stage::Indexes => true,
        };
        is_made || !self.facets.iter().any(|it| it == facet)
    }

    /// Checks that words can be searched. Errors: the search needs the column of words, which is missing.
    pub(crate) fn require_words(&self, kind: &'static Kind, flavour: Flavour) -> Result<()> {
        if self.words && flavour == Flavour::Postgres { Err(not_yet(kind)) } else { Ok(()) }
    }
}

/// What this process knows of a kind that is being rebuilt. It stays valid until the end; the progress is stored in the
/// tenant.
#[derive(Debug)]
pub(crate) struct Remaking {
    /// The kind without the missing parts.
    pub(crate) made: &'static Kind,
    remake: Remake,
    /// Class fields of records that no step has reached: a recent generation and an older one.
    computed: Mutex<[HashMap<Class, Arc<Json>>; 2]>,
}

impl Remaking {
    fn of(kind: &'static Kind, remake: Remake) -> Self {
        Self { made: without(kind, &remake), remake, computed: Mutex::default() }
    }

    /// Sets a record's class to the one that its body has under the new declaration.
    pub(crate) fn classify(&self, kind: &'static Kind, record: &mut Record) -> Result<()> {
        let body = record.json()?;
        let text = class_text(kind, &body);
        record.class = class_of(&text);
        let mut computed = self.computed.lock().unwrap_or_else(PoisonError::into_inner);
        let [late, before] = &mut *computed;
        if late.contains_key(&record.class) {
            return Ok(());
        }
        let fields = match before.get(&record.class) {
            Some(fields) => Arc::clone(fields),
            None => Arc::new(
                serde_json::from_str(&text)
                    .map_err(|error| StoreError::Damaged(format!("{}: a class: {error}", kind.name)))?,
            ),
        };
        if MOST_COMPUTED <= late.len() {
            *before = std::mem::take(late);
        }
        late.insert(record.class, fields);
        Ok(())
    }

    /// Returns the class fields of a class that [`Remaking::classify`] has set.
    pub(crate) fn class(&self, class: Class) -> Option<Arc<Json>> {
        let computed = self.computed.lock().unwrap_or_else(PoisonError::into_inner);
        computed.iter().find_map(|it| it.get(&class)).cloned()
    }

    /// Returns whether the class stored in a row may be that of the former declaration.
    pub(crate) fn lacks_classes(&self) -> bool {
        self.remake.classes
    }

    /// Returns whether identifiers of a scheme are missing.
    pub(crate) fn lacks_identifiers(&self, kind: &Kind, scheme: &str) -> bool {
        self.remake.identifiers && kind.identifiers.iter().any(|it| it.scheme == scheme)
    }

    /// Returns whether links of a relation to a kind are missing.
    pub(crate) fn lacks_links(&self, kind: &Kind, to: &str, relation: &str) -> bool {
        self.remake.links && kind.links.iter().any(|it| it.to == to && it.relation == relation)
    }

    /// Returns whether uniqueness of values cannot be checked.
    pub(crate) fn lacks_unique(&self, kind: &Kind) -> bool {
        self.remake.indexes.iter().any(|it| kind.indexes[*it].uniqueness.refuses())
    }
}

/// The kinds of a tenant that are being rebuilt, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct Remakes(Mutex<Option<Arc<UnderWay>>>);

/// Kinds being rebuilt, by name.
pub(crate) type UnderWay = HashMap<&'static str, Arc<Remaking>>;

impl Remakes {
    /// Returns the current rebuilds. Must be called before the snapshot begins that it is used with: rebuilds that are
    /// complete by then are not included.
    pub(crate) fn current(&self) -> Option<Arc<UnderWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, begun: Vec<(&'static Kind, Remake)>) {
        let map: UnderWay =
            begun.into_iter().map(|(kind, it)| (kind.name, Arc::new(Remaking::of(kind, it)))).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (!map.is_empty()).then(|| Arc::new(map));
    }

    /// Removes a kind whose rebuild is complete.
    pub(crate) fn end(&self, kind: &Kind) {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = place.as_deref().cloned().unwrap_or_default();
        left.remove(kind.name);
        *place = (!left.is_empty()).then(|| Arc::new(left));
    }
}

/// Returns a kind without its missing parts; it lives as long as the process.
fn without(kind: &'static Kind, remake: &Remake) -> &'static Kind {
    let columns = kind.columns.iter().filter(|it| !remake.lacks_column(it.name));
    let facets = kind.facets.iter().filter(|it| !remake.facets.iter().any(|name| name == it.name));
    let indexes = kind.indexes.iter().enumerate().filter(|it| !remake.indexes.contains(&it.0));
    Box::leak(Box::new(Kind {
        columns: columns.map(Column::again).collect::<Vec<_>>().leak(),
        facets: facets.map(Facet::again).collect::<Vec<_>>().leak(),
        indexes: indexes.map(|it| it.1.again()).collect::<Vec<_>>().leak(),
        class_fields: if remake.classes { &[] } else { kind.class_fields },
        ..Kind::again(kind)
    }))
}

/// Returns the error for a part of a kind that is not rebuilt yet.
pub(crate) fn not_yet(kind: &'static Kind) -> StoreError {
    StoreError::Remaking { kind: kind.name, retry_after_s: RETRY_AFTER_S }
}

/// A kind whose tables do not match its declaration.
pub(crate) struct Changed {
    pub(crate) kind: &'static Kind,
    /// The declaration that its tables were created from.
    pub(crate) declaration: String,
    /// The tables of its many-valued columns at that time, in the embedded engine.
    pub(crate) tables: String,
}

/// Begins the rebuild of a kind unless it has begun, in the current short transaction. `reshape` brings the tables into
/// line with the declaration, as the engine does it, and returns the columns that are still to be emptied.
pub(crate) fn begin(
    session: &mut Session<'_>,
    changed: &Changed,
    reshape: impl FnOnce(&mut Session<'_>, &Changed, &Reshaped) -> Result<Vec<String>>,
) -> Result<Remake> {
    let kind = changed.kind;
    let was_under_way = changed.declaration == UNDER_WAY;
    let mut former = changed.declaration.clone();
    if was_under_way {
        match noted(session, kind)? {
            Some(remake) if remake.declaration == kind.declaration() => return Ok(remake),
            Some(remake) if remake.has_all_rows() => former = remake.declaration,
            Some(_) => {}
            None => recount_records(session, kind)?,
        }
    }
    let mut remake = Remake::between(&former, kind);
    if was_under_way {
        // It is unknown which of them exist.
        remake.indexes = (0..kind.indexes.len()).collect();
    }
    // Counts of an unfinished bulk load are not up to date.
    if counters::is_behind(session, kind.name)? {
        counters::unmark_behind(session, kind.name)?;
        remake.facets = kind.facets.iter().map(|it| it.name.to_owned()).collect();
    }
    remake.gone = reshape(session, changed, &Reshaped::of(kind, &remake))?;
    // A program that only knows other indexes reads and writes the same.
    if was_under_way || remake.has_work() || !differ_in_indexes_only(&former, &remake.declaration) {
        let sql = "INSERT INTO meta (name, value) VALUES ('declared', 1) \
                   ON CONFLICT (name) DO UPDATE SET value = meta.value + 1";
        session.execute(sql, &[])?;
    }
    session.execute("DELETE FROM meta WHERE name = ?1", &[mark_name(kind).as_str().into()])?;
    let sql = "INSERT INTO meta (name, value, text) VALUES (?1, ?2, ?3)";
    remake.last = i64::MIN;
    let values = [mark_name(kind).as_str().into(), remake.last.into(), text_of(&remake)?];
    session.execute(sql, &values)?;
    tracing::info!(
        kind = kind.name,
        "rebuilding a kind in the background, because its declaration has changed"
    );
    Ok(remake)
}

/// The changes to a kind's tables.
pub(crate) struct Reshaped {
    /// Columns that start empty.
    pub(crate) columns: Vec<&'static Column>,
    /// Indexes that are kept.
    pub(crate) indexes: Vec<&'static Index>,
    /// Whether the column of words starts empty, in a database.
    pub(crate) words: bool,
    /// Whether an old column of words is dropped.
    pub(crate) drops_words: bool,
    /// Facets whose counts are kept.
    pub(crate) facets: Vec<&'static Facet>,
    /// Whether links are rebuilt.
    pub(crate) links: bool,
}

impl Reshaped {
    fn of(kind: &'static Kind, remake: &Remake) -> Self {
        let stays = |it: &(usize, &'static Index)| !remake.indexes.contains(&it.0);
        Self {
            columns: kind.columns.iter().filter(|it| remake.lacks_column(it.name)).collect(),
            indexes: kind.indexes.iter().enumerate().filter(stays).map(|it| it.1).collect(),
            words: remake.words && kind.text != Text::None,
            drops_words: remake.words,
            facets: kind
                .facets
                .iter()
                .filter(|it| !remake.facets.iter().any(|name| name == it.name))
                .collect(),
            links: remake.links,
        }
    }

    /// Returns whether a column starts empty.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|it| it.name == column)
    }
}

/// Recounts records by the classes in their rows, where it is unknown what was counted: in a file of a former format,
/// or where a former version was about to rebuild the kind.
fn recount_records(session: &mut Session<'_>, kind: &Kind) -> Result<()> {
    let name = kind.name;
    session.execute(
        "DELETE FROM facet WHERE kind = ?1 AND facet = ?2",
        &[name.into(), counters::RECORDS.into()],
    )?;
    let (column, slot) = match session {
        Session::Postgres(session) => (", slot", format!(", {}", session.slot)),
        _ => {
            session.batch(&format!("DROP TABLE IF EXISTS \"new_{name}\""))?;
            ("", String::new())
        }
    };
    for (class, group) in [("class", " GROUP BY class"), ("0", " HAVING 0 < count(*)")] {
        session.batch(&format!(
            "INSERT INTO facet (kind, facet, class, value, n{column}) \
             SELECT '{name}', '', {class}, '', count(*){slot} FROM \"k_{name}\"{group}"
        ))?;
    }
    Ok(())
}

/// Returns how often declarations of a tenant have changed: a program that opened it at a lower count does not know
/// what is stored now.
pub(crate) fn declared(session: &mut Session<'_>) -> Result<i64> {
    let sql = "SELECT value FROM meta WHERE name = 'declared'";
    Ok(session.first(sql, &[], |row| row.int(0))?.unwrap_or(0))
}

/// Returns the progress of a kind's rebuild in the current transaction or snapshot; `None` when nothing is missing.
///
/// Errors: a program with another declaration has begun to rebuild the kind for itself.
pub(crate) fn read(session: &mut Session<'_>, kind: &'static Kind) -> Result<Option<Remake>> {
    match noted(session, kind)? {
        Some(remake) if remake.declaration != kind.declaration() => Err(outdated()),
        noted => Ok(noted),
    }
}

/// Reads the progress for whatever declaration it is. Marks of programs that predate online rebuilds are ignored.
fn noted(session: &mut Session<'_>, kind: &Kind) -> Result<Option<Remake>> {
    let sql = "SELECT value, text FROM meta WHERE name = ?1";
    let found =
        session.first(sql, &[mark_name(kind).as_str().into()], |row| Ok((row.int(0)?, row.text(1)?)))?;
    let Some((last, text)) = found else { return Ok(None) };
    Ok(serde_json::from_str::<Remake>(&text).ok().map(|remake| Remake { last, ..remake }))
}

fn write(session: &mut Session<'_>, kind: &'static Kind, remake: &Remake) -> Result<()> {
    let values = [mark_name(kind).as_str().into(), remake.last.into(), text_of(remake)?];
    session.execute("UPDATE meta SET value = ?2, text = ?3 WHERE name = ?1", &values).map(|_| ())
}

fn text_of(remake: &Remake) -> Result<Cell> {
    serde_json::to_string(remake).map(Cell::Text).map_err(|error| StoreError::Damaged(error.to_string()))
}

fn mark_name(kind: &Kind) -> String {
    format!("{MARK}{}", kind.name)
}

/// A row to be rebuilt.
struct Row {
    key: i64,
    /// The class stored in it.
    class: Class,
    document: Document,
}
