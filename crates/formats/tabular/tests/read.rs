//! Files built here byte by byte, and, where available, files that Dataverse's own tests ingest.

use std::io::{Cursor, Write as _};
use std::path::PathBuf;

use pinakes_tabular::{Format, Limits, Table, TabularError, Type, read, sniff};
use proptest::prelude::*;

fn table(format: Format, bytes: &[u8]) -> Result<(Table, String), TabularError> {
    let mut tab = Vec::new();
    let table = read(format, Cursor::new(bytes), &mut tab, &Limits::default())?;
    assert_eq!(table.n_bytes, tab.len() as u64);
    Ok((table, String::from_utf8(tab).expect("the tab-separated form is UTF-8")))
}

fn types_of(table: &Table) -> Vec<(&str, Type)> {
    table.variables.iter().map(|it| (it.name.as_str(), it.ty)).collect()
}

#[test]
fn columns_of_a_csv_file_are_told_apart() {
    let csv = "\u{feff}when,n,x,name,,n\n2026-01-31,1,1.50,\"a \"\"b\"\"\tc\",,7\n,2,,,,\n";
    let (table, tab) = table(Format::Csv, csv.as_bytes()).unwrap();
    let expected = [
        ("when", Type::Date),
        ("n", Type::Integer),
        ("x", Type::Real),
        ("name", Type::Text),
        ("v5", Type::Integer),
        ("v6", Type::Integer),
    ];
    assert_eq!(types_of(&table), expected);
    assert_eq!(tab, "2026-01-31\t1\t1.50\t\"a \\\"b\\\"\\tc\"\t\t7\n\t2\t\t\"\"\t\t\n");
    assert_eq!((table.n_rows, table.variables[2].n_missing, table.variables[3].n_missing), (2, 1, 0));
}

/// Numbers stay as they are written; some words stand for numbers.
#[test]
fn numbers_of_a_csv_file() {
    let csv = "a,b,c,d,e,f\n1E3,null,null,NA,2026-01-31 12:00:00,.\n+Inf,07,1.0,3,2026-01-31 12:00:00.50,1\n-inf,-1,,nan,,2\n";
    let (table, tab) = table(Format::Csv, csv.as_bytes()).unwrap();
    let types: Vec<Type> = table.variables.iter().map(|it| it.ty).collect();
    assert_eq!(types, [Type::Real, Type::Integer, Type::Real, Type::Real, Type::Time, Type::Text]);
    assert_eq!(
        tab,
        "1E3\t0\t0.0\t\t2026-01-31 12:00:00\t\".\"\nInf\t07\t1.0\t3\t2026-01-31 12:00:00.50\t\"1\"\n-Inf\t-1\t\tNaN\t\t\"2\"\n"
    );
    let summary = |at: usize| {
        let summary = table.variables[at].summary.clone().expect("a number has statistics");
        (summary.n_valid, summary.n_invalid, summary.mean)
    };
    assert_eq!(
        (summary(0), summary(1), summary(3)),
        ((1, 2, Some(1000.0)), (3, 0, Some(2.0)), (1, 2, Some(3.0)))
    );
    // 12:00:00.50 is the same time as 12:00:00.5.
    let other = csv.replace(".50,", ".5,");
    let (other, _) = self::table(Format::Csv, other.as_bytes()).unwrap();
    assert_eq!(other.unf, table.unf);
}

/// Blanks around the cells of a tab-separated file do not count.
#[test]
fn blanks_around_cells() {
    let (tsv, tab) = table(Format::Tsv, b"n \tname\n 1\tx \n").unwrap();
    assert_eq!(types_of(&tsv), [("n", Type::Integer), ("name", Type::Text)]);
    assert_eq!(tab, "1\t\"x\"\n");
    let (csv, tab) = table(Format::Csv, b"n,name\n 1,x \n").unwrap();
    assert_eq!(types_of(&csv), [("n", Type::Real), ("name", Type::Text)]);
    assert_eq!(tab, " 1\t\"x \"\n");
    let (csv, tab) = table(Format::Csv, b"n,m\n\"1\n\",\"\t2\"\n").unwrap();
    assert_eq!(types_of(&csv), [("n", Type::Text), ("m", Type::Text)]);
    assert_eq!(tab, "\"1\\n\"\t\"\\t2\"\n");
}

