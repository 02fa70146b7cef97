//! Tabular files of statistics programs: their variables, and their rows as plain tab-separated text.
//!
//! Readers for comma- and tab-separated values, Stata's `.dta` (formats 104 to 119), SPSS's `.sav`, `.zsav` and `.por`,
//! and Excel's `.xlsx`; R's `.RData`, the only one that is held as a whole. A reader goes through its file once, passes
//! every cell to a `Sink`, and holds no more of the file than a row, the labels and the long strings that Stata stores
//! separately. The sink writes the tab-separated form, the summary statistics and the UNF (universal numeric
//! fingerprint) of every variable, as data archives keep them.
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
mod rdata_source;
mod rdata_tree;
mod sink;
mod spss;
mod spss_formats;
mod spss_portable;
mod stata;
mod stata_tagged;
mod stata_values;
mod summary;
mod table;
mod unf;
mod xlsx;
mod xlsx_parts;

use std::io::{Read, Seek, Write};

pub use crate::table::{Category, Limits, Table, Type, Variable};

pub use error::{Result, TabularError};
pub use number::with_point;
pub use summary::Summary;
pub use unf::{Unf, combined as combined_unf};

pub(crate) use sink::Sink;

/// The format of a file.
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

/// Reads a table and writes its rows, without a line of names, as tab-separated text to `tab`.
///
/// In that form a text is in double quotes with `\` before quotes and backslashes, and `\t`, `\n`, `\r` for characters
/// that would end a cell; a missing number is empty.
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

/// Detects the format by the first bytes of a file. `None` for text, which is recognised only by file name.
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

/// Returns the format number of a Stata file, from its first bytes.
pub fn stata_format(head: &[u8]) -> Option<u16> {
    match stata::is_old(head) {
        true => head.first().copied().map(u16::from),
        false => stata_tagged::format_of(head),
    }
}
