//! A record to be written: its body as bytes, and what the kind's declaration extracts from it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use crate::cell::Cell;
use crate::eval::{each_at, instant_ms, value_at};
use crate::identifiers;
use crate::marks::Mark;
use crate::strings::unique_strings;
use crate::{Arity, Class, Counts, Fields, Kind, ListId, Path, Result, StoreError, Text, Texts, Type};

/// A record ready to be written. Creating one serialises the body and reads it once; writers do this outside the
/// transaction.
#[derive(Debug, Clone)]
pub struct Document {
    pub(crate) kind: &'static Kind,
    pub(crate) id: String,
    pub(crate) body: Bytes,
    pub(crate) taken: Taken,
    pub(crate) list: Option<(ListId, u64)>,
}

impl Document {
    /// Serialises `body` and extracts what `kind` declares.
    ///
    /// Errors: the id holds a NUL character, which not every engine stores; the body cannot be written as JSON.
    pub fn new(kind: &'static Kind, id: impl Into<String>, body: &Json) -> Result<Self> {
        let id = id.into();
        check_id(kind, &id)?;
        let bytes = serialized(body).map_err(|error| StoreError::Damaged(error.to_string()))?;
        Ok(Self { kind, id, body: bytes, taken: Taken::from(kind, body), list: None })
    }

    /// Creates a document with a member that `body` holds only as the placeholder `{}`. Only [`Counts::Strings`] may
    /// extract anything from that member.
    ///
    /// Errors: as for [`Document::new`].
    pub fn with_part(kind: &'static Kind, id: impl Into<String>, body: &Json, part: &Part) -> Result<Self> {
        let id = id.into();
        check_id(kind, &id)?;
        let bytes = serialized(&Whole(body, part)).map_err(|error| StoreError::Damaged(error.to_string()))?;
        let taken = Taken::with_part(kind, body, Some((part.name, &part.strings)));
        Ok(Self { kind, id, body: bytes, taken, list: None })
    }

    /// Creates a document with the given bytes as the stored body, for dialects that format JSON in their own way. The
    /// caller guarantees that they represent `body`.
    ///
    /// Errors: the id holds a NUL character.
    pub fn with_bytes(
        kind: &'static Kind,
        id: impl Into<String>,
        body: &Json,
        bytes: impl Into<Bytes>,
    ) -> Result<Self> {
        let id = id.into();
        check_id(kind, &id)?;
        Ok(Self { kind, id, body: bytes.into(), taken: Taken::from(kind, body), list: None })
    }

    /// Creates a document from a stored body. Errors: the bytes are not JSON.
    pub(crate) fn stored(kind: &'static Kind, id: String, bytes: Bytes) -> Result<Self> {
        let body = serde_json::from_slice(&bytes).map_err(|error| damaged(kind, &id, &error))?;
        Ok(Self { kind, id, taken: Taken::from(kind, &body), body: bytes, list: None })
    }

    /// Returns the text of the body that searches look in. Errors: the body cannot be read.
    pub(crate) fn searched_text(&self) -> Result<String> {
        searched_text(self.kind, &self.body).map_err(|error| damaged(self.kind, &self.id, &error))
    }