/// An SPSS file in the code page 1252 with two variables, whose short names are `\u{dc}BER` and `SPA\u{df}`.
fn spss() -> Vec<u8> {
    let mut file = b"$FL2@(#) SPSS DATA FILE".to_vec();
    file.resize(64, b' ');
    let number = |file: &mut Vec<u8>, list: &[i32]| list.iter().for_each(|it| file.extend(it.to_le_bytes()));
    number(&mut file, &[2, 2, 0, 0, 2]);
    file.extend(100_f64.to_le_bytes());
    file.resize(file.len() + 84, b' ');
    let two_decimals = 0x0005_0802;
    for name in [b"\xdcBER    ", b"SPA\xdf    "] {
        number(&mut file, &[2, 0, 0, 0, two_decimals, two_decimals]);
        file.extend(name);
    }
    number(&mut file, &[7, 3, 4, 8, 11, 0, 0, -1, 1, 1, 2, 1252]);
    let names = b"\xdcBER=\xfcberhaupt\tSPA\xdf=Spa\xdf";
    number(&mut file, &[7, 13, 1, i32::try_from(names.len()).unwrap()]);
    file.extend(names);
    number(&mut file, &[999, 0]);
    [1.0, 1.5, 2.0, -2.0].iter().for_each(|it: &f64| file.extend(it.to_le_bytes()));
    file
}

/// Names are in the file's code page. Both variables show two decimals; the cells decide which is whole.
#[test]
fn an_spss_file_of_another_code_page() {
    let (table, tab) = table(Format::Spss, &spss()).unwrap();
    assert_eq!(types_of(&table), [("\u{fc}berhaupt", Type::Integer), ("Spa\u{df}", Type::Real)]);
    assert_eq!(tab, "1\t1.5\n2\t-2\n");
}

#[test]
fn faults_say_where() {
    let text = |csv: &str| table(Format::Csv, csv.as_bytes()).unwrap_err().to_string();
    assert_eq!(text("a,b\n1,2\n1\n"), "line 3: 1 cells, but the line of names has 2");
    assert_eq!(text(""), "line 1: the file is empty; expected a line of names");
    let cut = table(Format::Stata, &[115, 2, 1, 0, 3]).unwrap_err().to_string();
    assert_eq!(cut, "byte 4: the file ends within the number of variables; was it cut off?");
    assert!(table(Format::Spss, b"$FL9").unwrap_err().to_string().contains("expected $FL2"));
}

#[test]
fn bounds_hold() {
    let limits = Limits { variables: 2, text_bytes: 8, ..Limits::default() };
    let refused =
        |csv: &str| read(Format::Csv, Cursor::new(csv), Vec::new(), &limits).unwrap_err().to_string();
    assert_eq!(refused("a,b,c\n"), "variables: 3, at most 2 are read");
    assert_eq!(refused("a,b\n1,123456789\n"), "bytes of a text: 9, at most 8 are read");
}

/// Built according to the format's description: one number, one text, value labels, a missing number.
fn stata_114() -> Vec<u8> {
    let mut file = vec![114, 2, 1, 0];
    file.extend(2_u16.to_le_bytes());
    file.extend(2_u32.to_le_bytes());
    file.extend([0; 81 + 18]);
    file.extend([251, 4]);
    let mut cell = |text: &str, n: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(n, 0);
        file.extend(bytes);
    };
    cell("answer", 33);
    cell("city", 33);
    cell("", 6);
    cell("%8.0g", 49);
    cell("%4s", 49);
    cell("yesno", 33);
    cell("", 33);
    cell("Whether", 81);
    cell("Where", 81);
    cell("", 5);
    file.extend([1, b'B', b'o', b'n', b'n', 101, b'a', 0, 0, 0]);
    let mut labels = Vec::new();
    for number in [1_u32, 4, 0, 1] {
        labels.extend(number.to_le_bytes());
    }
    labels.extend(b"yes\0");
    file.extend(u32::try_from(labels.len()).unwrap().to_le_bytes());
    file.extend(b"yesno");
    file.extend([0; 28 + 3]);
    file.extend(labels);
    file
}

