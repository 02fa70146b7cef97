//! Input of exports: a version's JSON as in the API, with its context.

use serde_json::{Map, Value};

use crate::blocks::fields::Metadata;
use crate::blocks::registry::Registry;

/// The input of an export.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The dataset with its version, including files, under `datasetVersion`.
    pub dataset: &'a Value,
    /// The metadata blocks.
    pub registry: &'a Registry,
    /// The URL at which clients reach the server.
    pub site_url: &'a str,
    /// Name of the root collection.
    pub publisher: &'a str,
    /// The collections above the dataset, nearest first.
    pub owners: &'a [Owner],
    /// Short description of the version's licence; empty if there is none.
    pub license_text: &'a str,
    /// Variables of tabular files that the caller may download, by file number: their `dataTables`.
    pub tables: &'a Map<String, Value>,
    /// The current date, `2026-01-31`, for embargoes and retention periods.
    pub today: &'a str,
}

/// A collection above a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its alias.
    pub alias: String,
    /// Its name.
    pub name: String,
    /// Its description; empty if there is none.
    pub description: String,
}

/// Returns a text member of a JSON object; empty if there is none.
pub(crate) fn text<'a>(json: &'a Value, name: &str) -> &'a str {
    json[name].as_str().unwrap_or_default()
}

impl<'a> Source<'a> {
    /// Returns the version.
    pub fn version(&self) -> &'a Value {
        &self.dataset["datasetVersion"]
    }

    /// Returns the version's metadata.
    pub fn metadata(&self) -> Metadata<'a> {
        Metadata(&self.version()["metadataBlocks"])
    }

    /// Returns the identifier: `doi:10.5072/FK2/AB12CD`.
    pub fn pid(&self) -> String {
        let it = self.dataset;
        format!("{}:{}/{}", text(it, "protocol"), text(it, "authority"), text(it, "identifier"))
    }

    /// Returns the identifier as a URL: `https://doi.org/10.5072/FK2/AB12CD`.
    pub fn pid_url(&self) -> &'a str {
        text(self.dataset, "persistentUrl")
    }

    /// Returns the language of the metadata, a code of ISO 639-1; empty if the dataset states none.
    pub fn language(&self) -> &'a str {
        Some(text(self.dataset, "metadataLanguage")).filter(|it| *it != "undefined").unwrap_or_default()
    }

    /// Returns the title.
    pub fn title(&self) -> &'a str {
        self.metadata().one("title").unwrap_or_default()
    }

    /// Returns `DRAFT`, `RELEASED` or `DEACCESSIONED`.
    pub fn state(&self) -> &'a str {
        text(self.version(), "versionState")
    }

    /// Returns whether it is a draft.
    pub fn is_draft(&self) -> bool {
        self.state() == "DRAFT"
    }

    /// Returns `1.0`, or `DRAFT`.
    pub fn number(&self) -> String {
        let version = self.version();
        match (version["versionNumber"].as_i64(), version["versionMinorNumber"].as_i64()) {
            (Some(number), Some(minor)) => format!("{number}.{minor}"),
            _ => "DRAFT".to_owned(),
        }
    }

    /// Returns the date of the first publication.
    pub fn publication_date(&self) -> &'a str {
        let own = text(self.version(), "publicationDate");
        if own.is_empty() { text(self.dataset, "publicationDate") } else { own }
    }

    /// Returns the date on which this version was released; empty for a draft.
    pub fn release_date(&self) -> &'a str {
        text(self.version(), "releaseTime").get(..10).unwrap_or_default()
    }

    /// Returns the date that citations show: that of the publication unless the dataset specifies another.
    pub fn citation_date(&self) -> &'a str {
        let own = text(self.version(), "citationDate");
        if own.is_empty() { self.publication_date() } else { own }
    }

    /// Returns the files of the version.
    pub fn files(&self) -> &'a [Value] {
        self.version()["files"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the licence's name and URI.
    pub fn license(&self) -> Option<(&'a str, &'a str)> {
        let license = &self.version()["license"];
        license["name"].as_str().map(|name| (name, text(license, "uri")))
    }

    /// Returns the URL of the custom terms that the version has in place of a licence.
    pub fn terms_url(&self) -> Option<String> {
        let has_terms = self.license().is_none() && !text(self.version(), "termsOfUse").is_empty();
        let number = if self.is_draft() { ":draft".to_owned() } else { self.number() };
        let versions = format!("{}/api/datasets/:persistentId/versions", self.site_url);
        has_terms.then(|| format!("{versions}/{number}/customlicense?persistentId={}", self.pid()))
    }

    /// Returns whether a file is accessible to everybody: neither restricted, nor under an embargo, nor past its
    /// retention period. With an invalid date it counts as inaccessible.
    pub fn is_open(&self, file: &Value) -> bool {
        let (embargo, retention) = (&file["dataFile"]["embargo"], &file["dataFile"]["retention"]);
        let is_over = |it: &str| !it.is_empty() && it <= self.today;
        let still_holds = |it: &str| self.today <= it;
        file["restricted"].as_bool() != Some(true)
            && (embargo.is_null() || is_over(text(embargo, "dateAvailable")))
            && (retention.is_null() || still_holds(text(retention, "dateUnavailable")))
    }

    /// Returns the citation's text.
    pub fn citation(&self) -> &'a str {
        text(self.version(), "citation")
    }
}

/// Words of the names of organisations, in lower case.
const ORGANIZATION_WORDS: &[&str] = &[
    "agency",
    "archive",
    "archives",
    "association",
    "bureau",
    "center",
    "centre",
    "college",
    "commission",
    "committee",
    "company",
    "consortium",
    "corporation",
    "council",
    "department",
    "dept.",
    "foundation",
    "gmbh",
    "hospital",
    "inc",
    "inc.",
    "institut",
    "institute",
    "institution",
    "lab",
    "laboratory",
    "library",
    "llc",
    "ltd",
    "ltd.",
    "ministry",
    "museum",
    "nations",
    "network",
    "observatory",
    "office",
    "organisation",
    "organization",
    "program",
    "programme",
    "project",
    "school",
    "service",
    "services",
    "society",
    "survey",
    "team",
    "the",
    "trust",
    "universidad",
    "universität",
    "université",
    "university",
];

/// Returns whether a name is an acronym or has a word that is typical of organisations. Every other name is a person's.
pub(crate) fn is_organization(name: &str) -> bool {
    let is_acronym = 1 < name.len() && name.bytes().all(|it| it.is_ascii_uppercase());
    is_acronym || name.split([' ', ',']).any(|it| ORGANIZATION_WORDS.contains(&it.to_lowercase().as_str()))
}

/// Splits a personal name of the form `Family, Given`; `None` for other names.
pub(crate) fn person(name: &str) -> Option<(&str, &str)> {
    let (family, given) = name.split_once(',')?;
    let (family, given) = (family.trim(), given.trim());
    (!is_organization(name) && !family.is_empty() && !given.is_empty() && !given.contains(','))
        .then_some((family, given))
}

/// Returns text without HTML tags; a `<` that does not begin a tag stays.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let is_tag = after.starts_with(|it: char| it.is_ascii_alphabetic() || it == '/' || it == '!');
        match after.find('>').filter(|_| is_tag) {
            Some(end) if !after[..end].contains('<') => rest = &after[end + 1..],
            _ => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}