    /// Adds a list of `n_members` members that was written before with [`crate::Txn::append_members`].
    pub fn with_list(mut self, list: ListId, n_members: u64) -> Self {
        self.list = Some((list, n_members));
        self
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the body as it will be stored.
    pub fn body(&self) -> &Bytes {
        &self.body
    }
}

/// Returns the error for a body that cannot be read.
fn damaged(kind: &Kind, id: &str, error: &serde_json::Error) -> StoreError {
    StoreError::Damaged(format!("{} {id:?}: {error}", kind.name))
}

/// A member of a body held as JSON text, which costs less than parsed values when it is large.
#[derive(Debug, Clone)]
pub struct Part {
    /// The member's name.
    pub name: &'static str,
    /// Its value, an object.
    pub json: Box<RawValue>,
    /// What [`Counts::Strings`] would extract from it.
    pub strings: Texts,
}

/// A body with a part in the place of its placeholder.
struct Whole<'w>(&'w Json, &'w Part);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let Self(Json::Object(body), part) = self else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(body.len()))?;
        for (name, value) in body {
            if name == part.name {
                map.serialize_entry(name, &part.json)?;
            } else {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

/// The distinct values that one facet counts in a record. Records of one instrument mostly have the same values in the
/// same order, so a batch of writes counts equal lists together: the marks, computed on the caller's thread, serve
/// this.
#[derive(Debug)]
pub(crate) struct CountedValues {
    mark: Mark,
    values: Vec<(Mark, String)>,
}

/// Number of long lists that a thread remembers, each in the slot that its mark selects.
const KNOWN_LISTS: usize = 64;
/// Number of values from which a list is long: rebuilding it costs more than looking it up.
const LONG_LIST: usize = 8;

impl CountedValues {
    /// Returns the list; for a long one perhaps an equal list that this thread built recently.
    fn known_or_new(values: &Texts) -> Arc<Self> {
        thread_local! {
            static KNOWN: RefCell<Vec<Option<Arc<CountedValues>>>> = const { RefCell::new(Vec::new()) };
        }
        let mark = Mark::of(values);
        if values.len() < LONG_LIST {
            return Arc::new(Self::new(mark, values));
        }
        KNOWN.with_borrow_mut(|known| {
            known.resize(KNOWN_LISTS, None);
            let place = &mut known[mark.place(KNOWN_LISTS)];
            match place {
                Some(list) if list.mark == mark => Arc::clone(list),
                _ => Arc::clone(place.insert(Arc::new(Self::new(mark, values)))),
            }
        })
    }

    fn new(mark: Mark, values: &Texts) -> Self {
        let mut values: Vec<(Mark, String)> = values.iter().map(|it| (Mark::of(it), it.to_owned())).collect();
        let mut marks: Vec<Mark> = values.iter().map(|it| it.0).collect();
        marks.sort_unstable();
        // Most lists have no duplicates and need no sorting: equal marks show when there may be some.
        if marks.windows(2).any(|pair| pair[0] == pair[1]) {
            sort_set(&mut values);
        }
        Self { mark, values }
    }

    pub(crate) fn is_long(&self) -> bool {
        LONG_LIST <= self.values.len()
    }

    /// Returns the mark of the list.
    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    pub(crate) fn marked_values(&self) -> &[(Mark, String)] {
        &self.values
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|it| it.1.as_str())
    }
}

impl PartialEq for CountedValues {
    fn eq(&self, other: &Self) -> bool {
        self.mark == other.mark
    }
}

/// Serialises a body into bytes without spare capacity: thousands of them wait in an import.
fn serialized(body: &impl Serialize) -> serde_json::Result<Bytes> {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        serde_json::to_writer(&mut *buffer, body)?;
        let bytes = Bytes::copy_from_slice(buffer);
        if KEPT_BYTES < buffer.capacity() {
            *buffer = Vec::new();
        }
        Ok(bytes)
    })
}

/// Largest buffer that a thread keeps for the next body, in bytes.
const KEPT_BYTES: usize = 1 << 20;

fn check_id(kind: &Kind, id: &str) -> Result<()> {
    if id.contains('\0') {
        return Err(StoreError::Query(format!("{}: the id {id:?} holds a NUL character", kind.name)));
    }
    Ok(())
}

/// What a declaration extracts from a body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Taken {
    /// Class of the record and the object of its class fields, as JSON text.
    pub(crate) class: Class,
    pub(crate) class_text: Arc<str>,
    /// One cell for each [`Arity::One`] column, in declared order.
    pub(crate) cells: Vec<Cell>,
    /// (index of the column, value) for [`Arity::Many`] columns, without duplicates.
    pub(crate) many: Vec<(usize, Cell)>,
    /// (index of the facet, its values), for each facet that has any.
    pub(crate) counted: Vec<(usize, Arc<CountedValues>)>,
    /// (scheme, value).
    pub(crate) identifiers: Vec<(&'static str, String)>,
    /// (relation, kind of the target, id of the target).
    pub(crate) links: Vec<(&'static str, &'static str, String)>,
}

impl Taken {
    pub(crate) fn from(kind: &'static Kind, body: &Json) -> Self {
        Self::with_part(kind, body, None)
    }

