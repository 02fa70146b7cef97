//! How identifiers are compared: byte for byte, except DOIs, for which case and any resolver prefix are ignored.

/// The scheme of DOIs.
const DOI: &str = "doi";

/// Prefixes of DOIs, in lower case; the longer ones first.
const DOI_PREFIXES: [&str; 5] =
    ["https://dx.doi.org/", "http://dx.doi.org/", "https://doi.org/", "http://doi.org/", "doi:"];

/// Returns the text under which an identifier is stored and looked up.
pub(crate) fn key(scheme: &str, text: &str) -> String {
    if scheme != DOI {
        return text.to_owned();
    }
    let lower = text.trim().to_lowercase();
    let bare = DOI_PREFIXES.iter().find_map(|prefix| lower.strip_prefix(prefix)).map(str::trim_start);
    bare.map_or_else(|| lower.clone(), str::to_owned)
}

/// Returns whether identifiers of a scheme are compared by a text other than their own: a kind that has some is
/// reindexed when that changes.
pub(crate) fn is_folded(scheme: &str) -> bool {
    scheme == DOI
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn only_dois_are_folded() {
        for text in ["10.1/AbC", " https://doi.org/10.1/abc", "DOI: 10.1/ABC", "http://dx.doi.org/10.1/abc"] {
            assert_eq!(key("doi", text), "10.1/abc", "{text}");
        }
        assert_eq!(key("pid", "10.1/AbC "), "10.1/AbC ");
    }
}
