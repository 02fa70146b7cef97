//! Splits bytes into records: lines of NDJSON, the elements of a JSON array, or objects one after another.
//!
//! Records are split without parsing. NDJSON is recognised by the first line that is not blank: one that begins with
//! `{` and ends with `}`. In NDJSON a broken record affects only its own line; in an array, or among objects written
//! over several lines, a record with unclosed brackets takes the rest with it.

use std::io::{self, BufRead};

/// The bytes of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Line on which it begins, from 1.
    pub(crate) line: u64,
    /// Its bytes.
    pub(crate) record: Vec<u8>,
    /// Why it cannot be a record, if that is known already.
    pub(crate) fault: Option<String>,
}

/// The form of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Unknown,
    Lines,
    /// An array, or objects one after another.
    Values,
}

/// Splits an input into records.
pub(crate) struct Splitter<R> {
    input: Ahead<R>,
    form: Form,
    line: u64,
    limit_bytes: usize,
    is_done: bool,
}

/// An input with the bytes put back that were read to determine its form.
struct Ahead<R> {
    held: Vec<u8>,
    at: usize,
    input: R,
}

impl<R: BufRead> Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at < self.held.len() { Ok(&self.held[self.at..]) } else { self.input.fill_buf() }
    }

    fn consume(&mut self, n: usize) {
        if self.at < self.held.len() {
            self.at += n;
        } else {
            self.input.consume(n);
        }
    }

    fn put_back(&mut self, mut bytes: Vec<u8>) {
        bytes.extend_from_slice(&self.held[self.at..]);
        (self.held, self.at) = (bytes, 0);
    }
}

impl<R: BufRead> Splitter<R> {
    /// Returns a splitter for records of at most `limit_bytes`.
    pub(crate) fn new(input: R, limit_bytes: usize) -> Self {
        let input = Ahead { held: Vec::new(), at: 0, input };
        Self { input, form: Form::Unknown, line: 1, limit_bytes, is_done: false }
    }

    /// Returns the next record; `None` at the end.
    ///
    /// Errors: reading failed, or the compressed data is damaged.
    pub(crate) fn next(&mut self) -> io::Result<Option<Piece>> {
        if self.form == Form::Unknown {
            self.find_form()?;
        }
        match self.form {
            Form::Lines => self.next_line(),
            _ => self.next_value(),
        }
    }

    /// Returns the number of the next line to read, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    fn find_form(&mut self) -> io::Result<()> {
        self.form = Form::Values;
        self.skip_byte_order_mark()?;
        self.skip_blank()?;
        if self.input.fill_buf()?.first() != Some(&b'{') {
            return Ok(());
        }
        let (line, _) = self.read_line()?;
        if line.trim_ascii_end().ends_with(b"}") {
            self.form = Form::Lines;
        }
        self.input.put_back(line);
        Ok(())
    }

    fn skip_byte_order_mark(&mut self) -> io::Result<()> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let mut seen = Vec::with_capacity(MARK.len());
        // The buffer may hold less than the byte order mark.
        while seen.len() < MARK.len() && seen == MARK[..seen.len()] {
            let Some(byte) = self.input.fill_buf()?.first().copied() else { break };
            self.input.consume(1);
            seen.push(byte);
        }
        if seen != MARK {
            self.input.put_back(seen);
        }
        Ok(())
    }

    fn skip_blank(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let n = buffer.iter().take_while(|it| it.is_ascii_whitespace()).count();
            self.line += count_lines(&buffer[..n]);
            let (is_end, is_blank) = (buffer.is_empty(), n == buffer.len());
            self.input.consume(n);
            if is_end || !is_blank {
                return Ok(());
            }
        }
    }

    /// Reads a line with its end, and returns whether it was cut at the limit; the rest of a cut line is read and
    /// dropped.
    fn read_line(&mut self) -> io::Result<(Vec<u8>, bool)> {
        let (mut line, mut is_cut) = (Vec::new(), false);
        loop {
            let buffer = self.input.fill_buf()?;
            let end = memchr::memchr(b'\n', buffer).map(|at| at + 1);
            let n = end.unwrap_or(buffer.len());
            let n_kept = n.min(self.limit_bytes.saturating_sub(line.len()));
            line.extend_from_slice(&buffer[..n_kept]);
            is_cut |= n_kept < n;
            self.input.consume(n);
            if end.is_some() || n == 0 {
                return Ok((line, is_cut));
            }
        }
    }

    fn next_line(&mut self) -> io::Result<Option<Piece>> {
        loop {
            let at = self.line;
            let (line, is_cut) = self.read_line()?;
            if line.is_empty() {
                return Ok(None);
            }
            self.line += 1;
            if !line.trim_ascii().is_empty() {
                let fault = is_cut.then(|| self.too_long());
                return Ok(Some(Piece { line: at, record: line, fault }));
            }
        }
    }

    fn too_long(&self) -> String {
        format!("longer than {} bytes; raise limits.stream_body_bytes", self.limit_bytes)
    }

    fn next_value(&mut self) -> io::Result<Option<Piece>> {
        if self.is_done {
            return Ok(None);
        }
        let Some(first) = self.first_of_value()? else { return Ok(None) };
        let mut piece = Piece { line: self.line, record: Vec::new(), fault: None };
        let mut cut = if first == b'{' || first == b'[' { Cut::nested() } else { Cut::plain() };
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                self.is_done = true;
                let reason = "its brackets do not close before the end of the file";
                piece.fault = (cut.depth != 0).then(|| reason.to_owned());
                return Ok(Some(piece));
            }
            let end = cut.end_in(buffer);
            let n = end.unwrap_or(buffer.len());
            let left = self.limit_bytes - piece.record.len();
            if left < n {
                piece.record.extend_from_slice(&buffer[..left]);
                piece.record.extend_from_slice(&buffer[..self.limit_bytes - piece.record.len()]);
                self.is_done = true;
                piece.fault = Some(self.too_long());
                return Ok(Some(piece));
            }
            piece.record.extend_from_slice(&buffer[..n]);
            self.line += count_lines(&buffer[..n]);
            self.input.consume(n);
            if end.is_some() {
                return Ok(Some(piece));
            }
        }
    }

    /// Returns the first byte of the next value, after blanks, commas and the brackets of the array around it.
    fn first_of_value(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let is_between = |it: &&u8| it.is_ascii_whitespace() || matches!(it, b',' | b'[' | b']');
            let n = buffer.iter().take_while(is_between).count();
            let first = buffer.get(n).copied();
            self.line += count_lines(&buffer[..n]);
            self.input.consume(n);
            if first.is_some() {
                return Ok(first);
            }
        }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Finds the end of a value.
