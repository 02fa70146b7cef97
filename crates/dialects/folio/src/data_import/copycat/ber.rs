//! The part of ASN.1's basic encoding rules (ITU-T X.690) that Z39.50 needs: elements with context tags, integers,
//! strings, object identifiers; definite and indefinite lengths.

/// Maximum nesting depth.
const DEPTH_MAX: usize = 40;
/// Flag of an element that contains other elements.
const CONSTRUCTED: u8 = 0x20;
const CONTEXT: u8 = 0x80;

/// A decoded element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// Class and number: universal tags below 1000, context tags from 1000 on.
    pub(super) tag: u32,
    pub(super) content: Content,
}

/// The content of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    Elements(Vec<Element>),
}

/// Returns the number that stands for a context tag.
pub(super) const fn context(number: u32) -> u32 {
    1_000 + number
}

impl Element {
    /// Returns the elements inside it; none for one that holds bytes.
    pub(super) fn elements(&self) -> &[Element] {
        match &self.content {
            Content::Elements(list) => list,
            Content::Bytes(_) => &[],
        }
    }

    /// Returns the first inner element with a context tag.
    pub(super) fn at(&self, number: u32) -> Option<&Element> {
        self.elements().iter().find(|it| it.tag == context(number))
    }

    /// Returns its bytes; a string sent in parts is joined.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match &self.content {
            Content::Bytes(bytes) => bytes.clone(),
            Content::Elements(list) => list.iter().flat_map(Element::bytes).collect(),
        }
    }

    /// Returns its bytes as an integer; 0 if there are none or too many.
    pub(super) fn number(&self) -> i64 {
        let bytes = self.bytes();
        if bytes.is_empty() || 8 < bytes.len() {
            return 0;
        }
        let first = if bytes[0] & 0x80 == 0 { 0 } else { -1 };
        bytes.iter().fold(first, |number, byte| number << 8 | i64::from(*byte))
    }

    /// Returns its bytes as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

/// Why bytes could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The input ends too early.
    Short,
    /// The input is not valid BER.
    Bad,
}

struct Head {
    tag: u32,
    is_constructed: bool,
    /// Start of the content, in bytes.
    at: usize,
    /// Length of the content in bytes; `None` for an indefinite length, ended by two zero bytes.
    length: Option<usize>,
}

fn head(bytes: &[u8]) -> Result<Head, Fault> {
    let first = *bytes.first().ok_or(Fault::Short)?;
    let mut number = u32::from(first & 0x1f);
    let mut at = 1;
    if number == 0x1f {
        number = 0;
        loop {
            let byte = *bytes.get(at).ok_or(Fault::Short)?;
            at += 1;
            number = number.checked_mul(128).ok_or(Fault::Bad)? | u32::from(byte & 0x7f);
            if 100_000 < number {
                return Err(Fault::Bad);
            }
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    let stated = *bytes.get(at).ok_or(Fault::Short)?;
    at += 1;
    let length = match stated {
        0x80 => None,
        short if short & 0x80 == 0 => Some(usize::from(short)),
        long => {
            let n = usize::from(long & 0x7f);
            if 4 < n {
                return Err(Fault::Bad);
            }
            let digits = bytes.get(at..at + n).ok_or(Fault::Short)?;
            at += n;
            Some(digits.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
        }
    };
    let tag = if first & 0xc0 == 0 { number } else { context(number) };
    Ok(Head { tag, is_constructed: first & CONSTRUCTED != 0, at, length })
}

/// Decodes the element at the start of the input; returns it and its length in bytes.
pub(super) fn read(bytes: &[u8]) -> Result<(Element, usize), Fault> {
    read_at(bytes, 0)
}

fn read_at(bytes: &[u8], depth: usize) -> Result<(Element, usize), Fault> {
    if DEPTH_MAX < depth {
        return Err(Fault::Bad);
    }
    let head = head(bytes)?;
    let end = match head.length {
        Some(length) => {
            let end = head.at.checked_add(length).ok_or(Fault::Bad)?;
            if bytes.len() < end {
                return Err(Fault::Short);
            }
            Some(end)
        }
        None if head.is_constructed => None,
        None => return Err(Fault::Bad),
    };
    if !head.is_constructed {
        let end = end.ok_or(Fault::Bad)?;
        return Ok((Element { tag: head.tag, content: Content::Bytes(bytes[head.at..end].to_vec()) }, end));
    }
    let mut elements = Vec::new();
    let mut at = head.at;
    loop {
        match end {
            Some(end) if end <= at => break,
            None if bytes.get(at..at + 2).ok_or(Fault::Short)? == [0, 0] => {
                at += 2;
                break;
            }
            _ => {}
        }
        let within = &bytes[at..end.unwrap_or(bytes.len())];
        // Inside a complete element, more input would not help.
        let inner = read_at(within, depth + 1);
        let (element, length) = if end.is_some() { inner.map_err(|_| Fault::Bad)? } else { inner? };
        elements.push(element);
        at += length;
    }
    Ok((Element { tag: head.tag, content: Content::Elements(elements) }, at))
}

fn put_head(out: &mut Vec<u8>, class: u8, number: u32, length: usize) {
    if number < 0x1f {
        out.push(class | number.to_le_bytes()[0]);
    } else {
        out.push(class | 0x1f);
        let mut digits = Vec::new();
        let mut rest = number;
        loop {
            digits.push((rest & 0x7f).to_le_bytes()[0]);
            rest >>= 7;
            if rest == 0 {
                break;
            }
        }
        for (n, digit) in digits.iter().enumerate().rev() {
            out.push(if n == 0 { *digit } else { digit | 0x80 });
        }
    }
    if length < 0x80 {
        out.push(length.to_le_bytes()[0]);
    } else {
        let bytes = length.to_be_bytes();
        let first = bytes.iter().position(|it| *it != 0).unwrap_or(bytes.len() - 1);
        out.push(0x80 | (bytes.len() - first).to_le_bytes()[0]);
        out.extend_from_slice(&bytes[first..]);
    }
}

/// Encodes bytes as an element with a context tag.
pub(super) fn plain(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 6);
    put_head(&mut out, CONTEXT, number, bytes.len());
    out.extend_from_slice(bytes);
    out
}

/// Encodes elements as an element with a context tag.
pub(super) fn around(number: u32, parts: &[Vec<u8>]) -> Vec<u8> {
    joined(CONTEXT | CONSTRUCTED, number, parts)
}

/// Encodes a sequence.
pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    joined(CONSTRUCTED, 0x10, parts)
}

fn joined(class: u8, number: u32, parts: &[Vec<u8>]) -> Vec<u8> {
    let length = parts.iter().map(Vec::len).sum();
    let mut out = Vec::with_capacity(length + 6);
    put_head(&mut out, class, number, length);
    parts.iter().for_each(|it| out.extend_from_slice(it));
    out
}

/// Encodes a non-negative integer as bytes.
pub(super) fn number(value: u32) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let first = bytes.iter().position(|it| *it != 0).unwrap_or(bytes.len() - 1);
    let mut out = bytes[first..].to_vec();
    if out[0] & 0x80 != 0 {
        out.insert(0, 0);
    }
    out
}

