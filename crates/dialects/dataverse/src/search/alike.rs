//! Solr's operators with a tilde: `gauge~1` finds words with a similar spelling, `"tide gauge"~3` finds words near each
//! other.

use pinakes_store::{Word, fold};

/// Maximum number of edits between two spellings, as in Solr.
const EDITS: usize = 2;
/// Maximum number of words between two words.
const GAP: usize = 50;
/// A letter or digit of a folded text: Latin ones, and other scripts without the punctuation between them. Compiles to
/// a smaller automaton than the Unicode classes, which matters in a pattern with hundreds of them.
const LETTER: &str = r"[a-z0-9\u{370}-\u{1fff}\u{3040}-\u{d7ff}]";
const NO_LETTER: &str = r"[^a-z0-9\u{370}-\u{1fff}\u{3040}-\u{d7ff}]";

/// Returns the words within so many edits of `word`: an inserted, deleted, replaced letter, or two transposed ones.
/// `None` for text that is not a single word, or if no edits are allowed.
pub(super) fn spelling(word: &str, distance: &str) -> Option<Word> {
    let n_letters = fold(word).chars().count();
    // If every letter could be deleted, the word would match between any two others.
    let edits = edits(distance, n_letters).min(n_letters.saturating_sub(1));
    if edits == 0 { None } else { Word::near(word, u8::try_from(edits).ok()?) }
}

/// Returns the number of edits that a tilde allows: a whole number, the share of letters that must stay (`0.8`), or two
/// by default.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the letters of a word"
)]
fn edits(distance: &str, n_letters: usize) -> usize {
    match distance.parse::<f64>() {
        Err(_) => EDITS,
        Ok(0.0) => 0,
        Ok(number) if number < 1.0 => ((1.0 - number) * n_letters as f64) as usize,
        Ok(number) => (number as usize).min(EDITS),
    }
}

/// Returns the pattern for these words in order with at most so many words between two. Two words may also be in
/// reverse order, which counts as two. `None` for a single word, or without a number.
pub(super) fn nearness(phrase: &str, distance: &str) -> Option<String> {
    let gap = distance.parse::<usize>().ok()?.min(GAP);
    let folded = fold(phrase);
    let words: Vec<&str> =
        folded.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
    let between = |most: usize| format!("{NO_LETTER}+(?:{LETTER}+{NO_LETTER}+){{0,{most}}}");
    match words.as_slice() {
        [] | [_] => None,
        [one, two] if 2 <= gap => {
            Some(format!("(?:{one}{}{two}|{two}{}{one})", between(gap), between(gap - 2)))
        }
        words => Some(words.join(&between(gap))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::query::folded_pattern;
    use super::*;

    #[test]
    fn words_are_spelt_otherwise() {
        let longest = "a".repeat(64);
        for (word, distance, text, expected) in [
            ("gauge", "1", "a tide gauge", true),
            ("gauge", "1", "a tide gauges", true),
            ("gauge", "1", "a gaug, tidal", true),
            ("gauge", "1", "Guage", true),
            ("gauge", "1", "gouge", true),
            ("gauge", "1", "gauging", false),
            ("gauge", "1", "agauges", false),
            ("gauge", "", "agauges", true),
            ("gauge", "2", "gogges", false),
            ("gauge", "7", "gages", true),
            ("gauge", "0.7", "gauges", true),
            // A tenth of five letters is rounded down to none.
            ("gauge", "0.9", "gauge", false),
            ("Zürich", "1", "zurch", true),
            ("ab", "2", "the", false),
            ("ab", "2", "", false),
            ("ab", "2", "b", true),
            ("a", "2", "b", false),
            (&longest, "2", &"a".repeat(62), true),
            (&longest, "2", &"a".repeat(61), false),
        ] {
            let found = spelling(word, distance).is_some_and(|it| it.is_in(text));
            assert_eq!(found, expected, "{word}~{distance} {text}");
        }
        assert_eq!(spelling("two words", "1"), None);
        assert_eq!(spelling(&"a".repeat(65), "1"), None);
    }

    #[test]
    fn words_are_near_each_other() {
        for (phrase, distance, text, expected) in [
            ("tide gauge", "0", "the tide-gauge", true),
            ("tide gauge", "1", "tide level gauge", true),
            ("tide gauge", "1", "tide and level gauge", false),
            ("tide gauge", "1", "gauge, tide", false),
            ("tide gauge", "2", "gauge, tide", true),
            ("tide gauge", "3", "gauge of tide", true),
            ("tide gauge", "2", "gauge of tide", false),
            ("tide gauge", "1", "tides gauge", false),
            ("a b c", "1", "a x b y c", true),
            ("a b c", "1", "a x x b c", false),
            ("tide gauge", "999", "tide gauge", true),
        ] {
            let pattern = nearness(phrase, distance).map(|it| folded_pattern(&it).unwrap());
            assert_eq!(pattern.is_some_and(|it| it.is_match(text)), expected, "{phrase}~{distance} {text}");
        }
        assert_eq!(nearness("gauge", "2"), None);
        assert_eq!(nearness("tide gauge", ""), None);
    }
}
