//! How both forms of Stata's files store values: types, missing values, labels.

use std::collections::HashMap;
use std::io::Write;

use crate::Result;
use crate::dates::{self, Clock};
use crate::input::{Order, until_nul};
use crate::sink::{Described, Form, Sink};
use crate::table::Type;

/// The storage type of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Byte,
    Int,
    Long,
    Float,
    Double,
    /// A text with its number of bytes.
    Text(usize),
    /// A reference to a text stored separately: 4 + 4, 2 + 6 or 3 + 5 bytes.
    LongText,
}

impl Storage {
    pub(crate) fn ty(self) -> Type {
        match self {
            Self::Byte | Self::Int | Self::Long => Type::Integer,
            Self::Float | Self::Double => Type::Real,
            Self::Text(_) | Self::LongText => Type::Text,
        }
    }

    pub(crate) fn n_bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Int => 2,
            Self::Long | Self::Float => 4,
            Self::Double | Self::LongText => 8,
            Self::Text(n) => n,
        }
    }
}

/// A variable, and how its cells are read.
pub(crate) struct Stored {
    pub(crate) described: Described,
    pub(crate) storage: Storage,
    /// How a number represents an instant.
    pub(crate) clock: Option<Clock>,
    /// Name of its value labels.
    pub(crate) labels: String,
}

impl Stored {
    pub(crate) fn new(name: String, label: String, format: String, labels: String, storage: Storage) -> Self {
        let clock = dates::clock_of(&format).filter(|_| storage.ty().is_numeric());
        let ty = match clock {
            Some(Clock::Milliseconds) => Type::Time,
            Some(_) => Type::Date,
            None => storage.ty(),
        };
        let described = Described { label, format, ..Described::new(name, ty) };
        Self { described, storage, clock, labels }
    }
}

/// Value labels by their name: (value, label).
pub(crate) type ValueLabels = HashMap<String, Vec<(i32, String)>>;

/// Whether a file's parts are between tags: formats from 117 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tagged {
    No,
    Yes,
}

/// How the cells of rows are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) order: Order,
    pub(crate) missing: Missing,
    pub(crate) tagged: Tagged,
}

/// How missing numbers are represented in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// One value of each type: formats before 113.
    One,
    /// The 27 largest values of each type.
    Many,
}

pub(crate) fn u32_at(bytes: &[u8], at: usize, order: Order) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if order == Order::Big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}

/// Reads the table of value labels of all formats since 108: n, bytes of texts, offsets, values, texts.
pub(crate) fn label_table(
    table: &[u8],
    order: Order,
    decode: impl Fn(&[u8]) -> String,
) -> Option<Vec<(i32, String)>> {
    let n = u32_at(table, 0, order)? as usize;
    let texts_at = n.checked_mul(8)?.checked_add(8)?;
    let texts = table.get(texts_at..)?;
    (0..n)
        .map(|index| {
            let offset = u32_at(table, 8 + 4 * index, order)? as usize;
            let value = u32_at(table, 8 + 4 * n + 4 * index, order)?.cast_signed();
            Some((value, decode(texts.get(offset..)?)))
        })
        .collect()
}

/// Joins variables with their value labels and passes them to the sink.
pub(crate) fn describe<W: Write>(
    stored: &mut [Stored],
    labels: &ValueLabels,
    sink: &mut Sink<W>,
) -> Result<()> {
    for it in stored.iter_mut() {
        let Some(list) = labels.get(&it.labels) else { continue };
        it.described.categories =
            list.iter().map(|(value, label)| (value.to_string(), label.clone(), LARGEST < *value)).collect();
    }
    sink.describe(stored.iter().map(|it| it.described.clone()).collect())
}

/// The largest long that is a value; those above represent missing ones.
pub(crate) const LARGEST: i32 = 2_147_483_620;

