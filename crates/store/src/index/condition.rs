//! What of a segment satisfies a condition: documents that do for sure, and those that may.
//!
//! Most conditions are decided by terms and columns. Where a term holds the beginning of a long text only, or a
//! condition speaks of one element of a list, some documents remain whose bodies decide.

use std::collections::HashSet;
use std::sync::Arc;

use tantivy::columnar::{Column, DynamicColumn, StrColumn};
use tantivy::index::InvertedIndexReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::query::{EnableScoring, PhraseQuery, Query as _};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, Searcher, SegmentReader, TERMINATED, Term};

use super::layout::{INSTANTS, Layout, NUMBERS, column_name};
use super::set::Set;
use super::terms::{self, EXACT, TEXT_BYTES, Tag, WORD_BYTES};
use super::words::Words;
use crate::statements::one_columns;
use crate::{End, Expr, Kind, Path, Result, Search, StoreError, Type, Value, fold};

/// Which documents satisfy a condition.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    /// These do.
    pub(super) low: Set,
    /// No others do; `None` where these are the same.
    pub(super) high: Option<Set>,
}

impl Bounds {
    fn exact(set: Set) -> Self {
        Self { low: set, high: None }
    }

    /// Some of these, nobody knows which.
    fn some_of(set: Set, max_doc: u32) -> Self {
        Self { low: Set::empty(max_doc), high: Some(set) }
    }

    pub(super) fn high(&self) -> &Set {
        self.high.as_ref().unwrap_or(&self.low)
    }

    pub(super) fn and(self, other: &Self) -> Self {
        let high =
            (self.high.is_some() || other.high.is_some()).then(|| self.high().clone().and(other.high()));
        Self { low: self.low.and(&other.low), high }
    }

    pub(super) fn or(self, other: &Self) -> Self {
        let high =
            (self.high.is_some() || other.high.is_some()).then(|| self.high().clone().or(other.high()));
        Self { low: self.low.or(&other.low), high }
    }

    fn complement(self) -> Self {
        let Self { low, high } = self;
        match high {
            None => Self::exact(low.complement()),
            Some(high) => Self { low: high.complement(), high: Some(low.complement()) },
        }
    }
}

/// A column is looked up for each candidate when at most one of so many documents is one; otherwise it is read whole.
const FEW: u64 = 12;
/// Documents that may satisfy a pattern, and are decided on their bodies rather than on all texts of the path.
const FEW_BODIES: u64 = 300;

/// One segment of an index.
pub(super) struct Segment<'s> {
    searcher: &'s Searcher,
    reader: &'s SegmentReader,
    layout: &'s Layout,
    kind: &'static Kind,
    terms: Arc<InvertedIndexReader>,
    max_doc: u32,
    /// Documents without terms, decided on their bodies.
    beyond: Option<Set>,
}

impl<'s> Segment<'s> {
    pub(super) fn new(
        searcher: &'s Searcher,
        reader: &'s SegmentReader,
        layout: &'s Layout,
        kind: &'static Kind,
    ) -> Result<Self> {
        let terms = reader.inverted_index(layout.terms)?;
        let mut segment =
            Self { searcher, reader, layout, kind, terms, max_doc: reader.max_doc(), beyond: None };
        let beyond = segment.with_term(&terms::beyond_term())?;
        segment.beyond = (!beyond.is_empty()).then_some(beyond);
        Ok(segment)
    }

    pub(super) fn reader(&self) -> &SegmentReader {
        self.reader
    }

    /// The documents that are not deleted.
    pub(super) fn alive(&self) -> Set {
        let mut set = Set::full(self.max_doc);
        if let Some(alive) = self.reader.alive_bitset() {
            (0..self.max_doc).filter(|doc| !alive.is_alive(*doc)).for_each(|doc| set.remove(doc));
        }
        set
    }

    /// The documents with a term.
    pub(super) fn with_term(&self, term: &[u8]) -> Result<Set> {
        let mut set = Set::empty(self.max_doc);
        if let Some(info) = self.info(term)? {
            self.add_postings(&info, &mut None, &mut set)?;
        }
        Ok(set)
    }