    /// Extracts what `kind` declares; `part` is a member that `body` may lack, and what [`Counts::Strings`] extracts
    /// from it.
    fn with_part(kind: &'static Kind, body: &Json, part: Option<(&str, &Texts)>) -> Self {
        let mut taken = Self::for_index(kind, body, part);
        for (index, column) in kind.columns.iter().enumerate().filter(|it| it.1.arity == Arity::Many) {
            each_at(body, column.path, &mut |it| match cell(it, column.ty) {
                Cell::Null => {}
                value => taken.many.push((index, value)),
            });
        }
        taken.many.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.total_order(&b.1)));
        taken.many.dedup();
        for it in kind.identifiers {
            each_text(body, it.path, &mut |text| {
                taken.identifiers.push((it.scheme, identifiers::key(it.scheme, &text)));
            });
        }
        for it in kind.links {
            each_text(body, it.path, &mut |text| taken.links.push((it.relation, it.to, text)));
        }
        sort_set(&mut taken.identifiers);
        sort_set(&mut taken.links);
        taken
    }

    /// Extracts what a search index holds of that: class, cells and counted values.
    pub(crate) fn for_index(kind: &'static Kind, body: &Json, part: Option<(&str, &Texts)>) -> Self {
        let class_text: Arc<str> = class_text(kind, body).into();
        let mut taken = Self {
            class: class_of(&class_text),
            class_text,
            cells: Vec::new(),
            many: Vec::new(),
            counted: Vec::new(),
            identifiers: Vec::new(),
            links: Vec::new(),
        };
        let cells = kind.columns.iter().filter(|it| it.arity == Arity::One);
        taken.cells.extend(cells.map(|it| single_cell(body, it.path, it.ty)));
        let mut values = Texts::default();
        for (index, facet) in kind.facets.iter().enumerate() {
            values.clear();
            match part.filter(|it| it.0 == facet.path) {
                Some((_, strings)) => strings.iter().for_each(|it| values.push(&storable(it))),
                None => count(facet.counts, body, facet.path, &mut |value| values.push(value)),
            }
            if !values.is_empty() {
                taken.counted.push((index, CountedValues::known_or_new(&values)));
            }
        }
        taken
    }
}

/// Returns the text of a stored body that searches look in; empty when the kind has no text.
pub(crate) fn searched_text(kind: &Kind, bytes: &[u8]) -> serde_json::Result<String> {
    let body = if matches!(kind.text, Text::At(_)) { serde_json::from_slice(bytes)? } else { Json::Null };
    searched_text_of(kind, &body, || unique_strings(bytes))
}

/// As [`searched_text`], of a body that is parsed already; `all_strings` returns all strings of the body.
pub(crate) fn searched_text_of(
    kind: &Kind,
    body: &Json,
    all_strings: impl FnOnce() -> serde_json::Result<String>,
) -> serde_json::Result<String> {
    match kind.text {
        Text::None => Ok(String::new()),
        Text::AllStrings => all_strings(),
        Text::At(paths) => {
            let mut text = String::new();
            paths.iter().for_each(|path| each_at(body, path, &mut |it| push_strings(it, &mut text)));
            Ok(text)
        }
    }
}

/// Calls `visit` with each value that a facet counts in a body; equal values may come more than once.
pub(crate) fn count(counts: Counts, body: &Json, path: &str, visit: &mut impl FnMut(&str)) {
    match counts {
        Counts::Values => each_at(body, path, &mut |it| match it {
            Json::Null | Json::Object(_) | Json::Array(_) => {}
            Json::String(text) => visit(&storable(text)),
            Json::Number(number) => visit(&number_text(number)),
            Json::Bool(true) => visit("true"),
            Json::Bool(false) => visit("false"),
        }),
        Counts::Days => each_at(body, path, &mut |it| {
            if let Some(day) = it.as_str().and_then(instant_ms).and_then(day_text) {
                visit(&day);
            }
        }),
        Counts::Strings(strings) => {
            if let Some(Json::Object(map)) = value_at(body, Path::dotted(path).as_steps()) {
                let mut list = Texts::default();
                strings(&Fields::of(map), &mut list);
                list.iter().for_each(|it| visit(&storable(it)));
            }
        }
    }
}