/// Encodes an object identifier as bytes: `1.2.840.10003.5.10`.
pub(super) fn object_id(arcs: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    let joined = arcs.first().zip(arcs.get(1)).map(|(first, second)| 40 * first + second);
    for arc in joined.into_iter().chain(arcs.iter().skip(2).copied()) {
        let mut digits = vec![(arc & 0x7f).to_le_bytes()[0]];
        let mut rest = arc >> 7;
        while rest != 0 {
            digits.push((rest & 0x7f).to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        out.extend(digits.iter().rev());
    }
    out
}

/// Encodes an object identifier as an element with its universal tag.
pub(super) fn universal_object_id(arcs: &[u32]) -> Vec<u8> {
    let bytes = object_id(arcs);
    let mut out = Vec::with_capacity(bytes.len() + 2);
    put_head(&mut out, 0, 6, bytes.len());
    out.extend_from_slice(&bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let bytes = around(48, &[plain(120, &number(1_016)), sequence(&[plain(45, &[b'x'; 300])])]);
        let (element, length) = read(&bytes).unwrap_or_else(|fault| panic!("{fault:?}"));
        assert_eq!(length, bytes.len());
        assert_eq!(element.tag, context(48));
        assert_eq!(element.at(120).map(Element::number), Some(1_016));
        assert_eq!(element.elements()[1].at(45).map(|it| it.bytes().len()), Some(300));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Err(Fault::Short), "{end} bytes");
        }
    }

    #[test]
    fn lengths_may_be_left_open() {
        let bytes = [0xb7, 0x80, 0x9f, 0x1f, 0x01, 0x05, 0x00, 0x00, 0xff];
        let (element, length) = read(&bytes).unwrap_or_else(|fault| panic!("{fault:?}"));
        assert_eq!((length, element.tag), (8, context(23)));
        assert_eq!(element.at(31).map(Element::number), Some(5));
    }

    #[test]
    fn identifiers_are_those_of_the_standard() {
        assert_eq!(object_id(&[1, 2, 840, 10003, 5, 10]), [0x2a, 0x86, 0x48, 0xce, 0x13, 0x05, 0x0a]);
    }

    #[test]
    fn nesting_has_a_bound() {
        let mut bytes = sequence(&[]);
        for _ in 0..100 {
            bytes = sequence(&[bytes]);
        }
        assert_eq!(read(&bytes), Err(Fault::Bad));
    }
}
