//! Request targets with characters that should have been percent-encoded, as curl and older clients send them:
//! `GET /datasets?filter={"where": {"size": {"gt": 5}}}`, `?filter=date:>2000`.
//!
//! hyper answers such a line with a bare 400 before a dialect sees it. [`RequestLines`] scans the bytes of a
//! connection on their way to hyper, finds each request line, and encodes there, and nowhere else, the characters
//! that hyper does not accept: space, `"`, `<`, `>` and the backtick. To know where the next line begins it follows
//! the framing of bodies (`Content-Length`, chunks: RFC 9112, sections 6 and 7). Any framing that is not unambiguous
//! ends the rewriting for the rest of the connection: from there on bytes pass unchanged, and hyper judges them.
//!
//! Nothing is buffered: a target may arrive in pieces of any size, and at most the ten bytes of ` HTTP/1.1` are
//! held back until it is known whether they end the line.

use std::mem;

/// Longest header field whose value matters here, in bytes; `Content-Length` and `Transfer-Encoding` are shorter.
const FIELD_BYTES: usize = 128;
/// Longest line that begins a chunk, in bytes.
const CHUNK_LINE_BYTES: usize = 4 << 10;
/// The bytes after the target, up to the digit of the minor version.
const VERSION: &[u8] = b" HTTP/1.";
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// The part of the conversation that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before a request, or in its method.
    Method,
    /// In the target.
    Target,
    /// After the version, up to the end of the line.
    LineEnd,
    /// In the header fields.
    Fields,
    /// In a body, with the number of bytes left.
    Body(u64),
    /// In the line that begins a chunk.
    ChunkSize,
    /// In a chunk, with the number of bytes left.
    Chunk(u64),
    /// After the bytes of a chunk, before its line ends.
    ChunkEnd,
    /// In the fields after the last chunk.
    Trailers,
    /// Where bytes are no longer examined.
    Unknown,
}

/// How a request says where its body ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Framing {
    length: Option<u64>,
    is_chunked: bool,
}

/// Follows the requests of one connection and encodes characters that their targets should not contain.
#[derive(Debug)]
pub struct RequestLines {
    place: Place,
    framing: Framing,
    /// Length of the method so far.
    n_method: usize,
    /// The beginning of a line that came in pieces.
    line: Vec<u8>,
    /// Bytes that may be the version, held back until that is known.
    held: Vec<u8>,
}

impl Default for RequestLines {
    fn default() -> Self {
        Self {
            place: Place::Method,
            framing: Framing::default(),
            n_method: 0,
            line: Vec::new(),
            held: Vec::new(),
        }
    }
}

impl RequestLines {
    /// Takes the next bytes of the connection. `None` if they pass unchanged; otherwise their replacement, which
    /// may be empty while the end of a target is not known.
    pub fn take(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if !self.held.is_empty() {
            let joined = [mem::take(&mut self.held).as_slice(), bytes].concat();
            return Some(self.take(&joined).unwrap_or(joined));
        }
        let mut out = Output { bytes, changed: None, n_copied: 0 };
        let mut at = 0;
        while at < bytes.len() {
            at = self.step(at, &mut out);
        }
        out.finish()
    }

    /// Returns what is still held back when the client closes.
    pub fn end(&mut self) -> Vec<u8> {
        self.place = Place::Unknown;
        mem::take(&mut self.held)
    }

    /// Takes bytes from `at` on and returns the position of the first one left.
    fn step(&mut self, at: usize, out: &mut Output<'_>) -> usize {
        let bytes = out.bytes;
        match self.place {
            Place::Method => self.method(bytes, at),
            Place::Target => self.target(at, out),
            Place::LineEnd => match memchr::memchr(b'\n', &bytes[at..]) {
                Some(n) => {
                    (self.place, self.framing) = (Place::Fields, Framing::default());
                    at + n + 1
                }
                None => bytes.len(),
            },
            Place::Fields | Place::Trailers | Place::ChunkSize | Place::ChunkEnd => self.line(bytes, at),
            Place::Body(left) => {
                let (end, left) = passed(bytes, at, left);
                self.place = if left == 0 { Place::Method } else { Place::Body(left) };
                end
            }
            Place::Chunk(left) => {
                let (end, left) = passed(bytes, at, left);
                self.place = if left == 0 { Place::ChunkEnd } else { Place::Chunk(left) };
                end
            }
            Place::Unknown => bytes.len(),
        }
    }

