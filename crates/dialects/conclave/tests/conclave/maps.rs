//! Imported topic maps: the export equals the import in canonical form, and maps imported one after the other become
//! one map.

use std::path::{Path, PathBuf};

use pinakes_conclave::import::{Categories, Dmoz, Existing, Load, Mapped, Source, Streaming};
use pinakes_conclave::projection::to_map;
use pinakes_conclave::{OfMap, TOPIC, Topic};
use pinakes_store::{Catalogue, Expr, Limits, Query, Tenant};
use pinakes_topicmap::{Format, Options, TopicMap, read, write};

use crate::engine::Engine;
use crate::server::Failure;

fn tenant(engine: Engine, folder: &tempfile::TempDir) -> Result<(Catalogue, Tenant), Failure> {
    let catalogue = Catalogue::open(engine.location(folder)?, pinakes_conclave::KINDS, Limits::default())?;
    let tenant = catalogue.create_tenant("default", "for tests")?;
    Ok((catalogue, tenant))
}

fn load(tenant: &Tenant, map: TopicMap, name: &str, base: &str) -> Result<(), Failure> {
    let mut load = Load::begin(tenant, Existing::Merge)?;
    load.add_map(Mapped { map, name: name.to_owned(), base: base.to_owned() })?;
    load.finish()?;
    Ok(())
}

fn stored(tenant: &Tenant, name: &str) -> Result<(Vec<Topic>, OfMap), Failure> {
    let of_map = Query::filter(Expr::Is("map".into(), name.into()));
    tenant.read_blocking(|view| {
        let mut topics = Vec::new();
        for record in view.find(&TOPIC, &of_map)? {
            topics.push(Topic::stored(&record.body)?);
        }
        Ok((topics, OfMap::stored(view, name)?))
    })
}

fn canonical(map: &TopicMap, base: &str) -> Result<String, Failure> {
    let mut out = Vec::new();
    write(Format::Cxtm, map, base, &mut out)?;
    Ok(String::from_utf8(out)?)
}

/// Returns where two texts diverge, with a few lines before: whole texts are too long to read.
fn difference(one: &str, other: &str) -> Option<String> {
    let at = one.lines().zip(other.lines()).position(|(one, other)| one != other);
    let at = at.or((one != other).then(|| one.lines().count().min(other.lines().count())))?;
    let part = |text: &str| text.lines().skip(at.saturating_sub(6)).take(12).collect::<Vec<_>>().join("\n");
    Some(format!("line {}:\n{}\n--- and not ---\n{}", at + 1, part(other), part(one)))
}

/// Reads a file together with the files of its folder that it merges.
fn read_file(format: Format, path: &Path, is_strict: bool) -> Result<(TopicMap, String), Failure> {
    let folder = path.parent().ok_or("a file has a folder")?;
    let prefix = format!("file://{}/", folder.display());
    let base = format!("file://{}", path.display());
    let mut loader = |iri: &str| {
        let name = iri.strip_prefix(&prefix).ok_or("outside of the folder")?;
        std::fs::read(folder.join(name)).map_err(|error| error.to_string())
    };
    let mut bytes = std::fs::read(path)?;
    if bytes.starts_with(&[0x1F, 0x8B]) {
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut unpacked)?;
        bytes = unpacked;
    }
    let options = Options { is_strict, loader: Some(&mut loader), ..Options::new(base.clone()) };
    Ok((read(format, &bytes, options)?.map, base))
}

