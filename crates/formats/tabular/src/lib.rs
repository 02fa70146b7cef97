//! Tabular files of statistics programs: what variables they have, and their rows as plain tab-separated text.
//!
//! Readers for comma- and tab-separated values, Stata's `.dta` (formats 104 to 119), SPSS's `.sav`, `.zsav` and `.por`, and
//! Excel's `.xlsx`; R's `.RData`, which alone is held as a whole. A reader goes through its file once, hands every cell to a `Sink`,
//! and holds no more of the file than a row, the labels and the long strings that Stata keeps apart. The sink writes the tab-separated form, the summary statistics and the
//! UNF (universal numeric fingerprint) of every variable, as archives of data keep them.
//!
//! ```
//! use pinakes_tabular::{Format, Limits, read};
//!
//! let csv = "name,pounds\nMidnight,15\nTiger,17\n";
//! let mut tab = Vec::new();
//! let table = read(Format::Csv, std::io::Cursor::new(csv), &mut tab, &Limits::default())?;
//! assert_eq!(String::from_utf8_lossy(&tab), "\"Midnight\"\t15\n\"Tiger\"\t17\n");
//! assert_eq!((table.variables.len(), table.n_rows), (2, 2));
//! assert_eq!(table.variables[1].summary.as_ref().and_then(|it| it.mean), Some(16.0));
//! # Ok::<(), pinakes_tabular::TabularError>(())
//! ```
//!
//! Sources: Stata's help files `dta_113` to `dta_119`; the PSPP project's descriptions of SPSS system and portable files;
//! ISO/IEC 29500 (`SpreadsheetML`); "R Internals"; the UNF specification, version 6.

mod dates;
mod delimited;
mod error;
mod input;
mod number;
mod rdata;
mod rdata_tree;
mod sink;
mod spss;
mod spss_portable;
mod stata;
mod stata_tagged;
mod summary;
mod unf;
mod xlsx;
mod xlsx_parts;

use std::io::{Read, Seek, Write};

pub use error::{Result, TabularError};
pub use summary::Summary;
pub use unf::{Unf, combined as combined_unf};

pub(crate) use sink::Sink;

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values, RFC 4180, with a line of names.
    Csv,
    /// Tab-separated values with a line of names.
    Tsv,
    /// Stata.
    Stata,
    /// SPSS system file, compressed or not.
    Spss,
    /// SPSS portable file.
    SpssPortable,
    /// Excel workbook (`.xlsx`): its first sheet, with a row of names.
    Xlsx,
    /// Workspace of R (`.RData`): its first data frame.
    RData,
}

/// What bounds a read. What lies beyond is refused with [`TabularError::TooLarge`].
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

/// Reads a table and writes its rows, without a line of names, as tab-separated text to `tab`.
///
/// In that form a text stands in double quotes with `\` before quotes and backslashes and `\t`, `\n`, `\r` for what would end a
/// cell; a missing number is nothing.
///
/// Errors: the file is not what `format` says, is damaged or too large; reading or writing fails.
pub fn read(format: Format, source: impl Read + Seek, tab: impl Write, limits: &Limits) -> Result<Table> {
    let mut sink = Sink::new(tab, limits.clone());
    match format {
        Format::Csv => delimited::read(b',', source, &mut sink)?,
        Format::Tsv => delimited::read(b'\t', source, &mut sink)?,
        Format::Stata => stata::read(source, &mut sink)?,
        Format::Spss => spss::read(source, &mut sink)?,
        Format::SpssPortable => spss_portable::read(source, &mut sink)?,
        Format::Xlsx => xlsx::read(source, &mut sink)?,
        Format::RData => rdata::read(source, &mut sink)?,
    }
    sink.finish()
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

/// What the first bytes of a file say that it is. `None` for text: that is told by names alone.
pub fn sniff(head: &[u8]) -> Option<Format> {
    if head.starts_with(b"<stata_dta>") {
        return Some(Format::Stata);
    }
    if head.starts_with(b"$FL2") || head.starts_with(b"$FL3") {
        return Some(Format::Spss);
    }
    if spss_portable::is_portable(head) {
        return Some(Format::SpssPortable);
    }
    if rdata::is_workspace(head) {
        return Some(Format::RData);
    }
    stata::is_old(head).then_some(Format::Stata)
}

/// The number of the format of a Stata file, of its first bytes.
pub fn stata_format(head: &[u8]) -> Option<u16> {
    match stata::is_old(head) {
        true => head.first().copied().map(u16::from),
        false => stata_tagged::format_of(head),
    }
}