struct Cut {
    depth: u32,
    is_nested: bool,
    is_text: bool,
    is_escaped: bool,
    /// Whether a byte of it was seen: a value has at least one, even if only a stray bracket.
    is_begun: bool,
}

impl Cut {
    fn nested() -> Self {
        Self { depth: 0, is_nested: true, is_text: false, is_escaped: false, is_begun: false }
    }

    fn plain() -> Self {
        Self { is_nested: false, ..Self::nested() }
    }

    /// Returns the number of bytes up to the end of the value, if the end is in `bytes`, which continue what was seen
    /// before.
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, byte) in bytes.iter().enumerate() {
            let is_first = !std::mem::replace(&mut self.is_begun, true);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_text => self.is_escaped = true,
                b'"' => self.is_text = !self.is_text,
                _ if self.is_text => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.is_nested && self.depth == 0 {
                        return Some(index + 1);
                    }
                    if !self.is_nested && !is_first {
                        return Some(index);
                    }
                }
                b',' | b'\n' if !self.is_nested => return Some(index),
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// Returns each record as `line:text`, with `!` before the text of a faulty one.
    fn pieces(text: &[u8], capacity: usize) -> Vec<String> {
        let mut splitter = Splitter::new(BufReader::with_capacity(capacity, text), 40);
        let mut list = Vec::new();
        while let Ok(Some(piece)) = splitter.next() {
            let mark = if piece.fault.is_some() { "!" } else { "" };
            list.push(format!("{}:{mark}{}", piece.line, String::from_utf8_lossy(piece.record.trim_ascii())));
        }
        list
    }

    fn check(text: &str, expected: &[&str]) {
        for capacity in [1, 3, 7, 4096] {
            assert_eq!(pieces(text.as_bytes(), capacity), expected, "{text:?} in steps of {capacity}");
        }
    }

    #[test]
    fn lines_are_records_and_bad_ones_spoil_themselves_only() {
        check(
            "{\"a\":1}\n\n {\"a\":2}\r\n{\"a\":\n{\"a\":4}",
            &["1:{\"a\":1}", "3:{\"a\":2}", "4:{\"a\":", "5:{\"a\":4}"],
        );
        check("\u{feff}{\"a\":1}\n", &["1:{\"a\":1}"]);
        check("", &[]);
        check(" \n\n ", &[]);
        let long = format!("{{}}\n{{\"a\":\"{}\"}}\n{{}}\n", "x".repeat(60));
        check(&long, &["1:{}", &format!("2:!{}", &long[3..43]), "3:{}"]);
    }

    #[test]
    fn elements_of_arrays_are_records() {
        check(
            "[{\"a\":1},{\"b\":[{}]}\n,\n{\"c\":\"]}\\\"\"}]",
            &["1:{\"a\":1}", "1:{\"b\":[{}]}", "3:{\"c\":\"]}\\\"\"}"],
        );
        check("[\n1, \"x,y\",\n{}]", &["2:1", "2:\"x,y\"", "3:{}"]);
        check("[]", &[]);
        check("}\n]}", &["1:}", "2:}"]);
    }

    #[test]
    fn objects_over_several_lines_are_records() {
        check("{\n \"a\": 1\n}\n{\n}\n", &["1:{\n \"a\": 1\n}", "4:{\n}"]);
        check("[\n{\n\"a\":1}, {\"b\":", &["2:{\n\"a\":1}", "3:!{\"b\":"]);
    }

    proptest::proptest! {
        #[test]
        fn every_input_ends(text in proptest::collection::vec(proptest::sample::select(b"{}[],\"\\\n a1".to_vec()), 0..200)) {
            let one = pieces(&text, 1);
            proptest::prop_assert_eq!(one, pieces(&text, 4096));
        }
    }
}
