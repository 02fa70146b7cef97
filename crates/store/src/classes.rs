//! The classes of records, kept in memory: which of them satisfy a condition on class fields.
//!
//! A class never changes and its number follows from its content, so what is known stays true; what is not known is read
//! when a larger number of classes is found. A number alone proves nothing: a class is known under its number and its text.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use quick_cache::sync::Cache;
use serde_json::Value as Json;

use crate::document::Taken;
use crate::session::Session;
use crate::view::State;
use crate::{Class, Expr, Kind, Result, StoreError, eval};

/// Answers of conditions kept at most, per tenant.
const CLASS_SETS_MAX: usize = 4_096;

/// What a tenant knows of its classes.
pub(crate) struct Classes {
    known: Mutex<HashMap<&'static str, Arc<KindClasses>>>,
    sets: Cache<(String, usize), Arc<ClassSet>>,
}

/// The classes of one kind, oldest first.
#[derive(Default)]
struct KindClasses {
    list: Vec<Known>,
    by_number: HashMap<i64, usize>,
    last_row: i64,
}

/// A class: its number and the text and content of its fields.
#[derive(Clone)]
struct Known {
    number: i64,
    text: Arc<str>,
    fields: Arc<Json>,
}

/// Classes that a transaction stored or found stored, and the texts their numbers stand for.
#[derive(Default)]
pub(crate) struct StoredClasses(HashMap<(&'static str, Class), Arc<str>>);

impl StoredClasses {
    /// Whether the class of a record is among them.
    pub(crate) fn has(&self, kind: &Kind, taken: &Taken) -> bool {
        self.0.get(&(kind.name, taken.class)).is_some_and(|text| *text == taken.class_text)
    }

    pub(crate) fn add(&mut self, kind: &'static Kind, taken: &Taken) {
        self.0.insert((kind.name, taken.class), taken.class_text.clone());
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Which classes satisfy a condition.
#[derive(Debug)]
pub(crate) struct ClassSet {
    /// Their numbers.
    pub(crate) numbers: Vec<i64>,
    /// Whether these are all classes of the kind.
    pub(crate) is_all: bool,
}

impl Classes {
    pub(crate) fn new() -> Self {
        Self { known: Mutex::default(), sets: Cache::new(CLASS_SETS_MAX) }
    }

    /// The classes of `kind` that satisfy `condition`, which is on class fields only.
    pub(crate) fn satisfying(
        &self,
        session: &mut Session<'_>,
        state: State,
        kind: &'static Kind,
        condition: &Expr,
    ) -> Result<Arc<ClassSet>> {
        let classes = self.current(session, state, kind)?;
        let key = (format!("{} {condition:?}", kind.name), classes.list.len());
        if state == State::Committed
            && let Some(set) = self.sets.get(&key)
        {
            return Ok(set);
        }
        let matching = classes.list.iter().filter(|it| eval::matches(condition, &it.fields));
        let numbers: Vec<i64> = matching.map(|it| it.number).collect();
        let set = Arc::new(ClassSet { is_all: numbers.len() == classes.list.len(), numbers });
        if state == State::Committed {
            self.sets.insert(key, set.clone());
        }
        Ok(set)
    }

    /// The class fields of a class, as an object.
    pub(crate) fn fields(
        &self,
        session: &mut Session<'_>,
        state: State,
        kind: &'static Kind,
        class: Class,
    ) -> Result<Arc<Json>> {
        let mut classes = self.known(kind);
        if !classes.by_number.contains_key(&class.0) {
            classes = self.current(session, state, kind)?;
        }
        let position = classes.by_number.get(&class.0);
        position
            .map(|position| classes.list[*position].fields.clone())
            .ok_or_else(|| StoreError::Damaged(format!("{}: class {} is not there", kind.name, class.0)))
    }

    fn known(&self, kind: &'static Kind) -> Arc<KindClasses> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(kind.name).cloned().unwrap_or_default()
    }

    /// What is known, after reading the classes that were added since. What a transaction adds is
    /// remembered only once it is committed.
    fn current(
        &self,
        session: &mut Session<'_>,
        state: State,
        kind: &'static Kind,
    ) -> Result<Arc<KindClasses>> {
        let known = self.known(kind);
        let sql = "SELECT row, class, fields FROM class WHERE kind = ?1 AND ?2 < row ORDER BY row";
        let fresh = session.all(sql, &[kind.name.into(), known.last_row.into()], |row| {
            Ok((row.int(0)?, row.int(1)?, row.text(2)?))
        })?;
        if fresh.is_empty() {
            return Ok(known);
        }
        let mut grown = KindClasses {
            list: known.list.clone(),
            by_number: known.by_number.clone(),
            last_row: known.last_row,
        };
        for (row, number, text) in fresh {
            let fields = serde_json::from_str(&text)
                .map_err(|error| StoreError::Damaged(format!("{}: class {number}: {error}", kind.name)))?;
            grown.by_number.insert(number, grown.list.len());
            grown.list.push(Known { number, text: text.into(), fields: Arc::new(fields) });
            grown.last_row = row;
        }
        let grown = Arc::new(grown);
        if state == State::Committed {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let remembered = known.entry(kind.name).or_default();
            if remembered.last_row < grown.last_row {
                *remembered = grown.clone();
            }
        }
        Ok(grown)
    }

    /// Reads the committed classes that were added since.
    pub(crate) fn read(&self, session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
        self.current(session, State::Committed, kind).map(|_| ())
    }

    /// Whether the class of a record is known to be stored, its number standing for its text, and committed.
    pub(crate) fn is_committed(&self, kind: &'static Kind, taken: &Taken) -> bool {
        let known = self.known(kind);
        let position = known.by_number.get(&taken.class.0);
        position.is_some_and(|position| known.list[*position].text == taken.class_text)
    }
}
