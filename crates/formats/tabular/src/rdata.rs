//! Tables of R: the first data frame of a saved workspace (`.RData`, `.rda`), compressed by gzip, bzip2 or xz, as R's
//! `save` does it, or not at all.
//!
//! R stores a table column by column, so it is held in memory as a whole, within a limit.

use std::io::{BufRead as _, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::dates::Clock;
use crate::rdata_source::{NA, is_na};
use crate::rdata_tree::{Data, Reader, Value};
use crate::sink::{Described, Sink};
use crate::table::{Type, names_of};
use crate::{Result, TabularError, number};

/// Days from 1960, the epoch of `Clock`, to 1970, the epoch of R.
const DAYS_TO_1970: f64 = 3653.0;
const MS_PER_DAY: f64 = 86_400_000.0;
/// Maximum memory to unpack what xz has packed, in KiB: twice what its highest level needs.
const XZ_MEMORY_KIB: u32 = 128 << 10;
/// Bytes of the magic number.
const MAGIC_BYTES: usize = 5;

/// Returns whether the first bytes are those of an uncompressed workspace.
pub(crate) fn is_workspace(head: &[u8]) -> bool {
    [b"RDX2\n", b"RDX3\n", b"RDA2\n", b"RDA3\n"].into_iter().any(|it| head.starts_with(it))
}

pub(crate) fn read<R: Read + Seek, W: Write>(mut source: R, sink: &mut Sink<W>) -> Result<()> {
    source.seek(SeekFrom::Start(0))?;
    let mut source = BufReader::with_capacity(256 << 10, source);
    let most = sink.limits.frame_bytes;
    let head = source.fill_buf()?;
    let objects = if head.starts_with(&[0x1f, 0x8b]) {
        workspace(MultiGzDecoder::new(source), most)?
    } else if head.starts_with(b"BZh") {
        workspace(MultiBzDecoder::new(source), most)?
    } else if head.starts_with(b"\xfd7zXZ") {
        workspace(XzReader::new_mem_limit(source, true, XZ_MEMORY_KIB), most)?
    } else {
        workspace(source, most)?
    };
    let frame = objects.into_iter().find(|it| it.1.is_of("data.frame")).map(|it| it.1);
    let frame = frame
        .ok_or_else(|| TabularError::Unsupported("this workspace of R holds no data frame".to_owned()))?;
    write(&frame, sink)
}

fn workspace<R: Read>(mut source: R, most: u64) -> Result<Vec<(std::rc::Rc<str>, Value)>> {
    let mut magic = [0; MAGIC_BYTES];
    source.read_exact(&mut magic).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => TabularError::CutOff { offset: 0, what: "the magic number" },
        _ => TabularError::Io(error),
    })?;
    if !is_workspace(&magic) {
        return Err(TabularError::Damaged {
            offset: 0,
            what: format!("{:?}; expected RDX2 or RDX3, or RDA2 or RDA3", String::from_utf8_lossy(&magic)),
        });
    }
    Reader::workspace(source, most)
}