/// Passes the cells of a row to the sink. `long_text` finds a text stored separately.
pub(crate) fn hand_out<'t, W: Write>(
    stored: &[Stored],
    row: &[u8],
    reading: Reading,
    long_text: &mut dyn FnMut(&[u8]) -> Option<&'t str>,
    sink: &mut Sink<W>,
) -> Result<()> {
    let mut rest = row;
    let mut scratch = String::new();
    for it in stored {
        let (cell, after) = rest.split_at(it.storage.n_bytes());
        rest = after;
        match it.storage {
            Storage::Text(_) => {
                let bytes = until_nul(cell);
                match std::str::from_utf8(bytes) {
                    Ok(text) => sink.text(text)?,
                    Err(_) => sink.text(&latin(bytes))?,
                }
            }
            Storage::LongText => match long_text(cell) {
                Some(text) => sink.text(text)?,
                None => sink.text("")?,
            },
            numeric => match (number(numeric, cell, reading.order, reading.missing), it.clock) {
                (None, _) => sink.missing(),
                (Some(value), None) => sink.number_in(value, form(numeric, reading.tagged)),
                (Some(value), Some(clock)) => {
                    scratch.clear();
                    match clock.push(value, &mut scratch) {
                        true => sink.text(&scratch)?,
                        false => sink.missing(),
                    }
                }
            },
        }
    }
    sink.end_row()
}

/// Returns the form of floats: Dataverse writes those of old files as short as possible and those of newer
/// ones with a point.
pub(crate) fn form(storage: Storage, tagged: Tagged) -> Form<'static> {
    match storage {
        Storage::Float | Storage::Double if tagged == Tagged::Yes => Form::Point,
        _ => Form::Shortest,
    }
}

/// Returns the number in a cell; `None` for a missing one.
pub(crate) fn number(storage: Storage, cell: &[u8], order: Order, missing: Missing) -> Option<f64> {
    let mut bytes = [0_u8; 8];
    let n = cell.len();
    bytes[..n].copy_from_slice(cell);
    if order == Order::Big {
        bytes[..n].reverse();
    }
    let is_new = missing == Missing::Many;
    match storage {
        Storage::Byte => {
            let value = i8::from_le_bytes([bytes[0]]);
            (value <= if is_new { 100 } else { 126 }).then(|| f64::from(value))
        }
        Storage::Int => {
            let value = i16::from_le_bytes([bytes[0], bytes[1]]);
            (value <= if is_new { 32_740 } else { 32_766 }).then(|| f64::from(value))
        }
        Storage::Long => {
            let value = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            (value <= if is_new { LARGEST } else { i32::MAX - 1 }).then(|| f64::from(value))
        }
        Storage::Float => {
            let value = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            (value.is_finite() && value < 2_f32.powi(127)).then(|| shortest(value))
        }
        _ => {
            let value = f64::from_le_bytes(bytes);
            (value.is_finite() && value < 2_f64.powi(1023)).then_some(value)
        }
    }
}

/// Returns the double whose decimal form is that of the single: 3.58, not 3.5799999237060547.
pub(crate) fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_else(|_| f64::from(value))
}

/// Decodes text of files that state no encoding, as Windows' western one.
pub(crate) fn latin(bytes: &[u8]) -> String {
    encoding_rs::WINDOWS_1252.decode_without_bom_handling(until_nul(bytes)).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_numbers() {
        assert_eq!(number(Storage::Byte, &[101], Order::Little, Missing::Many), None);
        assert_eq!(number(Storage::Byte, &[101], Order::Little, Missing::One), Some(101.0));
        assert_eq!(number(Storage::Int, &[0x7f, 0xff], Order::Big, Missing::One), None);
        assert_eq!(number(Storage::Float, &3.58_f32.to_le_bytes(), Order::Little, Missing::Many), Some(3.58));
        let dot = 2_f64.powi(1023).to_be_bytes();
        assert_eq!(number(Storage::Double, &dot, Order::Big, Missing::Many), None);
    }
}
