//! How identifiers are compared: byte for byte, except DOIs, which mean the same in any case and with any resolver in front.

/// The scheme of DOIs.
const DOI: &str = "doi";

/// What is written before a DOI, in lower case; the longer ones first.
const DOI_PREFIXES: [&str; 5] =
    ["https://dx.doi.org/", "http://dx.doi.org/", "https://doi.org/", "http://doi.org/", "doi:"];

/// The text that an identifier is kept and found by.
pub(crate) fn key(scheme: &str, text: &str) -> String {
    if scheme != DOI {
        return text.to_owned();
    }
    let lower = text.trim().to_lowercase();
    let bare = DOI_PREFIXES.iter().find_map(|prefix| lower.strip_prefix(prefix)).map(str::trim_start);
    bare.map_or_else(|| lower.clone(), str::to_owned)
}

/// Whether identifiers of a scheme are compared by another text than their own: a kind that has some is indexed anew
/// when that changes.
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
