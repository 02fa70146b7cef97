//! The headers of FITS files (FITS standard 4.0, sections 3 and 4).

use crate::source::Metered;
use crate::{ArrayError, Limits, Result, Source};

/// Headers and data fill blocks of this many bytes.
const BLOCK: u64 = 2_880;
/// Bytes of a card: a keyword of eight bytes, and its value.
const CARD: usize = 80;

/// The kind of a header's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An array, or only a header.
    Image,
    /// A table in text or binary form.
    Table,
    /// Anything else.
    Other,
}

/// One header: that of the file, or of an extension.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// What its data are.
    pub kind: Kind,
    /// Keywords and values in order; strings without quotes and trailing spaces. Comments are left out.
    pub cards: Vec<(String, String)>,
    /// Lengths of the axes; the first varies fastest.
    pub axes: Vec<u64>,
}

impl Header {
    /// Returns the first value of a keyword.
    pub fn value(&self, keyword: &str) -> Option<&str> {
        self.cards.iter().find(|it| it.0 == keyword).map(|it| it.1.as_str())
    }

    fn number(&self, keyword: &str) -> Option<u64> {
        self.value(keyword)?.parse().ok()
    }

    /// Returns the size of its data in bytes, without padding (section 4.4.1.1, equation 2; random groups have a
    /// first axis of 0).
    fn data_bytes(&self) -> Option<u64> {
        let bits = self.value("BITPIX")?.parse::<i64>().ok()?.unsigned_abs();
        let is_groups = self.value("GROUPS") == Some("T") && self.axes.first() == Some(&0);
        let axes = if is_groups { &self.axes[1..] } else { &self.axes[..] };
        if axes.is_empty() {
            return Some(0);
        }
        let cells = axes.iter().try_fold(1_u64, |product, axis| product.checked_mul(*axis))?;
        let (groups, parameters) = (self.number("GCOUNT").unwrap_or(1), self.number("PCOUNT").unwrap_or(0));
        let values = cells.checked_add(parameters)?.checked_mul(groups)?;
        Some(values.checked_mul(bits)? / 8)
    }
}

/// Reads all headers of a file, its own first.
///
/// Errors: the first header is invalid; impossible sizes; more than the limits allow. Anything after the last
/// extension, and a truncated extension, are left out.
pub fn headers(source: &Source, limits: &Limits) -> Result<Vec<Header>> {
    let source = source.metered(limits);
    let mut all: Vec<Header> = Vec::new();
    let mut at = 0;
    while at < source.length() {
        let (header, end) = match header(&source, at, all.is_empty(), limits) {
            Ok(found) => found,
            Err(ArrayError::Damaged { .. }) if !all.is_empty() => break,
            Err(error) => return Err(error),
        };
        let data = header.data_bytes().map(|it| it.div_ceil(BLOCK));
        let next = data.and_then(|it| it.checked_mul(BLOCK)).and_then(|it| it.checked_add(end));
        all.push(header);
        if limits.headers < all.len() {
            return Err(ArrayError::TooLarge { what: "headers", most: limits.headers as u64 });
        }
        let Some(next) = next else { break };
        at = next;
    }
    match all.is_empty() {
        true => Err(ArrayError::Damaged { offset: 0, what: "the file is empty".to_owned() }),
        false => Ok(all),
    }
}

/// Reads the header at an offset, and returns where it ends.
fn header(source: &Metered, from: u64, is_first: bool, limits: &Limits) -> Result<(Header, u64)> {
    let mut cards = Vec::new();
    let mut n_cards = 0;
    let mut at = from;
    loop {
        let block = source.read(at, BLOCK as usize)?;
        if at == from {
            let begins = if is_first { b"SIMPLE  =" } else { b"XTENSION=" };
            if !block.starts_with(begins) {
                let what = format!("expected {}", String::from_utf8_lossy(begins));
                return Err(ArrayError::Damaged { offset: at, what });
            }
        }
        at += BLOCK;
        for card in block.chunks_exact(CARD) {
            if card.trim_ascii_end() == b"END" {
                return Ok((finished(cards, is_first), at));
            }
            cards.extend(value_of(card));
        }
        n_cards += BLOCK as usize / CARD;
        if limits.cards < n_cards {
            return Err(ArrayError::TooLarge { what: "cards of a header", most: limits.cards as u64 });
        }
    }
}

