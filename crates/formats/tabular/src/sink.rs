//! Where readers pass their cells: the tab-separated form, statistics, fingerprints and counts of categories.

use std::collections::HashMap;
use std::io::{BufWriter, Write};

use crate::summary::Gathering;
use crate::table::{Category, Limits, Table, Type, Variable};
use crate::unf::{self, Fingerprint};
use crate::{Result, TabularError, Unf, number};

/// A variable as a reader describes it, before its cells.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) ty: Type,
    pub(crate) format: String,
    /// Whether the cells decide if the numbers are whole: [`Type::Real`] becomes [`Type::Integer`].
    pub(crate) is_whole_by_cells: bool,
    /// (value as text, label, whether it is missing).
    pub(crate) categories: Vec<(String, String, bool)>,
    pub(crate) missing_values: Vec<String>,
}

impl Described {
    pub(crate) fn new(name: String, ty: Type) -> Self {
        let (label, format) = (String::new(), String::new());
        let (categories, missing_values) = (Vec::new(), Vec::new());
        Self { name, label, ty, format, is_whole_by_cells: false, categories, missing_values }
    }
}

/// How a number is formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form<'a> {
    /// `3`.
    Shortest,
    /// `3.0`.
    Point,
    /// As the file has it.
    Own(&'a str),
}

struct Column {
    described: Described,
    fingerprint: Fingerprint,
    gathering: Option<Gathering>,
    counts: HashMap<String, u64>,
    n_missing: u64,
    is_whole: bool,
}

/// See the module.
pub(crate) struct Sink<W: Write> {
    out: BufWriter<W>,
    pub(crate) limits: Limits,
    columns: Vec<Column>,
    n_rows: u64,
    n_bytes: u64,
    n_held: usize,
    line: String,
    at: usize,
}

impl<W: Write> Sink<W> {
    pub(crate) fn new(out: W, limits: Limits) -> Self {
        Self {
            out: BufWriter::with_capacity(256 << 10, out),
            limits,
            columns: Vec::new(),
            n_rows: 0,
            n_bytes: 0,
            n_held: 0,
            line: String::new(),
            at: 0,
        }
    }

    /// Sets the variables, once, before the first cell.
    pub(crate) fn describe(&mut self, variables: Vec<Described>) -> Result<()> {
        at_most("variables", variables.len() as u64, self.limits.variables as u64)?;
        self.columns = variables
            .into_iter()
            .map(|described| Column {
                gathering: described.ty.is_numeric().then(Gathering::new),
                counts: described.categories.iter().map(|it| (it.0.clone(), 0)).collect(),
                described,
                fingerprint: Fingerprint::default(),
                n_missing: 0,
                is_whole: true,
            })
            .collect();
        Ok(())
    }

    /// Sets the variables of a file that gives only their names, which then are their labels too.
    pub(crate) fn describe_named(&mut self, names: Vec<String>, types: &[Type]) -> Result<()> {
        let described =
            |(name, ty): (String, &Type)| Described { label: name.clone(), ..Described::new(name, *ty) };
        self.describe(names.into_iter().zip(types).map(described).collect())
    }

    fn next(&mut self) -> usize {
        if 0 < self.at {
            self.line.push('\t');
        }
        self.at += 1;
        self.at - 1
    }

    pub(crate) fn missing(&mut self) {
        let at = self.next();
        let Some(column) = self.columns.get_mut(at) else { return };
        column.fingerprint.missing();
        column.n_missing += 1;
        if let Some(gathering) = &mut column.gathering {
            gathering.missing();
        }
    }

    /// Adds a number that the file declares as a missing answer: it stays in the rows.
    pub(crate) fn missing_number(&mut self, value: f64) {
        let at = self.next();
        let start = self.line.len();
        number::push(value, &mut self.line);
        self.note(at, start, value);
        let Some(column) = self.columns.get_mut(at) else { return };
        column.n_missing += 1;
        if let Some(gathering) = &mut column.gathering {
            gathering.missing();
        }
    }

    pub(crate) fn number(&mut self, value: f64) {
        self.number_in(value, Form::Shortest);
    }

