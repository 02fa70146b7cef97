//! An in-memory cache of the classes of records: which of them satisfy a condition on class fields.
//!
//! A class never changes and its number follows from its content, so cached classes stay valid; those stored later are
//! read from the table. The number alone is not proof: a class is identified by its number and its text.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use quick_cache::sync::Cache;
use serde_json::Value as Json;

use crate::document::Taken;
use crate::session::{Session, State};
use crate::{Class, Expr, Kind, Result, StoreError, eval};

/// Maximum number of cached condition results per tenant.
const CLASS_SETS_MAX: usize = 4_096;

/// The classes that a tenant has cached.
pub(crate) struct Classes {
    known: Mutex<HashMap<&'static str, Arc<KindClasses>>>,
    sets: Cache<String, Arc<ClassSet>>,
}

/// The classes of one kind, oldest first.
#[derive(Default, Clone)]
struct KindClasses {
    list: Vec<Known>,
    by_number: HashMap<i64, usize>,
    last_row: i64,
}

impl KindClasses {
    /// Adds classes with the rows they are stored in, in order; classes that are present already are skipped.
    fn add(&mut self, fresh: Vec<(i64, Known)>) {
        for (row, class) in fresh {
            if self.last_row < row {
                self.by_number.insert(class.number, self.list.len());
                self.list.push(class);
                self.last_row = row;
            }
        }
    }
}

/// A class: its number and the text and content of its fields.
#[derive(Clone)]
struct Known {
    number: i64,
    text: Arc<str>,
    fields: Arc<Json>,
}