#[test]
fn an_old_stata_file() {
    let file = stata_114();
    assert_eq!(sniff(&file), Some(Format::Stata));
    let (table, tab) = table(Format::Stata, &file).unwrap();
    assert_eq!(tab, "1\t\"Bonn\"\n\t\"a\"\n");
    let answer = &table.variables[0];
    assert_eq!((answer.label.as_str(), answer.format.as_str()), ("Whether", "%8.0g"));
    let category = &answer.categories[0];
    assert_eq!((category.value.as_str(), category.label.as_str(), category.n_cells), ("1", "yes", 1));
}

/// Returns a workbook of these parts.
fn workbook(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

const ROOT: (&str, &str) = (
    "_rels/.rels",
    r#"<Relationships><Relationship Id="a" Type="http://x/officeDocument" Target="book/b.xml"/></Relationships>"#,
);
const RELATIONS: (&str, &str) = (
    "book/_rels/b.xml.rels",
    r#"<Relationships><Relationship Id="r1" Type="http://x/chartsheet" Target="c.xml"/><Relationship Id="r2" Type="http://x/worksheet" Target="/book/s.xml"/><Relationship Id="r3" Type="http://x/sharedStrings" Target="t.xml"/></Relationships>"#,
);
const BOOK: (&str, &str) = (
    "book/b.xml",
    r#"<workbook xmlns:r="u"><sheets><sheet name="A" r:id="r1"/><sheet name="B" r:id="r2"/></sheets></workbook>"#,
);
const STRINGS: (&str, &str) = (
    "book/t.xml",
    "<sst><si><t>when</t></si><si><r><t>A&amp;</t></r><r><t>B</t></r><rPh sb=\"0\"><t>no</t></rPh></si></sst>",
);
/// Returns a workbook whose sheet has these rows.
fn sheet(rows: &str) -> Vec<u8> {
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    workbook(&[ROOT, RELATIONS, BOOK, STRINGS, ("book/s.xml", &sheet)])
}

/// A row without content before the names; cells without a reference; a row that is shorter than the others.
const EXCEL_ROWS: &str = r#"<row r="1"><c r="A1" s="1"/></row>
<row r="2"><c r="A2" t="s"><v>0</v></c><c t="s"><v>1</v></c><c r="D2" t="inlineStr"><is><t>x</t></is></c><c r="E2" t="s"><v>0</v></c></row>
<row r="4"><c r="A4" s="1"><v>43831</v></c><c r="B4"><v>7</v></c><c r="C4" s="2"><v>43831.5</v></c><c r="D4"><f>1/4</f><v>0.25</v></c><c r="E4" t="b"><v>1</v></c></row>
<row><c><v></v></c><c t="e"><v>#N/A</v></c><c r="D5"><v>1E3</v></c><c t="s"><v>1</v></c></row>"#;

#[test]
fn an_excel_workbook() {
    let (table, tab) = table(Format::Xlsx, &sheet(EXCEL_ROWS)).unwrap();
    let expected = [
        ("when", Type::Real),
        ("A&B", Type::Real),
        ("v3", Type::Real),
        ("x", Type::Real),
        ("v5", Type::Text),
    ];
    assert_eq!(types_of(&table), expected);
    assert_eq!(tab, "43831.0\t7.0\t43831.5\t0.25\t\"1\"\n\t\t\t1000.0\t\"A&B\"\n");
}

#[test]
fn workbooks_that_cannot_be_read_say_why() {
    let parts = |sheet: &'static str| workbook(&[ROOT, RELATIONS, BOOK, STRINGS, ("book/s.xml", sheet)]);
    for (bytes, expected) in [
        (b"PK".to_vec(), "this is no workbook of Excel"),
        (workbook(&[]), "part _rels/.rels cannot be read"),
        (workbook(&[ROOT, RELATIONS, BOOK, STRINGS]), "part book/s.xml cannot be read"),
        (sheet(""), "line 1: the first sheet is empty"),
        (
            sheet("<row><c><v>1</v></c></row><row><c/><c><v>1</v></c></row>"),
            "line 2: 2 cells, but the line of names has 1",
        ),
        (sheet("<row><c t=\"s\"><v>9</v></c></row>"), "\"9\"; expected the number of a shared string"),
        (sheet("<row><c><v>one</v></c></row>"), "\"one\"; expected a number"),
        (sheet("<row><c r=\"ZZZZ1\"><v>1</v></c></row>"), "variables: 475254, at most 32767 are read"),
        (parts("<worksheet><sheetData><row><c>"), "book/s.xml, byte"),
        (parts("<!DOCTYPE a [<!ENTITY b \"c\">]><worksheet/>"), "a document type"),
        (sheet("<row><c t=\"str\"><v>&b;</v></c></row>"), "an entity that XML does not have"),
    ] {
        let refused = table(Format::Xlsx, &bytes).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}\n{expected}");
    }
    let limits =
        Limits { text_bytes: 1 << 16, part_bytes: 1 << 20, long_string_bytes: 1 << 10, ..Limits::default() };
    let long = format!("<row><c t=\"str\"><v>{}</v></c></row>", "x".repeat(1 << 20));
    let many = "<row/>".repeat(1 << 18);
    let strings = format!("<sst>{}</sst>", "<si/>".repeat(100));
    let strings = workbook(&[ROOT, RELATIONS, BOOK, ("book/t.xml", &strings), ("book/s.xml", "<a/>")]);
    for (bytes, expected) in [
        (sheet(&long), "larger than is read"),
        (sheet(&many), "larger than is read"),
        (strings, "bytes of shared strings: 1032, at most 1024 are read"),
    ] {
        let refused = read(Format::Xlsx, Cursor::new(bytes), Vec::new(), &limits).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}\n{expected}");
    }
}