/// Checks that a map, its export from the store, and the re-import of exported files are canonically equal.
fn check(tenant: &Tenant, name: &str, (map, base): (TopicMap, String)) -> Result<(), Failure> {
    let expected = canonical(&map, &base)?;
    load(tenant, map.clone(), name, &base)?;
    let (topics, of_map) = stored(tenant, name)?;
    let again = to_map(&topics, &of_map)?;
    if let Some(difference) = difference(&expected, &canonical(&again, &base)?) {
        return Err(format!("{base}, from the store: {difference}").into());
    }
    for format in [Format::Xtm, Format::Jtm] {
        // XML cannot express NUL.
        if format == Format::Xtm && expected.contains('\0') {
            continue;
        }
        let mut bytes = Vec::new();
        write(format, &again, &base, &mut bytes)?;
        let back = read(format, &bytes, Options::new(base.clone()))?.map;
        if let Some(difference) = difference(&expected, &canonical(&back, &base)?) {
            return Err(format!("{base}, exported as {format:?}: {difference}").into());
        }
    }
    // Importing it again adds nothing.
    load(tenant, map, name, &base)?;
    let (topics, of_map) = stored(tenant, name)?;
    if let Some(difference) = difference(&expected, &canonical(&to_map(&topics, &of_map)?, &base)?) {
        return Err(format!("{base}, read twice: {difference}").into());
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        out.push(std::fs::canonicalize(entry?.path())?);
    }
    out.sort();
    Ok(out)
}

/// Every vendored case of the conformance suite, through the store.
#[test]
fn cases_of_the_suite_come_back() -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats/topicmap/tests/data/cxtm");
    for engine in Engine::all() {
        let folder = tempfile::tempdir()?;
        let (_catalogue, tenant) = tenant(engine, &folder)?;
        let (mut n_cases, mut faults) = (0, Vec::new());
        for (part, format) in [
            ("xtm1", Format::Xtm),
            ("xtm2", Format::Xtm),
            ("xtm21", Format::Xtm),
            ("jtm", Format::Jtm),
            ("jtm11", Format::Jtm),
            ("ltm", Format::Ltm),
            ("ctm", Format::Ctm),
        ] {
            for path in files(&root.join(part).join("in"))? {
                let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
                if Format::named(extension) != Some(format) {
                    continue;
                }
                n_cases += 1;
                let case = read_file(format, &path, true)?;
                if let Err(fault) = check(&tenant, &format!("case-{n_cases}"), case) {
                    faults.push(fault.to_string());
                }
            }
        }
        assert!(n_cases > 200, "{n_cases} cases: where is the suite?");
        assert!(faults.is_empty(), "{} of {n_cases}:\n{}", faults.len(), faults.join("\n\n"));
    }
    Ok(())
}

/// Real-world maps.
#[test]
fn real_maps_come_back() -> Result<(), Failure> {
    let Some(folder) = pinakes_test_support::collection("topics") else { return Ok(()) };
    let mut paths = files(&folder.join("xtm"))?;
    paths.extend(files(&folder.join("ltm"))?);
    for engine in Engine::all() {
        let place = tempfile::tempdir()?;
        let (_catalogue, tenant) = tenant(engine, &place)?;
        let mut n_maps = 0;
        for path in &paths {
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
            let format = Format::of_file(name).ok_or("a name tells the format")?;
            n_maps += 1;
            check(&tenant, &format!("map-{n_maps}"), read_file(format, path, false)?)?;
        }
        assert_eq!(n_maps, 9);
    }
    Ok(())
}

fn ltm(text: &str, base: &str) -> Result<TopicMap, Failure> {
    Ok(read(Format::Ltm, text.as_bytes(), Options::new(base))?.map)
}

