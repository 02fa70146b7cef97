//! Folding of case and accents: how library systems compare names, titles and barcodes.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Returns the text in lower case and without accents: `Élan` and `ELAN` give `elan`. Folding twice changes nothing.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // Lower case first: `İ` becomes an `i` followed by a combining dot above, which is then removed as a mark.
    text.chars()
        .flat_map(char::to_lowercase)
        .nfkd()
        .filter(|it| !is_combining_mark(*it))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn case_and_accents_go() {
        for (text, folded) in
            [("Élan ÖL", "elan ol"), ("ABC-12", "abc-12"), ("e\u{301}", "e"), ("İ", "i"), ("ß", "ß")]
        {
            assert_eq!(fold(text), folded);
        }
    }

    proptest! {
        #[test]
        fn folding_twice_changes_nothing(text in ".{0,40}") {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once);
        }
    }
}
