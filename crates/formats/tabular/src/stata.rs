//! Stata files of the formats 104 to 115: a header, descriptions in arrays of fixed cells, rows, value labels.

use std::collections::HashMap;
use std::io::{Read, Seek, Write};

use crate::dates::{self, Clock};
use crate::input::{Input, Order, until_nul};
use crate::sink::{Described, Form, Sink, at_most};
use crate::{Result, TabularError, Type, stata_tagged};

/// What a cell of a row is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Byte,
    Int,
    Long,
    Float,
    Double,
    /// A text of so many bytes.
    Text(usize),
    /// A reference to a text kept apart: 4 + 4, 2 + 6 or 3 + 5 bytes.
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
    /// How a number stands for an instant.
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

/// Whether a file's parts stand between tags: formats from 117 on.
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

/// How missing numbers stand in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// One value of each type: formats before 113.
    One,
    /// The 27 largest values of each type.
    Many,
}

struct Layout {
    name: usize,
    format: usize,
    label: usize,
    data_label: usize,
    /// Bytes of an expansion field's length; 0 where there are none.
    expansion: usize,
    /// Bytes of the name of value labels and padding behind it; `None` before they had names.
    value_label: Option<usize>,
    missing: Missing,
    is_lettered: bool,
}

fn layout(version: u8) -> Layout {
    let is_new = 110 <= version;
    Layout {
        name: if is_new { 33 } else { 9 },
        format: match version {
            104 => 7,
            105..=113 => 12,
            _ => 49,
        },
        label: if 108 <= version { 81 } else { 32 },
        data_label: if 108 <= version { 81 } else { 32 },
        expansion: match version {
            104 => 0,
            105..=109 => 2,
            _ => 4,
        },
        value_label: (108 <= version).then_some(if is_new { 33 } else { 9 }),
        missing: if 113 <= version { Missing::Many } else { Missing::One },
        is_lettered: version < 111,
    }
}

/// Whether the first bytes are those of an old Stata file.
pub(crate) fn is_old(head: &[u8]) -> bool {
    matches!(head, [104 | 105 | 108 | 110 | 111 | 113 | 114 | 115, 1 | 2, 1, ..])
}

pub(crate) fn read<R: Read + Seek, W: Write>(mut source: R, sink: &mut Sink<W>) -> Result<()> {
    let mut head = [0_u8; 4];
    let mut n = 0;
    while n < head.len() {
        match source.read(&mut head[n..])? {
            0 => return Err(TabularError::CutOff { offset: n as u64, what: "the header" }),
            more => n += more,
        }
    }
    let mut input = Input::new(source);
    input.seek(0)?;
    if head[0] == b'<' {
        return stata_tagged::read(&mut input, sink);
    }
    if !is_old(&head) {
        return Err(
            input.damaged(format!("the file begins with {head:?}, no Stata file of a known format does"))
        );
    }
    input.order = if head[1] == 1 { Order::Big } else { Order::Little };
    input.skip(4, "the header")?;
    read_old(&mut input, head[0], sink)
}

fn read_old<R: Read + Seek, W: Write>(input: &mut Input<R>, version: u8, sink: &mut Sink<W>) -> Result<()> {
    let layout = layout(version);
    let n_variables = usize::from(input.u16("the number of variables")?);
    let n_rows = u64::from(input.u32("the number of rows")?);
    at_most("variables", n_variables as u64, sink.limits.variables as u64)?;
    let stamp = if 105 <= version { 18 } else { 0 };
    input.skip((layout.data_label + stamp) as u64, "the label of the data")?;
    let types = input.bytes(n_variables as u64, "the types of variables")?;
    let names = texts(input, n_variables, layout.name, "the names of variables")?;
    input.skip(2 * (n_variables as u64 + 1), "the order of sorting")?;
    let formats = texts(input, n_variables, layout.format, "the formats of variables")?;
    let label_names = texts(input, n_variables, layout.name, "the names of value labels")?;
    let labels = texts(input, n_variables, layout.label, "the labels of variables")?;
    skip_expansions(input, layout.expansion, sink.limits.label_bytes)?;
    let mut stored = Vec::new();
    for ((((code, name), format), label_name), label) in
        types.iter().zip(names).zip(formats).zip(label_names).zip(labels)
    {
        let storage = if layout.is_lettered { lettered(*code) } else { numbered(*code) };
        let storage =
            storage.ok_or_else(|| input.damaged(format!("variable {name:?} has the unknown type {code}")))?;
        stored.push(Stored::new(name, label, format, label_name, storage));
    }
    let row_bytes: usize = stored.iter().map(|it| it.storage.n_bytes()).sum();
    let rows_at = input.offset();
    let after = rows_at + row_bytes as u64 * n_rows;
    let value_labels = match layout.value_label {
        Some(n_bytes) => {
            input.seek(after)?;
            old_value_labels(input, n_bytes, sink.limits.label_bytes)?
        }
        None => ValueLabels::new(),
    };
    describe(&mut stored, &value_labels, sink)?;
    input.seek(rows_at)?;
    let mut row = vec![0; row_bytes];
    let reading = Reading { order: input.order, missing: layout.missing, tagged: Tagged::No };
    for _ in 0..n_rows {
        input.fill(&mut row, "a row")?;
        hand_out(&stored, &row, reading, &mut |_| None, sink)?;
    }
    Ok(())
}

