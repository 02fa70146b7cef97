//! Conditions on texts decided by terms: whole texts, prefixes, ranges and words.

use tantivy::query::{EnableScoring, PhraseQuery, Query as _};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, TERMINATED, Term};

use super::{Bounds, Segment, bytes, cut, failed};
use crate::index::set::Set;
use crate::index::terms::{self, TEXT_BYTES, Tag, WORD_BYTES};
use crate::index::words::Words;
use crate::{End, Path, Result, Value, Word, fold};

impl Segment<'_> {
    pub(super) fn is_text(&self, path: &[u8], text: &str, whole: Tag, long: Tag) -> Result<Bounds> {
        let (begin, is_whole) = terms::cut(text, TEXT_BYTES);
        Ok(if is_whole {
            self.said(self.with(path, whole, begin.as_bytes())?)
        } else {
            self.said_between(Set::empty(self.max_doc), Some(self.with(path, long, begin.as_bytes())?))
        })
    }

    pub(super) fn word(&self, path: &Path, word: &Word, within: &Set) -> Result<Bounds> {
        if !self.is_folded() {
            return self.pattern(path, |text| word.is_in(text), true, within);
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

    pub(super) fn prefixed(&self, path: &[u8], prefix: &str) -> Result<Bounds> {
        let (begin, is_whole) = terms::cut(prefix, TEXT_BYTES);
        let (low, high) = (begin.as_bytes(), after(begin.as_bytes()));
        let long = self.between(path, Tag::LongText, low, high.as_deref())?;
        if !is_whole {
            return Ok(self.said_between(Set::empty(self.max_doc), Some(long)));
        }
        // A long text that was cut between characters may be shorter than the prefix asked for.
        let short = self.cut_within(path, Tag::LongText, begin)?;
        let found = self.between(path, Tag::Text, low, high.as_deref())?.or(&long);
        Ok(self.said_between(found, short))
    }

    /// Returns the documents of long texts whose stored beginning is a prefix of `text`.
    fn cut_within(&self, path: &[u8], tag: Tag, text: &str) -> Result<Option<Set>> {
        let mut found: Option<Set> = None;
        for end in (TEXT_BYTES - 3..text.len()).filter(|it| text.is_char_boundary(*it)) {
            let set = self.with(path, tag, &text.as_bytes()[..end])?;
            found = Some(found.map_or_else(|| set.clone(), |it| it.or(&set)));
        }
        Ok(found)
    }

    /// Evaluates a range of texts. Long texts are decided by their beginnings only where these suffice.
    pub(super) fn texts(&self, path: &[u8], low: &End, high: &End, whole: Tag, long: Tag) -> Result<Bounds> {
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
        // A long text sorts after its stored beginning and before whatever follows that.
        let cut_from = low.as_ref().map_or(Vec::new(), |(text, _)| {
            let mut begin = cut(text).as_bytes().to_vec();
            begin.truncate(TEXT_BYTES - 3);
            begin
        });
        let may = self.between(path, long, &cut_from, to.as_deref())?;
        Ok(self.said_between(found, (!may.is_empty()).then_some(may)))
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

/// Returns the least byte string greater than all with this prefix.
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
