//! Subjects of topics, in the form in which records of other dialects have them: a subject identifier such as
//! `https://doi.org/10.5072/x` is the identifier `10.5072/x` of the scheme `doi`, which a dataset may have as well.

/// Prefixes of the IRIs of each scheme. The first match is used.
const PREFIXES: [(&str, &str); 16] = [
    ("https://doi.org/", "doi"),
    ("http://doi.org/", "doi"),
    ("https://dx.doi.org/", "doi"),
    ("http://dx.doi.org/", "doi"),
    ("doi:", "doi"),
    ("info:doi/", "doi"),
    ("https://orcid.org/", "orcid"),
    ("http://orcid.org/", "orcid"),
    ("https://hdl.handle.net/", "pid"),
    ("http://hdl.handle.net/", "pid"),
    ("urn:pinakes:pid:", "pid"),
    ("urn:pinakes:proposal:", "proposal"),
    ("urn:pinakes:sample:", "sample"),
    ("urn:isbn:", "isbn"),
    ("urn:issn:", "issn"),
    ("https://portal.issn.org/resource/ISSN/", "issn"),
];

/// Returns scheme and value of an IRI, if its scheme is one that records use.
pub(crate) fn of_iri(iri: &str) -> Option<(&'static str, &str)> {
    PREFIXES.into_iter().find_map(|(prefix, scheme)| Some((scheme, iri.strip_prefix(prefix)?)))
}
