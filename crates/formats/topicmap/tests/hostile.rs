//! Hostile input: each file of `tests/data/hostile` is refused, with the file, the line and the reason.

use std::path::Path;

use pinakes_topicmap::dmoz::{self, Dump, Entry};
use pinakes_topicmap::{Builder, Format, IdentityKind, Item, Name, Occurrence, Options, iri, read, write};

fn refusal(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hostile").join(file);
    let format = Format::of_file(file).unwrap();
    let result = read(format, &std::fs::read(path).unwrap(), Options::new(format!("file:///{file}")));
    result.map(|it| it.map.counts()).expect_err(file).to_string()
}

#[test]
fn hostile_files_are_refused_with_a_reason() {
    for (file, expected) in [
        ("bomb.xtm", "file:///bomb.xtm, line 4: brings declarations of its own (DOCTYPE with [ ]): refused"),
        ("external.xtm", "file:///external.xtm, line 3: uses the entity secret; only the five of XML itself"),
        ("cut.xtm", "file:///cut.xtm, line 3: the document ends within an element; is the file cut off?"),
        (
            "encoding.xtm",
            "file:///encoding.xtm, line 1: declares the encoding \"klingon\", which is not known",
        ),
        ("bytes.xtm", "file:///bytes.xtm, line 3: holds bytes that are no characters of the encoding UTF-8"),
        ("template.ctm", "file:///template.ctm, line 3: templates invoke each other more than 64 deep"),
        ("deep.ctm", "file:///deep.ctm, line 1: topics are embedded more than 64 deep"),
        ("deep.xtm", "file:///deep.xtm, line 1: elements lie more than 64 deep"),
        ("deep.jtm", "file:///deep.jtm, line 1: is no JSON: recursion limit exceeded"),
        (
            "merge.ltm",
            "file:///merge.ltm, line 1: names another document, file:///etc/passwd; only what is handed",
        ),
    ] {
        let found = refusal(file);
        assert!(found.starts_with(expected), "{file}: {found}");
    }
}

#[test]
fn lenient_reading_replaces_and_warns() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hostile/bytes.xtm");
    let options = Options { is_strict: false, ..Options::new("file:///bytes.xtm") };
    let map = read(Format::Xtm, &std::fs::read(path).unwrap(), options).unwrap().map;
    assert_eq!(map.topics[0].names[0].value, "\u{FFFD}\u{FFFD}\u{FFFD}");

    let options = Options { is_strict: false, ..Options::new("file:///a.xtm") };
    let odd = br#"<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.0"><topic id="a"><odd/></topic></topicMap>"#;
    let reading = read(Format::Xtm, odd, options).unwrap();
    assert_eq!(reading.warnings[0].text, "the element odd may not stand here in topic; left out");
}

/// Markup and control characters in values are text: they come back unchanged, and never as elements.
#[test]
fn values_are_never_markup() {
    let value = "<script>alert(1)</script> & ]]> \"quoted\" \r\n\t end";
    let mut builder = Builder::new();
    let topic = builder.topic(IdentityKind::ItemIdentifier, "file:///m#a \"<>&%7B[x]");
    let kind = builder.subject("http://example.org/kind?a=<b>");
    let mut name = Name::new(value, kind);
    name.scope.push(kind);
    builder.add_name(topic, name);
    builder.add_occurrence(topic, Occurrence::new(kind, value, "http://example.org/type"));
    builder.add_occurrence(topic, Occurrence::new(kind, "<a xmlns=\"urn:x\">b</a>", iri::datatype::ANY_TYPE));
    builder.reify_map(kind);
    let map = builder.finish().unwrap();
    assert_eq!(map.item, Item { reifier: map.item.reifier, item_identifiers: Vec::new() });
    let canonical = |map: &pinakes_topicmap::TopicMap| {
        let mut out = Vec::new();
        write(Format::Cxtm, map, "file:///m", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    for format in [Format::Xtm, Format::Jtm] {
        let mut bytes = Vec::new();
        write(format, &map, "file:///m", &mut bytes).unwrap();
        let again = read(format, &bytes, Options::new("file:///m")).unwrap().map;
        assert_eq!(canonical(&again), canonical(&map), "{format:?}");
    }
}

#[test]
fn a_dump_that_is_cut_off_says_where() {
    let dump = "<?xml version='1.0'?>\n<RDF xmlns:r='http://www.w3.org/TR/RDF/'>\n<Topic r:id='Top/Arts'>\n<catid>2</catid>\n<narrow1 r:resource='Top/Arts/Music'/>\n<symbolic r:resource='Film:Top/Arts/Movies'/>\n</Topic>\n<Topic r:id='Top/Bus";
    let mut reader = dmoz::Reader::new(dump.as_bytes(), "structure.rdf.u8", Dump::Structure);
    let Some(Entry::Category(first)) = reader.next_entry().unwrap() else { panic!("a category") };
    assert_eq!((first.id.as_str(), first.catid.as_deref()), ("Top/Arts", Some("2")));
    assert_eq!((first.arcs[0].target.as_str(), first.arcs[0].group), ("Top/Arts/Music", Some(1)));
    assert_eq!(
        (first.arcs[1].target.as_str(), first.arcs[1].label.as_deref()),
        ("Top/Arts/Movies", Some("Film"))
    );
    let error = reader.next_entry().unwrap_err();
    assert_eq!(error.place.line, 8, "{error}");
}

/// A dump read as the other one would lose its relations, or its links.
#[test]
fn a_dump_is_not_read_as_the_other_one() {
    let categories = "<RDF>\n<Topic id='Top'>\n<narrow resource='Top/A'/></Topic></RDF>";
    let links = "<RDF>\n<ExternalPage about='http://a/'>\n<topic>Top/A</topic></ExternalPage></RDF>";
    for (format, dump, advice) in
        [(Format::DmozContent, categories, "dmoz-structure"), (Format::DmozStructure, links, "dmoz-content")]
    {
        let error = read(format, dump.as_bytes(), Options::new("file:///dump.u8")).unwrap_err();
        assert_eq!(error.place.line, 3, "{error}");
        assert!(error.to_string().ends_with(advice), "{error}");
    }
}

#[test]
fn bytes_that_are_no_utf_8_are_replaced_in_dumps() {
    let dump = b"<RDF><Topic id='Top/\xFF\xC3\xA9'><Title>A\x01 &nbsp; \xE2\x82</Title></Topic></RDF>";
    let mut reader = dmoz::Reader::new(&dump[..], "old.u8", Dump::Structure);
    let Some(Entry::Category(it)) = reader.next_entry().unwrap() else { panic!("a category") };
    assert_eq!((it.id.as_str(), it.title.as_deref()), ("Top/\u{FFFD}\u{e9}", Some("A  &nbsp; \u{FFFD}")));
    assert_eq!(reader.next_entry().unwrap(), None);
}

#[test]
fn a_vocabulary_becomes_topics() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/skos/library.rdf");
    let bytes = std::fs::read(path).unwrap();
    let map = read(Format::Skos, &bytes, Options::new("file:///library.rdf")).unwrap().map;
    let physics = map.topic(map.by_subject_identifier("http://example.org/subjects#physics").unwrap());
    let names: Vec<&str> = physics.names.iter().map(|it| it.value.as_str()).collect();
    assert_eq!(names, ["Physics", "Natural philosophy"]);
    assert_eq!(physics.occurrences[0].value, "The study of matter and its motion.");
    // Two types of three, one broader, inScheme from both ends.
    assert_eq!(map.associations.len(), 3 + 1 + 2);
}
