//! Explains why a text is not JSON, in the words of the engine that the original runs on.
//!
//! Clients show these texts and the upstream tests compare them, so they are those of V8 as shipped with Node 22:
//! `Expected double-quoted property name in JSON at position 13 (line 1 column 14)`. The scanner below follows V8's
//! parser and stops where it stops. It runs only after a real parser has refused the text.
//!
//! Positions count UTF-16 units from 0, lines and columns from 1. Source: the answers of Node 22 to the inputs in
//! `tests/data/json_error/`.

/// Texts shorter than this are quoted whole.
const MIN_UNITS_FOR_CONTEXT: usize = 21;

/// How much is quoted before and after the position, in UTF-16 units.
const CONTEXT_UNITS: usize = 10;

/// Texts that result from a failed conversion have a message of their own.
const CONVERTED: [&str; 4] = ["NaN", "Infinity", "undefined", "[object Object]"];

/// Returns what `JSON.parse` throws for `text`; `None` if it is JSON.
pub fn parse_error(text: &str) -> Option<String> {
    Some(message(text, check(text).err()?))
}

/// Does the same as [`parse_error`] for the body of a request, which must be an object or a list.
pub fn body_error(text: &str) -> Option<String> {
    let first = text.trim_start_matches([' ', '\t', '\n', '\r']);
    if first.is_empty() || first.starts_with(['{', '[']) {
        return parse_error(text);
    }
    let at = text[..text.len() - first.len()].encode_utf16().count();
    let units: Vec<u16> = text.encode_utf16().collect();
    Some(unexpected_token(&units, at))
}

/// Where and why the scanner stopped.
struct Stop {
    at: usize,
    reason: Reason,
}

#[derive(Clone, Copy)]
enum Reason {
    /// The message of this fault is followed by the position.
    Known(&'static str),
    /// A token that is not allowed there.
    UnexpectedToken,
    /// The text is cut off.
    End,
}

/// An object or list that the scanner is in.
#[derive(Clone, Copy, PartialEq)]
enum Container {
    Object,
    List,
}

fn check(text: &str) -> Result<(), Stop> {
    Scanner { units: text.encode_utf16().collect(), at: 0 }.document()
}

fn message(text: &str, stop: Stop) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    match stop.reason {
        Reason::End => "Unexpected end of JSON input".to_owned(),
        Reason::Known(fault) => {
            let (line, column) = line_and_column(&units, stop.at);
            format!("{fault} in JSON at position {} (line {line} column {column})", stop.at)
                .replace("after JSON in JSON", "after JSON")
        }
        Reason::UnexpectedToken if CONVERTED.contains(&text) => format!("\"{text}\" is not valid JSON"),
        Reason::UnexpectedToken => unexpected_token(&units, stop.at),
    }
}

fn unexpected_token(units: &[u16], at: usize) -> String {
    let quote =
        |range: std::ops::Range<usize>| String::from_utf16_lossy(units.get(range).unwrap_or_default());
    let n = units.len();
    let token = quote(at..at + 1);
    let context = if n < MIN_UNITS_FOR_CONTEXT {
        format!("\"{}\"", quote(0..n))
    } else if at < CONTEXT_UNITS {
        format!("\"{}\"...", quote(0..at + CONTEXT_UNITS))
    } else if at < n - CONTEXT_UNITS {
        format!("...\"{}\"...", quote(at - CONTEXT_UNITS..at + CONTEXT_UNITS))
    } else {
        format!("...\"{}\"", quote(at - CONTEXT_UNITS..n))
    };
    format!("Unexpected token '{token}', {context} is not valid JSON")
}

/// Returns the line and column of a position. Lines end with `\n`, `\r` or `\r\n`.
fn line_and_column(units: &[u16], at: usize) -> (usize, usize) {
    let is = |index: usize, byte: u8| units.get(index) == Some(&u16::from(byte));
    let mut line = 1;
    let mut start = 0;
    for index in 0..at.min(units.len()) {
        let ends_line = is(index, b'\n') || (is(index, b'\r') && !(is(index + 1, b'\n') && index + 1 < at));
        if ends_line {
            line += 1;
            start = index + 1;
        }
    }
    (line, at - start + 1)
}

struct Scanner {
    units: Vec<u16>,
    at: usize,
}

