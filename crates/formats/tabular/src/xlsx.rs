//! Excel workbooks (ISO/IEC 29500, `SpreadsheetML`): the first sheet, whose first row with content holds the names.
//!
//! The sheet is read twice: first to determine the types of its columns, then to pass on its cells. In memory are a
//! row, the shared strings, and which cell formats show dates.

use std::io::{Read, Seek, Write};

use zip::ZipArchive;

use crate::dates::Clock;
use crate::sink::{Sink, at_most};
use crate::table::{Limits, Type, names_of};
use crate::xlsx_parts::{Part, Piece, Workbook, attribute};
use crate::{Result, TabularError, number};

/// 1960-01-01, the epoch of `Clock`, as Excel counts days.
const DAYS_TO_1960: f64 = 21_916.0;
/// 10000-01-01: numbers from here on are not dates.
const END_OF_DATES: f64 = 2_958_466.0;
/// Days between the two calendars of Excel, which begin in 1900 and 1904.
const DAYS_1900_TO_1904: f64 = 1462.0;
/// Excel has a 1900-02-29: before it, its days are counted one too low.
const LEAP_DAY_OF_1900: f64 = 60.0;
const MS_PER_DAY: f64 = 86_400_000.0;

/// A cell with content.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Missing,
    Number(f64),
    /// A number that is shown as a date, and its days in the calendar that begins in 1900.
    Date {
        number: f64,
        days: f64,
    },
    Text(String),
}

/// What the cells of a column have been so far.
#[derive(Debug, Clone, Copy)]
struct Seen {
    has_value: bool,
    has_text: bool,
    is_dates: bool,
    is_days: bool,
    is_integer: bool,
}

impl Seen {
    const NOTHING: Self =
        Self { has_value: false, has_text: false, is_dates: true, is_days: true, is_integer: true };

    fn look(&mut self, cell: &Cell) {
        self.has_value |= *cell != Cell::Missing;
        match cell {
            Cell::Missing => {}
            Cell::Text(_) => self.has_text = true,
            Cell::Date { number, days } => {
                self.is_days &= days.fract() == 0.0 && 1.0 <= *days;
                self.is_integer &= number.fract() == 0.0;
            }
            Cell::Number(value) => {
                self.is_dates = false;
                self.is_integer &= value.fract() == 0.0 && value.abs() < 1e15;
            }
        }
    }

    fn ty(self) -> Type {
        match self {
            Self { has_value: false, .. } | Self { has_text: true, .. } => Type::Text,
            Self { is_dates: true, is_days: true, .. } => Type::Date,
            Self { is_dates: true, .. } => Type::Time,
            Self { is_integer: true, .. } => Type::Integer,
            _ => Type::Real,
        }
    }
}

pub(crate) fn read<R: Read + Seek, W: Write>(source: R, sink: &mut Sink<W>) -> Result<()> {
    let mut archive = ZipArchive::new(source)
        .map_err(|error| TabularError::Unsupported(format!("this is no workbook of Excel: {error}")))?;
    let limits = sink.limits.clone();
    let workbook = Workbook::of(&mut archive, &limits)?;
    let mut rows = Rows::of(&workbook, &mut archive, &limits)?;
    let Some(line) = rows.next()? else {
        let what = "the first sheet is empty; expected a row of names".to_owned();
        return Err(TabularError::Line { line: 1, what });
    };
    let names: Vec<String> = rows.cells.iter().map(|it| text_of(it, Type::Text)).collect();
    let names = names_of(names.iter().map(String::as_str));
    let mut seen = vec![Seen::NOTHING; names.len()];
    while let Some(line) = rows.next()? {
        if names.len() < rows.cells.len() {
            return Err(TabularError::Cells { line, found: rows.cells.len(), expected: names.len() });
        }
        for (seen, cell) in seen.iter_mut().zip(&rows.cells) {
            seen.look(cell);
        }
    }
    drop(rows);
    let types: Vec<Type> = seen.into_iter().map(Seen::ty).collect();
    sink.describe_named(names, &types)?;
    let mut rows = Rows::of(&workbook, &mut archive, &limits)?;
    while let Some(at) = rows.next()? {
        if at == line {
            continue;
        }
        rows.cells.resize(types.len(), Cell::Missing);
        for (cell, ty) in rows.cells.iter().zip(&types) {
            match cell {
                Cell::Missing => sink.missing(),
                Cell::Number(number) | Cell::Date { number, .. } if ty.is_numeric() => sink.number(*number),
                cell => sink.text(&text_of(cell, *ty))?,
            }
        }
        sink.end_row()?;
    }
    Ok(())
}

