//! SPSS system files, `.sav` and `.zsav`: records that describe variables, then rows in units of eight bytes.

use std::collections::HashMap;
use std::io::{BufRead, Read, Seek, Write};

use encoding_rs::Encoding;
use flate2::bufread::ZlibDecoder;

use crate::input::{Input, Order};
use crate::sink::{Described, Sink, at_most};
use crate::spss_formats::{Moment, format_name};
use crate::table::Type;
use crate::{Result, TabularError, number};

/// The missing number.
const SYSTEM_MISSING: f64 = -f64::MAX;
/// The bytes of a unit.
const UNIT: usize = 8;
/// Bytes of a long text that fit into one of its segments.
const SEGMENT: usize = 255;

/// A variable of the dictionary, with the units that continue it.
struct Entry {
    /// Name of at most eight bytes, in the encoding of the file.
    short_bytes: [u8; 8],
    short: String,
    name: String,
    label: Vec<u8>,
    /// 0 for numbers; the number of bytes of a text.
    width: usize,
    /// Number of units of eight bytes that it takes in a row.
    units: usize,
    /// Place of its first unit in a row, from 1.
    position: usize,
    format: u32,
    missing: MissingValues,
    labels: Vec<([u8; 8], Vec<u8>)>,
    long_labels: Vec<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug, Clone, Default)]
struct MissingValues {
    range: Option<(f64, f64)>,
    values: Vec<f64>,
    texts: Vec<Vec<u8>>,
}

impl MissingValues {
    fn has(&self, value: f64) -> bool {
        self.values.contains(&value) || self.range.is_some_and(|(low, high)| low <= value && value <= high)
    }
}

struct Dictionary {
    entries: Vec<Entry>,
    encoding: &'static Encoding,
    order: Order,
    compression: u32,
    bias: f64,
    n_rows: Option<u64>,
    row_units: usize,
    /// Long texts: (short name, bytes).
    long_texts: Vec<(String, usize)>,
}

pub(crate) fn read<R: Read + Seek, W: Write>(source: R, sink: &mut Sink<W>) -> Result<()> {
    let mut input = Input::new(source);
    let dictionary = dictionary(&mut input, sink)?;
    let variables = variables(&dictionary);
    sink.describe(variables.iter().map(|it| it.described.clone()).collect())?;
    match dictionary.compression {
        0 => rows(&dictionary, &variables, &mut Plain(&mut input), sink),
        1 => rows(&dictionary, &variables, &mut Packed::new(&mut input, &dictionary), sink),
        2 => {
            let header = input.u64("the header of the compressed rows")?;
            let trailer = input.u64("the header of the compressed rows")?;
            input.u64("the header of the compressed rows")?;
            let n_bytes =
                trailer.checked_sub(input.offset()).filter(|_| header < trailer).ok_or_else(|| {
                    input.damaged(format!("the compressed rows end at byte {trailer}, before they begin"))
                })?;
            let blocks = ZlibBlocks(Some(ZlibDecoder::new(input.rest(n_bytes))));
            let mut inflated = Input::new(blocks);
            inflated.order = dictionary.order;
            rows(&dictionary, &variables, &mut Packed::new(&mut inflated, &dictionary), sink)
        }
        other => {
            Err(TabularError::Unsupported(format!("SPSS compression {other} is not known; 0, 1 and 2 are")))
        }
    }
}

impl Dictionary {
    fn decode(&self, bytes: &[u8]) -> String {
        let text = self.encoding.decode_without_bom_handling(bytes).0;
        text.trim_end_matches([' ', '\0']).to_owned()
    }
}