fn finished(cards: Vec<(String, String)>, is_first: bool) -> Header {
    let mut header = Header { kind: Kind::Image, cards, axes: Vec::new() };
    if !is_first {
        header.kind = match header.value("XTENSION") {
            Some("IMAGE") => Kind::Image,
            Some("TABLE" | "BINTABLE" | "A3DTABLE") => Kind::Table,
            _ => Kind::Other,
        };
    }
    let n_axes = header.number("NAXIS").unwrap_or(0).min(999);
    header.axes = (1..=n_axes).map_while(|n| header.number(&format!("NAXIS{n}"))).collect();
    header
}

/// Returns keyword and value of a card; `None` for comments (section 4.1).
fn value_of(card: &[u8]) -> Option<(String, String)> {
    let (keyword, rest) = card.split_at(8);
    let text = rest.strip_prefix(b"= ").or_else(|| rest.strip_prefix(b"="))?.trim_ascii_start();
    let value = match text.strip_prefix(b"'") {
        // A string ends with a quote; two quotes stand for one within it.
        Some(quoted) => {
            let mut out = Vec::new();
            let mut bytes = quoted.iter().peekable();
            while let Some(&byte) = bytes.next() {
                if byte == b'\'' && bytes.next_if_eq(&&b'\'').is_none() {
                    break;
                }
                out.push(byte);
            }
            out
        }
        None => text.split(|it| *it == b'/').next().unwrap_or_default().trim_ascii_end().to_vec(),
    };
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned();
    Some((shown(keyword), shown(&value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(cards: &[&str]) -> Vec<u8> {
        let mut out: Vec<u8> = cards.iter().flat_map(|it| format!("{it:<80}").into_bytes()).collect();
        out.resize(out.len().next_multiple_of(BLOCK as usize), b' ');
        out
    }

    #[test]
    fn headers_and_their_data() {
        let mut file = block(&[
            "SIMPLE  =                    T / Standard",
            "BITPIX  =                  -32",
            "NAXIS   =                    2",
            "NAXIS1  =                  800",
            "NAXIS2  =                    2",
            "OBSERVER= 'O''Neill  '         / who",
            "COMMENT = not a value",
            "END",
        ]);
        file.resize(file.len() + 3 * BLOCK as usize, 0); // 6,400 bytes of data
        let table =
            ["XTENSION= 'BINTABLE'", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 12", "NAXIS2  = 3", "END"];
        file.extend(block(&table));
        let all = headers(&Source::of(file.clone()), &Limits::default()).unwrap();
        assert_eq!(all.iter().map(|it| it.kind).collect::<Vec<_>>(), [Kind::Image, Kind::Table]);
        assert_eq!((all[0].axes.as_slice(), all[0].value("OBSERVER")), (&[800, 2][..], Some("O'Neill")));
        assert_eq!(all[1].value("XTENSION"), Some("BINTABLE"));
        // A truncated extension is left out; a file that begins with one is refused.
        file.truncate(file.len() - 80);
        assert_eq!(headers(&Source::of(file), &Limits::default()).unwrap().len(), 1);
        let error =
            headers(&Source::of(block(&["XTENSION= 'IMAGE'", "END"])), &Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), "byte 0: expected SIMPLE  =");
        let endless = block(&["SIMPLE  =                    T"]).repeat(9);
        let limits = Limits { cards: 72, ..Limits::default() };
        assert!(matches!(headers(&Source::of(endless), &limits), Err(ArrayError::TooLarge { .. })));
    }

    #[test]
    fn sizes_that_no_file_has() {
        let huge = block(&[
            "SIMPLE  = T",
            "BITPIX  = 64",
            "NAXIS   = 2",
            "NAXIS1  = 18446744073709551615",
            "NAXIS2  = 18446744073709551615",
            "END",
        ]);
        assert_eq!(headers(&Source::of(huge), &Limits::default()).unwrap().len(), 1);
    }
}
