//! What a graph file says about itself: counts, and what is needed to read its sections.

use serde::{Deserialize, Serialize};

use crate::oci::Supplier;
use crate::rows::Statement;

/// Counts of the input.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Rows of citation files, bad ones too, headers and empty lines not.
    pub n_rows: u64,
    /// Rows that were citations.
    pub n_rows_kept: u64,
    /// Rows left out as bad, of all files.
    pub n_rows_skipped: u64,
    /// Fields left empty as bad.
    pub n_fields_skipped: u64,
    /// Citations left out because no DOI is known for an OMID.
    pub n_without_doi: u64,
    /// Citations stated again: the first row counts.
    pub n_duplicates: u64,
    /// Rows of identifier files (Meta).
    pub n_work_rows: u64,
    /// Rows of local id tables.
    pub n_id_rows: u64,
    /// Rows of local id tables whose id was there before: the first row counts.
    pub n_id_duplicates: u64,
    /// OMIDs that Meta gives to several DOIs: the first in order counts.
    pub n_omid_conflicts: u64,
}

/// What a citation says beside its ends, dates apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PaletteEntry {
    /// Whether both works appeared in one journal.
    pub journal_sc: Statement,
    /// Whether they have an author in common.
    pub author_sc: Statement,
    /// Prefixes of the OCI, if it spells DOIs.
    pub suppliers: Option<(Supplier, Supplier)>,
}

/// A DOI with the most of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extreme {
    /// The DOI's number.
    pub number: u32,
    /// How many it has.
    pub n: u64,
}

/// The summary of a graph file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// DOIs in the dictionary: with citations, or with a local id.
    pub n_dois: u64,
    /// Different citations.
    pub n_citations: u64,
    /// Citations of a DOI by itself, counted above too.
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
    /// DOIs whose date follows from timespans only.
    pub n_inferred: u64,
    /// Statements that contradict the dates.
    pub n_exceptions: u64,
    /// OMIDs.
    pub n_omids: u64,
    /// `PubMed` numbers.
    pub n_pmids: u64,
    /// Further DOIs by which works are found.
    #[serde(default)]
    pub n_other_dois: u64,
    /// Local ids.
    pub n_local_ids: u64,
    /// Spellings of DOIs that differ from the normal form.
    pub n_spellings: u64,
    /// What citations say, most frequent first.
    pub palette: Vec<PaletteEntry>,
    /// Least date code; what the dates section counts from.
    pub(crate) date_base: u32,
    /// Bits of a date.
    pub(crate) date_width: u32,
    /// Counts of the input.
    pub counts: Counts,
}