#[expect(
    clippy::too_many_lines,
    reason = "one arm for each kind of record, in the order of the format's description"
)]
fn dictionary<R: Read, W: Write>(input: &mut Input<R>, sink: &Sink<W>) -> Result<Dictionary> {
    let magic = input.array::<4>("the header")?;
    if &magic != b"$FL2" && &magic != b"$FL3" {
        return Err(
            input.damaged(format!("expected $FL2 or $FL3, found {:?}", String::from_utf8_lossy(&magic)))
        );
    }
    input.skip(60, "the header")?;
    let layout = input.array::<4>("the header")?;
    input.order = match (u32::from_le_bytes(layout), u32::from_be_bytes(layout)) {
        (2 | 3, _) => Order::Little,
        (_, 2 | 3) => Order::Big,
        _ => return Err(input.damaged(format!("the layout code is {layout:?}, expected 2 or 3"))),
    };
    let _case_size = input.i32("the header")?;
    let compression = input.u32("the header")?;
    let _weight = input.i32("the header")?;
    let n_rows = u64::try_from(input.i32("the header")?).ok();
    let bias = input.f64("the header")?;
    input.skip(84, "the header")?;
    let mut dictionary = Dictionary {
        entries: Vec::new(),
        encoding: encoding_rs::WINDOWS_1252,
        order: input.order,
        compression,
        bias,
        n_rows,
        row_units: 0,
        long_texts: Vec::new(),
    };
    let mut total = 0_u64;
    let mut labels: Vec<([u8; 8], Vec<u8>)> = Vec::new();
    let mut long_names: Vec<u8> = Vec::new();
    let mut long_labels: Vec<u8> = Vec::new();
    let mut long_sizes: Vec<u8> = Vec::new();
    let most = sink.limits.label_bytes;
    loop {
        let mut count = |n: u64| {
            total += n;
            at_most("bytes of descriptions", total, most)
        };
        match input.u32("a record of the dictionary")? {
            2 => {
                count(64)?;
                variable(input, &mut dictionary, &mut count)?;
                at_most("variables", dictionary.row_units as u64, 64 * sink.limits.variables as u64)?;
            }
            3 => {
                let n = input.u32("value labels")?;
                labels.clear();
                for _ in 0..n {
                    let value = input.array::<8>("a value label")?;
                    let length = input.u8("a value label")?;
                    count(16 + u64::from(length))?;
                    let padded = (usize::from(length) + 1).next_multiple_of(8) - 1;
                    let mut text = input.bytes(padded as u64, "a value label")?;
                    text.truncate(length.into());
                    labels.push((value, text));
                }
            }
            4 => {
                let n = input.u32("the variables of value labels")?;
                for _ in 0..n {
                    let position = input.u32("the variables of value labels")? as usize;
                    count(labels.len() as u64)?;
                    if let Some(entry) = dictionary.entries.iter_mut().find(|it| it.position == position) {
                        entry.labels.clone_from(&labels);
                    }
                }
            }
            6 => {
                let n = input.u32("documents")?;
                input.skip(u64::from(n) * 80, "documents")?;
            }
            7 => {
                let subtype = input.u32("an extension")?;
                let (size, n) = (input.u32("an extension")?, input.u32("an extension")?);
                let n_bytes = u64::from(size) * u64::from(n);
                match subtype {
                    3 | 13 | 14 | 20 | 21 => {
                        count(n_bytes)?;
                        let bytes = input.bytes(n_bytes, "an extension")?;
                        match subtype {
                            3 => code_page(&bytes, input.order, &mut dictionary),
                            13 => long_names = bytes,
                            14 => long_sizes = bytes,
                            20 => {
                                if let Some(encoding) = Encoding::for_label(&bytes) {
                                    dictionary.encoding = encoding;
                                }
                            }
                            _ => long_labels = bytes,
                        }
                    }
                    _ => input.skip(n_bytes, "an extension")?,
                }
            }
            999 => {
                input.u32("the end of the dictionary")?;
                break;
            }
            other => return Err(input.damaged(format!("record type {other} is not known"))),
        }
    }
    dictionary.long_texts = long_texts(&dictionary.decode(&long_sizes));
    name_variables(&mut dictionary, &long_names);
    label_long_texts(&mut dictionary, &long_labels, input.order);
    Ok(dictionary)
}

