//! Comma- and tab-separated values. The file is read twice: first to determine the types of its columns, then to
//! pass on its cells.
//!
//! Numbers stay as the file writes them: `1.50` is not `1.5` to an archive. A text may be empty; a number, a date or a
//! time that is empty is missing.

use std::io::{Read, Seek, SeekFrom, Write};

use csv::{ByteRecord, ReaderBuilder, Trim};

use crate::sink::{Form, Sink, at_most};
use crate::table::{Type, names_of};
use crate::{Result, TabularError};

/// What the cells of a column have been so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    is_integer: bool,
    is_real: bool,
    is_date: bool,
    is_time: bool,
}

impl Seen {
    const NOTHING: Self = Self { is_integer: true, is_real: true, is_date: true, is_time: true };

    fn look(&mut self, cell: &str) {
        if cell.is_empty() {
            return;
        }
        self.is_integer &= is_integer(cell) || cell == "null";
        if self.is_real && (Special::of(cell).is_some() || number_of(cell).is_some()) {
            return;
        }
        self.is_real = false;
        self.is_date = self.is_date && is_date(cell);
        self.is_time = self.is_time && is_time(cell);
    }

    fn ty(self) -> Type {
        match self {
            Self { is_real: true, is_integer: true, .. } => Type::Integer,
            Self { is_real: true, .. } => Type::Real,
            Self { is_date: true, .. } => Type::Date,
            Self { is_time: true, .. } => Type::Time,
            _ => Type::Text,
        }
    }
}

/// A word that stands for a number, in capitals or not.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Special {
    /// `NA`.
    Missing,
    /// `NaN`, `Inf`, `+Inf`, `-Inf`.
    NotFinite(f64),
    /// `null`, which counts as 0.
    Zero,
}

impl Special {
    fn of(cell: &str) -> Option<Self> {
        let words = [
            ("na", Self::Missing),
            ("nan", Self::NotFinite(f64::NAN)),
            ("inf", Self::NotFinite(f64::INFINITY)),
            ("+inf", Self::NotFinite(f64::INFINITY)),
            ("-inf", Self::NotFinite(f64::NEG_INFINITY)),
            ("null", Self::Zero),
        ];
        words.into_iter().find(|it| cell.eq_ignore_ascii_case(it.0)).map(|it| it.1)
    }
}

pub(crate) fn read<R: Read + Seek, W: Write>(delimiter: u8, mut source: R, sink: &mut Sink<W>) -> Result<()> {
    let mut reader = reader(delimiter, &mut source);
    let mut record = ByteRecord::new();
    if !next(&mut reader, &mut record)? {
        return Err(TabularError::Line {
            line: 1,
            what: "the file is empty; expected a line of names".into(),
        });
    }
    at_most("variables", record.len() as u64, sink.limits.variables as u64)?;
    let names: Vec<&str> = record.iter().map(|it| utf8(it, 1)).collect::<Result<_>>()?;
    let names = names_of(names.into_iter());
    let mut seen = vec![Seen::NOTHING; names.len()];
    while next(&mut reader, &mut record)? {
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != names.len() {
            return Err(TabularError::Cells { line, found: record.len(), expected: names.len() });
        }
        for (seen, cell) in seen.iter_mut().zip(&record) {
            at_most("bytes of a text", cell.len() as u64, sink.limits.text_bytes as u64)?;
            seen.look(utf8(cell, line)?);
        }
    }
    drop(reader);
    let types: Vec<Type> = seen.into_iter().map(Seen::ty).collect();
    sink.describe_named(names, &types)?;
    source.seek(SeekFrom::Start(0))?;
    hand_out(delimiter, source, &types, sink)
}

fn hand_out<R: Read, W: Write>(delimiter: u8, source: R, types: &[Type], sink: &mut Sink<W>) -> Result<()> {
    let mut reader = reader(delimiter, source);
    let mut record = ByteRecord::new();
    next(&mut reader, &mut record)?;
    while next(&mut reader, &mut record)? {
        let line = record.position().map_or(0, csv::Position::line);
        for (cell, ty) in record.iter().zip(types) {
            let cell = utf8(cell, line)?;
            match ty {
                Type::Text => sink.text(cell)?,
                _ if cell.is_empty() => sink.missing(),
                Type::Date | Type::Time => sink.text(cell)?,
                Type::Integer | Type::Real => match (Special::of(cell), number_of(cell)) {
                    (Some(Special::NotFinite(value)), _) => sink.number(value),
                    (Some(Special::Zero), _) if *ty == Type::Integer => sink.number(0.0),
                    (Some(Special::Zero), _) => sink.number_in(0.0, Form::Point),
                    (None, Some(value)) => sink.number_in(value, Form::Own(cell)),
                    (Some(Special::Missing), _) | (None, None) => sink.missing(),
                },
            }
        }
        sink.end_row()?;
    }
    Ok(())
}

/// Blanks around the cells of tab-separated files do not count; those in comma-separated files do.
fn reader<R: Read>(delimiter: u8, source: R) -> csv::Reader<R> {
    let trim = if delimiter == b'\t' { Trim::All } else { Trim::None };
    ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).trim(trim).from_reader(source)
}

fn next<R: Read>(reader: &mut csv::Reader<R>, record: &mut ByteRecord) -> Result<bool> {
    reader.read_byte_record(record).map_err(|error| {
        let line = error.position().map_or(0, csv::Position::line);
        match error.into_kind() {
            csv::ErrorKind::Io(error) => TabularError::Io(error),
            other => TabularError::Line { line, what: format!("{other:?}") },
        }
    })
}

fn utf8(cell: &[u8], line: u64) -> Result<&str> {
    std::str::from_utf8(cell)
        .map_err(|error| TabularError::Line { line, what: format!("not UTF-8: {error}") })
}

fn is_integer(cell: &str) -> bool {
    let digits = cell.strip_prefix(['+', '-']).unwrap_or(cell);
    (1..=15).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit())
}

/// Parses a number in the notations of programs: no `inf`, no blanks within. Around it are at most spaces, which stay in the
/// cell; a tab or the end of a line would break the row.
fn number_of(cell: &str) -> Option<f64> {
    let cell = cell.trim_matches(' ');
    let is_plain = cell.bytes().all(|it| matches!(it, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    (is_plain && cell.bytes().any(|it| it.is_ascii_digit()))
        .then(|| cell.parse().ok())?
        .filter(|it: &f64| it.is_finite())
}

fn is_date(cell: &str) -> bool {
    let cell = cell.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        let text = cell.get(range).filter(|it| it.iter().all(u8::is_ascii_digit))?;
        std::str::from_utf8(text).ok()?.parse::<u32>().ok()
    };
    cell.len() == 10
        && cell[4] == b'-'
        && cell[7] == b'-'
        && digits(0..4).is_some()
        && digits(5..7).is_some_and(|it| (1..=12).contains(&it))
        && digits(8..10).is_some_and(|it| (1..=31).contains(&it))
}

/// Whether it is a date and a time of day, `2026-01-31 12:00:00` or with a fraction of a second.
fn is_time(cell: &str) -> bool {
    let Some((date, time)) = cell.split_once(' ') else { return false };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let clock: Vec<&str> = time.split(':').collect();
    let is_number = |it: &&str| (1..=2).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_digit());
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|it| it.is_ascii_digit());
    is_date(date) && clock.len() == 3 && clock.iter().all(is_number) && is_fraction
}
