//! OCI codes and timespans: published tables and examples, and laws.

use std::collections::BTreeSet;
use std::path::Path;

use pinakes_citations::oci::{OciWork, Supplier, decode, encode};
use pinakes_citations::{Omid, PartialDate, Timespan};
use pinakes_test_support::collection;
use proptest::prelude::*;

const CROSSREF: (Supplier, Supplier) = (Supplier::CROSSREF, Supplier::CROSSREF);

/// Every row of the published table is reproduced, in both directions.
#[test]
fn published_code_table() {
    let Some(folder) = collection("citations/index-csv") else { return };
    let mut reader = csv_rows(&folder.join("oc-index-lookup.csv"));
    let header = reader.remove(0);
    assert_eq!(header, ["c", "code"]);
    let mut met = BTreeSet::new();
    for row in &reader {
        let (letter, code) = (&row[0], &row[1]);
        let oci = format!("020{code}-020{code}");
        let (citing, _) = decode(&oci).unwrap();
        assert_eq!(
            citing,
            OciWork::Doi { supplier: Supplier::CROSSREF, doi: format!("10.{letter}") },
            "{code}"
        );
        if met.insert(letter) {
            // The carriage return is in the table three times; the first code is used.
            assert_eq!(encode(CROSSREF, &format!("10.{letter}"), &format!("10.{letter}")), Some(oci));
        }
    }
    assert_eq!((reader.len(), met.len()), (647, 645));
}

/// OCIs of the index software's own test data and of the samples follow from the DOIs beside them.
#[test]
fn published_ocis() {
    let Some(folder) = collection("citations/index-csv") else { return };
    let mut n_checked = 0;
    for file in [
        "oc-index-citations_data.csv",
        "oc-sample-part1.coci.csv",
        "oc-sample-part3.coci.csv",
        "coronavirus.coci.csv",
    ] {
        for row in &csv_rows(&folder.join(file))[1..] {
            let (citing, cited) = decode(&row[0]).unwrap();
            let (OciWork::Doi { supplier: one, doi: citing }, OciWork::Doi { supplier: other, doi: cited }) =
                (citing, cited)
            else {
                panic!("{row:?}");
            };
            assert_eq!((&citing, &cited), (&row[1], &row[2]));
            assert_eq!(encode((one, other), &citing, &cited).as_ref(), Some(&row[0]));
            n_checked += 1;
        }
    }
    assert_eq!(n_checked, 6 + 1913 + 1848 + 902);
}

fn csv_rows(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[test]
fn omid_ocis() {
    let (citing, cited) = decode("oci:06902852817-06320164131").unwrap();
    let omid = |text: &[u8]| OciWork::Omid(Omid::parse(text).unwrap());
    assert_eq!((citing, cited), (omid(b"omid:br/06902852817"), omid(b"06320164131")));
    assert_eq!(Omid::parse(b"br/06101801781").unwrap().to_string(), "omid:br/06101801781");
    for text in
        ["omid:ra/06101801781", "06", "061", "0610", "16101", "omid:br/", "061018017810618017816", "06x01"]
    {
        assert_eq!(Omid::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn bad_ocis() {
    for text in
        ["", "-", "020", "02001-", "02001-0200a", "10-10", "020899-02001", "0209-02001", "020998-02001"]
    {
        assert!(decode(text).is_err(), "{text}");
    }
    assert_eq!(encode(CROSSREF, "10.1/\u{1F600}", "10.1/a"), None);
}

/// The worked examples of the index software.
#[test]
fn timespans() {
    let examples = [
        ("2020-05-02", "2013-08-19", "P6Y8M13D"),
        ("2016-03", "2013-08-19", "P2Y6M"),
        ("2020", "2013-08", "P6Y"),
        ("2013", "2020", "-P7Y"),
        ("2020-01", "2020-05", "-P0Y4M"),
        ("2020", "2020", "P0Y"),
        ("2021-03-01", "2020-02-29", "P1Y0M1D"),
        ("2020-03-01", "2020-02-30", "P0Y0M2D"),
        ("2020", "2020-05", "P0Y"),
        ("2020-01-01", "2020-01-31", "-P0Y0M30D"),
        ("2020-03-31", "2020-02-29", "P0Y1M2D"),
    ];
    for (citing, cited, expected) in examples {
        let date = |text: &str| PartialDate::parse(text.as_bytes()).unwrap();
        let timespan = Timespan::between(date(citing), date(cited));
        assert_eq!(timespan.to_string(), expected, "{citing} {cited}");
        assert_eq!(Timespan::parse(expected.as_bytes()), Some(timespan));
    }
}

#[test]
fn bad_dates_and_timespans() {
    for text in
        ["", "20", "20200", "2020-", "2020-00", "2020-13", "2020-01-00", "2020-01-32", "2020-01-01-01", "x"]
    {
        assert_eq!(PartialDate::parse(text.as_bytes()), None, "{text}");
    }
    for text in ["", "P", "-P", "P1", "P1M", "P1Y2", "P1Y12M", "P1Y2M32D", "P1Y2M3D4", "1Y", "P10000Y", "PxY"]
    {
        assert_eq!(Timespan::parse(text.as_bytes()), None, "{text}");
    }
    assert_eq!(PartialDate::parse(b"2023-4").unwrap().to_string(), "2023-04");
}

fn dates() -> impl Strategy<Value = PartialDate> {
    (1000_u16..2100, proptest::option::of(1_u8..=12), proptest::option::of(1_u8..=28)).prop_map(
        |(year, month, day)| PartialDate::new(year, month, day.filter(|_| month.is_some())).unwrap(),
    )
}

proptest! {
    #[test]
    fn dates_round_trip(date in dates()) {
        prop_assert_eq!(PartialDate::parse(date.to_string().as_bytes()), Some(date));
    }

    #[test]
    fn timespans_round_trip(citing in dates(), cited in dates()) {
        let timespan = Timespan::between(citing, cited);
        prop_assert_eq!(timespan.n_parts(), citing.n_parts().min(cited.n_parts()));
        prop_assert_eq!(Timespan::parse(timespan.to_string().as_bytes()), Some(timespan));
    }

    #[test]
    fn ocis_round_trip(citing in "[a-z0-9./()<>;:_-]{1,40}", cited in "[a-z0-9àéö–]{1,20}") {
        let (citing, cited) = (format!("10.{citing}"), format!("10.{cited}"));
        let Some(oci) = encode(CROSSREF, &citing, &cited) else { return Ok(()) };
        let doi = |doi: &String| OciWork::Doi { supplier: Supplier::CROSSREF, doi: doi.clone() };
        prop_assert_eq!(decode(&oci).unwrap(), (doi(&citing), doi(&cited)));
    }

    #[test]
    fn arbitrary_text_does_no_harm(text in ".{0,60}", digits in "[0-9]{0,30}-[0-9]{0,30}") {
        decode(&text).ok();
        decode(&digits).ok();
        let omid = Omid::parse(text.as_bytes());
        prop_assert!(omid.is_none_or(|it| text.ends_with(&it.digits())));
        let date = PartialDate::parse(text.as_bytes());
        prop_assert!(date.is_none() || text.len() <= 10);
        let timespan = Timespan::parse(text.as_bytes());
        prop_assert!(timespan.is_none() || text.contains('Y'));
    }
}