fn shared(path: &str) -> Option<Vec<u8>> {
    let folder =
        std::env::var_os("PINAKES_SHARED").map_or_else(|| PathBuf::from("../../../../shared"), PathBuf::from);
    let found = std::fs::read(folder.join(path)).ok();
    if found.is_none() {
        eprintln!("skipped: {path} is not to be had");
    }
    found
}

#[test]
fn dataverses_own_files() {
    let suite = "suites/dataverse/scripts/search/data/tabular";
    // The sizes are those that Dataverse's own tests expect.
    let cases = [
        ("stata13-auto.dta", 12, 74, 4026),
        ("50by1000.dta", 50, 1000, 105_000),
        ("stata13-auto-withstrls.dta", 13, 74, 5817),
        ("stata14-auto-withstrls.dta", 13, 74, 5817),
        ("open-source-at-harvard118.dta", 10, 74, 12_327),
        ("120745.dta", 1, 1, 4),
    ];
    for (name, n_variables, n_rows, n_bytes) in cases {
        let Some(bytes) = shared(&format!("{suite}/{name}")) else { continue };
        let (table, _) = table(Format::Stata, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            (table.variables.len(), table.n_rows, table.n_bytes),
            (n_variables, n_rows, n_bytes),
            "{name}"
        );
    }
    let sav = [
        ("suites/dataverse/src/test/resources/sav/dct.sav", 3, 3045),
        ("suites/dataverse/src/test/resources/sav/frequency-test.sav", 3, 3045),
        ("data/dataverse/files/sample-bafacalo-bafacalo_dataset_subset.sav", 170, 248),
        ("data/dataverse/files/sample-cause-of-death-adjacency_subset.sav", 3, 15_000),
        ("data/dataverse/files/sample-flynn-effect-in-estonia-FE_1933_2006_data_subset.sav", 292, 1200),
        ("data/dataverse/files/sample-this-is-my-test-dataset-triad-data-5466.sav", 45, 1168),
    ];
    for (path, n_variables, n_rows) in sav {
        let Some(bytes) = shared(path) else { continue };
        let (table, _) = table(Format::Spss, &bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!((table.variables.len(), table.n_rows), (n_variables, n_rows), "{path}");
    }
    // As published for this file, and as in the description that Dataverse's tests edit.
    if let Some(bytes) = shared(&format!("{suite}/stata13-auto.dta")) {
        let (table, _) = table(Format::Stata, &bytes).unwrap();
        assert_eq!(table.unf.0, "UNF:6:RPd9EWHSZwqUvRZuKTJMqg==");
    }
    if let Some(bytes) = shared("suites/dataverse/src/test/resources/sav/dct.sav") {
        let (table, _) = table(Format::Spss, &bytes).unwrap();
        let expected = [
            (
                Type::Integer,
                "UNF:6:HbM1tFHAsgACfUYee9JhTQ==",
                1.495_238_095_238_096_8,
                0.500_059_442_058_279_2,
            ),
            (
                Type::Integer,
                "UNF:6:VGyH5f6KGRmMBFDAy6l6NQ==",
                3.131_691_297_208_541_3,
                0.753_919_192_676_849_5,
            ),
            (Type::Real, "UNF:6:j+BtC84BNZ44dNOkCwg/0Q==", 1.000_000_002_018_390_8, 0.516_810_105_468_248_6),
        ];
        for (variable, (ty, unf, mean, deviation)) in table.variables.iter().zip(expected) {
            let summary = variable.summary.as_ref().expect("a number has statistics");
            assert_eq!((variable.ty, variable.unf.0.as_str(), variable.format.as_str()), (ty, unf, ""));
            assert_eq!((summary.mean, summary.standard_deviation), (Some(mean), Some(deviation)));
        }
    }
    let xlsx = "data/dataverse/files/sample-tabular-sample-data-Tabular_Sample_Data.xlsx";
    if let Some(bytes) = shared(xlsx) {
        let (table, tab) = table(Format::Xlsx, &bytes).unwrap_or_else(|error| panic!("{xlsx}: {error}"));
        let types: Vec<Type> = table.variables.iter().map(|it| it.ty).collect();
        let (real, text) = (Type::Real, Type::Text);
        assert_eq!(types, [real, text, text, text, real, real, real]);
        assert_eq!(
            (table.n_rows, tab.lines().next()),
            (43, Some("43617.0\t\"East\"\t\"Jones\"\t\"Pencil\"\t95.0\t1.99\t189.05"))
        );
        // As published with this file at demo.dataverse.org.
        assert_eq!((table.n_bytes, table.unf.0.as_str()), (2200, "UNF:6:eFXLLKw9zMMIcjPRZOLhPg=="));
    }
}

proptest! {
    /// Whatever the bytes, a read ends in a table or an error.
    #[test]
    fn damaged_files_are_refused(at in 0_usize..2000, byte: u8, cut in 0_usize..2000) {
        let mut file = stata_114();
        if let Some(place) = file.get_mut(at) {
            *place = byte;
        }
        file.truncate(cut);
        let _ = table(Format::Stata, &file);
    }

    #[test]
    fn damaged_sheets_are_refused(at in 0_usize..400, byte in 0_u8..128, cut in 0_usize..500) {
        let mut rows = EXCEL_ROWS.as_bytes().to_vec();
        if let Some(place) = rows.get_mut(at) {
            *place = byte;
        }
        rows.truncate(cut);
        let _ = table(Format::Xlsx, &sheet(&String::from_utf8_lossy(&rows)));
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        for format in [Format::Csv, Format::Tsv, Format::Stata, Format::Spss, Format::SpssPortable, Format::Xlsx, Format::RData] {
            let _ = table(format, &bytes);
        }
    }
}
