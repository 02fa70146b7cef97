//! Words that conditions look for: whole words, prefixes, words with wildcards, words of similar spelling.

/// A word to look for in a string, or a pattern of words, ignoring case and accents ([`crate::fold()`]). Words are runs
/// of letters and digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    folded: String,
    likeness: Likeness,
}

/// How a word has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likeness {
    /// Exactly.
    Whole,
    /// With `*` for any characters and `?` for one.
    Wild,
    /// Within so many edits.
    Near(u8),
}

/// Maximum length of a word for which edits are allowed, in letters.
const EDITED_LETTERS: usize = 64;
/// Maximum number of edits.
const EDITS: u8 = 2;

impl Word {
    /// Returns a match for a whole word. `None` when the text is not a word.
    pub fn whole(text: &str) -> Option<Self> {
        Self::of(text, Likeness::Whole)
    }

    /// Returns a match for any word with this prefix. `None` when no word can have it.
    pub fn prefix(text: &str) -> Option<Self> {
        let whole = Self::whole(text)?;
        Some(Self { folded: format!("{}*", whole.folded), likeness: Likeness::Wild })
    }

    /// Returns a match for any word, where `*` stands for anything and `?` for a letter or digit. `None` when no word
    /// can match.
    pub fn wild(text: &str) -> Option<Self> {
        let letters: String = text.chars().filter(|it| !is_wild(*it)).collect();
        if letters.is_empty() {
            return None;
        }
        Self::whole(&letters)?;
        let is_plain = letters.len() == text.len();
        // Each piece is folded separately, so that the wildcards stay in place.
        let folded: String = text.split_inclusive(is_wild).map(crate::fold).collect();
        Some(Self { folded, likeness: if is_plain { Likeness::Whole } else { Likeness::Wild } })
    }

    /// Returns a match for any word within so many edits of this one, capped at two: a letter inserted, deleted or
    /// replaced, or two neighbours exchanged. `None` when the text is not a word, or one of more than 64 letters.
    pub fn near(text: &str, edits: u8) -> Option<Self> {
        let word = Self::whole(text)?;
        let is_short = word.folded.chars().count() <= EDITED_LETTERS;
        is_short.then_some(Self { likeness: Likeness::Near(edits.min(EDITS)), ..word })
    }

    fn of(text: &str, likeness: Likeness) -> Option<Self> {
        let folded = crate::fold(text);
        let is_word = words_of(&folded).eq([folded.as_str()]);
        is_word.then_some(Self { folded, likeness })
    }

    /// Returns whether a word of `text` matches.
    pub fn is_in(&self, text: &str) -> bool {
        words_of(&crate::fold(text)).any(|word| self.fits(word))
    }

    /// Returns whether a folded word matches.
    pub(crate) fn fits(&self, word: &str) -> bool {
        match self.likeness {
            Likeness::Whole => word == self.folded,
            Likeness::Wild => match self.folded.strip_suffix('*') {
                Some(begin) if !begin.contains(is_wild) => word.starts_with(begin),
                _ => fits_wild(&self.folded, word),
            },
            Likeness::Near(edits) => are_near(&self.folded, word, usize::from(edits)),
        }
    }

    /// Returns the prefix that every matching word has, and whether that prefix is the only match.
    pub(crate) fn begin(&self) -> (&str, bool) {
        match self.likeness {
            Likeness::Whole => (&self.folded, true),
            Likeness::Wild => (self.folded.split(is_wild).next().unwrap_or_default(), false),
            Likeness::Near(_) => ("", false),
        }
    }
}

fn is_wild(character: char) -> bool {
    matches!(character, '*' | '?')
}

