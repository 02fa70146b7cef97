//! R workspaces, built here value by value as "R Internals" describes them.

use std::io::{Cursor, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use pinakes_tabular::{Format, Limits, Table, TabularError, Type, read, sniff};

const HAS_ATTRIBUTES: u32 = 1 << 9;
const HAS_TAG: u32 = 1 << 10;
const NIL: u32 = 254;

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
    it.reals(14, &[1.5, f64::NAN, -2.0]);
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
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&bytes).unwrap();
        let (found, tab) = table(&packed.finish().unwrap(), &Limits::default()).unwrap();
        assert_eq!(table(&bytes, &Limits::default()).unwrap(), (found.clone(), tab.clone()));
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
        (&b"BZh9"[..], "packed by bzip2"),
        (b"\xfd7zXZ\0", "packed by xz"),
        (b"RDX2\nA\n", "XDR form"),
        (b"RDX9\nX\n", "expected RDX2 or RDX3"),
        (b"RD", "the file ends within the magic number"),
        (&whole[..40], "the file ends within"),
    ] {
        assert!(fault(bytes).contains(part), "{}: {}", String::from_utf8_lossy(bytes), fault(bytes));
    }
    let limits = Limits { frame_bytes: 100, ..Limits::default() };
    assert!(table(&whole, &limits).unwrap_err().to_string().contains("bytes of a workspace of R"));
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
