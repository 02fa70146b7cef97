//! DOIs as the maps compare them.

use pinakes_citations::Doi;

/// Normalises a DOI without trimming its end.
pub(crate) fn exact_of(spelled: &str) -> Option<String> {
    Doi::parse(spelled).ok().map(|doi| doi.as_str().to_owned())
}
