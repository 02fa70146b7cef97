//! R workspaces, built here value by value as "R Internals" describes them.

use std::io::{Cursor, Write as _};

use bzip2::write::BzEncoder;
use flate2::Compression;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};
use pinakes_tabular::{Format, Limits, Table, TabularError, Type, read, sniff};

const HAS_ATTRIBUTES: u32 = 1 << 9;
const HAS_TAG: u32 = 1 << 10;
const NIL: u32 = 254;
/// `NA` among numbers.
const NA_REAL: f64 = f64::from_bits(0x7ff0_0000_0000_07a2);

/// Values as R writes them.
#[derive(Default)]
struct Saved(Vec<u8>);

impl Saved {
    fn flags(&mut self, flags: u32) {
        self.0.extend(flags.to_be_bytes());
    }

    fn length(&mut self, n: usize) {
        self.0.extend(u32::try_from(n).unwrap().to_be_bytes());
    }

    fn characters(&mut self, text: Option<&str>) {
        self.flags(9 | (64 << 12));
        match text {
            Some(text) => {
                self.length(text.len());
                self.0.extend(text.as_bytes());
            }
            None => self.0.extend((-1_i32).to_be_bytes()),
        }
    }

    fn symbol(&mut self, name: &str) {
        self.flags(1);
        self.characters(Some(name));
    }

    fn texts(&mut self, list: &[Option<&str>]) {
        self.flags(16);
        self.length(list.len());
        list.iter().for_each(|it| self.characters(*it));
    }

    fn integers(&mut self, flags: u32, list: &[i32]) {
        self.flags(flags);
        self.length(list.len());
        list.iter().for_each(|it| self.0.extend(it.to_be_bytes()));
    }

    fn reals(&mut self, flags: u32, list: &[f64]) {
        self.flags(flags);
        self.length(list.len());
        list.iter().for_each(|it| self.0.extend(it.to_be_bytes()));
    }

    /// Attributes that are texts.
    fn attributes(&mut self, list: &[(&str, &[Option<&str>])]) {
        for (name, texts) in list {
            self.flags(2 | HAS_TAG);
            self.symbol(name);
            self.texts(texts);
        }
        self.flags(NIL);
    }
}

/// Returns a workspace with a number and a data frame of six columns and three rows.
fn workspace(version: u32) -> Vec<u8> {
    let mut it = Saved(format!("RDX{version}\nX\n").into_bytes());
    it.0.extend(version.to_be_bytes());
    it.0.extend([0, 4, 4, 1, 0, 2, 3, 0]);
    if version == 3 {
        it.length(5);
        it.0.extend(b"UTF-8");
    }
    it.flags(2 | HAS_TAG);
    it.symbol("alone");
    it.reals(14, &[1.0]);
    it.flags(2 | HAS_TAG);
    it.symbol("tides");
    it.flags(19 | HAS_ATTRIBUTES | (1 << 8));
    it.length(6);
    if version == 3 {
        // 1:3, in compact form.
        it.flags(238);
        it.flags(2);
        it.symbol("compact_intseq");
        it.flags(2);
        it.symbol("base");
        it.flags(2);
        it.integers(13, &[13]);
        it.flags(NIL);
        it.reals(14, &[3.0, 1.0, 1.0]);
        it.flags(NIL);
    } else {
        it.integers(13, &[1, 2, i32::MIN]);
    }
    it.reals(14, &[1.5, NA_REAL, -2.0]);
    it.texts(&[Some("a\t\"b\""), None, Some("")]);
    it.integers(13 | HAS_ATTRIBUTES | (1 << 8), &[2, 1, i32::MIN]);
    it.attributes(&[("levels", &[Some("low"), Some("high")]), ("class", &[Some("factor")])]);
    it.reals(14 | HAS_ATTRIBUTES | (1 << 8), &[0.0, 20_484.0, f64::NAN]);
    it.attributes(&[("class", &[Some("Date")]), ("label", &[Some("The day")])]);
    it.integers(10, &[1, 0, i32::MIN]);
    let names = ["n", "x", "text", "level", "day", "is"].map(Some);
    it.attributes(&[("names", &names), ("class", &[Some("data.frame")])]);
    it.flags(NIL);
    it.0
}

