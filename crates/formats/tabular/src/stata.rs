//! Stata files of the formats 104 to 115: a header, descriptions in arrays of fixed cells, rows, value labels.

use std::io::{Read, Seek, Write};

use crate::input::{Input, Order};
use crate::sink::{Sink, at_most};
use crate::stata_values::{
    Missing, Reading, Storage, Stored, Tagged, ValueLabels, describe, hand_out, label_table, latin, u32_at,
};
use crate::{Result, TabularError, stata_tagged};

struct Layout {
    name: usize,
    format: usize,
    label: usize,
    data_label: usize,
    /// Size of an expansion field's length in bytes; 0 if there are none.
    expansion: usize,
    /// Size of the name of value labels and the padding after it, in bytes; `None` before they had names.
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

/// Returns whether the first bytes are those of an old Stata file.
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