    /// The documents of any of these classes.
    pub(super) fn of_classes(&self, classes: &[i64]) -> Result<Set> {
        let mut set = Set::empty(self.max_doc);
        let mut block = None;
        if classes.len() < 1_000 {
            for class in classes {
                if let Some(info) = self.info(&terms::class_term(*class))? {
                    self.add_postings(&info, &mut block, &mut set)?;
                }
            }
            return Ok(set);
        }
        let classes: HashSet<[u8; 8]> = classes.iter().map(|it| it.to_be_bytes()).collect();
        let prefix = terms::class_prefix();
        self.each_term(&prefix, &[], None, |rest, info| {
            if rest.try_into().is_ok_and(|it: [u8; 8]| classes.contains(&it)) {
                self.add_postings(info, &mut block, &mut set)?;
            }
            Ok(())
        })?;
        Ok(set)
    }

    fn info(&self, term: &[u8]) -> Result<Option<TermInfo>> {
        self.terms.get_term_info(&Term::from_field_bytes(self.layout.terms, term)).map_err(failed)
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
        let postings = match block {
            Some(postings) => {
                self.terms.reset_block_postings_from_terminfo(info, postings).map_err(failed)?;
                postings
            }
            None => block.insert(
                self.terms
                    .read_block_postings_from_terminfo(info, IndexRecordOption::Basic)
                    .map_err(failed)?,
            ),
        };
        loop {
            let docs = postings.docs();
            if docs.is_empty() {
                return Ok(());
            }
            docs.iter().for_each(|doc| set.insert(*doc));
            postings.advance();
        }
    }

