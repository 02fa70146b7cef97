//! The public suite of CXTM cases: each input gives its baseline byte for byte, each invalid file is refused, and maps
//! written as XTM or JTM read back as the same map. XTM 2.0 and 1.0 give topics ids: they are not counted.
//!
//! The suite is in `../shared/data/cxtm-tests`, or where `PINAKES_CXTM_TESTS` says. If it is absent, only the cases
//! kept in `tests/data` are run.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pinakes_topicmap::{Error, Format, Options, TopicMap, read, write};

const FORMATS: [(&str, Format); 7] = [
    ("xtm1", Format::Xtm),
    ("xtm2", Format::Xtm),
    ("xtm21", Format::Xtm),
    ("jtm", Format::Jtm),
    ("jtm11", Format::Jtm),
    ("ltm", Format::Ltm),
    ("ctm", Format::Ctm),
];

fn roots() -> Vec<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::env::var_os("PINAKES_CXTM_TESTS")
        .map_or_else(|| manifest.join("../../../../shared/data/cxtm-tests"), PathBuf::from);
    let kept = manifest.join("tests/data/cxtm");
    if shared.is_dir() {
        vec![kept, shared]
    } else {
        eprintln!("{} is absent: only the kept cases are run", shared.display());
        vec![kept]
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut out: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
    out.sort();
    out
}

fn iri(path: &Path) -> String {
    format!("file://{}", std::fs::canonicalize(path).unwrap().display())
}

/// Reads a case; other documents come from its folder.
fn read_case(format: Format, path: &Path) -> Result<TopicMap, Error> {
    let folder = format!("file://{}/", std::fs::canonicalize(path.parent().unwrap()).unwrap().display());
    let mut loader = |iri: &str| {
        let name = iri.strip_prefix(&folder).filter(|it| !it.contains('/')).ok_or("outside of the folder")?;
        std::fs::read(path.parent().unwrap().join(name)).map_err(|error| error.to_string())
    };
    let options = Options { loader: Some(&mut loader), ..Options::new(iri(path)) };
    read(format, &std::fs::read(path).unwrap(), options).map(|it| it.map)
}

fn canonical(map: &TopicMap, base: &str) -> String {
    let mut out = Vec::new();
    write(Format::Cxtm, map, base, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The only function that knows how a case is judged.
fn check((name, format): (&str, Format), input: &Path, baseline: &Path) -> Result<(), String> {
    let map = read_case(format, input).map_err(|error| error.to_string())?;
    let base = iri(input);
    let expected = std::fs::read_to_string(baseline).unwrap();
    let found = canonical(&map, &base);
    if found != expected {
        return Err(difference(&expected, &found));
    }
    for written in [Format::Xtm, Format::Jtm, Format::Xtm2, Format::Xtm1] {
        // XML has no way to write a NUL.
        if written != Format::Jtm && expected.contains('\0') {
            continue;
        }
        // Only maps that came from XTM 1.0 fit into it completely.
        if written == Format::Xtm1 && name != "xtm1" {
            continue;
        }
        let mut bytes = Vec::new();
        write(written, &map, &base, &mut bytes).unwrap();
        let again = read(written, &bytes, Options::new(base.clone()));
        let mut again = again.map_err(|error| format!("{error}, written as {written:?}"))?.map;
        if matches!(written, Format::Xtm2 | Format::Xtm1) {
            forget_ids(&mut again, &map);
        }
        let found = canonical(&again, &base);
        if found != expected {
            return Err(format!("by way of {written:?}: {}", difference(&expected, &found)));
        }
    }
    Ok(())
}

/// Removes the item identifiers of topics that the map did not have before.
fn forget_ids(map: &mut TopicMap, before: &TopicMap) {
    let known: HashSet<&String> = before.topics.iter().flat_map(|it| &it.item_identifiers).collect();
    for topic in &mut map.topics {
        topic.item_identifiers.retain(|it| known.contains(it));
    }
}

fn difference(expected: &str, found: &str) -> String {
    let at = expected.lines().zip(found.lines()).take_while(|(one, other)| one == other).count();
    let line = |text: &str| text.lines().skip(at).take(4).collect::<Vec<_>>().join(" ");
    format!("line {}: expected {:?}, found {:?}", at + 1, line(expected), line(found))
}

#[test]
fn cases_give_their_baselines() {
    let (mut n_cases, mut failed) = (0, Vec::new());
    for root in roots() {
        for (name, format) in FORMATS {
            for input in files(&root.join(name).join("in")) {
                let file = input.file_name().unwrap().to_str().unwrap().to_owned();
                let baseline = root.join(name).join("baseline").join(format!("{file}.cxtm"));
                if !baseline.is_file() {
                    continue;
                }
                n_cases += 1;
                if let Err(why) = check((name, format), &input, &baseline) {
                    failed.push(format!("{name}/{file}: {why}"));
                }
            }
        }
    }
    eprintln!("{n_cases} cases");
    assert!(n_cases > 30, "no cases found: a moved folder would pass silently");
    assert!(failed.is_empty(), "{} of {n_cases} cases fail:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn invalid_files_are_refused() {
    let (mut n_cases, mut accepted) = (0, Vec::new());
    for root in roots() {
        for (name, format) in FORMATS {
            for input in files(&root.join(name).join("invalid")) {
                if input.extension().is_some_and(|it| it.to_str().unwrap().starts_with("sub")) {
                    continue;
                }
                n_cases += 1;
                match read_case(format, &input) {
                    Ok(_) => accepted.push(input.display().to_string()),
                    Err(error) => assert!(!error.reason.is_empty(), "{}", input.display()),
                }
            }
        }
    }
    eprintln!("{n_cases} invalid files");
    assert!(n_cases > 5, "no cases found: a moved folder would pass silently");
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

/// Checks what is written in older versions for what they cannot represent, against the files beside the input.
/// `BLESS=1` rewrites them: read the difference before the commit.
#[test]
fn older_versions_are_written_as_they_were() {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/versions/odd.xtm");
    let base = "file:///odd";
    let map = read(Format::Xtm, &std::fs::read(&input).unwrap(), Options::new(base)).unwrap().map;
    for (extension, format) in [("xtm2", Format::Xtm2), ("xtm1", Format::Xtm1)] {
        let mut out = Vec::new();
        write(format, &map, base, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = input.with_extension(extension);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&expected).unwrap_or_default(), text, "{}", expected.display());
        // Strict reading accepts it.
        read(format, text.as_bytes(), Options::new(base)).unwrap();
    }
}