    /// Reads the method, before which servers skip empty lines.
    fn method(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes[at] {
            b' ' if 0 < self.n_method => (self.place, self.n_method) = (Place::Target, 0),
            b'\r' | b'\n' if self.n_method == 0 => {}
            byte if byte.is_ascii_uppercase() && self.n_method < 32 => self.n_method += 1,
            _ => self.place = Place::Unknown,
        }
        at + 1
    }

    fn target(&mut self, at: usize, out: &mut Output<'_>) -> usize {
        let bytes = out.bytes;
        let Some(n) = bytes[at..].iter().position(|byte| needs_a_look(*byte)) else { return bytes.len() };
        let at = at + n;
        match bytes[at] {
            b' ' => match ending(&bytes[at..]) {
                Ending::Version => {
                    self.place = Place::LineEnd;
                    at + VERSION.len()
                }
                Ending::Unclear => {
                    self.held.extend_from_slice(&bytes[at..]);
                    out.write(at, b"");
                    out.n_copied = bytes.len();
                    bytes.len()
                }
                Ending::No => {
                    out.encode(at);
                    at + 1
                }
            },
            // A line without a version: not served here.
            b'\r' | b'\n' => {
                self.place = Place::Unknown;
                bytes.len()
            }
            _ => {
                out.encode(at);
                at + 1
            }
        }
    }

    /// Reads a line of the head, of the trailers, or between chunks.
    fn line(&mut self, bytes: &[u8], at: usize) -> usize {
        let rest = &bytes[at..];
        let Some(n) = memchr::memchr(b'\n', rest) else {
            let room = CHUNK_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&rest[..rest.len().min(room)]);
            return bytes.len();
        };
        if self.line.is_empty() {
            self.whole_line(rest[..n].trim_ascii_end());
        } else {
            let room = CHUNK_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&rest[..n.min(room)]);
            let line = mem::take(&mut self.line);
            self.whole_line(line.trim_ascii_end());
        }
        at + n + 1
    }

    fn whole_line(&mut self, line: &[u8]) {
        self.place = match self.place {
            Place::Fields if line.is_empty() => match self.framing {
                Framing { length: Some(_), is_chunked: true } => Place::Unknown,
                Framing { is_chunked: true, .. } => Place::ChunkSize,
                Framing { length: None | Some(0), .. } => Place::Method,
                Framing { length: Some(length), .. } => Place::Body(length),
            },
            Place::Fields => match self.framing.with(line) {
                Some(framing) => {
                    self.framing = framing;
                    Place::Fields
                }
                None => Place::Unknown,
            },
            Place::ChunkSize => match chunk_size(line) {
                Some(0) => Place::Trailers,
                Some(size) => Place::Chunk(size),
                None => Place::Unknown,
            },
            Place::ChunkEnd if line.is_empty() => Place::ChunkSize,
            Place::Trailers if line.is_empty() => Place::Method,
            Place::Trailers => Place::Trailers,
            _ => Place::Unknown,
        };
    }
}

impl Framing {
    /// Adds what a field says about the framing; `None` if that is ambiguous.
    fn with(self, field: &[u8]) -> Option<Self> {
        if !matches!(field.first(), Some(b'c' | b'C' | b't' | b'T')) {
            // Folded lines are refused by servers; the field they belong to is not known here.
            return (!matches!(field.first(), Some(b' ' | b'\t') | None)).then_some(self);
        }
        let colon = memchr::memchr(b':', field)?;
        let (name, value) = (&field[..colon], field[colon + 1..].trim_ascii());
        if name.trim_ascii_end().eq_ignore_ascii_case(b"content-length") {
            let length = if name.len() + value.len() < FIELD_BYTES { decimal(value) } else { None }?;
            let agrees = self.length.is_none_or(|it| it == length);
            return agrees.then_some(Self { length: Some(length), ..self });
        }
        if name.trim_ascii_end().eq_ignore_ascii_case(b"transfer-encoding") {
            let is_chunked = value.eq_ignore_ascii_case(b"chunked") && !self.is_chunked;
            return is_chunked.then_some(Self { is_chunked, ..self });
        }
        Some(self)
    }
}

