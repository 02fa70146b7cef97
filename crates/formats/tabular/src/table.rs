//! What is found out about a table: its columns, labels and summaries, and the bounds of reading one.

use crate::summary::Summary;
use crate::unf::Unf;

/// What bounds a read. What lies beyond is refused with [`crate::TabularError::TooLarge`].
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most variables (32,767, as Stata/SE).
    pub variables: usize,
    /// Most bytes of labels, names and other descriptions together (64 MiB).
    pub label_bytes: u64,
    /// Most bytes of one text (16 MiB).
    pub text_bytes: usize,
    /// Most bytes of the long strings that a Stata file keeps apart, or of those that an Excel workbook shares (256 MiB).
    pub long_string_bytes: u64,
    /// Most bytes of a part of an Excel workbook, unpacked (4 GiB).
    pub part_bytes: u64,
    /// Most bytes of a workspace of R, which is held as a whole, unpacked (512 MiB).
    pub frame_bytes: u64,
    /// Numbers that are held for medians and modes, of all variables together (16 million): beyond them a variable has
    /// neither.
    pub held_numbers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            variables: 32_767,
            label_bytes: 64 << 20,
            text_bytes: 16 << 20,
            long_string_bytes: 256 << 20,
            part_bytes: 4 << 30,
            frame_bytes: 512 << 20,
            held_numbers: 16_000_000,
        }
    }
}

/// What the cells of a variable are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Real,
    /// Text.
    Text,
    /// A day, `2026-01-31`; written as text.
    Date,
    /// An instant or a time of day; written as text.
    Time,
}

impl Type {
    /// Whether its cells are numbers.
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::Real)
    }
}

/// A value with a name of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Category {
    /// The value as it stands in the tab-separated form.
    pub value: String,
    /// What it is called.
    pub label: String,
    /// Whether it stands for a missing answer.
    pub is_missing: bool,
    /// How often it occurs.
    pub n_cells: u64,
}

/// A variable: a column of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What it is called; empty when nothing is said.
    pub label: String,
    /// What its cells are.
    pub ty: Type,
    /// How the program that wrote the file shows it, e.g. `%9.0g` or `F8.2`; empty when nothing is said.
    pub format: String,
    /// Values with names.
    pub categories: Vec<Category>,
    /// Values that the file calls missing, as texts of single values and `a-b` of ranges.
    pub missing_values: Vec<String>,
    /// Statistics of a numeric variable.
    pub summary: Option<Summary>,
    /// Its fingerprint.
    pub unf: Unf,
    /// Cells that are missing.
    pub n_missing: u64,
}

/// A table that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its variables in order.
    pub variables: Vec<Variable>,
    /// Rows.
    pub n_rows: u64,
    /// The fingerprint of all variables.
    pub unf: Unf,
    /// Bytes of the tab-separated form.
    pub n_bytes: u64,
}

/// The names of variables: those that are empty, or were there before, are `v` and their number.
pub(crate) fn names_of<'a>(given: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut known = std::collections::HashSet::new();
    let name = |(index, name): (usize, &'a str)| {
        let name = name.trim_start_matches('\u{feff}').trim();
        let is_own = !name.is_empty() && known.insert(name);
        if is_own { name.to_owned() } else { format!("v{}", index + 1) }
    };
    given.enumerate().map(name).collect()
}