/// Returns whether a word matches a wildcard pattern: the last `*` takes as much as the rest leaves.
fn fits_wild(pattern: &str, word: &str) -> bool {
    let (pattern, word): (Vec<char>, Vec<char>) = (pattern.chars().collect(), word.chars().collect());
    let (mut at, mut in_word) = (0, 0);
    // Position after the last `*`, and how far it reaches.
    let mut gap: Option<(usize, usize)> = None;
    while in_word < word.len() {
        match pattern.get(at) {
            Some('*') => {
                gap = Some((at, in_word));
                at += 1;
            }
            Some(it) if *it == '?' || *it == word[in_word] => {
                at += 1;
                in_word += 1;
            }
            _ => match &mut gap {
                Some((star, reach)) => {
                    *reach += 1;
                    (at, in_word) = (*star + 1, *reach);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|it| *it == '*')
}

/// Returns whether one word becomes the other by at most so many edits.
fn are_near(a: &str, b: &str, edits: usize) -> bool {
    let (n_a, n_b) = (a.chars().count(), b.chars().count());
    if edits < n_a.abs_diff(n_b) {
        return false;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Rows of the table of edit distances between prefixes: for the letter before the last one, the last one, and the
    // current one.
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, other) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(letter != other)).min(last[j + 1] + 1).min(row[j] + 1);
            if 0 < i && 0 < j && *letter == b[j - 1] && a[i - 1] == *other {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        if row.iter().all(|it| edits < *it) {
            return false;
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()] <= edits
}

/// Returns the words of a folded text: runs of letters and digits.
pub(crate) fn words_of(folded: &str) -> impl Iterator<Item = &str> {
    folded.split(|it: char| !is_in_word(it)).filter(|it| !it.is_empty())
}

/// Returns whether a character belongs to a word.
fn is_in_word(character: char) -> bool {
    character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::Word;
    use proptest::prelude::*;

    #[test]
    fn gaps() {
        for (pattern, text, expected) in [
            ("g?uge", "a tide gauge", true),
            ("g?uge", "a guge", false),
            ("g*e", "a gauge", true),
            ("g*e", "gauges", false),
            ("*auge", "gauge", true),
            ("*aug*", "gauges", true),
            ("*aug*", "gag", false),
            ("Z\u{fc}r*", "zurich", true),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "ab ac", false),
        ] {
            assert_eq!(Word::wild(pattern).is_some_and(|it| it.is_in(text)), expected, "{pattern} {text}");
        }
        assert_eq!(Word::wild("*"), None);
        assert_eq!(Word::wild("a-b*"), None);
        assert_eq!(Word::wild("gauge"), Word::whole("gauge"));
        assert_eq!(Word::wild("gau*"), Word::prefix("gau"));
    }

    #[test]
    fn edits() {
        for (word, edits, text, expected) in [
            ("gauge", 1, "guage", true),
            ("gauge", 1, "gauges", true),
            ("gauge", 1, "gaug", true),
            ("gauge", 1, "gouge", true),
            ("gauge", 1, "agauges", false),
            ("gauge", 2, "agauges", true),
            ("gauge", 2, "gogges", false),
            ("gauge", 0, "gauge", true),
        ] {
            assert_eq!(
                Word::near(word, edits).is_some_and(|it| it.is_in(text)),
                expected,
                "{word} {edits} {text}"
            );
        }
    }

    proptest! {
        #[test]
        fn gaps_are_what_an_expression_says(pattern in "[ab*?]{1,6}", word in "[ab]{1,8}") {
            let Some(found) = Word::wild(&pattern) else { return Ok(()) };
            let expression = format!("^{}$", pattern.replace('?', ".").replace('*', ".*"));
            let expected = regex::Regex::new(&expression).expect("an expression").is_match(&word);
            prop_assert_eq!(found.is_in(&word), expected);
        }

        #[test]
        fn nearness_goes_both_ways(a in "[abc]{1,6}", b in "[abc]{1,6}", edits in 0..3_u8) {
            let near = |a: &str, b: &str| Word::near(a, edits).expect("a word").is_in(b);
            prop_assert_eq!(near(&a, &b), near(&b, &a));
            prop_assert!(near(&a, &a));
        }
    }
}
