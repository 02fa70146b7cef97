//! Writes rows as JSON (indented by four spaces, non-ASCII characters unescaped) or CSV (CRLF line ends, quotes
//! where needed).

use serde_json::{Map, Value};

use super::parameters::{Format, Parameters};
use super::reshape::Rule;
use super::typed::{Column, Row};

/// Receives bytes of the answer; `Err` if the client has gone away.
pub(crate) type Output<'o> = dyn FnMut(&[u8]) -> Result<(), Stopped> + 'o;

/// The client has gone away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// Writes rows as they are produced.
pub(crate) fn rows(
    parameters: &Parameters,
    rows: &mut dyn Iterator<Item = Row>,
    out: &mut Output<'_>,
) -> Result<(), Stopped> {
    match parameters.format {
        Format::Json => json(parameters.columns(), &parameters.rules, rows, out),
        Format::Csv => csv(parameters.columns(), rows, out),
    }
}

fn json(
    columns: &[Column],
    rules: &[Rule],
    rows: &mut dyn Iterator<Item = Row>,
    out: &mut Output<'_>,
) -> Result<(), Stopped> {
    let mut text = String::new();
    let mut is_empty = true;
    for row in rows {
        text.clear();
        text.push_str(if is_empty { "[" } else { "," });
        is_empty = false;
        let mut object: Map<String, Value> = columns
            .iter()
            .zip(row)
            .map(|(column, value)| (column.name.to_owned(), Value::String(value)))
            .collect();
        rules.iter().for_each(|rule| rule.apply(&mut object));
        new_line(1, &mut text);
        push_value(&Value::Object(object), 1, &mut text);
        out(text.as_bytes())?;
    }
    out(if is_empty { b"[]" } else { b"\n]" })
}

fn csv(columns: &[Column], rows: &mut dyn Iterator<Item = Row>, out: &mut Output<'_>) -> Result<(), Stopped> {
    let mut line = Vec::new();
    push_csv(columns.iter().map(|it| it.name), &mut line);
    out(&line)?;
    for row in rows {
        line.clear();
        push_csv(row.iter().map(String::as_str), &mut line);
        out(&line)?;
    }
    Ok(())
}

/// Appends a line. Writing to memory cannot fail.
fn push_csv<'a>(values: impl Iterator<Item = &'a str>, line: &mut Vec<u8>) {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(line);
    let written = writer.write_record(values).and_then(|()| writer.flush().map_err(csv::Error::from));
    debug_assert!(written.is_ok(), "{written:?}");
}

fn push_value(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Array(list) if !list.is_empty() => {
            text.push('[');
            for (place, value) in list.iter().enumerate() {
                push_comma(place, text);
                new_line(depth + 1, text);
                push_value(value, depth + 1, text);
            }
            new_line(depth, text);
            text.push(']');
        }
        Value::Object(map) if !map.is_empty() => {
            text.push('{');
            for (place, (name, value)) in map.iter().enumerate() {
                push_comma(place, text);
                new_line(depth + 1, text);
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push_str(": ");
                push_value(value, depth + 1, text);
            }
            new_line(depth, text);
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn push_comma(place: usize, text: &mut String) {
    if 0 < place {
        text.push(',');
    }
}

fn new_line(depth: usize, text: &mut String) {
    text.push('\n');
    text.extend(std::iter::repeat_n("    ", depth));
}
