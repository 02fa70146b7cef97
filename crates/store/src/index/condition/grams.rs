//! What a text must contain for a pattern to match: trigrams, which the index holds as terms.
//!
//! They consist of printable ASCII characters in lower case: further effects of case and accents are decided on the
//! remaining texts.

use std::collections::BTreeSet;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::{Bounds, Segment, bytes};
use crate::index::set::Set;
use crate::index::terms::{self, GRAM_BYTES, Gram, Tag};
use crate::{Path, Pattern, Result, TextPart, fold};

/// Maximum number of trigrams looked up: more hardly narrow the result.
const LOOKED_UP: usize = 24;
/// Maximum number of times that a repeated part is expanded.
const WRITTEN_OUT: u32 = 8;
/// Maximum number of characters of a class that are examined: as many as one letter has forms.
const CLASS_CHARACTERS: usize = 8;

impl Segment<'_> {
    /// Evaluates a pattern on the texts of a path.
    pub(super) fn matching(&self, path: &Path, pattern: &Pattern, within: &Set) -> Result<Bounds> {
        let narrowed = self.with_runs_of(path, pattern, within)?;
        let within = narrowed.as_ref().map_or(within, |it| it);
        let test = |text: &str| pattern.is_match(text);
        let found = self.pattern(path, test, pattern.is_folding(), &beginning(pattern), within)?;
        Ok(if narrowed.is_some() { found.within(within) } else { found })
    }

    /// Returns the documents among `within` whose text at a path has all trigrams that a pattern needs; `None` where
    /// the index holds none for the path, or the pattern needs none.
    fn with_runs_of(&self, path: &Path, pattern: &Pattern, within: &Set) -> Result<Option<Set>> {
        let is_declared = self.kind.patterns.iter().any(|it| path.is_dotted(it));
        if !is_declared || self.beyond.is_some() {
            return Ok(None);
        }
        let grams = needed(pattern);
        if grams.is_empty() || self.has_list(path)? {
            return Ok(None);
        }
        self.with_all(path, &grams, within).map(Some)
    }

    /// Returns the documents among `within` with all of some trigrams at a path; at most [`LOOKED_UP`] are looked up.
    pub(super) fn with_all(&self, path: &Path, grams: &BTreeSet<Gram>, within: &Set) -> Result<Set> {
        let path = bytes(path);
        let mut counted = Vec::with_capacity(grams.len());
        for gram in grams {
            counted.push((self.n_with(&path, Tag::Gram, gram)?, gram));
        }
        counted.sort_unstable();
        let mut left = within.clone();
        for (_, gram) in counted.into_iter().take(LOOKED_UP) {
            if left.is_empty() {
                break;
            }
            left = left.and(&self.with(&path, Tag::Gram, gram)?);
        }
        Ok(left)
    }

    /// Returns bounds with these documents undecided and all others excluded.
    pub(super) fn none_but(&self, set: Set) -> Bounds {
        if set.is_empty() { self.said(set) } else { self.said_between(Set::empty(self.max_doc), Some(set)) }
    }
}

/// Returns the trigrams that every text matched by the pattern contains.
pub(super) fn needed(pattern: &Pattern) -> BTreeSet<Gram> {
    let Some(tree) = parsed(pattern) else { return BTreeSet::new() };
    let mut characters = Vec::new();
    read(&tree, &mut characters);
    characters.windows(GRAM_BYTES).filter_map(|run| Some([run[0]?, run[1]?, run[2]?])).collect()
}

/// Returns how every text matched by the pattern begins; empty if that is not known.
fn beginning(pattern: &Pattern) -> String {
    let tree = parsed(pattern).filter(|_| !pattern.is_folding());
    let literal = tree.as_ref().and_then(|tree| match tree.kind() {
        HirKind::Concat(list) => match (list.first()?.kind(), list.get(1)?.kind()) {
            (HirKind::Look(Look::Start), HirKind::Literal(literal)) => std::str::from_utf8(&literal.0).ok(),
            _ => None,
        },
        _ => None,
    });
    literal.unwrap_or_default().to_owned()
}

/// Returns the structure of a pattern that is matched against whole texts.
fn parsed(pattern: &Pattern) -> Option<Hir> {
    if pattern.part() != TextPart::All {
        return None;
    }
    let mut builder = ParserBuilder::new();
    for flag in pattern.flags().chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'm' => builder.multi_line(true),
            's' => builder.dot_matches_new_line(true),
            'x' => builder.ignore_whitespace(true),
            _ => &mut builder,
        };
    }
    builder.build().parse(pattern.as_str()).ok()
}

