//! MARC 21 records in ISO 2709: leader, directory, fields (MARC 21 Specifications for Record Structure,
//! Library of Congress). Authorities with the fields that library systems match on (001, 010, 1XX, 4XX,
//! 670); bibliographic records with control numbers, ISBN, title, publication, headings and a call number.

use super::random::Random;
use super::words::{FAMILY_NAMES, GIVEN_NAMES, sentence};

const FIELD_END: u8 = 0x1E;
const SUBFIELD: u8 = 0x1F;
const RECORD_END: u8 = 0x1D;
const LEADER_BYTES: usize = 24;

/// The kind of the generated records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarcKind {
    /// Names and subjects.
    Authority,
    /// Books.
    Bibliographic,
}

/// Returns the `n`-th record of `seed`. Each number has its own control number and, where there is one, its own
/// LCCN and ISBN.
pub fn record(kind: MarcKind, seed: u64, n: u64) -> Vec<u8> {
    match kind {
        MarcKind::Authority => authority(seed, n),
        MarcKind::Bibliographic => bibliographic(seed, n),
    }
}

fn authority(seed: u64, n: u64) -> Vec<u8> {
    let mut random = Random::new(seed, n);
    let mut fields = Fields::default();
    let lccn = format!("n {:02}{n:06} ", 70 + n / 1_000_000 % 30);
    fields.control("001", &format!("bench{n:09}"));
    fields.control("003", "DLC");
    fields.control("005", "20230601120000.0");
    fields.control("008", "880316n| azannaabn          |a aaa     c");
    fields.data("010", "  ", &[('a', &lccn)]);
    fields.data("035", "  ", &[('a', &format!("(OCoLC)oca{n:08}"))]);
    fields.data("040", "  ", &[('a', "DLC"), ('b', "eng"), ('e', "rda"), ('c', "DLC")]);
    let name = heading(&mut random);
    let birth = 1700 + random.below(280);
    let dates = format!("{birth}-{}.", birth + 40 + random.below(50));
    fields.data("100", "1 ", &[('a', &format!("{name},")), ('d', &dates)]);
    for _ in 0..1 + random.below(5) {
        fields.data("400", "1 ", &[('a', &format!("{},", heading(&mut random))), ('d', &dates)]);
    }
    let (source, found) = (sentence(&mut random, 6), sentence(&mut random, 4));
    fields.data("670", "  ", &[('a', &format!("{source}, {birth}:")), ('b', &format!("t.p. ({found})"))]);
    fields.finish(*b"cz  ", *b"n  ")
}

fn bibliographic(seed: u64, n: u64) -> Vec<u8> {
    let mut random = Random::new(seed, n);
    let mut fields = Fields::default();
    let year = 1950 + random.below(73);
    fields.control("001", &format!("bench{n:09}"));
    fields.control("005", "20230601120000.0");
    fields.control("008", &format!("121103s{year}    mau      b    001 0 eng  "));
    fields.data("010", "  ", &[('a', &format!("  {:02}{n:06} ", n / 1_000_000 % 90))]);
    fields.data("020", "  ", &[('a', &isbn13(n))]);
    fields.data("035", "  ", &[('a', &format!("(OCoLC){n:09}"))]);
    fields.data("040", "  ", &[('a', "DLC"), ('c', "DLC")]);
    let class = format!("QC{}.{}", 1 + random.below(900), random.below(100));
    fields.data("050", "00", &[('a', &class), ('b', &format!(".B{} {year}", random.below(1000)))]);
    let author = heading(&mut random);
    fields.data("100", "1 ", &[('a', &format!("{author},")), ('e', "author.")]);
    let title = sentence(&mut random, 4);
    fields.data(
        "245",
        "10",
        &[
            ('a', &format!("{title} :")),
            ('b', &format!("{} /", sentence(&mut random, 6))),
            ('c', &format!("{author}.")),
        ],
    );
    fields.data("260", "  ", &[('a', "Boston :"), ('b', "Example Press,"), ('c', &format!("{year}."))]);
    fields.data("300", "  ", &[('a', &format!("{} p. ;", 80 + random.below(600))), ('c', "25 cm.")]);
    fields.data("520", "  ", &[('a', &format!("{}.", sentence(&mut random, 40)))]);
    for _ in 0..1 + random.below(3) {
        fields.data("650", " 0", &[('a', &sentence(&mut random, 2)), ('x', "Measurement.")]);
    }
    fields.finish(*b"cam ", *b" a ")
}