/// Formats a cell as text, in a column of this type.
fn text_of(cell: &Cell, ty: Type) -> String {
    let mut text = String::new();
    match cell {
        Cell::Missing => {}
        Cell::Text(own) => text.push_str(own),
        Cell::Number(value) => number::push(*value, &mut text),
        Cell::Date { days, .. } => {
            let true_days = if *days < LEAP_DAY_OF_1900 { days + 1.0 } else { *days };
            let ms = ((true_days - DAYS_TO_1960) * MS_PER_DAY).round();
            if *days < 1.0 {
                // A time of day.
                Clock::Milliseconds.push(ms, &mut text);
                text = text.split_once(' ').map(|it| it.1.to_owned()).unwrap_or_default();
            } else if ty == Type::Time || days.fract() != 0.0 {
                Clock::Milliseconds.push(ms, &mut text);
            } else {
                Clock::Days.push(true_days - DAYS_TO_1960, &mut text);
            }
        }
    }
    text
}

/// The rows of a sheet that have content.
struct Rows<'a, R: Read> {
    part: Part<R>,
    workbook: &'a Workbook,
    limits: &'a Limits,
    /// The cells of the last row, from the first column to the last with content.
    cells: Vec<Cell>,
    line: u64,
}

impl<'a, R: Read> Rows<'a, R> {
    /// Returns the number of the next row with content, whose cells are then in `cells`.
    fn next(&mut self) -> Result<Option<u64>> {
        loop {
            match self.part.next()? {
                None => return Ok(None),
                Some(Piece::Open(start)) if start.local_name().into_inner() == "row" => {
                    let said = attribute(&start, "r").and_then(|it| it.parse().ok());
                    self.line = said.unwrap_or(self.line + 1);
                    self.row()?;
                    if !self.cells.is_empty() {
                        return Ok(Some(self.line));
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn row(&mut self) -> Result<()> {
        self.cells.clear();
        let mut at = 0;
        loop {
            match self.part.next()? {
                None => return Err(self.part.fault("the sheet ends within a row")),
                Some(Piece::Close(name)) if name == "row" => break,
                Some(Piece::Open(start)) if start.local_name().into_inner() == "c" => {
                    let named = attribute(&start, "r");
                    let ty = attribute(&start, "t").unwrap_or_default();
                    let style = attribute(&start, "s").and_then(|it| it.parse().ok()).unwrap_or(0);
                    if let Some(column) = named.as_deref().and_then(column_of) {
                        at = column;
                    }
                    at_most("variables", at as u64 + 1, self.limits.variables as u64)?;
                    let cell = self.cell(&ty, style)?;
                    if cell != Cell::Missing {
                        let width = self.cells.len().max(at + 1);
                        self.cells.resize(width, Cell::Missing);
                        self.cells[at] = cell;
                    }
                    at += 1;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Reads a cell after its opening: `<v>` has the value, `<is>` a text of its own.
    fn cell(&mut self, ty: &str, style: usize) -> Result<Cell> {
        let (mut text, mut is_value, mut n_phonetic) = (String::new(), false, 0_usize);
        loop {
            match self.part.next()? {
                None => return Err(self.part.fault("the sheet ends within a cell")),
                Some(Piece::Close(name)) => match name.as_str() {
                    "c" => break,
                    "v" | "t" => is_value = false,
                    "rPh" => n_phonetic = n_phonetic.saturating_sub(1),
                    _ => {}
                },
                Some(Piece::Open(start)) => match start.local_name().into_inner() {
                    "v" | "t" => is_value = n_phonetic == 0,
                    "rPh" => n_phonetic += 1,
                    _ => {}
                },
                Some(Piece::Text(piece)) if is_value => {
                    at_most(
                        "bytes of a text",
                        (text.len() + piece.len()) as u64,
                        self.limits.text_bytes as u64,
                    )?;
                    text.push_str(&piece);
                }
                Some(Piece::Text(_)) => {}
            }
        }
        let bad = |what: &str| TabularError::Line {
            line: self.line,
            what: format!(
                "the cell's value is {:?}; expected {what}",
                text.chars().take(40).collect::<String>()
            ),
        };
        if text.is_empty() {
            return Ok(Cell::Missing);
        }
        Ok(match ty {
            "s" => {
                let index = text.trim().parse::<usize>().ok();
                let shared = index.and_then(|it| self.workbook.shared.get(it));
                match shared.ok_or_else(|| bad("the number of a shared string"))? {
                    shared if shared.is_empty() => Cell::Missing,
                    shared => Cell::Text(shared.clone()),
                }
            }
            "str" | "inlineStr" | "d" => Cell::Text(text),
            "b" => Cell::Text(if text.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned()),
            // #N/A and the like.
            "e" => Cell::Missing,
            _ => {
                let value = text.trim().parse::<f64>().ok().filter(|it| it.is_finite());
                let value = value.ok_or_else(|| bad("a number"))?;
                self.workbook.number(value, style)
            }
        })
    }
}

impl<'a, R: Read + Seek> Rows<'a, zip::read::ZipFile<'a, R>> {
    fn of(workbook: &'a Workbook, archive: &'a mut ZipArchive<R>, limits: &'a Limits) -> Result<Self> {
        let part = Part::open(archive, &workbook.sheet, limits)?;
        Ok(Self { part, workbook, limits, cells: Vec::new(), line: 0 })
    }
}

impl Workbook {
    /// Returns a number in a cell of this format.
    fn number(&self, value: f64, style: usize) -> Cell {
        let days = if self.is_1904 { value + DAYS_1900_TO_1904 } else { value };
        let is_date = self.date_styles.get(style).copied().unwrap_or(false);
        if is_date && (0.0..END_OF_DATES).contains(&days) {
            Cell::Date { number: value, days }
        } else {
            Cell::Number(value)
        }
    }
}

/// Returns the column of `B7`, from 0.
fn column_of(reference: &str) -> Option<usize> {
    let letters = reference.bytes().take_while(u8::is_ascii_alphabetic);
    let number =
        letters.take(4).fold(0, |sum, it| sum * 26 + usize::from(it.to_ascii_uppercase() - b'A') + 1);
    number.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_letters() {
        for (reference, expected) in
            [("A1", Some(0)), ("Z9", Some(25)), ("AA3", Some(26)), ("XFD1", Some(16_383)), ("7", None)]
        {
            assert_eq!(column_of(reference), expected, "{reference}");
        }
    }

    #[test]
    fn days_become_dates() {
        for (days, ty, expected) in [
            (1.0, Type::Date, "1900-01-01"),
            (59.0, Type::Date, "1900-02-28"),
            (61.0, Type::Date, "1900-03-01"),
            (43_831.0, Type::Date, "2020-01-01"),
            (43_831.5, Type::Time, "2020-01-01 12:00:00"),
            (43_831.0, Type::Time, "2020-01-01 00:00:00"),
            (0.25, Type::Time, "06:00:00"),
        ] {
            assert_eq!(text_of(&Cell::Date { number: days, days }, ty), expected, "{days}");
        }
    }
}
