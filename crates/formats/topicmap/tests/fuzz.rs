//! Runs this crate's fuzz targets on mutated inputs of a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/convert.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod convert;
#[path = "../fuzz/fuzz_targets/read.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod read;

/// Returns a small map in most formats, after the byte that chooses it (its place in `Format::ALL`).
fn maps() -> Vec<Vec<u8>> {
    let map = |choice: u8, text: &str| [&[choice], text.as_bytes()].concat();
    vec![
        map(
            0,
            r##"<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="a"><subjectIdentifier href="http://x/a"/>
            <instanceOf><topicRef href="#t"/></instanceOf><name><value>A</value><variant><scope><topicRef href="#s"/></scope>
            <resourceData>a</resourceData></variant></name><occurrence><type><topicRef href="#o"/></type>
            <resourceRef href="http://x/"/></occurrence></topic><association><type><topicRef href="#y"/></type><role><type>
            <topicRef href="#r"/></type><topicRef href="#a"/></role></association></topicMap>"##,
        ),
        map(
            2,
            r##"<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink"><topic id="a">
            <baseName><baseNameString>A</baseNameString></baseName></topic></topicMap>"##,
        ),
        map(
            3,
            r#"{"version":"1.1","item_type":"topicmap","topics":[{"subject_identifiers":["http://x/a"],"names":[{"value":"A"}],
            "occurrences":[{"value":"1","type":"si:http://x/o","datatype":"http://www.w3.org/2001/XMLSchema#integer"}]}]}"#,
        ),
        map(4, "[a : t = \"A\" @\"http://x/a\"]\nrel(a : r1, b : r2)\n{a, o, [[text]]}\n"),
        map(5, "a isa t; - \"A\"; o: 42; http://x/ .\nrel(r1: a, r2: b)\n"),
        map(
            7,
            r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
            <skos:Concept rdf:about="http://x/a"><skos:prefLabel xml:lang="en">A</skos:prefLabel>
            <skos:broader rdf:resource="http://x/b"/></skos:Concept></rdf:RDF>"#,
        ),
        map(
            8,
            r#"<RDF xmlns:r="http://www.w3.org/TR/RDF/" xmlns:d="http://purl.org/dc/elements/1.0/" xmlns="http://dmoz.org/rdf/">
            <Topic r:id="Top/Arts"><d:Title>Arts</d:Title><narrow r:resource="Top/Arts/Music"/></Topic></RDF>"#,
        ),
    ]
}

#[test]
fn convert_survives() {
    convert::survives(maps());
}

#[test]
fn read_survives() {
    read::survives(maps());
}
