//! A repository of a few records, for tests.

use pinakes_oai_pmh::{
    Deletions, Format, Header, Identity, Metadata, Page, Record, Repository, Selection, Set,
};

const DAY_MS: i64 = 86_400_000;
/// 2026-01-01.
const BEGIN_MS: i64 = 1_767_225_600_000;
const NOTES: Format = Format {
    prefix: "notes",
    schema: "https://example.org/notes.xsd",
    namespace: "https://example.org/notes",
};

/// Five records of consecutive days; the third is deleted, the fourth has no metadata.
pub(crate) struct Shelf {
    /// Number of sets; none means that there is no hierarchy.
    pub(crate) n_sets: usize,
}

impl Shelf {
    fn header(n: usize) -> Header {
        let days = i64::try_from(n).unwrap_or_default();
        Header {
            identifier: format!("oai:example.org:{n}"),
            changed_ms: BEGIN_MS + days * DAY_MS + 3_661_000,
            sets: if n.is_multiple_of(2) { vec!["s0".to_owned()] } else { Vec::new() },
            is_deleted: n == 2,
        }
    }

    fn described(n: usize, prefix: &str) -> Record {
        let metadata = match prefix {
            "notes" => {
                Metadata::Elsewhere { attribute: "at", url: format!("https://example.org/?n={n}&as=notes") }
            }
            _ => Metadata::Xml(format!("<dc>{n}</dc>")),
        };
        Record { header: Self::header(n), metadata: Some(metadata) }
    }

    fn number(identifier: &str) -> Option<usize> {
        (0..5).find(|n| Self::header(*n).identifier == identifier)
    }
}

impl Repository for Shelf {
    type Error = String;

    fn identity(&mut self) -> Result<Identity, String> {
        Ok(Identity {
            name: "A <small> shelf".to_owned(),
            mail: "a@example.org".to_owned(),
            earliest_ms: BEGIN_MS,
            deletions: Deletions::Transient,
        })
    }

    fn formats(&self) -> Vec<Format> {
        vec![Format::OAI_DC, NOTES]
    }

    fn formats_of(&mut self, identifier: &str) -> Result<Option<Vec<Format>>, String> {
        let formats = |n| if n == 3 { Vec::new() } else { vec![Format::OAI_DC] };
        Ok(Self::number(identifier).map(formats))
    }

    fn sets(&mut self) -> Result<Vec<Set>, String> {
        let set = |n: usize| Set {
            spec: format!("s{n}"),
            name: format!("Set {n}"),
            description: if n == 0 { "Even & first".to_owned() } else { String::new() },
        };
        Ok((0..self.n_sets).map(set).collect())
    }

    fn record(&mut self, identifier: &str, prefix: &str) -> Result<Option<Record>, String> {
        match Self::number(identifier) {
            // A disk that cannot be read.
            Some(4) => Err("the record 4 cannot be read".to_owned()),
            found => Ok(found.map(|n| Self::described(n, prefix))),
        }
    }

    fn list(&mut self, selection: &Selection<'_>) -> Result<Option<Page>, String> {
        let begin = match selection.place.map(str::parse) {
            None => 0,
            Some(Ok(begin)) if begin <= 5 => begin,
            Some(_) => return Ok(None),
        };
        let is_listed = |n: &usize| {
            let header = Self::header(*n);
            let is_in_set = selection.set.is_none_or(|set| header.sets.iter().any(|it| it == set));
            is_in_set && selection.range.contains(header.changed_ms)
        };
        let n_all = (0..5).filter(is_listed).count();
        let rest: Vec<usize> = (begin..5).filter(is_listed).collect();
        let n_max = usize::try_from(selection.n_max).unwrap_or(usize::MAX);
        let listed = &rest[..rest.len().min(n_max)];
        Ok(Some(Page {
            records: listed.iter().map(|n| Self::described(*n, selection.prefix)).collect(),
            n_passed: listed.len() as u64,
            n_all: n_all as u64,
            next: rest.get(listed.len()).map(usize::to_string),
        }))
    }
}
