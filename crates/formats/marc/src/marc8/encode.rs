//! Unicode to MARC-8.

use unicode_normalization::UnicodeNormalization;

use super::ESCAPE;
use super::tables::{self, ANSEL, ASCII, CJK, Code};

/// Writes a text in MARC-8. A character that no set has becomes a reference, `&#x20AC;`, as the Library of
/// Congress prescribes for conversion without loss, so every text can be written.
///
/// ```
/// assert_eq!(pinakes_marc::marc8::encode("Café Нет"), b"Caf\xE2e \x1B(NnET\x1B(B");
/// ```
#[must_use]
pub fn encode(text: &str) -> Vec<u8> {
    if text.is_ascii() && !text.contains('\u{1B}') && !text.contains(REFERENCE_START) {
        return text.as_bytes().to_vec();
    }
    // Plain text that looks like a reference must not come back as a character.
    let text = text.replace(REFERENCE_START, "&#x0026;#x");
    let mut encoder = Encoder { out: Vec::with_capacity(text.len() + 8), g0: ASCII };
    let mut chars = text.nfc().peekable();
    while let Some(base) = chars.next() {
        let mut letter = Letter::new(base);
        while let Some(mark) = chars.next_if(|char| tables::combines(*char)) {
            letter.marks.push(mark);
        }
        encoder.letter(&letter);
    }
    encoder.designate(ASCII);
    encoder.out
}

/// How a character reference begins.
const REFERENCE_START: &str = "&#x";

/// A character and the marks that go before it in MARC-8.
struct Letter {
    marks: Vec<char>,
    base: Piece,
}

/// One character of the output: as itself, in a set, or as a reference.
#[derive(Clone, Copy)]
enum Piece {
    Ascii(u8),
    Coded(char),
    Reference(char),
}

impl Letter {
    /// Decomposes a composed character if only its parts have codes.
    fn new(char: char) -> Self {
        if let Some(base) = Piece::direct(char) {
            return Self { marks: Vec::new(), base };
        }
        let mut parts = std::iter::once(char).nfd();
        if let Some(base) = parts.next().and_then(Piece::direct) {
            let marks: Vec<char> = parts.collect();
            if marks.iter().all(|mark| tables::combines(*mark)) {
                return Self { marks, base };
            }
        }
        Self { marks: Vec::new(), base: Piece::Reference(char) }
    }
}

impl Piece {
    /// Returns the character as itself or in a set. A mark has no place of its own: if no letter comes before
    /// it, only a reference keeps it from joining the next one.
    fn direct(char: char) -> Option<Self> {
        match char {
            '\u{1B}' => Some(Self::Reference(char)),
            // Blanks and other control characters are the same in every set.
            '\0'..='\u{7F}' => u8::try_from(char).ok().map(Self::Ascii),
            '\u{98}' | '\u{9C}' | '\u{200C}' | '\u{200D}' => Some(Self::Coded(char)),
            _ if tables::combines(char) => Some(Self::Reference(char)),
            _ if tables::codes(char).is_empty() => None,
            _ => Some(Self::Coded(char)),
        }
    }
}

struct Encoder {
    out: Vec<u8>,
    /// Set of the left half; the right one is always ANSEL.
    g0: u8,
}

impl Encoder {
    fn letter(&mut self, letter: &Letter) {
        for mark in &letter.marks {
            self.coded(*mark);
        }
        match letter.base {
            Piece::Ascii(byte) => self.ascii(byte),
            Piece::Coded(char) => self.coded(char),
            Piece::Reference(char) => self.reference(char),
        }
    }

    /// Writes an ASCII character; it stays in the current set if that has it too, to save escape sequences.
    fn ascii(&mut self, byte: u8) {
        if byte == b'&' {
            // It may begin a reference, and only ASCII has all characters of one.
            self.designate(ASCII);
        } else if self.g0 != ASCII && byte.is_ascii_graphic() {
            match tables::codes(char::from(byte)).iter().find(|code| code.set == self.g0 && self.g0 != CJK) {
                Some(code) => return self.out.extend(code.as_bytes()),
                None => self.designate(ASCII),
            }
        } else if self.g0 == CJK || matches!(self.g0, b'b' | b'p' | b'g') {
            self.designate(ASCII);
        }
        self.out.push(byte);
    }

    fn coded(&mut self, char: char) {
        match char {
            '\u{98}' => return self.out.push(0x88),
            '\u{9C}' => return self.out.push(0x89),
            '\u{200D}' => return self.out.push(0x8D),
            '\u{200C}' => return self.out.push(0x8E),
            _ => {}
        }
        let codes = tables::codes(char);
        let Some(code) = codes.iter().find(|code| code.set == self.g0).or_else(|| codes.first()) else {
            return self.reference(char);
        };
        if code.set == ANSEL {
            self.out.push(code.bytes[0] | 0x80);
        } else {
            self.in_set(code);
        }
    }

    fn in_set(&mut self, code: &Code) {
        self.designate(code.set);
        self.out.extend(code.as_bytes());
    }

    fn reference(&mut self, char: char) {
        self.designate(ASCII);
        self.out.extend(format!("&#x{:04X};", u32::from(char)).bytes());
    }

    /// Puts a set in the left half.
    fn designate(&mut self, set: u8) {
        if self.g0 == set {
            return;
        }
        self.out.push(ESCAPE);
        match set {
            // The custom sets are left with ESC s, all others with ESC ( B.
            ASCII if matches!(self.g0, b'b' | b'p' | b'g') => self.out.push(b's'),
            b'b' | b'p' | b'g' => self.out.push(set),
            CJK => self.out.extend(b"$1"),
            _ => self.out.extend([b'(', set]),
        }
        self.g0 = set;
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;

    #[test]
    fn writes_each_set() {
        assert_eq!(encode("plain"), b"plain");
        assert_eq!(encode("Ł"), b"\xA1");
        assert_eq!(encode("é"), b"\xE2e");
        assert_eq!(encode("CO₂!"), b"CO\x1Bb\x32\x1Bs!");
        assert_eq!(encode("m²"), b"m\x1Bp\x32\x1Bs");
        assert_eq!(encode("שלום."), b"\x1B(2ylem.\x1B(B");
        assert_eq!(encode("一 一"), b"\x1B$1\x21\x30\x21\x1B(B \x1B$1\x21\x30\x21\x1B(B");
        assert_eq!(encode("😀"), b"&#x1F600;");
    }

    #[test]
    fn writes_a_literal_reference_so_that_it_comes_back() {
        let text = "&#x20AC; is €";
        assert_eq!(decode(&encode(text)).0, text);
        assert_eq!(decode(&encode("В&#x")).0, "В&#x");
    }

    #[test]
    fn comes_back_from_a_mark_without_letter() {
        assert_eq!(decode(&encode("\u{301}a")).0, "\u{301}a");
    }
}
