//! Evaluates a condition on a segment: which documents certainly satisfy it, and which may.
//!
//! Most conditions are decided by terms and by columns (`columns.rs`); texts have a file of their own. Where a term
//! holds only the beginning of a long text, or a condition concerns one element of a list, the bodies of some documents
//! decide.

mod bounds;
mod columns;
mod folded;
mod grams;
mod long_texts;
mod many;
mod members;
mod paths;
mod positions;
mod span;
mod texts;
mod wholes;

use std::sync::Arc;

use tantivy::index::InvertedIndexReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::termdict::TermDictionary;
use tantivy::{Searcher, SegmentReader};

pub(super) use self::bounds::Bounds;
pub(super) use self::paths::PathTexts;
pub(super) use self::span::instants_between;
use super::decoded::{Decoded, What};
use super::hashes::Hashes;
use super::join_column::JoinColumn;
use super::layout::Layout;
use super::set::Set;
use super::terms::{self, TEXT_BYTES, Tag, TextTerm, after};
use super::words::Words;
use crate::field_values::EXACT;
use crate::{End, Expr, Kind, Path, Result, Search, StoreError, Type, Value, fold};

/// Number of documents below which a pattern is decided on their bodies rather than on all texts of the path, if they are
/// few of the segment.
const FEW_BODIES: u64 = 300;

/// A segment of an index.
pub(super) struct Segment<'s> {
    searcher: &'s Searcher,
    reader: &'s SegmentReader,
    layout: &'s Layout,
    decoded: &'s Decoded,
    kind: &'static Kind,
    terms: Arc<InvertedIndexReader>,
    max_doc: u32,
    /// Documents without terms, decided on their bodies.
    beyond: Option<Set>,
    /// Whether tests of texts read those that are no whole terms, rather than leave them undecided.
    pub(super) reads_long_texts: bool,
}

impl<'s> Segment<'s> {
    pub(super) fn new(
        searcher: &'s Searcher,
        reader: &'s SegmentReader,
        layout: &'s Layout,
        decoded: &'s Decoded,
        kind: &'static Kind,
    ) -> Result<Self> {
        let terms = reader.inverted_index(layout.terms)?;
        let max_doc = reader.max_doc();
        let (beyond, reads_long_texts) = (None, false);
        let mut segment =
            Self { searcher, reader, layout, decoded, kind, terms, max_doc, beyond, reads_long_texts };
        let beyond = segment.with_term(&terms::beyond_term())?;
        segment.beyond = (!beyond.is_empty()).then_some(beyond);
        Ok(segment)
    }

