//! Output for people: lines on standard output, errors and progress on standard error.

use std::io::{self, IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Prints a line to standard output.
///
/// Errors: the output is closed or full.
pub(crate) fn say(line: impl AsRef<str>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", line.as_ref())?;
    Ok(out.flush()?)
}

/// Prints a line to standard error. If nobody reads it, the failure is ignored.
pub(crate) fn warn(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", line.as_ref());
}

/// Prints an error with its causes.
pub(crate) fn complain(error: &anyhow::Error) {
    warn(format!("error: {}", with_causes(error)));
}

/// Returns the message of an error and those of its causes, except where a message ends with its cause already.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.ends_with(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

/// Returns whether the reader of our output is gone, as `head` does: not an error.
pub(crate) fn is_closed_output(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|it| it.downcast_ref::<io::Error>())
        .any(|it| it.kind() == io::ErrorKind::BrokenPipe)
}

/// Formats rows under a header, in columns as wide as their widest cell.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|it| it.chars().count());
        cells.max().unwrap_or(0).max(head[column].chars().count())
    };
    let widths: Vec<usize> = (0..head.len()).map(width_of).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(&mut head.iter().copied())];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines.join("\n")
}

/// Shows a bar over `n_bytes` of input on a terminal, nothing otherwise. `None`: the length is not known.
pub(crate) fn progress(n_bytes: Option<u64>) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(n_bytes, ProgressDrawTarget::hidden());
    }
    let template = match n_bytes {
        Some(_) => "{elapsed_precise} {wide_bar} {bytes}/{total_bytes}, {eta} left  {msg}",
        None => "{elapsed_precise} {spinner} {bytes}  {msg}",
    };
    // The templates are checked by a test.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(n_bytes, ProgressDrawTarget::stderr_with_hz(4)).with_style(style)
}

/// Shows a bar over records on a terminal, nothing otherwise.
pub(crate) fn progress_of_records() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(RECORDS_BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4)).with_style(style)
}

/// The template of the bar over records, checked by a test.
const RECORDS_BAR: &str = "{elapsed_precise} {wide_bar} {human_pos}/{human_len} records  {msg}";

/// Formats 1234567 as `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count as `1 record`, `2,000 records`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let rows = vec![vec!["a".to_owned(), "long cell".to_owned()], vec!["bcd".to_owned(), String::new()]];
        assert_eq!(table(&["id", "what"], &rows), "id   what\na    long cell\nbcd");
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
        assert_eq!((counted(1, "user"), counted(2, "user")), ("1 user".to_owned(), "2 users".to_owned()));
    }

    #[test]
    fn a_cause_is_printed_once() {
        for (messages, expected) in [
            (&["disk full"][..], "disk full"),
            (&["disk full", "t.sqlite: disk full", "no write"], "no write: t.sqlite: disk full"),
            (&["line 3", "not JSON"], "not JSON: line 3"),
        ] {
            let mut list = messages.iter();
            let first = anyhow::Error::msg(*list.next().expect("a message"));
            let error = list.fold(first, |error, message| error.context(*message));
            assert_eq!(with_causes(&error), expected);
        }
    }

    #[test]
    fn bars_have_sound_templates() {
        for template in [
            "{elapsed_precise} {wide_bar} {bytes}/{total_bytes}, {eta} left  {msg}",
            "{elapsed_precise} {spinner} {bytes}  {msg}",
            RECORDS_BAR,
        ] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
