//! Excel workbooks (ISO/IEC 29500, `SpreadsheetML`): the first sheet, whose first row with content holds the names.
//!
//! The sheet is read twice: first to determine the types of its columns, then to pass on its cells. In memory are a
//! row and the shared strings.
//!
//! A cell is what the workbook stores, not what it shows: dates are numbers of days, booleans are 1 and 0. Archives
//! fingerprint these numbers.

use std::io::{Read, Seek, Write};

use zip::ZipArchive;

use crate::sink::{Form, Sink, at_most};
use crate::table::{Limits, Type, names_of};
use crate::xlsx_parts::{Part, Piece, Workbook, attribute};
use crate::{Result, TabularError, number};

/// A cell with content.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Missing,
    Number(f64),
    Text(String),
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
    let names: Vec<String> = rows.cells.iter().map(text_of).collect();
    let names = names_of(names.iter().map(String::as_str));
    let mut types = vec![Type::Real; names.len()];
    while let Some(line) = rows.next()? {
        if names.len() < rows.cells.len() {
            return Err(TabularError::Cells { line, found: rows.cells.len(), expected: names.len() });
        }
        for (ty, cell) in types.iter_mut().zip(&rows.cells) {
            if matches!(cell, Cell::Text(_)) {
                *ty = Type::Text;
            }
        }
    }
    drop(rows);
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
                Cell::Number(value) if ty.is_numeric() => {
                    sink.number_in(*value, Form::Own(&number::with_point(*value)));
                }
                cell => sink.text(&text_of(cell))?,
            }
        }
        sink.end_row()?;
    }
    Ok(())
}

/// Formats a cell as text.
fn text_of(cell: &Cell) -> String {
    match cell {
        Cell::Missing => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Number(value) => number::shown(*value),
    }
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
                    if let Some(column) = named.as_deref().and_then(column_of) {
                        at = column;
                    }
                    at_most("variables", at as u64 + 1, self.limits.variables as u64)?;
                    let cell = self.cell(&ty)?;
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
    fn cell(&mut self, ty: &str) -> Result<Cell> {
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
            // #N/A and the like.
            "e" => Cell::Missing,
            _ => {
                let value = text.trim().parse::<f64>().ok().filter(|it| it.is_finite());
                Cell::Number(value.ok_or_else(|| bad("a number"))?)
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
}