    pub(super) fn kind(&self) -> &'static Kind {
        self.kind
    }

    pub(super) fn reader(&self) -> &SegmentReader {
        self.reader
    }

    /// Returns the number of documents, including deleted ones.
    pub(super) fn n_documents(&self) -> u32 {
        self.max_doc
    }

    /// Returns the documents that are not deleted.
    pub(super) fn alive(&self) -> Result<Set> {
        let Some(alive) = self.reader.alive_bitset() else { return Ok(Set::full(self.max_doc)) };
        let read = || {
            let mut set = Set::full(self.max_doc);
            (0..self.max_doc).filter(|doc| !alive.is_alive(*doc)).for_each(|doc| set.remove(doc));
            Ok(set)
        };
        if !Decoded::is_frequent(self.max_doc, self.max_doc) {
            return read();
        }
        let what = What::Alive { n_deleted: self.reader.num_deleted_docs() };
        let set = self.decoded.set(self.reader.segment_id(), what, read)?;
        Ok(Set::clone(&set))
    }

    /// Returns the sorted hashes of a column of list entries.
    pub(super) fn hashes(&self, column: &str, read: impl FnOnce() -> Result<Hashes>) -> Result<Arc<Hashes>> {
        self.decoded.hashes(self.reader.segment_id(), column, read)
    }

    /// Returns the column of a path by which records are joined.
    pub(super) fn decoded_join(
        &self,
        column: &str,
        read: impl FnOnce() -> Result<JoinColumn>,
    ) -> Result<Arc<JoinColumn>> {
        self.decoded.join(self.reader.segment_id(), column, read)
    }

    /// Returns the documents with a term.
    pub(super) fn with_term(&self, term: &[u8]) -> Result<Set> {
        let Some(info) = self.info(term)? else { return Ok(Set::empty(self.max_doc)) };
        if Decoded::is_frequent(info.doc_freq, self.max_doc) {
            return Ok(Set::clone(&*self.of_frequent(term, &info)?));
        }
        self.of_term(&info)
    }

    /// Adds the documents with a term.
    fn add_term(&self, term: &[u8], block: &mut Option<BlockSegmentPostings>, set: &mut Set) -> Result<()> {
        match self.info(term)? {
            Some(info) if Decoded::is_frequent(info.doc_freq, self.max_doc) => {
                set.add(&*self.of_frequent(term, &info)?);
                Ok(())
            }
            Some(info) => self.add_postings(&info, block, set),
            None => Ok(()),
        }
    }

    fn of_frequent(&self, term: &[u8], info: &TermInfo) -> Result<Arc<Set>> {
        let what = What::Term(self.layout.terms, term.to_vec());
        self.decoded.set(self.reader.segment_id(), what, || self.of_term(info))
    }

    /// Returns the documents of any of these classes.
    pub(super) fn of_classes(&self, classes: &[i64]) -> Result<Set> {
        let mut set = Set::empty(self.max_doc);
        let values = classes.iter().map(|it| it.to_be_bytes()).collect();
        self.add_any(&terms::class_prefix(), values, &mut set)?;
        Ok(set)
    }

    /// Returns the dictionary of all terms, in order.
    pub(super) fn all_terms(&self) -> &TermDictionary {
        self.terms.terms()
    }

    /// Returns the documents of a term.
    fn of_term(&self, info: &TermInfo) -> Result<Set> {
        let mut set = Set::empty(self.max_doc);
        self.add_postings(info, &mut None, &mut set)?;
        Ok(set)
    }

    /// Calls `visit` with each document of a term.
    pub(super) fn each_of(&self, info: &TermInfo, visit: impl FnMut(u32)) -> Result<()> {
        each_posting(&self.terms, info, &mut None, visit)
    }

    /// Returns whether any document of a term is in a set.
    pub(super) fn has_any_of(&self, info: &TermInfo, set: &Set) -> Result<bool> {
        let mut is_there = false;
        self.each_of(info, |doc| is_there |= set.has(doc))?;
        Ok(is_there)
    }

    fn info(&self, term: &[u8]) -> Result<Option<TermInfo>> {
        self.info_in(&self.terms, self.layout.terms, term)
    }

    /// Returns where the documents of a field's term are.
    fn info_in(&self, terms: &InvertedIndexReader, field: Field, term: &[u8]) -> Result<Option<TermInfo>> {
        let look_up = || terms.terms().get(term).map_err(failed);
        self.decoded.info(self.reader.segment_id(), field, term, look_up)
    }

    /// Calls `visit` with each document that has a term.
    pub(super) fn each_with(&self, term: &[u8], mut visit: impl FnMut(u32)) -> Result<()> {
        self.with_term(term)?.iter().for_each(&mut visit);
        Ok(())
    }

    fn n_with(&self, path: &[u8], tag: Tag, value: &[u8]) -> Result<u64> {
        Ok(self.info(&terms::term(path, tag, value))?.map_or(0, |it| u64::from(it.doc_freq)))
    }

    fn add_postings(
        &self,
        info: &TermInfo,
        block: &mut Option<BlockSegmentPostings>,
        set: &mut Set,
    ) -> Result<()> {
        each_posting(&self.terms, info, block, |doc| set.insert(doc))
    }

    /// Calls `visit` with the rest after `prefix` of each term from `low` (inclusive) to `high` (exclusive), and with
    /// the term's documents.
    pub(super) fn each_term(
        &self,
        prefix: &[u8],
        low: &[u8],
        high: Option<&[u8]>,
        mut visit: impl FnMut(&[u8], &TermInfo) -> Result<()>,
    ) -> Result<()> {
        let mut from = prefix.to_vec();
        from.extend_from_slice(low);
        let mut stream = self.terms.terms().range().ge(&from).into_stream().map_err(failed)?;
        while stream.advance() {
            let Some(rest) = stream.key().strip_prefix(prefix) else { break };
            if high.is_some_and(|it| it <= rest) {
                break;
            }
            visit(rest, stream.value())?;
        }
        Ok(())
    }

    /// Returns the documents with any term in the range.
    fn between(&self, path: &[u8], tag: Tag, low: &[u8], high: Option<&[u8]>) -> Result<Set> {
        let mut set = Set::empty(self.max_doc);
        let mut block = None;
        self.each_term(&terms::term(path, tag, &[]), low, high, |_, info| {
            self.add_postings(info, &mut block, &mut set)
        })?;
        Ok(set)
    }

    fn with(&self, path: &[u8], tag: Tag, value: &[u8]) -> Result<Set> {
        self.with_term(&terms::term(path, tag, value))
    }

    /// Returns the bounds from terms; documents without terms are undecided.
    fn said(&self, low: Set) -> Bounds {
        self.said_between(low, None)
    }

    fn said_between(&self, low: Set, more: Option<Set>) -> Bounds {
        let more = match (more, &self.beyond) {
            (None, None) => return Bounds::exact(low),
            (Some(more), None) => more,
            (None, Some(beyond)) => beyond.clone(),
            (Some(more), Some(beyond)) => more.or(beyond),
        };
        Bounds { high: Some(more.or(&low)), low }
    }

    /// Returns the documents among `within` that satisfy a condition; the result for other documents is meaningless.
    pub(super) fn satisfying(&self, expr: &Expr, within: &Set) -> Result<Bounds> {
        if let Expr::Joined(path, keys) = expr {
            return self.joined(path, keys);
        }
        match expr.path().filter(|it| !terms::is_indexed(self.kind, it)) {
            Some(path) => self.beside_terms(expr, path, within),
            None => self.of_terms(expr, within),
        }
    }

    /// As [`Segment::satisfying`], of a condition on a path whose terms the index has.
    fn of_terms(&self, expr: &Expr, within: &Set) -> Result<Bounds> {
        Ok(match expr {
            Expr::All => Bounds::exact(Set::full(self.max_doc)),
            Expr::Nothing => Bounds::exact(Set::empty(self.max_doc)),
            Expr::And(list) => self.all(&list.iter().collect::<Vec<_>>(), within)?,
            Expr::Or(list) => {
                let mut bounds = Bounds::exact(Set::empty(self.max_doc));
                for it in list {
                    bounds = bounds.or(&self.satisfying(it, within)?);
                }
                bounds
            }
            Expr::Not(it) => self.satisfying(it, within)?.complement(),
            Expr::Ids(ids) => {
                let mut set = Set::empty(self.max_doc);
                let values = ids.iter().map(String::as_str).collect();
                self.add_any(&terms::id_prefix(), values, &mut set)?;
                Bounds::exact(set)
            }
            Expr::Text(query) => Bounds::exact(self.with_words(&Words::of(query))?),
            Expr::Is(path, value) => self.is(path, value, within)?,
            Expr::In(path, values) => self.any_of(path, values, within)?,
            Expr::Range(path, low, high) => self.range(path, low, high, within)?,
            Expr::Exists(path) => self.said(self.present(path)?),
            Expr::Size(path, n) => self.said(self.with(&bytes(path), Tag::Length, &n.to_be_bytes())?),
            Expr::Prefix(path, prefix) => self.prefixed(path, prefix)?,
            Expr::Word(path, word) => self.word(path, word, within)?,
            Expr::Regex(path, pattern) => self.matching(path, pattern, within)?,
            Expr::Joined(path, keys) => self.joined(path, keys)?,
            Expr::Element(path, inner) => {
                let path = bytes(path);
                let lists = self.with(&path, Tag::List, &[])?;
                let within = lists.clone().and(within);
                let inner = self.satisfying(&below(expr, inner), &within)?;
                let nested = self.with(&path, Tag::Nested, &[])?;
                let high = inner.high().clone().or(&nested).and(&lists);
                self.said_between(Set::empty(self.max_doc), Some(high))
            }
        })
    }

    /// Evaluates conditions that must all hold, the cheapest first.
    pub(super) fn all(&self, list: &[&Expr], within: &Set) -> Result<Bounds> {
        let mut costs: Vec<(u64, &Expr)> = Vec::with_capacity(list.len());
        for it in list {
            costs.push((self.cost(it)?, *it));
        }
        costs.sort_by_key(|it| it.0);
        let mut found: Option<Bounds> = None;
        for (_, it) in costs {
            found = Some(match found {
                None => self.satisfying(it, within)?,
                Some(found) => {
                    let within = found.high().clone().and(within);
                    if within.is_empty() {
                        return Ok(Bounds::exact(within));
                    }
                    found.and(&self.satisfying(it, &within)?)
                }
            });
        }
        Ok(found.unwrap_or_else(|| Bounds::exact(Set::full(self.max_doc))))
    }

    /// Returns the documents of a set that satisfy conditions which terms and columns decide.
    pub(super) fn narrowed(&self, conditions: &[&Expr], set: &Set) -> Result<Set> {
        Ok(if conditions.is_empty() { set.clone() } else { self.all(conditions, set)?.low.and(set) })
    }

    /// Returns whether terms are there for all documents.
    pub(super) fn has_all_terms(&self) -> bool {
        self.beyond.is_none()
    }

    /// Estimates the number of steps that a condition takes.
    pub(super) fn cost(&self, expr: &Expr) -> Result<u64> {
        let all = u64::from(self.max_doc);
        Ok(match expr {
            Expr::Is(path, value) => self.n_equal(path, value)?.unwrap_or(all),
            Expr::In(path, values) => self.cost_of_any(path, values)?,
            Expr::Ids(ids) => ids.len() as u64,
            Expr::Text(_) | Expr::Word(..) => all / 4,
            Expr::Exists(_) | Expr::Size(..) | Expr::Joined(..) => all,
            Expr::Range(..) => 2 * all,
            Expr::Prefix(..) => 3 * all,
            Expr::Element(..) => 8 * all,
            Expr::Regex(path, _) if self.kind.patterns.iter().any(|it| path.is_dotted(it)) => 4 * all,
            Expr::Regex(..) => 20 * all,
            Expr::All | Expr::Nothing => 0,
            Expr::Not(it) => all + self.cost(it)?,
            Expr::And(list) => {
                let mut least = u64::MAX;
                for it in list {
                    least = least.min(self.cost(it)?);
                }
                least
            }
            Expr::Or(list) => {
                let mut sum = 0_u64;
                for it in list {
                    sum = sum.saturating_add(self.cost(it)?);
                }
                sum
            }
        })
    }

    fn n_equal(&self, path: &Path, value: &Value) -> Result<Option<u64>> {
        if !path.as_steps().first().is_some_and(|member| terms::is_member_indexed(self.kind, member)) {
            return Ok(None);
        }
        let path = bytes(path);
        Ok(match value {
            Value::Text(text) => Some(self.n_of_text(&path, text, Tag::Text, Tag::LongText)?),
            // A column is read, as for a range.
            Value::Integer(_) | Value::Real(_) => Some(2 * u64::from(self.max_doc)),
            Value::Boolean(it) => Some(self.n_with(&path, Tag::Boolean, &[u8::from(*it)])?),
            Value::Folded(text) if self.is_folded() => {
                Some(self.n_of_text(&path, &fold(text), Tag::Folded, Tag::LongFolded)?)
            }
            _ => None,
        })
    }

    fn n_of_text(&self, path: &[u8], text: &str, whole: Tag, long: Tag) -> Result<u64> {
        let term = TextTerm::of(text);
        let (tag, value) = term.tagged(whole, long);
        self.n_with(path, tag, value)
    }

    fn is_folded(&self) -> bool {
        self.kind.search == Search::Folded
    }

    fn is(&self, path: &Path, value: &Value, within: &Set) -> Result<Bounds> {
        let at = bytes(path);
        Ok(match value {
            Value::Text(text) => self.is_text(&at, text, Tag::Text, Tag::LongText)?,
            Value::Folded(text) if self.is_folded() => {
                self.is_text(&at, &fold(text), Tag::Folded, Tag::LongFolded)?
            }
            Value::Folded(text) => {
                let end = End::Included(value.clone());
                // A column may hold U+FFFD in place of another character.
                let is_told = !text.contains(['\0', char::REPLACEMENT_CHARACTER]);
                let by_column = if is_told { self.in_folded_column(path, &end, &end, within)? } else { None };
                match by_column {
                    Some(bounds) => bounds,
                    None => {
                        let folded = fold(text);
                        self.pattern(path, |it| fold(it) == folded, true, "", within)?
                    }
                }
            }
            Value::Boolean(it) => self.said(self.with(&at, Tag::Boolean, &[u8::from(*it)])?),
            Value::Integer(_) | Value::Real(_) | Value::Instant(_) => {
                let end = End::Included(value.clone());
                self.range(path, &end, &end, within)?
            }
            Value::Null => {
                let null = self.with(&at, Tag::Null, &[])?;
                let absent = self.said(self.present(path)?).complement();
                let (mut lists, mut empty) = (Set::empty(self.max_doc), Set::empty(self.max_doc));
                for n in 1..path.as_steps().len() {
                    let before = terms::path_bytes(&path.as_steps()[..n]);
                    // No value is absent from an empty list.
                    empty.add(&self.with(&before, Tag::Length, &0_u64.to_be_bytes())?.without(&lists));
                    lists.add(&self.with(&before, Tag::List, &[])?);
                }
                let found = self.said(null).or(&absent);
                if lists.is_empty() {
                    return Ok(found);
                }
                let high = found.high().clone().or(&lists).without(&empty);
                let sure = self.with(&at, Tag::Null, &[])?;
                Bounds { low: found.low.without(&lists).or(&sure), high: Some(high) }
            }
            Value::Json(whole) => self.is_whole(path, whole, within)?,
        })
    }

    /// Evaluates equality with any of many values: the documents of all texts are collected in one set.
    fn any_of(&self, path: &Path, values: &[Value], within: &Set) -> Result<Bounds> {
        let at = bytes(path);
        let mut set = Set::empty(self.max_doc);
        let (mut texts, mut folded, mut numbers, mut others) = (Vec::new(), Vec::new(), Vec::new(), None);
        for value in values {
            match value {
                Value::Text(text) if text.len() <= TEXT_BYTES => texts.push(text.as_str()),
                Value::Folded(text) if self.is_folded() && text.len() <= TEXT_BYTES / 4 => {
                    folded.push(fold(text));
                }
                Value::Integer(number) if number.unsigned_abs() < EXACT as u64 => {
                    numbers.push(*number as f64)
                }
                Value::Real(number) if !number.is_nan() => numbers.push(*number),
                other => {
                    let found = self.is(path, other, within)?;
                    others = Some(others.map_or_else(|| found.clone(), |it: Bounds| it.or(&found)));
                }
            }
        }
        self.add_any(&terms::term(&at, Tag::Text, &[]), texts, &mut set)?;
        self.add_any(&terms::term(&at, Tag::Folded, &[]), folded, &mut set)?;
        if !numbers.is_empty() {
            set = set.or(&self.among(path, numbers, within)?);
        }
        let found = self.said(set);
        Ok(match others {
            Some(others) => found.or(&others),
            None => found,
        })
    }

    /// Evaluates any test on the texts of a path. `is_folding`: the test gives the same result for a text and for the
    /// folded text. `begin`: all texts that pass begin with it.
    fn pattern(
        &self,
        path: &Path,
        test: impl Fn(&str) -> bool + Sync,
        is_folding: bool,
        begin: &str,
        within: &Set,
    ) -> Result<Bounds> {
        // The terms of a small segment are sooner read than its bodies.
        let is_few = within.len() < FEW_BODIES.min(u64::from(self.max_doc) / 2);
        if is_few && !self.reads_long_texts {
            return Ok(self.none_but(within.clone()));
        }
        let types: &[Type] = if is_folding { &[Type::Text, Type::Folded] } else { &[Type::Text] };
        if let Some(column) = self.text_column(path, types)? {
            return self.pattern_in_column(&column, test, within);
        }
        let long = self.with_long_text(path, begin)?.and(within);
        let mut set = Set::empty(self.max_doc);
        let mut block = None;
        let (low, high) = (begin.as_bytes(), after(begin.as_bytes()));
        self.each_term(&terms::term(&bytes(path), Tag::Text, &[]), low, high.as_deref(), |text, info| {
            if std::str::from_utf8(text).is_ok_and(&test) {
                self.add_postings(info, &mut block, &mut set)?;
            }
            Ok(())
        })?;
        self.beside_long_texts(path, test, set, long)
    }
}