/// Returns whether a byte ends a target or is not accepted by hyper.
fn needs_a_look(byte: u8) -> bool {
    matches!(byte, b' ' | b'"' | b'<' | b'>' | b'`' | b'\r' | b'\n')
}

/// What a space in a target is.
enum Ending {
    /// The version follows, and the end of the line.
    Version,
    /// A part of the target.
    No,
    /// More bytes are needed to tell.
    Unclear,
}

fn ending(rest: &[u8]) -> Ending {
    let n = rest.len().min(VERSION.len());
    if rest[..n] != VERSION[..n] {
        return Ending::No;
    }
    match rest.get(VERSION.len()..).unwrap_or_default() {
        [] | [b'0'..=b'9'] => Ending::Unclear,
        [b'0'..=b'9', b'\r' | b'\n', ..] => Ending::Version,
        _ => Ending::No,
    }
}

/// Returns the end of the part, of which `left` bytes begin at `at`, and how many are left then.
fn passed(bytes: &[u8], at: usize, left: u64) -> (usize, u64) {
    let n = (bytes.len() - at).min(usize::try_from(left).unwrap_or(usize::MAX));
    (at + n, left - n as u64)
}

fn decimal(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if is_number { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// Returns the size in the line that begins a chunk, without its extensions.
fn chunk_size(line: &[u8]) -> Option<u64> {
    if CHUNK_LINE_BYTES <= line.len() {
        return None;
    }
    let digits = line.split(|it| *it == b';').next()?.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The bytes that pass on: the input itself until one of them changes.
struct Output<'a> {
    bytes: &'a [u8],
    changed: Option<Vec<u8>>,
    n_copied: usize,
}

impl Output<'_> {
    /// Puts `text` before the byte at `at`.
    fn write(&mut self, at: usize, text: &[u8]) {
        let changed = self.changed.get_or_insert_with(|| Vec::with_capacity(self.bytes.len() + 64));
        changed.extend_from_slice(&self.bytes[self.n_copied..at]);
        changed.extend_from_slice(text);
        self.n_copied = at;
    }

    /// Replaces the byte at `at` by its percent-encoding.
    fn encode(&mut self, at: usize) {
        let byte = self.bytes[at];
        self.write(at, &[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        self.n_copied = at + 1;
    }

    fn finish(self) -> Option<Vec<u8>> {
        let mut changed = self.changed?;
        changed.extend_from_slice(&self.bytes[self.n_copied..]);
        Some(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns all bytes that pass when they come in these pieces.
    fn through<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let (mut lines, mut out) = (RequestLines::default(), Vec::new());
        for piece in pieces {
            match lines.take(piece) {
                Some(changed) => out.extend(changed),
                None => out.extend_from_slice(piece),
            }
        }
        out.extend(lines.end());
        out
    }

    /// Checks that `sent`, at once, byte by byte and cut in two anywhere, passes as `expected`.
    fn check(sent: &str, expected: &str) {
        let sent = sent.as_bytes();
        let shown = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!(shown(through([sent])), expected);
        assert_eq!(shown(through(sent.chunks(1))), expected, "byte by byte");
        for at in 0..sent.len() {
            assert_eq!(shown(through([&sent[..at], &sent[at..]])), expected, "cut at {at}");
        }
    }

    #[test]
    fn targets_are_encoded() {
        for (sent, expected) in [
            ("GET /a HTTP/1.1\r\n\r\n", "GET /a HTTP/1.1\r\n\r\n"),
            (
                "GET /a?f={\"where\": {\"n\": 1}} HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /a?f={%22where%22:%20{%22n%22:%201}} HTTP/1.1\r\nHost: x\r\n\r\n",
            ),
            ("GET /a?f=>2000<`|^ HTTP/1.0\n\n", "GET /a?f=%3E2000%3C%60|^ HTTP/1.0\n\n"),
            (
                "GET /a HTTP/1.1 HTTP/1.12 HTTP/2.0 HTTP/1.1\r\n\r\n",
                "GET /a%20HTTP/1.1%20HTTP/1.12%20HTTP/2.0 HTTP/1.1\r\n\r\n",
            ),
            ("\r\n\r\nGET /> HTTP/1.1\r\n\r\n", "\r\n\r\nGET /%3E HTTP/1.1\r\n\r\n"),
            ("GET /é> HTTP/1.1\r\n\r\n", "GET /é%3E HTTP/1.1\r\n\r\n"),
        ] {
            check(sent, expected);
        }
    }

    #[test]
    fn only_targets_are_changed() {
        let looks = "GET /<\"> HTTP/1.1\r\nX: <\">\r\n\r\n";
        let body = format!("{looks}{looks}");
        let head = "POST /<a> HTTP/1.1\r\nReferer: <\"> `\r\n";
        let seen = "POST /%3Ca%3E HTTP/1.1\r\nReferer: <\"> `\r\n";
        let then = "GET /<b> HTTP/1.1\r\n\r\n";
        let next = "GET /%3Cb%3E HTTP/1.1\r\n\r\n";
        for framed in [
            format!("Content-Length: {}\r\n\r\n{body}", body.len()),
            format!("content-length:{}\r\nCONTENT-LENGTH: {}\r\n\r\n{body}", body.len(), body.len()),
            format!("Transfer-Encoding: chunked\r\n\r\n{:x};q=\"<\"\r\n{body}\r\n0\r\n\r\n", body.len()),
            format!(
                "transfer-encoding: Chunked\r\n\r\n{:X}\r\n{body}\r\n0\r\nTrailer: <x>\r\n\r\n",
                body.len()
            ),
            "Content-Length: 0\r\n\r\n".to_owned(),
            "Content-Type: <x>\r\nTE: trailers\r\n\r\n".to_owned(),
        ] {
            check(
                &format!("{head}{framed}{then}{head}{framed}"),
                &format!("{seen}{framed}{next}{seen}{framed}"),
            );
        }
    }

    #[test]
    fn doubt_ends_the_rewriting() {
        let then = "GET /<b> HTTP/1.1\r\n\r\n";
        for doubtful in [
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\n Content-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
            "GET /\r\n",
            "\u{16}\u{3}\u{1}",
            "get / HTTP/1.1\r\n\r\n",
        ] {
            check(&format!("{doubtful}{then}"), &format!("{doubtful}{then}"));
        }
    }

    /// Generates a request and its expected form.
    fn request() -> impl Strategy<Value = (String, String)> {
        let target = "/[a-z<>\"` {}?=:]{0,20}";
        let body = "(GET /<\"> HTTP/1\\.1\r\n|[<>\"a-f0-9 \r\n]){0,20}";
        (target, body, 0..3).prop_map(|(target, body, framing)| {
            // A target may end in anything but a space: that would be a second one before the version.
            let mut encoded = String::new();
            for it in target.chars() {
                match it {
                    ' ' | '"' | '<' | '>' | '`' => encoded.push_str(&format!("%{:02X}", it as u32)),
                    it => encoded.push(it),
                }
            }
            let rest = match framing {
                0 => "Host: <x>\r\n\r\n".to_owned(),
                1 => format!("Content-Length: {}\r\n\r\n{body}", body.len()),
                _ if body.is_empty() => "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
                _ => format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
            };
            (format!("POST {target} HTTP/1.1\r\n{rest}"), format!("POST {encoded} HTTP/1.1\r\n{rest}"))
        })
    }

    proptest! {
        #[test]
        fn any_requests_in_any_pieces(
            requests in prop::collection::vec(request(), 1..5),
            cuts in prop::collection::vec(1usize..40, 1..40),
        ) {
            let sent: String = requests.iter().map(|(sent, _)| sent.as_str()).collect();
            let expected: String = requests.iter().map(|(_, expected)| expected.as_str()).collect();
            let (mut pieces, mut rest) = (Vec::new(), sent.as_bytes());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let passed = through(pieces);
            prop_assert_eq!(String::from_utf8_lossy(&passed), expected);
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let passed = through(bytes.chunks(7));
            prop_assert!(bytes.len() <= passed.len() && passed.len() <= 3 * bytes.len());
        }
    }
}