/// Returns what each program packs the bytes to: gzip, bzip2, xz.
fn packed(bytes: &[u8]) -> [Vec<u8>; 3] {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    let mut bzip2 = BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(bytes).unwrap();
    let mut xz = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).unwrap();
    xz.write_all(bytes).unwrap();
    [gzip.finish().unwrap(), bzip2.finish().unwrap(), xz.finish().unwrap()]
}

fn table(bytes: &[u8], limits: &Limits) -> Result<(Table, String), TabularError> {
    let mut tab = Vec::new();
    let table = read(Format::RData, Cursor::new(bytes), &mut tab, limits)?;
    Ok((table, String::from_utf8(tab).expect("the tab-separated form is UTF-8")))
}

#[test]
fn the_first_data_frame_is_the_table() {
    for version in [2, 3] {
        let bytes = workspace(version);
        assert_eq!(sniff(&bytes), Some(Format::RData));
        let (found, tab) = table(&bytes, &Limits::default()).unwrap();
        for packed in packed(&bytes) {
            assert_eq!(table(&packed, &Limits::default()).unwrap(), (found.clone(), tab.clone()));
        }
        let third = if version == 3 { "3" } else { "" };
        assert_eq!(
            tab,
            format!(
                "1\t1.5\t\"a\\t\\\"b\\\"\"\t\"high\"\t1970-01-01\t1\n2\t\t\t\"low\"\t2026-01-31\t0\n{third}\t-2\t\"\"\t\t\t\n"
            )
        );
        let types: Vec<(&str, Type)> = found.variables.iter().map(|it| (it.name.as_str(), it.ty)).collect();
        assert_eq!(
            types,
            [
                ("n", Type::Integer),
                ("x", Type::Real),
                ("text", Type::Text),
                ("level", Type::Text),
                ("day", Type::Date),
                ("is", Type::Integer)
            ]
        );
        assert_eq!(found.variables[4].label, "The day");
        let counts: Vec<(&str, u64)> =
            found.variables[3].categories.iter().map(|it| (it.label.as_str(), it.n_cells)).collect();
        assert_eq!(counts, [("low", 1), ("high", 1)]);
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    let whole = workspace(2);
    let fault = |bytes: &[u8]| table(bytes, &Limits::default()).unwrap_err().to_string();
    for (bytes, part) in [
        (&b"BZh9"[..], "the file ends within"),
        (b"BZh9not a block", "bzip2"),
        (b"\xfd7zXZ\0", "the file ends within"),
        (b"\xfd7zXZ\0not a header", "header"),
        (b"RDX2\nB\n", "is the form of this workspace"),
        (b"RDA2\nA\n2x ", "\"2x\" in the version of the serialization; expected a whole number"),
        (b"RDX9\nX\n", "expected RDX2 or RDX3"),
        (b"RD", "the file ends within the magic number"),
        (&whole[..40], "the file ends within"),
    ] {
        assert!(fault(bytes).contains(part), "{}: {}", String::from_utf8_lossy(bytes), fault(bytes));
    }
    let limits = Limits { frame_bytes: 100, ..Limits::default() };
    for bytes in packed(&whole).iter().chain([&whole]) {
        assert!(table(bytes, &limits).unwrap_err().to_string().contains("bytes of a workspace of R"));
        fault(&bytes[..bytes.len() / 2]);
    }
    let mut none = Saved(b"RDX2\nX\n".to_vec());
    none.0.extend([0, 0, 0, 2, 0, 4, 4, 1, 0, 2, 3, 0]);
    none.flags(2 | HAS_TAG);
    none.symbol("alone");
    none.reals(14, &[1.0]);
    none.flags(NIL);
    assert!(fault(&none.0).contains("no data frame"));
    // A length beyond the data is refused before it is allocated.
    let mut long = none.0.clone();
    let at = long.len() - 4 - 8 - 4;
    long[at..at + 4].copy_from_slice(&0x7fff_ffff_u32.to_be_bytes());
    assert!(fault(&long).contains("bytes of a workspace of R"), "{}", fault(&long));
}

#[test]
fn values_that_lie_too_deep_are_refused() {
    let mut deep = Saved(b"RDX2\nX\n".to_vec());
    deep.0.extend([0, 0, 0, 2, 0, 4, 4, 1, 0, 2, 3, 0]);
    for _ in 0..1000 {
        deep.flags(19);
        deep.length(1);
    }
    let fault = table(&deep.0, &Limits::default()).unwrap_err().to_string();
    assert!(fault.contains("64 deep"), "{fault}");
}

/// Functions with byte code, as `save.image()` writes them beside the tables, and pointers are passed over.
#[test]
fn what_is_no_table_is_passed_over() {
    let mut it = Saved(b"RDX2\nX\n".to_vec());
    it.0.extend([0, 0, 0, 2, 0, 4, 4, 1, 0, 2, 3, 0]);
    it.flags(2 | HAS_TAG);
    it.symbol("f");
    // Environment, formals, body.
    it.flags(3 | HAS_TAG);
    it.flags(253);
    it.flags(NIL);
    it.flags(21);
    it.length(1);
    it.integers(13, &[12, 16, 1]);
    it.length(3);
    // A call with the number 0: no tag, the symbol `x`, and a list of one element, which is the call again.
    it.length(244);
    it.length(0);
    it.length(6);
    it.flags(NIL);
    it.length(1);
    it.symbol("x");
    it.length(2);
    it.flags(NIL);
    it.length(243);
    it.length(0);
    it.length(254);
    it.flags(NIL);
    // The code of another function, and a number.
    it.length(21);
    it.integers(13, &[1]);
    it.length(0);
    it.length(14);
    it.reals(14, &[2.0]);
    it.flags(2 | HAS_TAG);
    it.symbol("pointer");
    it.flags(22);
    it.flags(NIL);
    it.flags(NIL);
    it.flags(2 | HAS_TAG);
    it.symbol("waves");
    it.flags(19 | HAS_ATTRIBUTES | (1 << 8));
    it.length(2);
    it.reals(14, &[f64::INFINITY, f64::NAN, NA_REAL]);
    it.reals(15, &[]);
    let at = it.0.len() - 4;
    it.0.truncate(at);
    it.length(3);
    [1.0, -2.5, 0.0, 1.0, NA_REAL, 0.0].iter().for_each(|value: &f64| it.0.extend(value.to_be_bytes()));
    it.attributes(&[("names", &[Some("height"), Some("phase")]), ("class", &[Some("data.frame")])]);
    it.flags(NIL);
    let (_, tab) = table(&it.0, &Limits::default()).unwrap();
    assert_eq!(tab, "Inf\t\"1-2.5i\"\nNaN\t\"0+1i\"\n\t\n");
}

/// What `save(tides, file = "tides.RData", ascii = TRUE)` writes for a data frame of two columns.
const ASCII: &str = "RDA3\nA\n3\n263168\n197888\n5\nUTF-8\n1026\n1\n262153\n5\ntides\n787\n2\n14\n4\n1.5\nNA\nNaN\n-Inf\n\
    16\n4\n262153\n7\na\\040b\\tc\\\"d\n9\n-1\n262153\n0\n\n262153\n4\n\\303\\274\\n7\n1026\n1\n262153\n5\nnames\n16\n2\n\
    262153\n1\nx\n262153\n4\ntext\n1026\n1\n262153\n5\nclass\n16\n1\n262153\n10\ndata.frame\n1026\n1\n262153\n9\n\
    row.names\n13\n2\nNA\n-4\n254\n254\n";

#[test]
fn the_ascii_form() {
    assert_eq!(sniff(ASCII.as_bytes()), Some(Format::RData));
    let (_, tab) = table(ASCII.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(tab, "1.5\t\"a b\\tc\\\"d\"\n\t\nNaN\t\"\"\n-Inf\t\"\u{fc}\\n7\"\n");
    let cut = table(&ASCII.as_bytes()[..ASCII.len() - 5], &Limits::default()).unwrap_err().to_string();
    assert!(cut.contains("the file ends within"), "{cut}");
    let escape = ASCII.replace("\\040", "\\777");
    let fault = table(escape.as_bytes(), &Limits::default()).unwrap_err().to_string();
    assert!(fault.contains("\\777 in a text is no byte"), "{fault}");
}
