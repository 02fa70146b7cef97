//! The summary stored in a graph file: counts, and the values needed to read its sections.

use serde::{Deserialize, Serialize};

use crate::oci::Supplier;
use crate::rows::Statement;

/// Counts of the input.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Rows of citation files, including bad ones, without headers and empty lines.
    pub n_rows: u64,
    /// Rows that were citations.
    pub n_rows_kept: u64,
    /// Rows left out as bad, of all files.
    pub n_rows_skipped: u64,
    /// Fields left empty as bad.
    pub n_fields_skipped: u64,
    /// Citations left out because no DOI is known for an OMID.
    pub n_without_doi: u64,
    /// Repeated citations: the first row counts.
    pub n_duplicates: u64,
    /// Rows of identifier files (Meta).
    pub n_work_rows: u64,
    /// Rows of local id tables.
    pub n_id_rows: u64,
    /// Rows of local id tables with a repeated id: the first row counts.
    pub n_id_duplicates: u64,
    /// OMIDs that Meta gives to several DOIs: the first in order counts.
    pub n_omid_conflicts: u64,
}

/// What a citation says besides its ends and dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PaletteEntry {
    /// Whether both works appeared in one journal.
    pub journal_sc: Statement,
    /// Whether they have an author in common.
    pub author_sc: Statement,
    /// Prefixes of the OCI, if it spells DOIs.
    pub suppliers: Option<(Supplier, Supplier)>,
}

/// The DOI with the most of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extreme {
    /// The DOI's number.
    pub number: u32,
    /// Its number of them.
    pub n: u64,
}

/// The summary of a graph file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// DOIs in the dictionary: with citations, or with a local id.
    pub n_dois: u64,
    /// Different citations.
    pub n_citations: u64,
    /// Citations of a DOI by itself, included above.
    pub n_self_loops: u64,
    /// DOIs that cite.
    pub n_citing: u64,
    /// DOIs that are cited.
    pub n_cited: u64,
    /// The DOI that cites most.
    pub max_references: Extreme,
    /// The DOI that is cited most.
    pub max_citations: Extreme,
    /// DOIs with a publication date of their own.
    pub n_dated: u64,
    /// DOIs whose date is only derived from timespans.
    pub n_inferred: u64,
    /// Statements that contradict the dates.
    pub n_exceptions: u64,
    /// OMIDs.
    pub n_omids: u64,
    /// `PubMed` numbers.
    pub n_pmids: u64,
    /// Number of further DOIs by which works are found.
    #[serde(default)]
    pub n_other_dois: u64,
    /// Local ids.
    pub n_local_ids: u64,
    /// Spellings of DOIs that differ from the normal form.
    pub n_spellings: u64,
    /// What citations say, most frequent first.
    pub palette: Vec<PaletteEntry>,
    /// Least date code, from which the dates section counts.
    pub(crate) date_base: u32,
    /// Bits of a date.
    pub(crate) date_width: u32,
    /// Counts of the input.
    pub counts: Counts,
}