    /// Calls `visit` with what follows `prefix` in each term between `low` and `high` (not with it), and with its documents.
    fn each_term(
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

    /// The documents with any term between.
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

    /// What terms say; of documents without terms nobody knows.
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

    /// The documents among `within` that satisfy a condition; what is said of others means nothing.
    pub(super) fn satisfying(&self, expr: &Expr, within: &Set) -> Result<Bounds> {
        Ok(match expr {
            Expr::All => Bounds::exact(Set::full(self.max_doc)),
            Expr::Nothing => Bounds::exact(Set::empty(self.max_doc)),
            Expr::And(list) => self.all(list, within)?,
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
                let mut block = None;
                for id in ids {
                    if let Some(info) = self.info(&terms::id_term(id))? {
                        self.add_postings(&info, &mut block, &mut set)?;
                    }
                }
                Bounds::exact(set)
            }
            Expr::Text(query) => Bounds::exact(self.with_words(&Words::of(query))?),
            Expr::Is(path, _)
            | Expr::In(path, _)
            | Expr::Range(path, ..)
            | Expr::Exists(path)
            | Expr::Prefix(path, _)
            | Expr::Regex(path, _)
            | Expr::Word(path, _)
            | Expr::Size(path, _)
            | Expr::Element(path, _)
                if !terms::is_indexed(path) =>
            {
                Bounds::some_of(Set::full(self.max_doc), self.max_doc)
            }
            Expr::Is(path, value) => self.is(path, value, within)?,
            Expr::In(path, values) => self.any_of(path, values, within)?,
            Expr::Range(path, low, high) => self.range(path, low, high, within)?,
            Expr::Exists(path) => self.said(self.with(&bytes(path), Tag::Present, &[])?),
            Expr::Size(path, n) => self.said(self.with(&bytes(path), Tag::Length, &n.to_be_bytes())?),
            Expr::Prefix(path, prefix) => self.prefixed(&bytes(path), prefix)?,
            Expr::Word(path, word) => self.word(path, word, within)?,
            Expr::Regex(path, pattern) => {
                self.pattern(path, |text| pattern.is_match(text), pattern.is_folding(), within)?
            }
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

    /// Conditions that all must hold, the cheapest first.
    fn all(&self, list: &[Expr], within: &Set) -> Result<Bounds> {
        let mut costs: Vec<(u64, &Expr)> = Vec::with_capacity(list.len());
        for it in list {
            costs.push((self.cost(it)?, it));
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

    /// About how many steps a condition takes.
    fn cost(&self, expr: &Expr) -> Result<u64> {
        let all = u64::from(self.max_doc);
        Ok(match expr {
            Expr::Is(path, value) => self.n_equal(path, value)?.unwrap_or(all),
            Expr::In(path, values) => {
                let mut sum = 0;
                for value in values {
                    sum += self.n_equal(path, value)?.unwrap_or(all);
                }
                sum
            }
            Expr::Ids(ids) => ids.len() as u64,
            Expr::Text(_) | Expr::Word(..) => all / 4,
            Expr::Exists(_) | Expr::Size(..) => all,
            Expr::Range(..) => 2 * all,
            Expr::Prefix(..) => 3 * all,
            Expr::Element(..) => 8 * all,
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
        let path = bytes(path);
        Ok(match value {
            Value::Text(text) => Some(self.n_with(&path, Tag::Text, cut(text).as_bytes())?),
            // A column is read as for a range.
            Value::Integer(_) | Value::Real(_) => Some(2 * u64::from(self.max_doc)),
            Value::Boolean(it) => Some(self.n_with(&path, Tag::Boolean, &[u8::from(*it)])?),
            Value::Folded(text) if self.is_folded() => {
                Some(self.n_with(&path, Tag::Folded, cut(&fold(text)).as_bytes())?)
            }
            _ => None,
        })
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
                let folded = fold(text);
                self.pattern(path, |it| fold(it) == folded, true, within)?
            }
            Value::Boolean(it) => self.said(self.with(&at, Tag::Boolean, &[u8::from(*it)])?),
            Value::Integer(_) | Value::Real(_) | Value::Instant(_) => {
                let end = End::Included(value.clone());
                self.range(path, &end, &end, within)?
            }
            Value::Null => {
                let null = self.with(&at, Tag::Null, &[])?;
                let absent = self.said(self.with(&at, Tag::Present, &[])?).complement();
                let mut lists = Set::empty(self.max_doc);
                for n in 1..path.as_steps().len() {
                    let before = terms::path_bytes(&path.as_steps()[..n]);
                    lists = lists.or(&self.with(&before, Tag::List, &[])?);
                }
                let found = self.said(null).or(&absent);
                if lists.is_empty() {
                    return Ok(found);
                }
                let high = found.high().clone().or(&lists);
                let sure = self.with(&at, Tag::Null, &[])?;
                Bounds { low: found.low.without(&lists).or(&sure), high: Some(high) }
            }
            Value::Json(_) => {
                let set = self.with(&at, Tag::Present, &[])?;
                self.said_between(Set::empty(self.max_doc), Some(set))
            }
        })
    }

    /// Any of many values: what single terms say goes into one set.
    fn any_of(&self, path: &Path, values: &[Value], within: &Set) -> Result<Bounds> {
        let at = bytes(path);
        let (mut set, mut block) = (Set::empty(self.max_doc), None);
        let mut others = None;
        let mut numbers = Vec::new();
        for value in values {
            let folded;
            let (tag, value_bytes): (Tag, &[u8]) = match value {
                Value::Text(text) if text.len() <= TEXT_BYTES => (Tag::Text, text.as_bytes()),
                Value::Folded(text) if self.is_folded() && text.len() <= TEXT_BYTES / 4 => {
                    folded = fold(text);
                    (Tag::Folded, folded.as_bytes())
                }
                Value::Integer(number) if number.unsigned_abs() < EXACT as u64 => {
                    numbers.push(*number as f64);
                    continue;
                }
                Value::Real(number) if !number.is_nan() => {
                    numbers.push(*number);
                    continue;
                }
                other => {
                    let found = self.is(path, other, within)?;
                    others = Some(others.map_or_else(|| found.clone(), |it: Bounds| it.or(&found)));
                    continue;
                }
            };
            if let Some(info) = self.info(&terms::term(&at, tag, value_bytes))? {
                self.add_postings(&info, &mut block, &mut set)?;
            }
        }
        if !numbers.is_empty() {
            set = set.or(&self.among(path, numbers, within)?);
        }
        let found = self.said(set);
        Ok(match others {
            Some(others) => found.or(&others),
            None => found,
        })
    }

    /// The documents with any of these numbers, among `within`; a column is read once, however many they are.
    fn among(&self, path: &Path, mut numbers: Vec<f64>, within: &Set) -> Result<Set> {
        if let [number] = numbers.as_slice() {
            return self.in_column(NUMBERS, path, &Span::Real(*number, *number + 0.0), within);
        }
        numbers.sort_by(f64::total_cmp);
        let has = |number: f64| {
            let at = numbers.partition_point(|it| *it < number);
            numbers.get(at).is_some_and(|it| *it == number)
        };
        let mut set = Set::empty(self.max_doc);
        for column in self.number_columns(path)? {
            match column {
                DynamicColumn::I64(column) => {
                    let fits = |doc: &u32| column.values_for_doc(*doc).any(|it| has(it as f64));
                    within.iter().filter(fits).for_each(|doc| set.insert(doc));
                }
                DynamicColumn::F64(column) => {
                    let fits = |doc: &u32| column.values_for_doc(*doc).any(has);
                    within.iter().filter(fits).for_each(|doc| set.insert(doc));
                }
                _ => {}
            }
        }
        Ok(set)
    }

    fn is_text(&self, path: &[u8], text: &str, whole: Tag, long: Tag) -> Result<Bounds> {
        let (begin, is_whole) = terms::cut(text, TEXT_BYTES);
        Ok(if is_whole {
            self.said(self.with(path, whole, begin.as_bytes())?)
        } else {
            self.said_between(Set::empty(self.max_doc), Some(self.with(path, long, begin.as_bytes())?))
        })
    }

    fn word(&self, path: &Path, word: &crate::Word, within: &Set) -> Result<Bounds> {
        if !self.is_folded() {
            return self.pattern(path, |text| word.is_in(text), true, within);
        }
        let path = &bytes(path);
        let text = word.folded();
        if WORD_BYTES < text.len() {
            let set = self.with(path, Tag::ManyWords, &[])?;
            return Ok(self.said_between(Set::empty(self.max_doc), Some(set)));
        }
        let found = if word.is_prefix() {
            self.between(path, Tag::Word, text.as_bytes(), after(text.as_bytes()).as_deref())?
        } else {
            self.with(path, Tag::Word, text.as_bytes())?
        };
        let many = self.with(path, Tag::ManyWords, &[])?;
        Ok(self.said_between(found, (!many.is_empty()).then_some(many)))
    }

    fn prefixed(&self, path: &[u8], prefix: &str) -> Result<Bounds> {
        let (begin, is_whole) = terms::cut(prefix, TEXT_BYTES);
        let (low, high) = (begin.as_bytes(), after(begin.as_bytes()));
        let long = self.between(path, Tag::LongText, low, high.as_deref())?;
        if !is_whole {
            return Ok(self.said_between(Set::empty(self.max_doc), Some(long)));
        }
        // A long text cut between characters may be shorter than the prefix asked for.
        let short = self.cut_within(path, Tag::LongText, begin)?;
        let found = self.between(path, Tag::Text, low, high.as_deref())?.or(&long);
        Ok(self.said_between(found, short))
    }

    /// Long texts whose kept beginning is a beginning of `text`.
    fn cut_within(&self, path: &[u8], tag: Tag, text: &str) -> Result<Option<Set>> {
        let mut found: Option<Set> = None;
        for end in (TEXT_BYTES - 3..text.len()).filter(|it| text.is_char_boundary(*it)) {
            let set = self.with(path, tag, &text.as_bytes()[..end])?;
            found = Some(found.map_or_else(|| set.clone(), |it| it.or(&set)));
        }
        Ok(found)
    }

    /// Texts that a test holds for, whatever it is. `is_folding`: it says the same of a text and of the folded text.
    fn pattern(
        &self,
        path: &Path,
        test: impl Fn(&str) -> bool,
        is_folding: bool,
        within: &Set,
    ) -> Result<Bounds> {
        if within.len() < FEW_BODIES {
            return Ok(Bounds::some_of(within.clone(), self.max_doc));
        }
        if let Some(column) = self.text_column(path, is_folding)? {
            return self.pattern_in_column(&column, test, within);
        }
        let path = bytes(path);
        let long = self.between(&path, Tag::LongText, &[], None)?;
        let mut set = Set::empty(self.max_doc);
        let mut block = None;
        self.each_term(&terms::term(&path, Tag::Text, &[]), &[], None, |text, info| {
            if std::str::from_utf8(text).is_ok_and(&test) {
                self.add_postings(info, &mut block, &mut set)?;
            }
            Ok(())
        })?;
        Ok(self.said_between(set, (!long.is_empty()).then_some(long)))
    }

    /// The column that holds every text at a path: one is declared, and no list is on the way.
    fn text_column(&self, path: &Path, is_folding: bool) -> Result<Option<StrColumn>> {
        let declared = one_columns(self.kind).position(|it| {
            let fits = it.ty == Type::Text || (is_folding && it.ty == Type::Folded);
            fits && it.path.split('.').eq(path.as_steps())
        });
        let Some(place) = declared else { return Ok(None) };
        if self.beyond.is_some() || self.has_list(path)? {
            return Ok(None);
        }
        Ok(self.reader.fast_fields().str(&column_name(place))?)
    }

    /// Each text once, out of the column's dictionary, whose blocks are read one after the other.
    fn pattern_in_column(
        &self,
        column: &StrColumn,
        test: impl Fn(&str) -> bool,
        within: &Set,
    ) -> Result<Bounds> {
        /// What a column holds for a character that no engine stores.
        const REPLACED: char = '\u{fffd}';
        let ords = column.ords();
        let mut said = vec![Said::Unused; column.num_terms()];
        for ord in within.iter().filter_map(|doc| ords.first(doc)) {
            said[ord as usize] = Said::No;
        }
        let used: Vec<u64> = (0..said.len() as u64).filter(|it| said[*it as usize] == Said::No).collect();
        let mut next = used.iter();
        let mut is_open = false;
        column
            .dictionary()
            .sorted_ords_to_term_cb(&used, |text| {
                let Some(ord) = next.next() else { return };
                said[*ord as usize] = match std::str::from_utf8(text) {
                    Ok(text) if text.contains(REPLACED) => {
                        is_open = true;
                        Said::Perhaps
                    }
                    Ok(text) if test(text) => Said::Yes,
                    _ => return,
                };
            })
            .map_err(failed)?;
        let (mut set, mut open) = (Set::empty(self.max_doc), Set::empty(self.max_doc));
        for doc in within.iter() {
            match ords.first(doc).map(|it| said[it as usize]) {
                Some(Said::Yes) => set.insert(doc),
                Some(Said::Perhaps) => open.insert(doc),
                _ => {}
            }
        }
        Ok(self.said_between(set, is_open.then_some(open)))
    }

    fn range(&self, path: &Path, low: &End, high: &End, within: &Set) -> Result<Bounds> {
        let at = bytes(path);
        let value = |end: &End| match end {
            End::Open => None,
            End::Included(value) | End::Excluded(value) => Some(value.clone()),
        };
        let maybe = || -> Result<Bounds> {
            let set = self.with(&at, Tag::Present, &[])?;
            Ok(self.said_between(Set::empty(self.max_doc), Some(set)))
        };
        match (value(low), value(high)) {
            (
                None | Some(Value::Integer(_) | Value::Real(_)),
                None | Some(Value::Integer(_) | Value::Real(_)),
            ) if !matches!((low, high), (End::Open, End::Open)) => self.numbers(path, low, high, within),
            (None | Some(Value::Instant(_)), None | Some(Value::Instant(_)))
                if !matches!((low, high), (End::Open, End::Open)) =>
            {
                let whole = |end: &End, step: i64, open: i64| match end {
                    End::Included(Value::Instant(ms)) => *ms,
                    End::Excluded(Value::Instant(ms)) => ms.saturating_add(step),
                    _ => open,
                };
                let (from, to) = (whole(low, 1, i64::MIN), whole(high, -1, i64::MAX));
                let set = self.in_column(INSTANTS, path, &Span::Whole(from, to), within)?;
                Ok(self.said(set))
            }
            (None | Some(Value::Text(_)), None | Some(Value::Text(_)))
                if !matches!((low, high), (End::Open, End::Open)) =>
            {
                self.texts(&at, low, high, Tag::Text, Tag::LongText)
            }
            (None | Some(Value::Folded(_)), None | Some(Value::Folded(_)))
                if self.is_folded() && !matches!((low, high), (End::Open, End::Open)) =>
            {
                self.texts(&at, low, high, Tag::Folded, Tag::LongFolded)
            }
            _ => maybe(),
        }
    }

    /// A range of texts. Long ones are told apart by their beginnings only where that does.
    fn texts(&self, path: &[u8], low: &End, high: &End, whole: Tag, long: Tag) -> Result<Bounds> {
        let text = |end: &End| match end {
            End::Included(Value::Text(text)) => Some((text.clone(), true)),
            End::Excluded(Value::Text(text)) => Some((text.clone(), false)),
            End::Included(Value::Folded(text)) => Some((fold(text), true)),
            End::Excluded(Value::Folded(text)) => Some((fold(text), false)),
            _ => None,
        };
        let (low, high) = (text(low), text(high));
        let from = low.as_ref().map_or(Vec::new(), |(text, is_included)| {
            let mut bytes = text.as_bytes().to_vec();
            if !is_included {
                bytes.push(0);
            }
            bytes
        });
        let to = high.as_ref().map(|(text, is_included)| {
            let mut bytes = text.as_bytes().to_vec();
            if *is_included {
                bytes.push(0);
            }
            bytes
        });
        let found = self.between(path, whole, &from, to.as_deref())?;
        // A long text sorts behind its beginning and before what follows that.
        let cut_from = low.as_ref().map_or(Vec::new(), |(text, _)| {
            let mut begin = cut(text).as_bytes().to_vec();
            begin.truncate(TEXT_BYTES - 3);
            begin
        });
        let may = self.between(path, long, &cut_from, to.as_deref())?;
        Ok(self.said_between(found, (!may.is_empty()).then_some(may)))
    }

    fn numbers(&self, path: &Path, low: &End, high: &End, within: &Set) -> Result<Bounds> {
        let mut is_exact = true;
        let mut number = |end: &End, open: f64, step: fn(f64) -> f64| match end {
            End::Included(Value::Real(number)) => *number,
            End::Excluded(Value::Real(number)) => step(*number),
            End::Included(Value::Integer(number)) | End::Excluded(Value::Integer(number))
                if EXACT as u64 <= number.unsigned_abs() =>
            {
                is_exact = false;
                *number as f64
            }
            End::Included(Value::Integer(number)) => *number as f64,
            End::Excluded(Value::Integer(number)) => step(*number as f64),
            _ => open,
        };
        let from = number(low, f64::NEG_INFINITY, f64::next_up);
        let to = number(high, f64::INFINITY, f64::next_down);
        if from.is_nan() || to.is_nan() {
            return Ok(Bounds::exact(Set::empty(self.max_doc)));
        }
        // Columns tell -0 and 0 apart, and hold 0 alone.
        let set = self.in_column(NUMBERS, path, &Span::Real(from, to + 0.0), within)?;
        Ok(if is_exact { self.said(set) } else { self.said_between(Set::empty(self.max_doc), Some(set)) })
    }

    /// Whether nothing but numbers stands at a path, and no list before.
    pub(super) fn has_numbers_only(&self, path: &Path) -> Result<bool> {
        if self.beyond.is_some() || !terms::is_indexed(path) {
            return Ok(false);
        }
        if self.has_list(path)? {
            return Ok(false);
        }
        let at = bytes(path);
        for tag in [Tag::Text, Tag::LongText, Tag::Boolean, Tag::Object] {
            let mut is_there = false;
            let prefix = terms::term(&at, tag, &[]);
            let mut stream = self.terms.terms().range().ge(&prefix).into_stream().map_err(failed)?;
            if stream.advance() {
                is_there = stream.key().starts_with(&prefix);
            }
            if is_there {
                return Ok(false);
            }
        }
        let is_exact = |column: &DynamicColumn| match column {
            DynamicColumn::I64(_) => true,
            DynamicColumn::F64(column) => -EXACT < column.min_value() && column.max_value() < EXACT,
            _ => false,
        };
        Ok(self.number_columns(path)?.iter().all(is_exact))
    }

    /// Whether a list stands at a path, or on the way to it.
    fn has_list(&self, path: &Path) -> Result<bool> {
        for n in 1..=path.as_steps().len() {
            if self.n_with(&terms::path_bytes(&path.as_steps()[..n]), Tag::List, &[])? != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The columns of the numbers at a path.
    pub(super) fn number_columns(&self, path: &Path) -> Result<Vec<DynamicColumn>> {
        let name = format!("{NUMBERS}.{}", terms::column_key(path.as_steps()));
        let handles = self.reader.fast_fields().dynamic_column_handles(&name)?;
        handles.iter().map(|it| it.open().map_err(failed)).collect()
    }

    /// The documents with a value in the span, among `within`.
    fn in_column(&self, family: &str, path: &Path, span: &Span, within: &Set) -> Result<Set> {
        let name = format!("{family}.{}", terms::column_key(path.as_steps()));
        let mut set = Set::empty(self.max_doc);
        for handle in self.reader.fast_fields().dynamic_column_handles(&name)? {
            match handle.open().map_err(failed)? {
                DynamicColumn::I64(column) => {
                    if let Some((from, to)) = span.whole() {
                        self.add_column(&column, from, to, within, &mut set);
                    }
                }
                DynamicColumn::U64(column) => {
                    if let Some((from, to)) = span.whole()
                        && 0 <= to
                    {
                        let (from, to) = (from.max(0).cast_unsigned(), to.cast_unsigned());
                        self.add_column(&column, from, to, within, &mut set);
                    }
                }
                DynamicColumn::F64(column) => {
                    let (from, to) = span.real();
                    self.add_column(&column, from, to, within, &mut set);
                }
                _ => {}
            }
        }
        Ok(set)
    }

    fn add_column<T>(&self, column: &Column<T>, from: T, to: T, within: &Set, set: &mut Set)
    where
        T: PartialOrd + Copy + std::fmt::Debug + Send + Sync + 'static,
    {
        // Neither is an empty range, nor one whose bound is not a number, anything's.
        if !from.partial_cmp(&to).is_some_and(std::cmp::Ordering::is_le) {
            return;
        }
        // The column's own search takes a range below its least value for one that begins there.
        if to < column.min_value() || column.max_value() < from {
            return;
        }
        if within.len() * FEW < u64::from(self.max_doc) {
            for doc in within.iter() {
                if column.values_for_doc(doc).any(|it| from <= it && it <= to) {
                    set.insert(doc);
                }
            }
            return;
        }
        let mut docs = Vec::new();
        let mut at = 0;
        while at < self.max_doc {
            let end = (at + STEP_DOCS).min(self.max_doc);
            docs.clear();
            column.get_docids_for_value_range(from..=to, at..end, &mut docs);
            docs.iter().for_each(|doc| set.insert(*doc));
            at = end;
        }
    }

    fn with_words(&self, words: &Words) -> Result<Set> {
        let mut found = Set::empty(self.max_doc);
        if words.all.is_empty() {
            for phrase in &words.any {
                found = found.or(&self.with_phrase(phrase)?);
            }
        } else {
            found = found.complement();
            for phrase in &words.all {
                found = found.and(&self.with_phrase(phrase)?);
            }
        }
        for phrase in &words.none {
            found = found.without(&self.with_phrase(phrase)?);
        }
        Ok(found)
    }

    fn with_phrase(&self, phrase: &[String]) -> Result<Set> {
        let mut set = Set::empty(self.max_doc);
        let terms: Vec<Term> = phrase.iter().map(|it| Term::from_field_text(self.layout.text, it)).collect();
        if let [term] = terms.as_slice() {
            let text = self.reader.inverted_index(self.layout.text)?;
            if let Some(mut postings) =
                text.read_block_postings(term, IndexRecordOption::Basic).map_err(failed)?
            {
                loop {
                    let docs = postings.docs();
                    if docs.is_empty() {
                        return Ok(set);
                    }
                    docs.iter().for_each(|doc| set.insert(*doc));
                    postings.advance();
                }
            }
            return Ok(set);
        }
        let query = PhraseQuery::new(terms);
        let weight = query.weight(EnableScoring::disabled_from_searcher(self.searcher))?;
        let mut scorer = weight.scorer(self.reader, 1.0)?;
        let mut doc = scorer.doc();
        while doc != TERMINATED {
            set.insert(doc);
            doc = scorer.advance();
        }
        Ok(set)
    }
}

/// What a test said of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// No document that is asked for has it.
    Unused,
    No,
    Yes,
    /// The body decides.
    Perhaps,
}

/// Documents whose columns are read in one step.
const STEP_DOCS: u32 = 1 << 16;

/// From and to, both included.
enum Span {
    Whole(i64, i64),
    Real(f64, f64),
}

impl Span {
    fn whole(&self) -> Option<(i64, i64)> {
        match self {
            Self::Whole(from, to) => Some((*from, *to)),
            // Casts saturate, as they should here.
            Self::Real(from, to) => (from <= to).then_some((from.ceil() as i64, to.floor() as i64)),
        }
    }

    fn real(&self) -> (f64, f64) {
        match self {
            Self::Whole(from, to) => (*from as f64, *to as f64),
            Self::Real(from, to) => (*from, *to),
        }
    }
}

/// What a condition on an element says of the whole record at least.
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
        Expr::Element(path, inner) => Expr::Element(join(path), inner.clone()),
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    terms::path_bytes(path.as_steps())
}

fn cut(text: &str) -> &str {
    terms::cut(text, TEXT_BYTES).0
}

/// The least bytes behind all that begin so.
fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < 0xff {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

pub(super) fn failed(error: std::io::Error) -> StoreError {
    StoreError::Index(error.to_string())
}