/// Classes that a transaction stored or found stored, with the texts that their numbers stand for.
#[derive(Default)]
pub(crate) struct StoredClasses(HashMap<(&'static str, Class), Arc<str>>);

impl StoredClasses {
    /// Returns whether the class of a record is among them.
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

/// The classes that satisfy a condition.
#[derive(Debug)]
pub(crate) struct ClassSet {
    /// Their numbers.
    pub(crate) numbers: Vec<i64>,
    /// Whether these are all the classes of the kind.
    pub(crate) is_all: bool,
    /// Number of classes examined, the oldest first.
    n_seen: usize,
}

impl ClassSet {
    /// Returns the classes that satisfy `condition`. `former` is an earlier result over the oldest classes: only newer
    /// classes are examined, so a new class costs the same however many there are.
    fn of(classes: &[Known], condition: &Expr, former: Option<&Self>) -> Self {
        let (mut numbers, n_seen) =
            former.map_or_else(Default::default, |it| (it.numbers.clone(), it.n_seen));
        let matching = classes[n_seen..].iter().filter(|it| eval::matches(condition, &it.fields));
        numbers.extend(matching.map(|it| it.number));
        Self { is_all: numbers.len() == classes.len(), numbers, n_seen: classes.len() }
    }
}

impl Classes {
    pub(crate) fn new() -> Self {
        Self { known: Mutex::default(), sets: Cache::new(CLASS_SETS_MAX) }
    }

    /// Returns the classes of `kind` that satisfy `condition`, which concerns class fields only.
    pub(crate) fn satisfying(
        &self,
        session: &mut Session<'_>,
        state: State,
        kind: &'static Kind,
        condition: &Expr,
    ) -> Result<Arc<ClassSet>> {
        let classes = self.visible(session, state, kind)?;
        if state != State::Committed {
            return Ok(Arc::new(ClassSet::of(&classes.list, condition, None)));
        }
        let key = format!("{} {condition:?}", kind.name);
        // Another thread may have seen more classes meanwhile.
        let former = self.sets.get(&key).filter(|it| it.n_seen <= classes.list.len());
        if let Some(set) = &former
            && set.n_seen == classes.list.len()
        {
            return Ok(set.clone());
        }
        let set = Arc::new(ClassSet::of(&classes.list, condition, former.as_deref()));
        self.sets.insert(key, set.clone());
        Ok(set)
    }

    /// Returns the class fields of a class as an object.
    pub(crate) fn fields(
        &self,
        session: &mut Session<'_>,
        state: State,
        kind: &'static Kind,
        class: Class,
    ) -> Result<Arc<Json>> {
        let mut classes = self.known(kind);
        if !classes.by_number.contains_key(&class.0) {
            classes = self.visible(session, state, kind)?;
        }
        let position = classes.by_number.get(&class.0);
        position
            .map(|position| classes.list[*position].fields.clone())
            .ok_or_else(|| StoreError::Damaged(format!("{}: class {} is not there", kind.name, class.0)))
    }

    /// Returns whether a class is cached.
    pub(crate) fn knows(&self, kind: &'static Kind, class: Class) -> bool {
        self.known(kind).by_number.contains_key(&class.0)
    }

    fn known(&self, kind: &'static Kind) -> Arc<KindClasses> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(kind.name).cloned().unwrap_or_default()
    }

    /// Returns the classes that a snapshot sees, which it reads once, or a transaction.
    fn visible(
        &self,
        session: &mut Session<'_>,
        state: State,
        kind: &'static Kind,
    ) -> Result<Arc<KindClasses>> {
        if state != State::Committed {
            return self.current(session, state, kind);
        }
        if session.has_read_classes(kind) {
            return Ok(self.known(kind));
        }
        let classes = self.current(session, state, kind)?;
        session.note_classes_read(kind);
        Ok(classes)
    }

    /// Returns the cached classes after reading those added since. Classes that a transaction adds are cached only once
    /// it is committed.
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
        let read = |(row, number, text): (i64, i64, String)| {
            let fields = serde_json::from_str(&text)
                .map_err(|error| StoreError::Damaged(format!("{}: class {number}: {error}", kind.name)))?;
            Ok((row, Known { number, text: text.into(), fields: Arc::new(fields) }))
        };
        let fresh = fresh.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        if state != State::Committed {
            let mut grown = KindClasses::clone(&known);
            grown.add(fresh);
            return Ok(Arc::new(grown));
        }
        // The cached list grows in place when nobody else holds it.
        drop(known);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = known.entry(kind.name).or_default();
        Arc::make_mut(remembered).add(fresh);
        Ok(remembered.clone())
    }

    /// Reads the committed classes that were added since.
    pub(crate) fn read(&self, session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
        self.current(session, State::Committed, kind).map(|_| ())
    }

    /// Returns whether the class of a record is known to be committed, with its number standing for its text.
    pub(crate) fn is_committed(&self, kind: &'static Kind, taken: &Taken) -> bool {
        let known = self.known(kind);
        let position = known.by_number.get(&taken.class.0);
        position.is_some_and(|position| known.list[*position].text == taken.class_text)
    }
}

/// Returns the error for a class number that stands for other class fields. It does not reveal them to the caller.
pub(crate) fn number_taken(kind: &Kind, taken: &Taken) -> StoreError {
    StoreError::Query(format!(
        "{}: {} cannot be stored: its class number {} stands for other class fields; change one of them",
        kind.name, taken.class_text, taken.class.0
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(number: i64, group: &str) -> (i64, Known) {
        let fields = json!({"group": group});
        (number, Known { number, text: fields.to_string().into(), fields: Arc::new(fields) })
    }

    #[test]
    fn only_new_classes_are_looked_at() {
        let mut classes = KindClasses::default();
        classes.add(vec![class(1, "a"), class(2, "b"), class(3, "a")]);
        let condition = Expr::Is("group".into(), "a".into());
        let first = ClassSet::of(&classes.list, &condition, None);
        assert_eq!((&first.numbers[..], first.is_all, first.n_seen), (&[1, 3][..], false, 3));
        // Rows that another reader has added already are not added twice.
        classes.add(vec![class(3, "a"), class(4, "a")]);
        assert_eq!(classes.list.len(), 4);
        let second = ClassSet::of(&classes.list, &condition, Some(&first));
        assert_eq!((&second.numbers[..], second.n_seen), (&[1, 3, 4][..], 4));
        // The former set's result for the old classes is reused, not computed again.
        let says_nothing = ClassSet { numbers: Vec::new(), is_all: false, n_seen: 3 };
        assert_eq!(ClassSet::of(&classes.list, &condition, Some(&says_nothing)).numbers, [4]);
        let all = ClassSet::of(&classes.list, &Expr::All, None);
        assert!(all.is_all && all.numbers.len() == 4);
    }
}
