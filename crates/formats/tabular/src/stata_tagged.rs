//! Stata files of the formats 117 to 119: the same parts between tags, found by a map of offsets; long strings stored
//! separately.

use std::collections::HashMap;
use std::io::{Read, Seek, Write};

use crate::input::{Input, Order, until_nul};
use crate::sink::{Sink, at_most};
use crate::stata_values::{
    Missing, Reading, Storage, Stored, Tagged, ValueLabels, describe, hand_out, label_table,
};
use crate::{Result, TabularError};

/// Number of offsets in the map.
const MAP_ENTRIES: usize = 14;

/// Sizes that differ between the formats.
struct Layout {
    /// Size of the number of variables in bytes.
    n_variables: usize,
    name: usize,
    format: usize,
    label: usize,
    sort: usize,
    /// Size of v in a reference to a long string in a row, in bytes; o has the rest of 8.
    reference: usize,
    /// Size of o in the list of long strings, in bytes.
    target: usize,
}

fn layout(version: u16) -> Option<Layout> {
    let new = Layout { n_variables: 2, name: 129, format: 57, label: 321, sort: 2, reference: 2, target: 8 };
    Some(match version {
        117 => Layout { name: 33, format: 49, label: 81, reference: 4, target: 4, ..new },
        118 => new,
        119 => Layout { n_variables: 4, sort: 4, reference: 3, ..new },
        _ => return None,
    })
}

/// Returns the format's number, from the first bytes.
pub(crate) fn format_of(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"<stata_dta><header><release>")?;
    std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok()
}

pub(crate) fn read<R: Read + Seek, W: Write>(input: &mut Input<R>, sink: &mut Sink<W>) -> Result<()> {
    input.expect("<stata_dta><header><release>")?;
    let release = input.array::<3>("the number of the format")?;
    let version = std::str::from_utf8(&release).ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    let layout = layout(version).ok_or_else(|| {
        TabularError::Unsupported(format!("Stata's format {version} is not known; 104 to 119 are"))
    })?;
    input.expect("</release><byteorder>")?;
    input.order = match &input.array::<3>("the order of bytes")? {
        b"MSF" => Order::Big,
        b"LSF" => Order::Little,
        other => return Err(input.damaged(format!("the order of bytes is {other:?}, expected MSF or LSF"))),
    };
    input.expect("</byteorder><K>")?;
    let n_variables = match layout.n_variables {
        2 => u64::from(input.u16("the number of variables")?),
        _ => u64::from(input.u32("the number of variables")?),
    };
    at_most("variables", n_variables, sink.limits.variables as u64)?;
    let n_variables = usize::try_from(n_variables).unwrap_or(0);
    input.expect("</K><N>")?;
    let n_rows = if version == 117 { u64::from(input.u32("rows")?) } else { input.u64("rows")? };
    input.expect("</N><label>")?;
    let n = if version == 117 { u64::from(input.u8("a label")?) } else { u64::from(input.u16("a label")?) };
    input.skip(n, "the label of the data")?;
    input.expect("</label><timestamp>")?;
    let n = input.u8("the time stamp")?;
    input.skip(u64::from(n), "the time stamp")?;
    input.expect("</timestamp></header><map>")?;
    let mut map = [0_u64; MAP_ENTRIES];
    for offset in &mut map {
        *offset = input.u64("the map")?;
    }
    let mut stored = variables(input, &layout, &map, n_variables)?;
    let encoding = if version == 117 { Encoding::Windows } else { Encoding::Utf8 };
    let labels = value_labels(input, &layout, map[11], encoding, sink.limits.label_bytes)?;
    let most = sink.limits.long_string_bytes;
    let strings = long_strings(input, &layout, map[10], encoding, most)?;
    describe(&mut stored, &labels, sink)?;
    input.seek(map[9])?;
    input.expect("<data>")?;
    let mut row = vec![0; stored.iter().map(|it| it.storage.n_bytes()).sum()];
    let order = input.order;
    let reading = Reading { order, missing: Missing::Many, tagged: Tagged::Yes };
    for _ in 0..n_rows {
        input.fill(&mut row, "a row")?;
        let mut find = |cell: &[u8]| {
            let (v, o) = cell.split_at(layout.reference);
            strings.get(&(unsigned(v, order), unsigned(o, order))).map(String::as_str)
        };
        hand_out(&stored, &row, reading, &mut find, sink)?;
    }
    input.expect("</data>")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Windows,
    Utf8,
}

impl Encoding {
    fn decode(self, bytes: &[u8]) -> String {
        let bytes = until_nul(bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) if self == Self::Windows => {
                encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned()
            }
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }
}

