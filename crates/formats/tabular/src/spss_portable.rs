//! SPSS portable files, `.por`: text in lines of 80 characters, numbers in base 30, a table that maps bytes to
//! characters.

use std::io::{BufReader, Read, Seek, Write};

use crate::sink::{Described, Sink, at_most};
use crate::table::Type;
use crate::{Result, TabularError, number};

/// Position of the table of characters.
const TABLE_AT: usize = 200;
/// Position of the signature.
const SIGNATURE_AT: usize = 456;
/// The signature, in the file's own characters.
const SIGNATURE: &[u8; 8] = b"SPSSPORT";
/// Characters of a line.
const LINE: usize = 80;
/// Maximum number of digits of a number.
const DIGITS: usize = 64;

/// The characters of the table from place 64 on, as the format's description has them.
const CHARACTERS: &str =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz .<(+|&[]!$*);^-/|,%_>?`:#@'=\"";

/// Returns whether the first bytes are those of a portable file; at least 464 are needed to say yes.
pub(crate) fn is_portable(head: &[u8]) -> bool {
    let compact: Vec<u8> = head.iter().copied().filter(|it| !matches!(it, b'\r' | b'\n')).take(464).collect();
    compact.get(SIGNATURE_AT..).is_some_and(|it| it == SIGNATURE)
}

/// The file's characters, one after the other, with lines padded to their length.
struct Text<R> {
    source: std::io::Bytes<BufReader<R>>,
    offset: u64,
    column: usize,
    padding: usize,
    pending: Option<u8>,
    table: [char; 256],
    ahead: Option<char>,
}

impl<R: Read> Text<R> {
    fn new(source: R) -> Self {
        Self {
            source: BufReader::with_capacity(256 << 10, source).bytes(),
            offset: 0,
            column: 0,
            padding: 0,
            pending: None,
            table: std::array::from_fn(|it| u8::try_from(it).map_or(' ', char::from)),
            ahead: None,
        }
    }

    /// Returns the next byte; ends of lines count as blanks up to the line's length.
    fn byte(&mut self) -> Result<u8> {
        loop {
            if 0 < self.padding {
                self.padding -= 1;
                return Ok(b' ');
            }
            let byte = match self.pending.take() {
                Some(byte) => byte,
                None => {
                    let next = self.source.next().ok_or_else(|| self.cut_off())??;
                    self.offset += 1;
                    next
                }
            };
            match byte {
                b'\r' => {}
                b'\n' => {
                    self.padding = LINE.saturating_sub(self.column);
                    self.column = 0;
                }
                other if self.column == LINE => {
                    self.column = 0;
                    self.pending = Some(other);
                }
                other => {
                    self.column += 1;
                    return Ok(other);
                }
            }
        }
    }

    fn next(&mut self) -> Result<char> {
        match self.ahead.take() {
            Some(it) => Ok(it),
            None => Ok(self.table[usize::from(self.byte()?)]),
        }
    }

    fn peek(&mut self) -> Result<char> {
        let next = self.next()?;
        self.ahead = Some(next);
        Ok(next)
    }

    fn cut_off(&self) -> TabularError {
        TabularError::CutOff { offset: self.offset, what: "a portable file" }
    }

    fn damaged(&self, what: String) -> TabularError {
        TabularError::Damaged { offset: self.offset, what }
    }

    /// Reads a number, ended by `/`; `None` for the missing one, `*.`.
    fn number(&mut self) -> Result<Option<f64>> {
        while self.peek()? == ' ' {
            self.next()?;
        }
        if self.peek()? == '*' {
            self.next()?;
            self.next()?;
            return Ok(None);
        }
        let is_negative = self.peek()? == '-';
        if is_negative {
            self.next()?;
        }
        let (mut value, mut exponent, mut n_digits, mut has_point) = (0.0, 0_i32, 0, false);
        loop {
            let it = self.next()?;
            match it {
                '.' if !has_point => has_point = true,
                '/' => break,
                '+' | '-' => {
                    let mut scale = 0_i32;
                    loop {
                        match self.next()? {
                            '/' => break,
                            digit => scale = scale.saturating_mul(30).saturating_add(self.digit(digit)?),
                        }
                    }
                    exponent += if it == '-' { -scale.min(4096) } else { scale.min(4096) };
                    break;
                }
                digit => {
                    value = value * 30.0 + f64::from(self.digit(digit)?);
                    n_digits += 1;
                    exponent -= i32::from(has_point);
                }
            }
            if DIGITS < n_digits {
                return Err(self.damaged("a number has more than 64 digits".to_owned()));
            }
        }
        let scaled = value * 30_f64.powi(exponent);
        Ok(Some(if is_negative { -scaled } else { scaled }))
    }

    fn digit(&self, it: char) -> Result<i32> {
        let digit = it.to_digit(30).filter(|_| it.is_ascii_digit() || it.is_ascii_uppercase());
        digit
            .map(u32::cast_signed)
            .ok_or_else(|| self.damaged(format!("{it:?} is no digit to the base of 30")))
    }

    #[expect(clippy::cast_possible_truncation, reason = "checked to be within i32")]
    fn integer(&mut self) -> Result<i32> {
        let value = self.number()?.filter(|it| it.abs() < f64::from(i32::MAX) && it.fract().abs() < 1e-9);
        value.map(|it| it.round() as i32).ok_or_else(|| self.damaged("expected a whole number".to_owned()))
    }

    fn length(&mut self, most: usize) -> Result<usize> {
        let n = self.integer()?;
        let length = usize::try_from(n).map_err(|_| self.damaged(format!("a length is {n}")))?;
        at_most("characters of a text", length as u64, most as u64)?;
        Ok(length)
    }

    fn text(&mut self, most: usize) -> Result<String> {
        let n = self.length(most)?;
        (0..n).map(|_| self.next()).collect()
    }
}

/// A variable of the file.
struct Entry {
    described: Described,
    width: usize,
    missing: Vec<f64>,
    ranges: Vec<(f64, f64)>,
}

impl Entry {
    fn is_missing(&self, value: f64) -> bool {
        self.missing.contains(&value) || self.ranges.iter().any(|(low, high)| *low <= value && value <= *high)
    }
}

pub(crate) fn read<R: Read + Seek, W: Write>(source: R, sink: &mut Sink<W>) -> Result<()> {
    let mut text = Text::new(source);
    header(&mut text)?;
    let mut entries: Vec<Entry> = Vec::new();
    let most = sink.limits.text_bytes;
    let mut budget = sink.limits.label_bytes;
    loop {
        budget = budget.checked_sub(16).ok_or(TabularError::TooLarge {
            what: "bytes of descriptions",
            found: sink.limits.label_bytes + 1,
            most: sink.limits.label_bytes,
        })?;
        match text.next()? {
            ' ' => {}
            '1' | '2' | '3' => {
                text.text(most)?;
            }
            '4' => {
                text.integer()?;
            }
            '5' => {
                text.integer()?;
            }
            '6' => {
                text.text(most)?;
            }
            '7' => {
                at_most("variables", entries.len() as u64 + 1, sink.limits.variables as u64)?;
                entries.push(variable(&mut text, most)?);
            }
            '8' => {
                let value = missing_value(&mut text, entries.last(), most)?;
                if let Some(entry) = entries.last_mut() {
                    match value {
                        Ok(number) => {
                            entry.described.missing_values.push(number::shown(number));
                            entry.missing.push(number);
                        }
                        Err(text) => entry.described.missing_values.push(text),
                    }
                }
            }
            kind @ ('9' | 'A' | 'B') => {
                let low =
                    if kind == '9' { f64::NEG_INFINITY } else { text.number()?.unwrap_or(f64::NEG_INFINITY) };
                let high = if kind == 'A' { f64::INFINITY } else { text.number()?.unwrap_or(f64::INFINITY) };
                if let Some(entry) = entries.last_mut() {
                    entry.described.missing_values.push(format!("{low}-{high}"));
                    entry.ranges.push((low, high));
                }
            }
            'C' => {
                let label = text.text(most)?;
                budget = budget.saturating_sub(label.len() as u64);
                if let Some(entry) = entries.last_mut() {
                    entry.described.label = label.trim_end().to_owned();
                }
            }
            'D' => value_labels(&mut text, &mut entries, most, &mut budget)?,
            'E' => {
                for _ in 0..text.length(most)? {
                    text.text(most)?;
                }
            }
            'F' => break,
            other => return Err(text.damaged(format!("the record {other:?} is not known"))),
        }
    }
    sink.describe(entries.iter().map(|it| it.described.clone()).collect())?;
    rows(&mut text, &entries, sink)
}

fn header<R: Read>(text: &mut Text<R>) -> Result<()> {
    for _ in 0..TABLE_AT {
        text.byte()?;
    }
    let mut codes = [0_u8; 256];
    for code in &mut codes {
        *code = text.byte()?;
    }
    let mut signature = [0_u8; 8];
    for byte in &mut signature {
        *byte = text.byte()?;
    }
    if &signature != SIGNATURE {
        let shown = String::from_utf8_lossy(&signature);
        return Err(text.damaged(format!("expected SPSSPORT, found {shown:?}; only files in ASCII are read")));
    }
    let zero = codes[64];
    for (place, character) in CHARACTERS.chars().enumerate() {
        let code = codes[64 + place];
        if code != zero || place == 0 {
            text.table[usize::from(code)] = character;
        }
    }
    if text.next()? != 'A' {
        return Err(text.damaged("the version is not A".to_owned()));
    }
    text.text(LINE)?;
    text.text(LINE)?;
    Ok(())
}

fn variable<R: Read>(text: &mut Text<R>, most: usize) -> Result<Entry> {
    let width = text.length(most)?;
    let name = text.text(most)?.trim_end().to_owned();
    let mut format = [0; 3];
    for part in &mut format {
        *part = text.integer()?;
    }
    for _ in 0..3 {
        text.integer()?;
    }
    let ty = if 0 < width { Type::Text } else { Type::Real };
    let described = Described { is_whole_by_cells: true, ..Described::new(name, ty) };
    Ok(Entry { described, width, missing: Vec::new(), ranges: Vec::new() })
}

/// Reads a number, or a text for a text variable.
fn missing_value<R: Read>(
    text: &mut Text<R>,
    entry: Option<&Entry>,
    most: usize,
) -> Result<std::result::Result<f64, String>> {
    if entry.is_some_and(|it| 0 < it.width) {
        return Ok(Err(text.text(most)?.trim_end().to_owned()));
    }
    Ok(Ok(text.number()?.unwrap_or(f64::NAN)))
}

fn value_labels<R: Read>(
    text: &mut Text<R>,
    entries: &mut [Entry],
    most: usize,
    budget: &mut u64,
) -> Result<()> {
    let n_names = text.length(most)?;
    let mut names = Vec::new();
    for _ in 0..n_names {
        names.push(text.text(most)?.trim_end().to_owned());
    }
    let is_text = entries.iter().any(|it| 0 < it.width && names.contains(&it.described.name));
    for _ in 0..text.length(most)? {
        let value = match is_text {
            true => text.text(most)?.trim_end().to_owned(),
            false => number::shown(text.number()?.unwrap_or(f64::NAN)),
        };
        let label = text.text(most)?.trim_end().to_owned();
        for entry in entries.iter_mut().filter(|it| names.contains(&it.described.name)) {
            let cost = 16 + value.len() as u64 + label.len() as u64;
            *budget = budget.checked_sub(cost).ok_or(TabularError::TooLarge {
                what: "bytes of descriptions",
                found: cost,
                most: *budget,
            })?;
            let is_missing = value.parse().is_ok_and(|it| entry.is_missing(it));
            entry.described.categories.push((value.clone(), label.clone(), is_missing));
        }
    }
    Ok(())
}

fn rows<R: Read, W: Write>(text: &mut Text<R>, entries: &[Entry], sink: &mut Sink<W>) -> Result<()> {
    let most = sink.limits.text_bytes;
    if entries.is_empty() {
        return Ok(());
    }
    while text.peek()? != 'Z' {
        for entry in entries {
            if 0 < entry.width {
                let cell = text.text(most)?;
                sink.text(cell.trim_end())?;
                continue;
            }
            match text.number()? {
                None => sink.missing(),
                Some(value) if entry.is_missing(value) => sink.missing_number(value),
                Some(value) => sink.number(value),
            }
        }
        sink.end_row()?;
    }
    Ok(())
}