fn variable<R: Read>(
    input: &mut Input<R>,
    dictionary: &mut Dictionary,
    count: &mut impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let width = input.i32("a variable")?;
    let has_label = input.u32("a variable")?;
    let n_missing = input.i32("a variable")?;
    let print = input.u32("a variable")?;
    input.u32("a variable")?;
    let short = input.array::<8>("a variable")?;
    let mut label = Vec::new();
    if has_label == 1 {
        let length = input.u32("the label of a variable")?;
        count(u64::from(length))?;
        label = input.bytes(u64::from(length.next_multiple_of(4)), "the label of a variable")?;
        label.truncate(length as usize);
    }
    let mut missing = MissingValues::default();
    if !(-3..=3).contains(&n_missing) {
        return Err(input.damaged(format!("a variable has {n_missing} missing values, at most 3 can be")));
    }
    let mut left = n_missing.unsigned_abs();
    if n_missing < -1 {
        missing.range = Some((input.f64("missing values")?, input.f64("missing values")?));
        left -= 2;
    }
    for _ in 0..left {
        match width {
            0 => missing.values.push(input.f64("missing values")?),
            _ => missing.texts.push(input.array::<8>("missing values")?.to_vec()),
        }
    }
    dictionary.row_units += 1;
    let Ok(width) = usize::try_from(width) else {
        if let Some(entry) = dictionary.entries.last_mut() {
            entry.units += 1;
        }
        return Ok(());
    };
    dictionary.entries.push(Entry {
        short_bytes: short,
        short: String::new(),
        name: String::new(),
        label,
        width,
        units: 1,
        position: dictionary.row_units,
        format: print,
        missing,
        labels: Vec::new(),
        long_labels: Vec::new(),
    });
    Ok(())
}

/// Sets the code page of files that name no encoding.
fn code_page(bytes: &[u8], order: Order, dictionary: &mut Dictionary) {
    let Some(code) = bytes.get(28..32).and_then(|it| it.try_into().ok()) else { return };
    let code = if order == Order::Big { i32::from_be_bytes(code) } else { i32::from_le_bytes(code) };
    let label = match code {
        65001 => "utf-8".to_owned(),
        932 => "shift_jis".to_owned(),
        936 => "gbk".to_owned(),
        949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        1250..=1258 => format!("windows-{code}"),
        28591..=28606 => format!("iso-8859-{}", code - 28590),
        _ => return,
    };
    if let Some(encoding) = Encoding::for_label(label.as_bytes()) {
        dictionary.encoding = encoding;
    }
}

/// Names the variables, once the encoding is known, by `SHORT=long` joined by tabs.
fn name_variables(dictionary: &mut Dictionary, bytes: &[u8]) {
    let text = dictionary.decode(bytes);
    let names: HashMap<&str, &str> = text.split('\t').filter_map(|it| it.split_once('=')).collect();
    let mut entries = std::mem::take(&mut dictionary.entries);
    for entry in &mut entries {
        entry.short = dictionary.decode(&entry.short_bytes);
        entry.name =
            names.get(entry.short.as_str()).map_or_else(|| entry.short.clone(), |it| (*it).to_owned());
    }
    dictionary.entries = entries;
}

/// Parses `SHORT=bytes` ended by NUL and a tab.
fn long_texts(text: &str) -> Vec<(String, usize)> {
    let pairs = text.split('\t').filter_map(|it| it.trim_matches('\0').split_once('='));
    pairs.filter_map(|(name, n)| Some((name.to_owned(), n.trim_matches('\0').trim().parse().ok()?))).collect()
}

/// Reads labels of texts longer than eight bytes: length and name, width, count, then lengths and texts.
fn label_long_texts(dictionary: &mut Dictionary, bytes: &[u8], order: Order) {
    let mut rest = bytes;
    let encoding = dictionary.encoding;
    let number = |rest: &mut &[u8]| -> Option<usize> {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        *rest = tail;
        Some(if order == Order::Big { u32::from_be_bytes(*head) } else { u32::from_le_bytes(*head) } as usize)
    };
    let mut one = |rest: &mut &[u8]| -> Option<()> {
        let take = |rest: &mut &[u8], n: usize| {
            let (head, tail) = rest.split_at_checked(n)?;
            *rest = tail;
            Some(head.to_vec())
        };
        let n = number(rest)?;
        let name = encoding.decode_without_bom_handling(&take(rest, n)?).0.into_owned();
        number(rest)?;
        let n_labels = number(rest)?;
        let mut labels = Vec::new();
        for _ in 0..n_labels {
            let n = number(rest)?;
            let value = take(rest, n)?;
            let n = number(rest)?;
            labels.push((value, take(rest, n)?));
        }
        let entry = dictionary.entries.iter_mut().find(|it| it.name == name || it.short == name)?;
        entry.long_labels = labels;
        Some(())
    };
    while !rest.is_empty() && one(&mut rest).is_some() {}
}