    /// Adds a number in a form. `NaN`, `Inf` and `-Inf` are written so; statistics leave them out.
    pub(crate) fn number_in(&mut self, value: f64, form: Form<'_>) {
        let at = self.next();
        let start = self.line.len();
        match form {
            _ if value.is_nan() => self.line.push_str("NaN"),
            _ if value.is_infinite() => self.line.push_str(if value < 0.0 { "-Inf" } else { "Inf" }),
            Form::Own(text) => self.line.push_str(text),
            Form::Shortest | Form::Point => number::push(value, &mut self.line),
        }
        if form == Form::Point && value.is_finite() && !self.line[start..].contains('.') {
            self.line.push_str(".0");
        }
        self.note(at, start, value);
        let Some(gathering) = self.columns.get_mut(at).and_then(|it| it.gathering.as_mut()) else { return };
        if gathering.held.is_some() {
            self.n_held += 1;
            if self.limits.held_numbers < self.n_held {
                self.n_held -= gathering.held.take().map_or(0, |it| it.len()) + 1;
            }
        }
        gathering.value(value);
    }

    /// Adds the number that stands from `start` on in the line to the fingerprint and the categories of its column.
    fn note(&mut self, at: usize, start: usize, value: f64) {
        let Some(column) = self.columns.get_mut(at) else { return };
        column.fingerprint.number(value);
        column.is_whole &= value.fract() == 0.0;
        if !column.counts.is_empty()
            && let Some(n) = column.counts.get_mut(&self.line[start..])
        {
            *n += 1;
        }
    }

    /// Adds a text, also that of a date or time.
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        at_most("bytes of a text", text.len() as u64, self.limits.text_bytes as u64)?;
        let at = self.next();
        let Some(column) = self.columns.get_mut(at) else { return Ok(()) };
        match column.described.ty {
            Type::Time => column.fingerprint.time(text),
            _ => column.fingerprint.text(text),
        }
        if !column.counts.is_empty()
            && let Some(n) = column.counts.get_mut(text)
        {
            *n += 1;
        }
        if column.described.ty != Type::Text {
            self.line.push_str(text);
            return Ok(());
        }
        self.line.push('"');
        for it in text.chars() {
            match it {
                '"' => self.line.push_str("\\\""),
                '\\' => self.line.push_str("\\\\"),
                '\t' => self.line.push_str("\\t"),
                '\n' => self.line.push_str("\\n"),
                '\r' => self.line.push_str("\\r"),
                other => self.line.push(other),
            }
        }
        self.line.push('"');
        Ok(())
    }

    pub(crate) fn end_row(&mut self) -> Result<()> {
        debug_assert_eq!(self.at, self.columns.len(), "a row has a cell for each variable");
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())?;
        self.n_bytes += self.line.len() as u64;
        self.n_rows += 1;
        self.line.clear();
        self.at = 0;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Table> {
        self.out.flush()?;
        let variables: Vec<Variable> = self.columns.into_iter().map(finished).collect();
        let unf = unf::combined(variables.iter().map(|it| &it.unf));
        Ok(Table { variables, n_rows: self.n_rows, unf, n_bytes: self.n_bytes })
    }
}

fn finished(column: Column) -> Variable {
    let Described { name, label, mut ty, format, is_whole_by_cells, categories, missing_values } =
        column.described;
    if ty == Type::Real && is_whole_by_cells && column.is_whole {
        ty = Type::Integer;
    }
    let unf: Unf = column.fingerprint.finish();
    let category = |(value, label, is_missing): (String, String, bool)| {
        let n_cells = column.counts.get(&value).copied().unwrap_or(0);
        Category { value, label, is_missing, n_cells }
    };
    Variable {
        name,
        label,
        ty,
        format,
        categories: categories.into_iter().map(category).collect(),
        missing_values,
        summary: column.gathering.map(Gathering::finish),
        unf,
        n_missing: column.n_missing,
    }
}

/// Refuses a number above the maximum.
pub(crate) fn at_most(what: &'static str, found: u64, most: u64) -> Result<()> {
    if most < found { Err(TabularError::TooLarge { what, found, most }) } else { Ok(()) }
}
