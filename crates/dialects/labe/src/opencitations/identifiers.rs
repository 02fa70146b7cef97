//! Identifiers of works and persons in paths.

use pinakes_citations::oci::{self, OciWork};
use pinakes_citations::{Doi, Graph, Omid};

use crate::envelope::work_id;

/// Versions of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// Bare DOIs.
    V1,
    /// Identifiers with a scheme.
    V2,
}

/// A work as a path names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkId {
    /// A DOI, normalised; `None` for one that occurs in no dump.
    Doi(Option<String>),
    /// A `PubMed` number.
    Pmid(u64),
    /// An OMID.
    Omid(Omid),
    /// An identifier of a scheme that the graph does not contain, in the form in which documents are indexed;
    /// `None` if no document can have it.
    Other(Option<String>),
}

impl WorkId {
    /// Parses the identifier of an index operation; `None` if it does not match the operation's pattern.
    pub(crate) fn of_index(version: Version, text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        match version {
            Version::V1 => of_doi(&lower),
            Version::V2 => match Self::of_meta(&lower)? {
                Self::Other(_) => None,
                known => Some(known),
            },
        }
    }

    /// Parses an identifier of the metadata; `None` if its scheme is not one of OpenCitations'.
    pub(crate) fn of_meta(text: &str) -> Option<Self> {
        let (scheme, value) = text.split_once(':')?;
        match scheme {
            "doi" => of_doi(&value.to_lowercase()),
            "pmid" => value.parse().ok().filter(|_| !value.starts_with('+')).map(Self::Pmid),
            "omid" => Omid::from_digits(value.strip_prefix("br/")?.as_bytes()).map(Self::Omid),
            "isbn" | "openalex" | "pmcid" if !value.is_empty() => Some(Self::Other(work_id(scheme, value))),
            "issn" if !value.is_empty() => Some(Self::Other(None)),
            _ => None,
        }
    }

    /// Returns the number of the work in the graph.
    pub(crate) fn number(&self, graph: &Graph) -> Option<u32> {
        match self {
            Self::Doi(doi) => graph.number_of(doi.as_deref()?),
            Self::Pmid(pmid) => graph.number_of_pmid(*pmid),
            Self::Omid(omid) => graph.number_of_omid(*omid),
            Self::Other(_) => None,
        }
    }
}

fn of_doi(lower: &str) -> Option<WorkId> {
    let is_doi = lower.strip_prefix("10.").is_some_and(|rest| !rest.is_empty());
    is_doi.then(|| WorkId::Doi(Doi::parse(lower).ok().map(|doi| doi.as_str().to_owned())))
}

/// Parses a person in a path: an ORCID, with or without `orcid:`, or `omid:ra/06…`; `None` for anything else.
pub(crate) fn person(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    if let Some(number) = lower.strip_prefix("omid:ra/") {
        let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
        return is_number.then_some(lower);
    }
    let orcid = lower.strip_prefix("orcid:").unwrap_or(&lower);
    let is_orcid = orcid.len() == 19
        && orcid.bytes().enumerate().all(|(place, byte)| match place {
            4 | 9 | 14 => byte == b'-',
            18 => byte.is_ascii_digit() || byte == b'x',
            _ => byte.is_ascii_digit(),
        });
    is_orcid.then(|| format!("orcid:{orcid}"))
}

/// Says whether a text is an OCI in the form of a version: v2 also accepts the prefix `oci:`.
pub(crate) fn is_oci(version: Version, text: &str) -> bool {
    let bare = match version {
        Version::V1 => text,
        Version::V2 => text.strip_prefix("oci:").unwrap_or(text),
    };
    let is_digits = |side: &str| !side.is_empty() && side.bytes().all(|it| it.is_ascii_digit());
    bare.split_once('-').is_some_and(|(citing, cited)| is_digits(citing) && is_digits(cited))
}

/// Returns both ends of an OCI in the graph.
pub(crate) fn ends_of_oci(graph: &Graph, text: &str) -> Option<(u32, u32)> {
    let (citing, cited) = oci::decode(text).ok()?;
    let number = |work: OciWork| match work {
        OciWork::Doi { doi, .. } => graph.number_of(&doi),
        OciWork::Omid(omid) => graph.number_of_omid(omid),
    };
    Some((number(citing)?, number(cited)?))
}

/// Returns all identifiers of a work, separated by spaces, the OMID first.
pub(crate) fn all_of(graph: &Graph, number: u32) -> String {
    let omid = graph.omid(number).map(|it| it.to_string());
    let doi = graph.doi(number).map(|it| format!("doi:{it}"));
    let pmid = graph.pmid(number).map(|it| format!("pmid:{it}"));
    [omid, doi, pmid].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_fit_their_version() {
        let doi = |text: &str| Some(WorkId::Doi(Some(text.to_owned())));
        for (version, text, expected) in [
            (Version::V1, "10.1/A", doi("10.1/a")),
            (Version::V1, "doi:10.1/a", None),
            (Version::V1, "10.", None),
            (Version::V1, "10.nonsense", Some(WorkId::Doi(None))),
            (Version::V2, "doi:10.1/a", doi("10.1/a")),
            (Version::V2, "10.1/a", None),
            (Version::V2, "pmid:42", Some(WorkId::Pmid(42))),
            (Version::V2, "pmid:x", None),
            (Version::V2, "omid:br/0612", None),
            (Version::V2, "omid:br/06101801781", Omid::from_digits(b"06101801781").map(WorkId::Omid)),
            (Version::V2, "issn:0138-9130", None),
        ] {
            assert_eq!(WorkId::of_index(version, text), expected, "{version:?} {text}");
        }
        let orcid = Some("orcid:0000-0003-0530-430x".to_owned());
        assert_eq!(person("orcid:0000-0003-0530-430X"), orcid);
        assert_eq!(person("0000-0003-0530-430X"), orcid);
        assert_eq!(person("omid:ra/0612046435"), Some("omid:ra/0612046435".to_owned()));
        for text in ["orcid:0000", "omid:br/0612", "omid:ra/", "0000-0003-0530-430", "00000-003-0530-4305"] {
            assert_eq!(person(text), None, "{text}");
        }
        assert!(is_oci(Version::V1, "020-020") && !is_oci(Version::V1, "oci:020-020"));
        assert!(is_oci(Version::V2, "oci:020-020") && !is_oci(Version::V2, "02-0-20"));
    }
}
