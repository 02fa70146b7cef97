//! MARC-8 to Unicode.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use super::ESCAPE;
use super::tables::{self, ANSEL, ASCII, CJK, Entry};

/// What is wrong in MARC-8 text. Every fault has its byte offset beside it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Marc8Fault {
    /// An escape sequence that designates no known set; it was left out.
    #[error("escape sequence {bytes:02X?} designates no known character set")]
    UnknownEscape {
        /// Its bytes, hexadecimal 1B first.
        bytes: Vec<u8>,
    },
    /// A code that the set has no character for; it is replaced by U+FFFD.
    #[error("{bytes:02X?} is no character of the set {:?}", char::from(*set))]
    NoCharacter {
        /// The code.
        bytes: Vec<u8>,
        /// Final byte of the set's escape sequence.
        set: u8,
    },
    /// An East Asian character of fewer than three bytes; it is replaced by U+FFFD.
    #[error("an East Asian character has {len} of its 3 bytes")]
    CutOffCharacter {
        /// Bytes that are there.
        len: usize,
    },
    /// A combining mark at the end of a text, with no letter after it; it was left out.
    #[error("combining mark U+{:04X} has no letter after it", u32::from(*mark))]
    NoLetter {
        /// The mark.
        mark: char,
    },
}

/// Decodes a whole text, composed as far as Unicode has composed characters (NFC). Undefined codes become
/// U+FFFD; the faults come with their byte offsets in `bytes`.
///
/// ```
/// let (text, faults) = pinakes_marc::marc8::decode(b"Caf\xE2e \x1B(NnET\x1B(B");
/// assert_eq!(text, "Café Нет");
/// assert!(faults.is_empty());
/// ```
#[must_use]
pub fn decode(bytes: &[u8]) -> (String, Vec<(usize, Marc8Fault)>) {
    let mut faults = Vec::new();
    let text = decode_with(bytes, |at, fault| faults.push((at, fault))).into_owned();
    (text, faults)
}

/// Decodes a text and reports each fault with its offset. Plain ASCII is not copied.
pub(crate) fn decode_with<'a>(bytes: &'a [u8], report: impl FnMut(usize, Marc8Fault)) -> Cow<'a, str> {
    if let (true, Ok(text)) = (is_plain(bytes), std::str::from_utf8(bytes)) {
        return Cow::Borrowed(text);
    }
    let mut decoder = Decoder {
        bytes,
        at: 0,
        g0: ASCII,
        g1: ANSEL,
        text: String::with_capacity(bytes.len()),
        marks: Vec::new(),
        is_composed: true,
        report,
    };
    decoder.run();
    let Decoder { text, is_composed, .. } = decoder;
    let is_composed = is_composed || unicode_normalization::is_nfc(&text);
    Cow::Owned(if is_composed { text } else { text.nfc().collect() })
}

/// Returns whether a text is the same in MARC-8, ASCII and UTF-8. Without inner branches, because most texts
/// are.
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    !bytes.iter().fold(false, |found, byte| found | (*byte == ESCAPE) | (*byte == b'&') | !byte.is_ascii())
}

/// Returns whether a byte is printable ASCII that begins nothing else.
const fn is_run(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'&'
}

/// Characters below this one are composed already, whatever is next to them.
const FIRST_MARK: char = '\u{300}';

struct Decoder<'a, F> {
    bytes: &'a [u8],
    at: usize,
    /// Set of the left half, by its final byte.
    g0: u8,
    /// Set of the right half.
    g1: u8,
    text: String,
    /// Combining marks that wait for their letter.
    marks: Vec<char>,
    /// Whether the text is known to be in normal form C; if not, it must be checked at the end.
    is_composed: bool,
    report: F,
}

