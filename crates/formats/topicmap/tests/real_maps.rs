//! Maps made by people: their counts are those of their provenance page, and they are unchanged by way of XTM
//! 2.1 and JTM.
//!
//! They are in `../shared/data/topics`, or where `PINAKES_TOPICS` says; without them nothing is read, and a message
//! says so.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use pinakes_topicmap::dmoz::{self, Dump};
use pinakes_topicmap::{Counts, Format, Options, TopicMap, read, write};

fn folder() -> Option<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os("PINAKES_TOPICS")
        .map_or_else(|| manifest.join("../../../../shared/data/topics"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("{} is absent: 0 real maps read", folder.display());
    None
}

fn bytes(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_none_or(|it| it != "gz") {
        return bytes;
    }
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut out).unwrap();
    out
}

fn read_lenient(format: Format, path: &Path) -> TopicMap {
    let mut loader = |iri: &str| {
        let name = iri.rsplit('/').next().unwrap_or_default();
        std::fs::read(path.parent().unwrap().join(name)).map_err(|error| error.to_string())
    };
    let base = format!("file://{}", path.display());
    let options = Options { is_strict: false, loader: Some(&mut loader), ..Options::new(base) };
    read(format, &bytes(path), options).unwrap().map
}

fn canonical(map: &TopicMap, path: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    write(Format::Cxtm, map, &format!("file://{}", path.display()), &mut out).unwrap();
    out
}

#[test]
fn maps_have_the_counts_of_their_page_and_survive_a_round_trip() {
    let Some(folder) = folder() else { return };
    for (file, counts) in [
        ("mondial.xtm.gz", [5976, 6150, 0, 9647, 21927, 43854]),
        ("TapsasConcerts.xtm", [858, 1028, 0, 1336, 2483, 5001]),
        ("xmltools-tm.xtm", [607, 677, 242, 1223, 1485, 2970]),
        ("JillsMusic.xtm", [277, 257, 0, 227, 1061, 2117]),
        ("MyThesaurus.xtm", [257, 229, 0, 233, 1046, 2087]),
        ("tm-standards.xtm", [218, 228, 0, 500, 439, 878]),
        ("geography.xtm", [115, 121, 14, 43, 152, 304]),
        ("ontopsi.xtm", [17, 14, 10, 2, 3, 6]),
    ] {
        let path = folder.join("xtm").join(file);
        let map = read_lenient(Format::Xtm, &path);
        let [topics, names, variants, occurrences, associations, roles] = counts;
        assert_eq!(
            map.counts(),
            Counts { topics, names, variants, occurrences, associations, roles },
            "{file}"
        );
        round_trip(&map, &path);
    }
}

#[test]
fn italian_opera_is_read_and_survives_a_round_trip() {
    let Some(folder) = folder() else { return };
    let path = folder.join("ltm/ItalianOpera.ltm");
    let map = read_lenient(Format::Ltm, &path);
    assert!(map.counts().topics > 1000, "{:?}", map.counts());
    round_trip(&map, &path);
}

/// Writes and reads XTM, JTM and XTM again.
fn round_trip(map: &TopicMap, path: &Path) {
    let base = format!("file://{}", path.display());
    let mut again = map.clone();
    for format in [Format::Xtm, Format::Jtm, Format::Xtm] {
        let mut bytes = Vec::new();
        write(format, &again, &base, &mut bytes).unwrap();
        again = read(format, &bytes, Options::new(base.clone())).unwrap().map;
    }
    assert!(canonical(&again, path) == canonical(map, path), "{} changes on the way", path.display());
}

#[test]
fn samples_of_the_directory_are_read_to_their_end() {
    let Some(folder) = folder() else { return };
    for (file, dump, expected) in
        [("structure_sample.rdf.u8", Dump::Structure, 4), ("content_sample.rdf.u8", Dump::Content, 11)]
    {
        let input = std::io::BufReader::new(std::fs::File::open(folder.join("dmoz").join(file)).unwrap());
        let mut reader = dmoz::Reader::new(input, file, dump);
        let mut n_entries = 0;
        while reader.next_entry().unwrap().is_some() {
            n_entries += 1;
        }
        assert_eq!(n_entries, expected, "{file}");
    }
}