/// Calls `visit` with each document of a term of a field. `block` is memory for reuse, one field's alone.
fn each_posting(
    field: &InvertedIndexReader,
    info: &TermInfo,
    block: &mut Option<BlockSegmentPostings>,
    mut visit: impl FnMut(u32),
) -> Result<()> {
    let postings = match block {
        Some(postings) => {
            field.reset_block_postings_from_terminfo(info, postings).map_err(failed)?;
            postings
        }
        None => block
            .insert(field.read_block_postings_from_terminfo(info, IndexRecordOption::Basic).map_err(failed)?),
    };
    loop {
        let docs = postings.docs();
        if docs.is_empty() {
            return Ok(());
        }
        docs.iter().for_each(|doc| visit(*doc));
        postings.advance();
    }
}

/// Returns a condition on the whole record that a condition on an element implies.
fn below(element: &Expr, inner: &Expr) -> Expr {
    let Expr::Element(at, _) = element else { return Expr::All };
    let join = |path: &Path| Path::steps(at.as_steps().iter().chain(path.as_steps()).cloned());
    match inner {
        Expr::And(list) => Expr::And(list.iter().map(|it| below(element, it)).collect()),
        Expr::Or(list) => Expr::Or(list.iter().map(|it| below(element, it)).collect()),
        Expr::Is(_, Value::Null) | Expr::Not(_) | Expr::Text(_) | Expr::Ids(_) | Expr::All => Expr::All,
        Expr::Nothing => Expr::Nothing,
        Expr::Is(path, value) => Expr::Is(join(path), value.clone()),
        Expr::In(_, values) if values.contains(&Value::Null) => Expr::All,
        Expr::In(path, values) => Expr::In(join(path), values.clone()),
        Expr::Range(path, low, high) => Expr::Range(join(path), low.clone(), high.clone()),
        Expr::Exists(path) => Expr::Exists(join(path)),
        Expr::Prefix(path, prefix) => Expr::Prefix(join(path), prefix.clone()),
        Expr::Regex(path, pattern) => Expr::Regex(join(path), pattern.clone()),
        Expr::Word(path, word) => Expr::Word(join(path), word.clone()),
        Expr::Size(path, n) => Expr::Size(join(path), *n),
        Expr::Joined(path, keys) => Expr::Joined(join(path), keys.clone()),
        Expr::Element(path, inner) => Expr::Element(join(path), inner.clone()),
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    terms::path_bytes(path.as_steps())
}

pub(super) fn failed(error: std::io::Error) -> StoreError {
    StoreError::Index(error.to_string())
}
