//! DOI rules: recorded cases, laws, and lists as catalogues have them.

mod golden;

use pinakes_citations::Doi;
use pinakes_citations::doi::{Dirt, normalise_into};
use pinakes_test_support::collection;
use proptest::prelude::*;

/// One value per line, with `\xNN` for bytes; the case's name says whether dirt is cut.
#[test]
fn golden_values() {
    golden::check_area("doi", |name, input| {
        let dirt = if name.starts_with("dirty") { Dirt::Cut } else { Dirt::Keep };
        let lines = str::from_utf8(input).unwrap().lines();
        lines.map(|line| format!("{line} -> {}\n", answer(&unescape(line), dirt))).collect()
    });
}

fn answer(raw: &[u8], dirt: Dirt) -> String {
    let mut doi = Vec::new();
    match normalise_into(raw, dirt, &mut doi) {
        Ok(()) => String::from_utf8(doi).unwrap(),
        Err(error) => format!("! {error}"),
    }
}

fn unescape(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once("\\x") {
        bytes.extend_from_slice(before.as_bytes());
        bytes.push(u8::from_str_radix(&behind[..2], 16).unwrap());
        rest = &behind[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Values that a library catalogue calls DOIs: nearly all are, and every one is unchanged when parsed again.
#[test]
fn catalogue_lists() {
    let Some(lists) = collection("citations/doi-lists") else { return };
    for (file, n_lines) in [("labe-ma-doi-part2.tsv.zst", 477_583), ("labe-ma-doi-part3.tsv.zst", 499_094)] {
        let packed = std::fs::read(lists.join(file)).unwrap();
        let list = zstd::decode_all(packed.as_slice()).unwrap();
        let lines: Vec<&[u8]> = list.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), n_lines, "{file}");
        let mut n_good = 0;
        for line in lines.iter().step_by(7) {
            let mut doi = Vec::new();
            if normalise_into(line, Dirt::Cut, &mut doi).is_ok() {
                n_good += 1;
                let mut again = Vec::new();
                normalise_into(&doi, Dirt::Cut, &mut again).unwrap();
                assert_eq!(again, doi);
            }
        }
        assert!(lines.len() / 7 * 99 / 100 < n_good, "{file}: {n_good} of {}", lines.len() / 7);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
        for dirt in [Dirt::Keep, Dirt::Cut] {
            let mut doi = b"kept".to_vec();
            if normalise_into(&raw, dirt, &mut doi).is_err() {
                prop_assert_eq!(&doi, b"kept");
            }
        }
    }

    #[test]
    fn spellings_meet(suffix in "[a-zA-Z0-9./()<>;:_-]{1,40}", prefix in prop::sample::select(vec![
        "", "doi:", "DOI: ", "https://doi.org/", "http://dx.doi.org/", "HTTPS://DOI.ORG/doi:", " \t", "info:doi/",
    ])) {
        let plain = Doi::parse(&format!("10.1000/{suffix}")).unwrap();
        prop_assert_eq!(Doi::parse(&format!("{prefix}10.1000/{suffix}\n")).unwrap(), plain.clone());
        let encoded: String = format!("10.1000/{suffix}").bytes().map(|byte| format!("%{byte:02x}")).collect();
        prop_assert_eq!(Doi::parse(&encoded).unwrap(), plain.clone());
        prop_assert_eq!(Doi::parse(plain.as_str()).unwrap(), plain);
    }
}