/// Maps imported one after the other give the same as the maps imported as one: topics are merged by identity, and two
/// stored topics become one when a third has an identity of each.
#[test]
fn maps_merge_as_if_they_were_one() -> Result<(), Failure> {
    let parts = [
        "[a = \"A\" @\"http://psi.example.org/a\"] [x = \"X\"] lies-in(a : inner, x : outer) ~r [r = \"R\"]",
        // The same name for another subject.
        "[a = \"Other\" @\"http://psi.example.org/b\"] born-in(a : place, y : person)",
        // Makes the two topics one.
        "[m = \"M\" ; \"m-sort\" @\"http://psi.example.org/a\" @\"http://psi.example.org/b\"] {m, note, [[text]]}",
        // A locator, and an item identifier as a subject identifier.
        "[p = \"P\" %\"http://example.org/page\"] [q @\"file:///0.ltm#x\"] {q, note, [[of x]]}",
        "[s = \"S\" %\"http://example.org/page\"]",
    ];
    for engine in Engine::all() {
        let folder = tempfile::tempdir()?;
        let (_catalogue, tenant) = tenant(engine, &folder)?;
        let mut whole = String::from("<topicMap xmlns=\"http://www.topicmaps.org/xtm/\" version=\"2.1\">");
        let mut files = std::collections::BTreeMap::new();
        for (number, part) in parts.iter().enumerate() {
            let base = format!("file:///{number}.ltm");
            let map = ltm(part, &base)?;
            let mut bytes = Vec::new();
            write(Format::Xtm, &map, &base, &mut bytes)?;
            files.insert(format!("file:///{number}.xtm"), bytes);
            whole.push_str(&format!("<mergeMap href=\"file:///{number}.xtm\"/>"));
            load(&tenant, map, "default", &base)?;
        }
        whole.push_str("</topicMap>");
        let mut loader = |iri: &str| files.get(iri).cloned().ok_or_else(|| "no such file".to_owned());
        let options = Options { loader: Some(&mut loader), ..Options::new("file:///whole.xtm") };
        let expected = canonical(&read(Format::Xtm, whole.as_bytes(), options)?.map, "file:///")?;
        let (topics, of_map) = stored(&tenant, "default")?;
        let found = canonical(&to_map(&topics, &of_map)?, "file:///")?;
        assert_eq!(difference(&expected, &found), None, "{}", engine.name());
        let with_a: Vec<&Topic> =
            topics.iter().filter(|it| it.subject_identifiers.iter().any(|it| it.ends_with("/a"))).collect();
        assert_eq!(with_a.len(), 1, "one subject, one topic");
        let types: Vec<&str> = with_a[0].arcs.iter().map(|it| it.ty.as_str()).collect();
        assert_eq!(types, ["born-in", "lies-in"], "what all maps say of it");
        let locators = topics.iter().filter(|it| !it.subject_locators.is_empty());
        assert_eq!(locators.count(), 1);
    }
    Ok(())
}

/// A dump in which one category has a million arcs: refused at its line, and what came before is stored.
#[test]
fn a_topic_with_a_million_arcs_is_refused() -> Result<(), Failure> {
    let mut dump = String::from(
        "<RDF xmlns:r=\"x\"><Topic r:id=\"Top/A\"><catid>1</catid></Topic>\n<Topic r:id=\"Top/Hub\">\n",
    );
    for n in 0..1_000_000 {
        dump.push_str(&format!("<related r:resource=\"Top/{n}\"/>\n"));
    }
    dump.push_str("</Topic></RDF>");
    for engine in Engine::all() {
        let folder = tempfile::tempdir()?;
        let (_catalogue, tenant) = tenant(engine, &folder)?;
        let mut load = Load::begin(&tenant, Existing::Merge)?;
        let mut categories = Categories::default();
        let refused = load.fill(|sink| {
            let mut reading = Streaming {
                document: "structure.rdf",
                map: "default",
                how: Dmoz::default(),
                categories: &mut categories,
                sink,
            };
            Source::DmozStructure.stream(dump.as_bytes(), &mut reading)
        })?;
        let detail = refused.err().ok_or("it is refused")?.detail();
        assert!(
            detail.starts_with("structure.rdf, line 1000003: the topic \"Top/Hub\" would have"),
            "{detail}"
        );
        assert_eq!(load.finish()?.n_made, 1);
        let (topics, _) = stored(&tenant, "default")?;
        assert_eq!(topics.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["Top/A"]);
    }
    Ok(())
}
