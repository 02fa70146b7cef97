//! Cells of tables in CSV that people open in spreadsheets.

/// Returns a CSV cell, quoted if necessary. Prefixes an apostrophe to text that a spreadsheet would take for a formula.
pub(crate) fn cell(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn cells_are_neither_split_nor_calculated() {
        for (text, expected) in [
            ("", ""),
            ("plain text", "plain text"),
            ("Harbour, \"west\"", "\"Harbour, \"\"west\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "'=1+1"),
            ("@a,b", "\"'@a,b\""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