/// A variable as it is output: one entry, or the segments of a long text.
struct Shown {
    described: Described,
    /// Segments: (first unit from 0, units, bytes that count).
    segments: Vec<(usize, usize, usize)>,
    is_text: bool,
    moment: Option<Moment>,
    missing: MissingValues,
    /// Texts that the file declares as missing.
    missing_texts: Vec<String>,
}

fn variables(dictionary: &Dictionary) -> Vec<Shown> {
    let mut list = Vec::new();
    let mut entries = dictionary.entries.iter().peekable();
    while let Some(entry) = entries.next() {
        let mut segments = vec![(entry.position - 1, entry.units, entry.width.min(SEGMENT))];
        let long = dictionary.long_texts.iter().find(|(short, n)| *short == entry.short && SEGMENT < *n);
        if let Some((_, n_bytes)) = long {
            segments[0].2 = SEGMENT.min(entry.width);
            for _ in 1..n_bytes.div_ceil(252) {
                let Some(more) = entries.next() else { break };
                segments.push((more.position - 1, more.units, more.width.min(SEGMENT)));
            }
        }
        list.push(shown(dictionary, entry, segments));
    }
    list
}

fn shown(dictionary: &Dictionary, entry: &Entry, segments: Vec<(usize, usize, usize)>) -> Shown {
    let is_text = 0 < entry.width;
    let moment = Moment::of(entry.format).filter(|_| !is_text);
    let ty = match (is_text, moment) {
        (true, _) => Type::Text,
        (_, Some(Moment::Date)) => Type::Date,
        (_, Some(_)) => Type::Time,
        (false, None) => Type::Real,
    };
    let number_of = |bytes: &[u8; 8]| dictionary.number(*bytes);
    let short = entry.labels.iter().map(|(value, label)| {
        let (text, is_missing) = match is_text {
            true => (dictionary.decode(value), entry.missing.texts.iter().any(|it| it == value)),
            false => (number::shown(number_of(value)), entry.missing.has(number_of(value))),
        };
        (text, dictionary.decode(label), is_missing)
    });
    let long = entry
        .long_labels
        .iter()
        .map(|(value, label)| (dictionary.decode(value), dictionary.decode(label), false));
    let missing_texts: Vec<String> = entry.missing.texts.iter().map(|it| dictionary.decode(it)).collect();
    let mut missing_values: Vec<String> = entry.missing.values.iter().map(|it| number::shown(*it)).collect();
    missing_values.extend(
        entry.missing.range.iter().map(|(a, b)| format!("{}-{}", number::shown(*a), number::shown(*b))),
    );
    missing_values.extend(missing_texts.iter().cloned());
    let described = Described {
        label: dictionary.decode(&entry.label),
        format: format_name(entry.format),
        is_whole_by_cells: true,
        categories: short.chain(long).collect(),
        missing_values,
        ..Described::new(entry.name.clone(), ty)
    };
    Shown { described, segments, is_text, moment, missing: entry.missing.clone(), missing_texts }
}

/// The source of the units of rows.
trait Units {
    /// Returns the next unit; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<[u8; UNIT]>>;
    /// Offset in the file, for errors.
    fn cut_off(&self) -> TabularError;
}

struct Plain<'i, R>(&'i mut Input<R>);

impl<R: Read> Units for Plain<'_, R> {
    fn next(&mut self) -> Result<Option<[u8; UNIT]>> {
        let mut unit = [0; UNIT];
        Ok(self.0.fill_or_end(&mut unit, "a row")?.then_some(unit))
    }

    fn cut_off(&self) -> TabularError {
        self.0.cut_off("a row")
    }
}

/// Compressed rows, in which a byte for each unit says what it is.
struct Packed<'i, R> {
    input: &'i mut Input<R>,
    codes: [u8; UNIT],
    at: usize,
    bias: f64,
}