fn lettered(code: u8) -> Option<Storage> {
    Some(match code {
        b'b' => Storage::Byte,
        b'i' => Storage::Int,
        b'l' => Storage::Long,
        b'f' => Storage::Float,
        b'd' => Storage::Double,
        0x80.. => Storage::Text(usize::from(code - 0x7f)),
        _ => return None,
    })
}

fn numbered(code: u8) -> Option<Storage> {
    Some(match code {
        1..=244 => Storage::Text(usize::from(code)),
        251 => Storage::Byte,
        252 => Storage::Int,
        253 => Storage::Long,
        254 => Storage::Float,
        255 => Storage::Double,
        _ => return None,
    })
}

fn texts<R: Read>(input: &mut Input<R>, n: usize, n_bytes: usize, what: &'static str) -> Result<Vec<String>> {
    let bytes = input.bytes((n * n_bytes) as u64, what)?;
    Ok(bytes.chunks(n_bytes).map(latin).collect())
}

/// Text of files that state no encoding: Windows' western one.
fn latin(bytes: &[u8]) -> String {
    encoding_rs::WINDOWS_1252.decode_without_bom_handling(until_nul(bytes)).0.into_owned()
}

fn skip_expansions<R: Read>(input: &mut Input<R>, length_bytes: usize, most: u64) -> Result<()> {
    if length_bytes == 0 {
        return Ok(());
    }
    let mut total = 0;
    loop {
        let code = input.u8("an expansion field")?;
        let n = match length_bytes {
            2 => u64::from(input.u16("an expansion field")?),
            _ => u64::from(input.u32("an expansion field")?),
        };
        if code == 0 && n == 0 {
            return Ok(());
        }
        total += n;
        at_most("bytes of expansion fields", total, most)?;
        input.skip(n, "an expansion field")?;
    }
}

fn old_value_labels<R: Read>(input: &mut Input<R>, name_bytes: usize, most: u64) -> Result<ValueLabels> {
    let mut all = ValueLabels::new();
    let mut total = 0;
    let mut length = [0; 4];
    while input.fill_or_end(&mut length, "value labels")? {
        let name = latin(&input.bytes(name_bytes as u64, "the name of value labels")?);
        input.skip(3, "value labels")?;
        let order = input.order;
        let n = u64::from(u32_at(&length, 0, order).unwrap_or(0));
        total += n;
        at_most("bytes of labels", total, most)?;
        let table = input.bytes(n, "value labels")?;
        let labels = label_table(&table, order, latin)
            .ok_or_else(|| input.damaged(format!("the value labels {name:?} are damaged")))?;
        all.insert(name, labels);
    }
    Ok(all)
}

fn u32_at(bytes: &[u8], at: usize, order: Order) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if order == Order::Big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}

/// The table of value labels of all formats since 108: n, bytes of texts, offsets, values, texts.
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

/// Joins variables with their value labels and tells the sink.
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

/// The largest long that is a value; those above stand for missing ones.
const LARGEST: i32 = 2_147_483_620;

/// Hands the cells of a row to the sink. `long_text` finds a text kept apart.
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

/// Dataverse writes the floats of old files as short as can be and those of newer ones with a point.
fn form(storage: Storage, tagged: Tagged) -> Form {
    match storage {
        Storage::Float | Storage::Double if tagged == Tagged::Yes => Form::Point,
        _ => Form::Shortest,
    }
}

/// The number in a cell; `None` for a missing one.
fn number(storage: Storage, cell: &[u8], order: Order, missing: Missing) -> Option<f64> {
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

/// The double that reads as the single does: 3.58, not 3.5799999237060547.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_else(|_| f64::from(value))
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
