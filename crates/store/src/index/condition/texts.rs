//! Conditions on texts decided by terms: whole texts, prefixes, ranges and words.

use tantivy::query::{EnableScoring, PhraseQuery, Query as _};
use tantivy::{DocSet as _, TERMINATED, Term};

use super::{Bounds, Segment, bytes, each_posting};
use crate::index::decoded::{Decoded, What};
use crate::index::set::Set;
use crate::index::terms::{self, BEGIN_BYTES, TEXT_BYTES, Tag, TextTerm, WORD_BYTES, after};
use crate::index::words::Words;
use crate::{End, Path, Result, Value, Word, fold};

impl Segment<'_> {
    pub(super) fn is_text(&self, path: &[u8], text: &str, whole: Tag, long: Tag) -> Result<Bounds> {
        let term = TextTerm::of(text);
        let (tag, value) = term.tagged(whole, long);
        Ok(self.said(self.with(path, tag, value)?))
    }

    pub(super) fn word(&self, path: &Path, word: &Word, within: &Set) -> Result<Bounds> {
        if !self.is_folded() {
            return self.pattern(path, |text| word.is_in(text), true, "", within);
        }
        let path = &bytes(path);
        let (begin, is_all) = word.begin();
        if WORD_BYTES < begin.len() {
            let set = self.with(path, Tag::ManyWords, &[])?;
            return Ok(self.said_between(Set::empty(self.max_doc), Some(set)));
        }
        let found = if is_all {
            self.with(path, Tag::Word, begin.as_bytes())?
        } else {
            self.words_like(path, begin.as_bytes(), word)?
        };
        let many = self.with(path, Tag::ManyWords, &[])?;
        Ok(self.said_between(found, (!many.is_empty()).then_some(many)))
    }

    /// Returns the documents with any word that matches; all such words begin with `begin`, and the path's words are
    /// scanned from there.
    fn words_like(&self, path: &[u8], begin: &[u8], word: &Word) -> Result<Set> {
        let (mut set, mut block) = (Set::empty(self.max_doc), None);
        let high = after(begin);
        self.each_term(&terms::term(path, Tag::Word, &[]), begin, high.as_deref(), |text, info| {
            if std::str::from_utf8(text).is_ok_and(|text| word.fits(text)) {
                self.add_postings(info, &mut block, &mut set)?;
            }
            Ok(())
        })?;
        Ok(set)
    }

    pub(super) fn prefixed(&self, at: &Path, prefix: &str) -> Result<Bounds> {
        let (path, prefix) = (&bytes(at), prefix.as_bytes());
        let begun = |tag: Tag, begin: &[u8]| self.between(path, tag, begin, after(begin).as_deref());
        if prefix.len() <= BEGIN_BYTES {
            return Ok(self.said(begun(Tag::Text, prefix)?.or(&begun(Tag::LongText, prefix)?)));
        }
        // Of longer texts, the index knows only the beginning.
        let may = begun(Tag::LongText, &prefix[..BEGIN_BYTES])?;
        let found =
            if prefix.len() <= TEXT_BYTES { begun(Tag::Text, prefix)? } else { Set::empty(self.max_doc) };
        self.beside_long_texts(at, |text| text.as_bytes().starts_with(prefix), found, may)
    }

    /// Evaluates a range of texts. Bodies decide long texts that begin as a bound does.
    pub(super) fn texts(&self, path: &[u8], low: &End, high: &End, whole: Tag, long: Tag) -> Result<Bounds> {
        // Both as the first byte string that is within, or no longer within.
        let text = |end: &End, is_above: bool| {
            let (text, is_included) = match end {
                End::Included(Value::Text(text)) => (text.clone(), true),
                End::Excluded(Value::Text(text)) => (text.clone(), false),
                End::Included(Value::Folded(text)) => (fold(text), true),
                End::Excluded(Value::Folded(text)) => (fold(text), false),
                _ => return None,
            };
            let mut bytes = text.into_bytes();
            if is_included == is_above {
                bytes.push(0);
            }
            Some(bytes)
        };
        let (from, to) = (text(low, false).unwrap_or_default(), text(high, true));
        let found = self.between(path, whole, &from, to.as_deref())?;

        let mut may: Option<Set> = None;
        // Returns the beginning of a bound that is longer than the beginnings in the index.
        let mut begin_of = |bound: &[u8]| -> Result<Option<Vec<u8>>> {
            if bound.len() <= BEGIN_BYTES {
                return Ok(None);
            }
            let begin = bound[..BEGIN_BYTES].to_vec();
            let set = self.between(path, long, &begin, after(&begin).as_deref())?;
            may = Some(may.take().map_or_else(|| set.clone(), |it| it.or(&set)));
            Ok(Some(begin))
        };
        let long_from = match begin_of(&from)? {
            None => Some(from),
            Some(begin) => after(&begin),
        };
        let long_to = match to {
            None => None,
            Some(to) => Some(begin_of(&to)?.unwrap_or(to)),
        };
        // No text is greater than one of the greatest bytes only.
        let found = match long_from {
            Some(from) => found.or(&self.between(path, long, &from, long_to.as_deref())?),
            None => found,
        };
        Ok(self.said_between(found, may.filter(|it| !it.is_empty())))
    }

    pub(super) fn with_words(&self, words: &Words) -> Result<Set> {
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

    /// Returns the documents whose text has a word.
    fn with_word(&self, word: &str) -> Result<Set> {
        let text = self.reader.inverted_index(self.layout.text)?;
        let Some(info) = self.info_in(&text, self.layout.text, word.as_bytes())? else {
            return Ok(Set::empty(self.max_doc));
        };
        let decode = || {
            let mut set = Set::empty(self.max_doc);
            each_posting(&text, &info, &mut None, |doc| set.insert(doc))?;
            Ok(set)
        };
        if Decoded::is_frequent(info.doc_freq, self.max_doc) {
            let what = What::Term(self.layout.text, word.as_bytes().to_vec());
            let kept = self.decoded.set(self.reader.segment_id(), what, decode)?;
            return Ok(Set::clone(&kept));
        }
        decode()
    }

    fn with_phrase(&self, phrase: &[String]) -> Result<Set> {
        if let [word] = phrase {
            return self.with_word(word);
        }
        let terms = phrase.iter().map(|it| Term::from_field_text(self.layout.text, it)).collect();
        let mut set = Set::empty(self.max_doc);
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
