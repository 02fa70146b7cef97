//! Browsable lists of values from records, in their own order, which a kind declares ([`crate::Kind::lists`]), and what
//! is found in them ([`crate::View::browse`]).

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::eval::each_text;
use crate::field_values::check_number;
use crate::{Path, Result};

/// A browsable list of values from records.
#[derive(Debug)]
pub struct Listing {
    /// Its name in the kind; must change when `entries` yields something else for the same record.
    pub name: &'static str,
    /// Passes on the entries that a record adds to the list.
    pub entries: fn(&Json, &mut dyn FnMut(ListEntry)),
}

/// An entry that a record adds to a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListEntry {
    /// The sort key.
    pub key: String,
    /// Distinguishes and sorts entries with the same key.
    pub apart: String,
    /// What entries are selected by, which distinguishes them, too. A list has few different ones, hundreds at most:
    /// its entries are held apart by them.
    pub traits: String,
    /// Collected over the records that have the entry; empty for nothing.
    pub gathered: String,
}

/// A position in a list, and how many entries around it are wanted.
#[derive(Debug, Clone)]
pub struct ListPlace {
    /// The key of the position. Need not be in the list.
    pub key: String,
    /// Whether entries with this key count as behind the position.
    pub is_behind: bool,
    /// Number of entries wanted before it.
    pub n_before: usize,
    /// Number of entries wanted behind it.
    pub n_after: usize,
    /// Number of entries behind it to skip first.
    pub n_skipped: u64,
}

/// An entry as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// See [`ListEntry::key`].
    pub key: String,
    /// See [`ListEntry::apart`].
    pub apart: String,
    /// See [`ListEntry::traits`].
    pub traits: String,
    /// See [`ListEntry::gathered`].
    pub gathered: BTreeSet<String>,
    /// Number of records that have it.
    pub n_records: u64,
    /// The id of one of them.
    pub record: String,
}

/// The entries around a position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Browsed {
    /// The entries before it, in order; one more than was asked for if there are more.
    pub before: Vec<Listed>,
    /// The entries behind it, likewise.
    pub after: Vec<Listed>,
    /// Total number of entries.
    pub n_entries: u64,
}

/// A filter on entries.
pub enum Wanted<'w> {
    /// All entries.
    All,
    /// Those with traits for which the function returns true. They are found without a look at others.
    Traits(&'w mut dyn FnMut(&str) -> bool),
    /// Those for which the function returns true, by their distinguishing part and their traits. All entries are looked
    /// at to count them.
    Entries {
        /// Identifies the function: equal texts mean equal functions.
        condition: &'w str,
        /// The function.
        fits: &'w mut dyn FnMut(&str, &str) -> bool,
    },
}

impl Wanted<'_> {
    /// Returns whether entries with these traits may be wanted.
    pub(crate) fn has_traits(&mut self, traits: &str) -> bool {
        match self {
            Self::Traits(fits) => fits(traits),
            Self::All | Self::Entries { .. } => true,
        }
    }

    /// Returns whether an entry is wanted, one whose traits may be.
    pub(crate) fn has(&mut self, apart: impl FnOnce() -> String, traits: &str) -> bool {
        match self {
            Self::All | Self::Traits(_) => true,
            Self::Entries { fits, .. } => fits(&apart(), traits),
        }
    }
}

/// What entries are counted by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grouping<'p> {
    pub(crate) path: &'p Path,
    /// Maximum number of different texts.
    pub(crate) n_most: u64,
}

impl Grouping<'_> {
    /// Returns the different texts at the path.
    pub(crate) fn texts_of(&self, body: &Json) -> BTreeSet<String> {
        let mut texts = BTreeSet::new();
        each_text(body, self.path, |it| texts.extend([it.to_owned()]));
        texts
    }

    /// Checks the number of different texts.
    pub(crate) fn check(&self, n_texts: usize) -> Result<()> {
        check_number(n_texts, self.path, self.n_most)
    }
}

/// Returns the entries of a body, each once.
pub(crate) fn entries_of(entries: fn(&Json, &mut dyn FnMut(ListEntry)), body: &Json) -> BTreeSet<ListEntry> {
    let mut set = BTreeSet::new();
    entries(body, &mut |entry| {
        set.insert(entry);
    });
    set
}

impl ListPlace {
    /// Returns whether a key lies behind the position.
    pub(crate) fn has_behind(&self, key: &str) -> bool {
        if self.is_behind { self.key.as_str() <= key } else { self.key.as_str() < key }
    }
}