/// Generates `Family, Given`.
fn heading(random: &mut Random) -> String {
    format!("{}, {}", random.pick(&FAMILY_NAMES), random.pick(&GIVEN_NAMES))
}

/// Returns the `n`-th ISBN-13, with its check digit.
fn isbn13(n: u64) -> String {
    let digits = format!("978{n:09}");
    let sum: u32 = digits
        .bytes()
        .enumerate()
        .map(|(index, digit)| u32::from(digit - b'0') * if index % 2 == 0 { 1 } else { 3 })
        .sum();
    format!("{digits}{}", (10 - sum % 10) % 10)
}

/// A record under construction: the directory and the field data it points into.
#[derive(Default)]
struct Fields {
    directory: Vec<u8>,
    data: Vec<u8>,
}

impl Fields {
    fn control(&mut self, tag: &str, value: &str) {
        self.add(tag, value.as_bytes().to_vec());
    }

    fn data(&mut self, tag: &str, indicators: &str, subfields: &[(char, &str)]) {
        let mut value = indicators.as_bytes().to_vec();
        for (code, text) in subfields {
            value.push(SUBFIELD);
            value.extend(code.to_string().as_bytes());
            value.extend(text.as_bytes());
        }
        self.add(tag, value);
    }

    fn add(&mut self, tag: &str, mut value: Vec<u8>) {
        value.push(FIELD_END);
        let entry = format!("{tag}{:04}{:05}", value.len(), self.data.len());
        self.directory.extend(entry.as_bytes());
        self.data.extend(value);
    }

    /// Joins the parts. `kind` are leader positions 05-08, `level` positions 17-19; UTF-8.
    fn finish(self, kind: [u8; 4], level: [u8; 3]) -> Vec<u8> {
        let base = LEADER_BYTES + self.directory.len() + 1;
        let length = base + self.data.len() + 1;
        let [kind, level] = [&kind[..], &level[..]].map(String::from_utf8_lossy);
        let mut record = format!("{length:05}{kind}a22{base:05}{level}4500").into_bytes();
        record.extend(self.directory);
        record.push(FIELD_END);
        record.extend(self.data);
        record.push(RECORD_END);
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the requirements of ISO 2709 on one record: lengths, terminators, a directory that covers the
    /// data.
    fn check(record: &[u8]) {
        let number = |range: std::ops::Range<usize>| -> usize {
            std::str::from_utf8(&record[range]).unwrap().parse().unwrap()
        };
        let base = number(12..17);
        assert_eq!(number(0..5), record.len());
        assert_eq!(&record[10..12], b"22");
        assert_eq!(&record[20..24], b"4500");
        assert_eq!(record[9], b'a');
        assert_eq!((record[base - 1], record[record.len() - 1]), (FIELD_END, RECORD_END));
        assert_eq!((base - 1 - LEADER_BYTES) % 12, 0);
        let mut at = base;
        for entry in (LEADER_BYTES..base - 1).step_by(12) {
            assert_eq!(number(entry + 7..entry + 12), at - base);
            at += number(entry + 3..entry + 7);
            assert_eq!(record[at - 1], FIELD_END);
        }
        assert_eq!(at, record.len() - 1);
        assert!(std::str::from_utf8(record).is_ok());
    }

    #[test]
    fn records_are_valid_iso_2709() {
        for n in (0..2_000).chain([999_999, 12_345_678]) {
            check(&record(MarcKind::Authority, 1, n));
            check(&record(MarcKind::Bibliographic, 1, n));
        }
    }

    #[test]
    fn field_008_is_forty_characters() {
        for kind in [MarcKind::Authority, MarcKind::Bibliographic] {
            let record = record(kind, 1, 5);
            let entry = record[24..].chunks(12).find(|entry| entry.starts_with(b"008")).unwrap();
            assert_eq!(&entry[3..7], b"0041", "{kind:?}");
        }
    }

    #[test]
    fn isbn_check_digit() {
        assert_eq!(isbn13(30_640_615), "9780306406157");
    }
}
