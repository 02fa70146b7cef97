//! The texts of the pages, in English and German.

use std::collections::BTreeMap;

/// Key, English, German; one entry per line.
const TEXTS: &str = include_str!("../data/texts.tsv");

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// English, also the default.
    English,
    /// German.
    German,
}

impl Language {
    /// Returns its tag (BCP 47).
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
        }
    }

    /// Returns the language with a tag.
    pub(crate) fn named(tag: &str) -> Option<Self> {
        [Self::English, Self::German].into_iter().find(|it| it.tag() == tag)
    }

    /// Returns the available language that `Accept-Language` prefers (RFC 9110, section 12.5.4); the first
    /// one if several are equal.
    pub(crate) fn wished(header: Option<&str>) -> Self {
        let mut best = (Self::English, 0.0);
        for wish in header.unwrap_or_default().split(',') {
            let (range, weight) = wish.split_once(';').unwrap_or((wish, "q=1"));
            let weight =
                weight.trim().strip_prefix("q=").and_then(|it| it.parse::<f32>().ok()).unwrap_or(0.0);
            let primary = range.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
            if let Some(language) = Self::named(&primary).filter(|_| weight > best.1) {
                best = (language, weight);
            }
        }
        best.0
    }

    /// Returns every text of this language by its key.
    pub(crate) fn texts(self) -> BTreeMap<&'static str, &'static str> {
        let column = match self {
            Self::English => 1,
            Self::German => 2,
        };
        let lines = TEXTS.lines().filter(|it| !it.is_empty());
        lines.filter_map(|it| Some((it.split('\t').next()?, it.split('\t').nth(column)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_there_in_both_languages() {
        let mut seen = std::collections::BTreeSet::new();
        for line in TEXTS.lines().filter(|it| !it.is_empty()) {
            let parts: Vec<&str> = line.split('\t').collect();
            assert!(parts.len() == 3 && parts.iter().all(|it| !it.trim().is_empty()), "{line:?}");
            assert!(seen.insert(parts[0]), "{} stands there twice", parts[0]);
        }
    }

    #[test]
    fn the_best_liked_language_is_chosen() {
        for (header, expected) in [
            (None, "en"),
            (Some("de-DE,de;q=0.9,en;q=0.8"), "de"),
            (Some("fr, en;q=0.4, de;q=0.5"), "de"),
            (Some("en, de"), "en"),
            (Some("de;q=0"), "en"),
            (Some("fr"), "en"),
            (Some(";;q=,,de;q=x"), "en"),
        ] {
            assert_eq!(Language::wished(header).tag(), expected, "{header:?}");
        }
    }
}