impl Scanner {
    /// Returns the unit at the position as a byte; `None` at the end, `Some(0)` if it is not ASCII.
    fn peek(&self) -> Option<u8> {
        self.units.get(self.at).map(|it| u8::try_from(*it).unwrap_or(0))
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|it| it.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn stop(&self, fault: &'static str) -> Stop {
        Stop { at: self.at, reason: Reason::Known(fault) }
    }

    /// Returns the fault for a token without a message of its own.
    fn unexpected(&self) -> Stop {
        let reason = if self.peek().is_none() { Reason::End } else { Reason::UnexpectedToken };
        Stop { at: self.at, reason }
    }

    fn document(&mut self) -> Result<(), Stop> {
        let mut open = Vec::new();
        loop {
            if let Some(container) = self.value()? {
                open.push(container);
                continue;
            }
            self.close(&mut open)?;
            if open.is_empty() {
                break;
            }
        }
        self.skip_blanks();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.stop("Unexpected non-whitespace character after JSON")),
        }
    }

    /// Scans a whole value, or the start of an object or list up to its first value, and then returns that container.
    fn value(&mut self) -> Result<Option<Container>, Stop> {
        self.skip_blanks();
        match self.peek() {
            Some(b'{') => self.open_object(),
            Some(b'[') => self.open_list(),
            Some(b'"') => self.string().map(|()| None),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| None),
            Some(b't') => self.literal("true").map(|()| None),
            Some(b'f') => self.literal("false").map(|()| None),
            Some(b'n') => self.literal("null").map(|()| None),
            _ => Err(self.unexpected()),
        }
    }

    fn open_object(&mut self) -> Result<Option<Container>, Stop> {
        self.at += 1;
        self.skip_blanks();
        if self.take(b'}') {
            return Ok(None);
        }
        self.name("Expected property name or '}'")?;
        Ok(Some(Container::Object))
    }

    fn open_list(&mut self) -> Result<Option<Container>, Stop> {
        self.at += 1;
        self.skip_blanks();
        Ok((!self.take(b']')).then_some(Container::List))
    }

    /// Scans what follows a value: ends of containers, up to a comma before the next value.
    fn close(&mut self, open: &mut Vec<Container>) -> Result<(), Stop> {
        while let Some(container) = open.last().copied() {
            self.skip_blanks();
            if self.take(b',') {
                if container == Container::Object {
                    self.skip_blanks();
                    self.name("Expected double-quoted property name")?;
                }
                return Ok(());
            }
            let (end, fault) = match container {
                Container::Object => (b'}', "Expected ',' or '}' after property value"),
                Container::List => (b']', "Expected ',' or ']' after array element"),
            };
            if !self.take(end) {
                return Err(self.stop(fault));
            }
            open.pop();
        }
        Ok(())
    }

    /// Scans a property's name and its colon.
    fn name(&mut self, fault: &'static str) -> Result<(), Stop> {
        if self.peek() != Some(b'"') {
            return Err(self.stop(fault));
        }
        self.string()?;
        self.skip_blanks();
        if self.take(b':') { Ok(()) } else { Err(self.stop("Expected ':' after property name")) }
    }

    fn literal(&mut self, word: &str) -> Result<(), Stop> {
        for wanted in word.bytes() {
            if !self.take(wanted) {
                return Err(self.unexpected());
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Stop> {
        self.take(b'-');
        if self.take(b'0') {
            if self.peek().is_some_and(|it| it.is_ascii_digit()) {
                return Err(self.stop("Unexpected number"));
            }
        } else if self.skip_digits() == 0 {
            return Err(self.stop("No number after minus sign"));
        }
        if self.take(b'.') && self.skip_digits() == 0 {
            return Err(self.stop("Unterminated fractional number"));
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            if self.skip_digits() == 0 {
                return Err(self.stop("Exponent part is missing a number"));
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Stop> {
        self.at += 1;
        loop {
            match self.units.get(self.at) {
                None => return Err(self.stop("Unterminated string")),
                Some(0x22) => break,
                Some(0x5c) => self.escape()?,
                Some(0..0x20) => return Err(self.stop("Bad control character in string literal")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Stop> {
        self.at += 1;
        match self.peek() {
            None => return Err(self.unexpected()),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|it| it.is_ascii_hexdigit()) {
                        return Err(self.stop("Bad Unicode escape"));
                    }
                    self.at += 1;
                }
            }
            Some(_) => return Err(self.stop("Bad escaped character")),
        }
        Ok(())
    }
}