fn unsigned(bytes: &[u8], order: Order) -> u64 {
    let fold = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
    if order == Order::Big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
}

fn variables<R: Read + Seek>(
    input: &mut Input<R>,
    layout: &Layout,
    map: &[u64; MAP_ENTRIES],
    n: usize,
) -> Result<Vec<Stored>> {
    input.seek(map[2])?;
    input.expect("<variable_types>")?;
    let mut storages = Vec::new();
    for index in 0..n {
        let code = input.u16("the types of variables")?;
        let storage = match code {
            1..=2045 => Storage::Text(code.into()),
            32_768 => Storage::LongText,
            65_526 => Storage::Double,
            65_527 => Storage::Float,
            65_528 => Storage::Long,
            65_529 => Storage::Int,
            65_530 => Storage::Byte,
            _ => return Err(input.damaged(format!("variable {} has the unknown type {code}", index + 1))),
        };
        storages.push(storage);
    }
    input.expect("</variable_types><varnames>")?;
    let names = texts(input, n, layout.name, "the names of variables")?;
    input.expect("</varnames><sortlist>")?;
    input.skip(((n + 1) * layout.sort) as u64, "the order of sorting")?;
    input.expect("</sortlist><formats>")?;
    let formats = texts(input, n, layout.format, "the formats of variables")?;
    input.expect("</formats><value_label_names>")?;
    let label_names = texts(input, n, layout.name, "the names of value labels")?;
    input.expect("</value_label_names><variable_labels>")?;
    let labels = texts(input, n, layout.label, "the labels of variables")?;
    input.expect("</variable_labels>")?;
    let described = storages.into_iter().zip(names).zip(labels).zip(formats).zip(label_names);
    Ok(described
        .map(|((((storage, name), label), format), labels)| Stored::new(name, label, format, labels, storage))
        .collect())
}

fn texts<R: Read>(input: &mut Input<R>, n: usize, n_bytes: usize, what: &'static str) -> Result<Vec<String>> {
    let bytes = input.bytes((n * n_bytes) as u64, what)?;
    Ok(bytes.chunks(n_bytes).map(|it| Encoding::Windows.decode(it)).collect())
}

fn value_labels<R: Read + Seek>(
    input: &mut Input<R>,
    layout: &Layout,
    offset: u64,
    encoding: Encoding,
    most: u64,
) -> Result<ValueLabels> {
    input.seek(offset)?;
    input.expect("<value_labels>")?;
    let (mut all, mut total) = (ValueLabels::new(), 0);
    loop {
        let tag = input.array::<5>("value labels")?;
        if &tag == b"</val" {
            return Ok(all);
        }
        if &tag != b"<lbl>" {
            return Err(input.damaged("expected <lbl> or </value_labels>".to_owned()));
        }
        let n = u64::from(input.u32("value labels")?);
        total += n;
        at_most("bytes of labels", total, most)?;
        let name = encoding.decode(&input.bytes(layout.name as u64, "the name of value labels")?);
        input.skip(3, "value labels")?;
        let table = input.bytes(n, "value labels")?;
        let labels = label_table(&table, input.order, |bytes| encoding.decode(bytes));
        let labels = labels.ok_or_else(|| input.damaged(format!("the value labels {name:?} are damaged")))?;
        all.insert(name, labels);
        input.expect("</lbl>")?;
    }
}

/// Texts stored separately, by (variable, row).
type LongStrings = HashMap<(u64, u64), String>;

fn long_strings<R: Read + Seek>(
    input: &mut Input<R>,
    layout: &Layout,
    offset: u64,
    encoding: Encoding,
    most: u64,
) -> Result<LongStrings> {
    input.seek(offset)?;
    input.expect("<strls>")?;
    let (mut all, mut total) = (LongStrings::new(), 0);
    loop {
        let tag = input.array::<3>("long strings")?;
        if &tag == b"</s" {
            return Ok(all);
        }
        if &tag != b"GSO" {
            return Err(input.damaged("expected GSO or </strls>".to_owned()));
        }
        let v = u64::from(input.u32("a long string")?);
        let o = match layout.target {
            4 => u64::from(input.u32("a long string")?),
            _ => input.u64("a long string")?,
        };
        input.u8("a long string")?;
        let n = u64::from(input.u32("a long string")?);
        total += n;
        at_most("bytes of long strings", total, most)?;
        let bytes = input.bytes(n, "a long string")?;
        all.insert((v, o), encoding.decode(&bytes));
    }
}
