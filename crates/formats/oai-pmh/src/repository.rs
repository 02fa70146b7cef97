//! What a repository says about itself and its records.

use crate::datestamp::Range;
use crate::fault::Fault;

/// The prefix of Dublin Core, which every repository offers.
pub(crate) const OAI_DC_PREFIX: &str = "oai_dc";

/// A metadata format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Its name in requests.
    pub prefix: &'static str,
    /// The address of its schema.
    pub schema: &'static str,
    /// Its namespace.
    pub namespace: &'static str,
}

impl Format {
    /// Dublin Core, which every repository offers.
    pub const OAI_DC: Self = Self {
        prefix: OAI_DC_PREFIX,
        schema: "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
        namespace: "http://www.openarchives.org/OAI/2.0/oai_dc/",
    };
}

/// Whether deletions are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletions {
    /// Not at all.
    No,
    /// As a header, as long as the deletion is known.
    Transient,
    /// As a header, for good.
    Persistent,
}

impl Deletions {
    /// Returns its name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Transient => "transient",
            Self::Persistent => "persistent",
        }
    }
}

/// A repository's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// The address of a person responsible.
    pub mail: String,
    /// No record has changed before this, in milliseconds since 1970.
    pub earliest_ms: i64,
    /// Whether deletions are told.
    pub deletions: Deletions,
}

/// A set of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// Its name in requests.
    pub spec: String,
    /// Its name for people.
    pub name: String,
    /// A sentence about it; may be empty.
    pub description: String,
}

/// The header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its identifier.
    pub identifier: String,
    /// When it was added, changed or deleted, in milliseconds since 1970.
    pub changed_ms: i64,
    /// The sets that it belongs to.
    pub sets: Vec<String>,
    /// Whether it is deleted.
    pub is_deleted: bool,
}

/// The description of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metadata {
    /// As one element of XML, without a declaration.
    Xml(String),
    /// In a format that is no XML: an attribute says where it is. Not part of the standard.
    Elsewhere {
        /// The attribute.
        attribute: &'static str,
        /// Where the description is.
        url: String,
    },
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its header.
    pub header: Header,
    /// Its description; not used where only headers are listed, nor of a deleted record.
    pub metadata: Option<Metadata>,
}

/// The records that a list asks for.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'a> {
    /// The metadata format, one of the repository's.
    pub prefix: &'a str,
    /// The set, one of the repository's; `None` for all records.
    pub set: Option<&'a str>,
    /// When they were changed.
    pub range: Range,
    /// Whether descriptions are needed beside the headers.
    pub is_whole: bool,
    /// Where the page begins, as the repository named it in [`Page::next`]; `None` for the first page. Comes from the
    /// harvester, and may be any text.
    pub place: Option<&'a str>,
    /// Maximum number of records on the page.
    pub n_max: u64,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The records. May be empty only if the list has no further ones.
    pub records: Vec<Record>,
    /// How many records of the list the page has gone through, with those that are not shown.
    pub n_passed: u64,
    /// The number of records in the list.
    pub n_all: u64,
    /// Where the next page begins, as the repository will be told again; `None` if this is the last.
    pub next: Option<String>,
}

/// The records that are harvested.
pub trait Repository {
    /// Why records could not be read.
    type Error;

    /// Describes the repository.
    fn identity(&mut self) -> Result<Identity, Self::Error>;

    /// Returns the formats it offers.
    fn formats(&self) -> Vec<Format>;

    /// Returns the formats that a record has; `None` if there is no such record.
    fn formats_of(&mut self, identifier: &str) -> Result<Option<Vec<Format>>, Self::Error>;

    /// Returns the sets, always in the same order.
    fn sets(&mut self) -> Result<Vec<Set>, Self::Error>;

    /// Returns a record, described in one of the formats; `None` if there is no such record.
    fn record(&mut self, identifier: &str, prefix: &str) -> Result<Option<Record>, Self::Error>;

    /// Returns a page of a list; `None` if it never named the place where the page should begin.
    fn list(&mut self, selection: &Selection<'_>) -> Result<Option<Page>, Self::Error>;

    /// Returns the sentence for a fault.
    fn sentence(&self, fault: &Fault) -> String {
        fault.to_string()
    }
}
