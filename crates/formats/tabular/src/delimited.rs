//! Comma- and tab-separated values. The file is read twice: first to determine the types of its columns, then to
//! pass on its cells.

use std::io::{Read, Seek, SeekFrom, Write};

use csv::{ByteRecord, ReaderBuilder};

use crate::sink::{Sink, at_most};
use crate::table::{Type, names_of};
use crate::{Result, TabularError};

/// What the cells of a column have been so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    is_integer: bool,
    is_real: bool,
    is_date: bool,
    is_time: bool,
    has_value: bool,
}

impl Seen {
    const NOTHING: Self =
        Self { is_integer: true, is_real: true, is_date: true, is_time: true, has_value: false };

    fn look(&mut self, cell: &str) {
        if is_missing(cell) {
            return;
        }
        self.has_value = true;
        if self.is_real {
            self.is_integer &= is_integer(cell);
            self.is_real &= number_of(cell).is_some();
        }
        self.is_date = self.is_date && is_date(cell);
        self.is_time = self.is_time && is_time(cell);
    }

    fn ty(self) -> Type {
        match self {
            Self { has_value: false, .. } => Type::Text,
            Self { is_integer: true, is_real: true, .. } => Type::Integer,
            Self { is_real: true, .. } => Type::Real,
            Self { is_date: true, .. } => Type::Date,
            Self { is_time: true, .. } => Type::Time,
            _ => Type::Text,
        }
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
                Type::Integer | Type::Real => match number_of(cell) {
                    Some(value) => sink.number(value),
                    None => sink.missing(),
                },
                Type::Text if cell.is_empty() => sink.missing(),
                Type::Text => sink.text(cell)?,
                Type::Date | Type::Time if is_missing(cell) => sink.missing(),
                Type::Date | Type::Time => sink.text(cell.trim())?,
            }
        }
        sink.end_row()?;
    }
    Ok(())
}

fn reader<R: Read>(delimiter: u8, source: R) -> csv::Reader<R> {
    ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(source)
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

fn is_missing(cell: &str) -> bool {
    let cell = cell.trim();
    cell.is_empty() || cell.eq_ignore_ascii_case("na") || cell.eq_ignore_ascii_case("nan") || cell == "."
}

fn is_integer(cell: &str) -> bool {
    let cell = cell.trim();
    let digits = cell.strip_prefix(['+', '-']).unwrap_or(cell);
    (1..=15).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit())
}

/// Parses a number in the notations of programs: no blanks within, no `inf`.
fn number_of(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let is_plain = cell.bytes().all(|it| matches!(it, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    (is_plain && cell.bytes().any(|it| it.is_ascii_digit()))
        .then(|| cell.parse().ok())?
        .filter(|it: &f64| it.is_finite())
}

fn is_date(cell: &str) -> bool {
    let cell = cell.trim().as_bytes();
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

fn is_time(cell: &str) -> bool {
    let cell = cell.trim();
    let Some((date, time)) = cell.split_once([' ', 'T']) else { return false };
    let time = time.trim_end_matches('Z');
    let clock: Vec<&str> = time.split(':').collect();
    let is_number = |it: &&str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    is_date(date) && (2..=3).contains(&clock.len()) && clock.iter().all(is_number)
}