/// Returns the day of an instant as `YYYY-MM-DD`.
pub(crate) fn day_text(ms: i64) -> Option<String> {
    let date = OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)).ok()?.date();
    Some(format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day()))
}

/// Returns the class of the object of class fields: 63 bits of its SHA-256 hash, so that every server computes the same
/// number without coordination, and nobody can construct fields with the number of somebody else's. Before a class is
/// stored, its text is compared with the one that the number stands for, so two texts never share a class. 0 stands for
/// all classes together and is never returned.
pub(crate) fn class_of(class_text: &str) -> Class {
    let hash: [u8; 32] = Sha256::digest(class_text.as_bytes()).into();
    let [a, b, c, d, e, f, g, h, ..] = hash;
    Class((u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1).max(1).cast_signed())
}

/// Computes FNV-1a, continuing from the hash of what came before (0 for nothing). For checksums against accidents only;
/// nothing that somebody may want to forge depends on it.
pub(crate) fn fnv(bytes: &[u8], before: u64) -> u64 {
    bytes.iter().fold(before ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(crate) fn class_text(kind: &Kind, body: &Json) -> String {
    let mut text = String::from("{");
    for field in kind.class_fields {
        let value = match body.get(field) {
            None | Some(Json::Null) => continue,
            Some(Json::Array(list)) => sorted_list(list),
            Some(other) => other.to_string(),
        };
        if 1 < text.len() {
            text.push(',');
        }
        text.push_str(&Json::from(*field).to_string());
        text.push(':');
        text.push_str(&value);
    }
    text.push('}');
    text
}

/// Lists in a class are sets: order and duplicates do not make a different class.
fn sorted_list(list: &[Json]) -> String {
    let mut texts: Vec<String> = list.iter().map(Json::to_string).collect();
    texts.sort_unstable();
    texts.dedup();
    format!("[{}]", texts.join(","))
}

fn single_cell(body: &Json, path: &str, ty: Type) -> Cell {
    let mut at = body;
    for step in path.split('.') {
        match at.get(step) {
            Some(it) => at = it,
            None => return Cell::Null,
        }
    }
    cell(at, ty)
}

fn cell(value: &Json, ty: Type) -> Cell {
    let cell = match (ty, value) {
        (Type::Text, Json::String(text)) => Some(Cell::Text(storable(text).into_owned())),
        (Type::Integer, Json::Number(number)) => number_cell(number).filter(|it| matches!(it, Cell::Int(_))),
        (Type::Real, Json::Number(number)) => number_cell(number),
        (Type::Boolean, Json::Bool(it)) => Some(Cell::Int(i64::from(*it))),
        (Type::Instant, Json::String(text)) => instant_ms(text).map(Cell::Int),
        (Type::Folded, Json::String(text)) => Some(Cell::Text(storable(&crate::fold(text)).into_owned())),
        _ => None,
    };
    cell.unwrap_or(Cell::Null)
}

fn each_text(body: &Json, path: &str, visit: &mut impl FnMut(String)) {
    each_at(body, path, &mut |it| {
        if let Json::String(text) = it {
            visit(storable(text).into_owned());
        }
    });
}

/// Returns the text as every engine's columns can store it: PostgreSQL allows no NUL character in texts.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    match memchr::memchr(0, text.as_bytes()) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.replace('\0', "\u{fffd}")),
    }
}

fn push_strings(value: &Json, text: &mut String) {
    match value {
        Json::String(it) => {
            text.push_str(it);
            text.push('\n');
        }
        Json::Array(list) => list.iter().for_each(|it| push_strings(it, text)),
        Json::Object(map) => map.values().for_each(|it| push_strings(it, text)),
        _ => {}
    }
}

/// Returns a number as it is compared: 2.0 equals 2.
fn number_cell(number: &serde_json::Number) -> Option<Cell> {
    match number.as_i64() {
        Some(whole) => Some(Cell::Int(whole)),
        None => number.as_f64().map(Cell::number),
    }
}

/// Returns the text under which a number is counted.
fn number_text(number: &serde_json::Number) -> String {
    match number_cell(number) {
        Some(Cell::Int(whole)) => whole.to_string(),
        _ => number.to_string(),
    }
}

fn sort_set<T: Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    list.dedup();
}