impl<F: FnMut(usize, Marc8Fault)> Decoder<'_, F> {
    fn run(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                ESCAPE => self.escape(),
                b'&' if self.g0 == ASCII => self.reference(),
                byte if self.g0 == ASCII && self.marks.is_empty() && is_run(byte) => self.ascii_run(),
                // A withdrawn range of East Asian codes that old records have.
                0x7F if self.g0 == CJK => self.east_asian(0x00),
                // Blanks and control characters are the same in every set.
                0x00..=0x1F | b' ' | 0x7F => self.one(char::from(byte)),
                0x21..=0x7E if self.g0 == CJK => self.east_asian(0x00),
                0x21..=0x7E => self.single(self.g0, byte),
                0x80..=0xA0 | 0xFF => self.control(byte),
                0xA1..=0xFE if self.g1 == CJK => self.east_asian(0x80),
                0xA1..=0xFE => self.single(self.g1, byte & 0x7F),
            }
        }
        self.end();
    }

    /// Reads ASCII characters up to anything else, all at once.
    fn ascii_run(&mut self) {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|byte| !is_run(*byte)).unwrap_or(rest.len());
        self.text.extend(rest[..len].iter().map(|byte| char::from(*byte)));
        self.at += len;
    }

    /// Reads an escape sequence: ESC, up to two intermediate bytes, a final byte that names the set.
    fn escape(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let (len, half, set) = match *rest {
            // Technique 1: the custom sets, and `s` for the return to ASCII.
            [b's', ..] => (2, Half::Left, ASCII),
            [set @ (b'b' | b'p' | b'g'), ..] => (2, Half::Left, set),
            // Technique 2. ANSEL has `!` before its final byte, some programs leave it out.
            [b'(' | b',', b'!', ANSEL, ..] => (4, Half::Left, ANSEL),
            [b')' | b'-', b'!', ANSEL, ..] => (4, Half::Right, ANSEL),
            [b'(' | b',', set, ..] => (3, Half::Left, set),
            [b')' | b'-', set, ..] => (3, Half::Right, set),
            [b'$', b')' | b'-', CJK, ..] => (4, Half::Right, CJK),
            [b'$', b'(' | b',', CJK, ..] => (4, Half::Left, CJK),
            [b'$', CJK, ..] => (3, Half::Left, CJK),
            _ => (1, Half::Left, 0),
        };
        if tables::is_set(set) {
            match half {
                Half::Left => self.g0 = set,
                Half::Right => self.g1 = set,
            }
        } else {
            let bytes = self.bytes[self.at..self.at + len].to_vec();
            (self.report)(self.at, Marc8Fault::UnknownEscape { bytes });
        }
        self.at += len;
    }

    /// Reads `&#x20AC;`, which stands for a character that MARC-8 does not have, marks included: those are in
    /// Unicode's order, after their letter. Any other `&` is itself.
    fn reference(&mut self) {
        match parse_reference(&self.bytes[self.at..]) {
            Some((char, len)) => self.push(char, len, false),
            None => self.one('&'),
        }
    }

    /// Reads a character of one byte.
    fn one(&mut self, char: char) {
        self.push(char, 1, false);
    }

    /// Reads one of the four control characters that MARC-8 keeps in the right half.
    fn control(&mut self, byte: u8) {
        match byte {
            0x88 => self.one('\u{98}'),
            0x89 => self.one('\u{9C}'),
            0x8D => self.one('\u{200D}'),
            0x8E => self.one('\u{200C}'),
            _ => self.unknown(1, self.g1),
        }
    }

    fn single(&mut self, set: u8, byte: u8) {
        match tables::single(set, byte) {
            Some(Entry { char, combines }) => self.push(char, 1, combines),
            None => self.unknown(1, set),
        }
    }

    /// Reads a character of three bytes, all in the same half (`half` is 80 hex for the right one).
    fn east_asian(&mut self, half: u8) {
        let code = &self.bytes[self.at..self.bytes.len().min(self.at + 3)];
        // The first byte was checked; the others may be a blank in a few codes.
        let n_good = 1 + code[1..].iter().take_while(|byte| (0x20..=0x7E).contains(&(**byte ^ half))).count();
        match <[u8; 3]>::try_from(code) {
            Ok(code) if n_good == 3 => match tables::eacc(code.map(|byte| byte & 0x7F)) {
                Some(char) => self.push(char, 3, false),
                None => self.unknown(3, CJK),
            },
            _ => {
                (self.report)(self.at, Marc8Fault::CutOffCharacter { len: n_good });
                self.push(char::REPLACEMENT_CHARACTER, n_good, false);
            }
        }
    }

    fn unknown(&mut self, len: usize, set: u8) {
        let bytes = self.bytes[self.at..self.at + len].to_vec();
        (self.report)(self.at, Marc8Fault::NoCharacter { bytes, set });
        self.push(char::REPLACEMENT_CHARACTER, len, false);
    }

    /// Appends a character of `len` bytes; a combining mark waits for the letter that follows.
    fn push(&mut self, char: char, len: usize, combines: bool) {
        self.at += len;
        if combines {
            return self.marks.push(char);
        }
        self.is_composed &= char < FIRST_MARK;
        match self.marks[..] {
            [] => self.text.push(char),
            // By far the most frequent: one mark on a Latin letter.
            [mark] => match unicode_normalization::char::compose(char, mark) {
                Some(composed) => self.text.push(composed),
                None => {
                    // The letter may hold a mark of its own that belongs after this one.
                    self.is_composed = false;
                    self.text.extend([char, mark]);
                }
            },
            _ => {
                self.is_composed = false;
                self.text.push(char);
                self.text.extend(&self.marks);
            }
        }
        self.marks.clear();
    }

    /// Leaves out marks that no letter follows: on the letter before them they would change it.
    fn end(&mut self) {
        if let Some(mark) = self.marks.first() {
            (self.report)(self.at, Marc8Fault::NoLetter { mark: *mark });
        }
    }
}

enum Half {
    Left,
    Right,
}

/// Parses `&#xHHHH;` with four to six hexadecimal digits.
fn parse_reference(bytes: &[u8]) -> Option<(char, usize)> {
    let digits = bytes.strip_prefix(b"&#x")?;
    let len = digits.iter().take(7).position(|byte| *byte == b';')?;
    let digits = std::str::from_utf8(&digits[..len]).ok()?;
    if len < 4 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let char = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    Some((char, len + 4))
}