/// Appends the consecutive characters of a pattern, ignoring case; `None` stands for anything or nothing.
fn read(tree: &Hir, into: &mut Vec<Option<u8>>) {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => into.extend(text.chars().map(|it| plain(&it.to_string()))),
            Err(_) => into.push(None),
        },
        HirKind::Class(class) => into.push(one_of(class)),
        HirKind::Capture(capture) => read(&capture.sub, into),
        HirKind::Concat(list) => list.iter().for_each(|it| read(it, into)),
        HirKind::Repetition(repetition) => {
            for _ in 0..repetition.min.min(WRITTEN_OUT) {
                read(&repetition.sub, into);
            }
            if repetition.max != Some(repetition.min) || WRITTEN_OUT < repetition.min {
                into.push(None);
            }
        }
        HirKind::Alternation(_) => into.push(None),
    }
}

/// Returns the character of which all members of a class are forms.
fn one_of(class: &Class) -> Option<u8> {
    let mut forms = Vec::new();
    match class {
        Class::Unicode(class) => {
            for range in class.iter() {
                forms.extend((range.start()..=range.end()).take(CLASS_CHARACTERS));
            }
        }
        Class::Bytes(class) => {
            for range in class.iter() {
                forms.extend((range.start()..=range.end()).take(CLASS_CHARACTERS).map(char::from));
            }
        }
    }
    if CLASS_CHARACTERS <= forms.len() {
        return None;
    }
    let mut plain_forms = forms.iter().map(|it| plain(&it.to_string()));
    let first = plain_forms.next()??;
    plain_forms.all(|it| it == Some(first)).then_some(first)
}

/// Returns the single printable ASCII character that a character folds to.
fn plain(character: &str) -> Option<u8> {
    match fold(character).as_bytes() {
        [byte] if terms::is_gram_byte(*byte) => Some(*byte),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{beginning, needed};
    use crate::index::terms::grams_of;
    use crate::{Pattern, fold};
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, flags: &str, expected: &[&str]) {
        let found = needed(&Pattern::new(text, flags).expect("a pattern"));
        let found: Vec<String> =
            found.into_iter().map(|it| String::from_utf8(it.to_vec()).expect("ASCII")).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn runs_that_must_be_there() {
        check("scan", "i", &["can", "sca"]);
        check("^Scan_0.*run$", "", &["an_", "can", "n_0", "run", "sca"]);
        check("a(bc)+d", "", &["abc"]);
        check("(ab){2}c", "", &["aba", "abc", "bab"]);
        check("abc|abd", "", &[]);
        check("ab?c", "", &[]);
        check("[abc]de[fF]", "", &["def"]);
        check("d\u{e9}jab", "", &["dej", "eja", "jab"]);
        check(r"k\bes", "i", &["kes"]);
        check(r"\d\d\d", "", &[]);
    }

    #[test]
    fn beginnings() {
        let of = |text: &str, flags: &str| beginning(&Pattern::new(text, flags).expect("a pattern"));
        assert_eq!(of("^Scan_0.*run$", ""), "Scan_0");
        assert_eq!(of("^/data/\u{e9}", "s"), "/data/\u{e9}");
        assert_eq!(of("^abcd?", ""), "abc");
        for (text, flags) in
            [("Scan", ""), ("^Scan", "i"), ("^Scan", "m"), ("^scan", "f"), ("^a|^b", ""), ("^[ab]c", "")]
        {
            assert_eq!(of(text, flags), "", "{text} {flags}");
        }
    }

    proptest! {
        #[test]
        fn a_text_that_matches_has_them(
            text in "[a-cA-Ck\u{212a}\u{e9} ]{0,12}",
            pattern in "([abk]|[ab]\\+|[a-c]\\?|\\.|b\\*|\\(ab\\|c\\)|k){1,6}",
            flags in prop::sample::select(vec!["", "i", "f"]),
        ) {

            let Ok(pattern) = Pattern::new(&pattern, flags) else { return Ok(()) };
            if pattern.is_match(&text) {
                let has = grams_of(&fold(&text));
                for gram in needed(&pattern) {
                    prop_assert!(has.contains(&gram), "{pattern:?} in {text:?}: {gram:?}");
                }
            }
        }
    }
}
