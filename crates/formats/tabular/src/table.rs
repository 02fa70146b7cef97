//! The result of reading a table: its columns, labels and summaries, and the limits of reading one.

use crate::summary::Summary;
use crate::unf::Unf;

/// The limits of reading. Anything beyond is refused with [`crate::TabularError::TooLarge`].
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of variables (32,767, as Stata/SE).
    pub variables: usize,
    /// Maximum size of labels, names and other descriptions together, in bytes (64 MiB).
    pub label_bytes: u64,
    /// Maximum size of one text in bytes (16 MiB).
    pub text_bytes: usize,
    /// Maximum size of the long strings that a Stata file stores separately, or of those that an Excel workbook shares,
    /// in bytes (256 MiB).
    pub long_string_bytes: u64,
    /// Maximum size of a part of an Excel workbook, decompressed, in bytes (4 GiB).
    pub part_bytes: u64,
    /// Maximum size of an R workspace, which is held as a whole, decompressed, in bytes (512 MiB).
    pub frame_bytes: u64,
    /// Number of values held for medians and modes, of all variables together (16 million): beyond it a variable has
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

/// The type of a variable's cells.
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
    /// Returns whether the cells are numbers.
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::Real)
    }
}

/// A value with a label.
#[derive(Debug, Clone, PartialEq)]
pub struct Category {
    /// The value as in the tab-separated form.
    pub value: String,
    /// Its label.
    pub label: String,
    /// Whether it represents a missing answer.
    pub is_missing: bool,
    /// How often it occurs.
    pub n_cells: u64,
}

/// A variable: a column of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its label; empty if there is none.
    pub label: String,
    /// The type of its cells.
    pub ty: Type,
    /// The display format of the program that wrote the file, e.g. `%9.0g` or `DOLLAR8.2`; empty if there is none.
    pub format: String,
    /// Values with labels.
    pub categories: Vec<Category>,
    /// Values that the file declares as missing, as texts of single values and `a-b` of ranges.
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

/// Returns the names of variables: those that are empty or repeated become `v` and their number.
pub(crate) fn names_of<'a>(given: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut known = std::collections::HashSet::new();
    let name = |(index, name): (usize, &'a str)| {
        let name = name.trim_start_matches('\u{feff}').trim();
        let is_own = !name.is_empty() && known.insert(name);
        if is_own { name.to_owned() } else { format!("v{}", index + 1) }
    };
    given.enumerate().map(name).collect()
}