impl<'i, R: Read> Packed<'i, R> {
    fn new(input: &'i mut Input<R>, dictionary: &Dictionary) -> Self {
        Self { input, codes: [0; UNIT], at: UNIT, bias: dictionary.bias }
    }

    fn number(&self, value: f64) -> [u8; UNIT] {
        if self.input.order == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

impl<R: Read> Units for Packed<'_, R> {
    fn next(&mut self) -> Result<Option<[u8; UNIT]>> {
        loop {
            if self.at == UNIT {
                if !self.input.fill_or_end(&mut self.codes, "compressed rows")? {
                    return Ok(None);
                }
                self.at = 0;
            }
            let code = self.codes[self.at];
            self.at += 1;
            match code {
                0 => {}
                1..=251 => return Ok(Some(self.number(f64::from(code) - self.bias))),
                252 => return Ok(None),
                253 => return Ok(Some(self.input.array("compressed rows")?)),
                254 => return Ok(Some([b' '; UNIT])),
                255 => return Ok(Some(self.number(SYSTEM_MISSING))),
            }
        }
    }

    fn cut_off(&self) -> TabularError {
        self.input.cut_off("a row")
    }
}

/// The rows of a `.zsav` file: one zlib stream after another.
struct ZlibBlocks<B: BufRead>(Option<ZlibDecoder<B>>);

impl<B: BufRead> Read for ZlibBlocks<B> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while let Some(decoder) = &mut self.0 {
            let n = decoder.read(buffer)?;
            if 0 < n || buffer.is_empty() {
                return Ok(n);
            }
            let Some(mut source) = self.0.take().map(ZlibDecoder::into_inner) else { break };
            if !source.fill_buf()?.is_empty() {
                self.0 = Some(ZlibDecoder::new(source));
            }
        }
        Ok(0)
    }
}

fn rows<W: Write>(
    dictionary: &Dictionary,
    variables: &[Shown],
    units: &mut impl Units,
    sink: &mut Sink<W>,
) -> Result<()> {
    let mut row: Vec<[u8; UNIT]> = Vec::new();
    let mut n_rows = 0_u64;
    while dictionary.n_rows.is_none_or(|n| n_rows < n) {
        row.clear();
        while row.len() < dictionary.row_units {
            match units.next()? {
                Some(unit) => row.push(unit),
                None if row.is_empty() && dictionary.n_rows.is_none() => return Ok(()),
                None => return Err(units.cut_off()),
            }
        }
        if row.is_empty() {
            return Ok(());
        }
        hand_out(dictionary, variables, &row, sink)?;
        n_rows += 1;
    }
    Ok(())
}

fn hand_out<W: Write>(
    dictionary: &Dictionary,
    variables: &[Shown],
    row: &[[u8; UNIT]],
    sink: &mut Sink<W>,
) -> Result<()> {
    let mut bytes = Vec::new();
    for it in variables {
        if it.is_text {
            bytes.clear();
            for (first, n_units, n_bytes) in &it.segments {
                let segment = row.get(*first..first + n_units).unwrap_or_default().as_flattened();
                bytes.extend_from_slice(&segment[..segment.len().min(*n_bytes)]);
            }
            let text = dictionary.decode(&bytes);
            match text.is_empty() && it.missing_texts.contains(&text) {
                true => sink.missing(),
                false => sink.text(&text)?,
            }
            continue;
        }
        let unit = it.segments.first().and_then(|it| row.get(it.0)).copied().unwrap_or_default();
        let value = dictionary.number(unit);
        match it.moment {
            _ if value == SYSTEM_MISSING || !value.is_finite() => sink.missing(),
            Some(moment) => match moment.text(value) {
                Some(text) => sink.text(&text)?,
                None => sink.missing(),
            },
            None if it.missing.has(value) => sink.missing_number(value),
            None => sink.number(value),
        }
    }
    sink.end_row()
}

impl Dictionary {
    /// Returns the number in a unit.
    fn number(&self, unit: [u8; UNIT]) -> f64 {
        if self.order == Order::Big { f64::from_be_bytes(unit) } else { f64::from_le_bytes(unit) }
    }
}