/// A column.
enum Column<'a> {
    Integers(&'a [i32]),
    Reals(&'a [f64]),
    /// Days or seconds since 1970.
    Moments(Vec<f64>, Clock),
    Texts(&'a [Option<std::rc::Rc<str>>]),
    /// Complex numbers: real and imaginary parts in turn.
    Complex(&'a [f64]),
    /// Numbers of levels, from 1.
    Levels(&'a [i32], &'a [Option<std::rc::Rc<str>>]),
}

impl<'a> Column<'a> {
    /// Errors: a column of a type that tables do not have.
    fn of(name: &str, value: &'a Value) -> Result<Self> {
        let unsupported =
            || TabularError::Unsupported(format!("the column {name:?} is of a type that is not read"));
        let levels = value.attribute("levels").map(Value::texts).filter(|_| value.is_of("factor"));
        let clock = if value.is_of("Date") {
            Some(Clock::Days)
        } else {
            value.is_of("POSIXct").then_some(Clock::Milliseconds)
        };
        Ok(match (&value.data, levels, clock) {
            (Data::Integers(list), Some(levels), _) => Self::Levels(list, levels),
            (Data::Integers(list), None, Some(clock)) => {
                let number = |it: &i32| if *it == NA { f64::NAN } else { f64::from(*it) };
                Self::Moments(list.iter().map(number).collect(), clock)
            }
            (Data::Reals(list), None, Some(clock)) => Self::Moments(list.clone(), clock),
            (Data::Integers(list) | Data::Logicals(list), None, None) => Self::Integers(list),
            (Data::Reals(list), None, None) => Self::Reals(list),
            (Data::Complex(list), ..) => Self::Complex(list),
            (Data::Texts(list), ..) => Self::Texts(list),
            _ => return Err(unsupported()),
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Integers(list) | Self::Levels(list, _) => list.len(),
            Self::Reals(list) => list.len(),
            Self::Complex(list) => list.len() / 2,
            Self::Moments(list, _) => list.len(),
            Self::Texts(list) => list.len(),
        }
    }

    fn ty(&self) -> Type {
        match self {
            Self::Integers(_) => Type::Integer,
            Self::Reals(_) => Type::Real,
            Self::Moments(_, Clock::Days) => Type::Date,
            Self::Moments(..) => Type::Time,
            Self::Texts(_) | Self::Complex(_) | Self::Levels(..) => Type::Text,
        }
    }

    fn put<W: Write>(&self, row: usize, sink: &mut Sink<W>) -> Result<()> {
        match self {
            Self::Integers(list) if list[row] == NA => sink.missing(),
            Self::Integers(list) => sink.number(f64::from(list[row])),
            Self::Reals(list) if is_na(list[row]) => sink.missing(),
            Self::Reals(list) => sink.number(list[row]),
            Self::Moments(list, clock) => {
                let mut text = String::new();
                let value = match clock {
                    Clock::Days => list[row] + DAYS_TO_1970,
                    _ => (list[row] * 1000.0).round() + DAYS_TO_1970 * MS_PER_DAY,
                };
                match clock.push(value, &mut text) {
                    true => sink.text(&text)?,
                    false => sink.missing(),
                }
            }
            Self::Complex(list) => match [list[2 * row], list[2 * row + 1]] {
                parts if parts.into_iter().any(is_na) => sink.missing(),
                [real, imaginary] => {
                    let sign = if imaginary.is_sign_negative() { "" } else { "+" };
                    let (real, imaginary) = (number::shown(real), number::shown(imaginary));
                    sink.text(&format!("{real}{sign}{imaginary}i"))?;
                }
            },
            Self::Texts(list) => match &list[row] {
                Some(text) => sink.text(text)?,
                None => sink.missing(),
            },
            Self::Levels(list, levels) => {
                let at = usize::try_from(list[row]).ok().and_then(|it| it.checked_sub(1));
                match at.and_then(|at| levels.get(at)).and_then(|it| it.as_deref()) {
                    Some(text) => sink.text(text)?,
                    None => sink.missing(),
                }
            }
        }
        Ok(())
    }
}

fn write<W: Write>(frame: &Value, sink: &mut Sink<W>) -> Result<()> {
    let Data::List(values) = &frame.data else {
        return Err(TabularError::Unsupported("the data frame is no list of columns".to_owned()));
    };
    let given = frame.attribute("names").map(Value::texts).unwrap_or_default();
    let name = |at: usize| given.get(at).and_then(|it| it.as_deref()).unwrap_or_default();
    let names = names_of((0..values.len()).map(name));
    let mut columns = Vec::new();
    let mut described = Vec::new();
    for (name, value) in names.into_iter().zip(values) {
        let column = Column::of(&name, value)?;
        let label = value.attribute("label").and_then(|it| it.texts().first()?.as_deref());
        let mut variable = Described::new(name.clone(), column.ty());
        variable.label = label.unwrap_or(&name).to_owned();
        if let Column::Levels(_, levels) = &column {
            let texts = levels.iter().flatten();
            variable.categories = texts.map(|it| (it.to_string(), it.to_string(), false)).collect();
        }
        if matches!(value.data, Data::Logicals(_)) {
            let named = [("0", "FALSE"), ("1", "TRUE")];
            variable.categories = named.map(|it| (it.0.to_owned(), it.1.to_owned(), false)).to_vec();
        }
        described.push(variable);
        columns.push(column);
    }
    let n_rows = columns.first().map_or(0, Column::len);
    if let Some(other) = columns.iter().find(|it| it.len() != n_rows) {
        return Err(TabularError::Unsupported(format!(
            "a column of the data frame has {} rows, another {n_rows}",
            other.len()
        )));
    }
    sink.describe(described)?;
    for row in 0..n_rows {
        for column in &columns {
            column.put(row, sink)?;
        }
        sink.end_row()?;
    }
    Ok(())
}
