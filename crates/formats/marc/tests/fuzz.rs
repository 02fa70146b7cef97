//! Runs this crate's fuzz targets on mutated inputs of a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/marc8.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod marc8;
#[path = "../fuzz/fuzz_targets/read.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod read;

/// Prefixes a file with the byte that chooses its format and encoding.
fn chosen(choice: u8, file: &[u8]) -> Vec<u8> {
    [&[choice], file].concat()
}

#[test]
fn marc8_survives() {
    marc8::survives([
        b"G\xe8uler, \x1b(N\x41\x42\x1b(B caf\xe2e".to_vec(),
        b"\x1b$1!0!\x1b(B, \x1bgabc\x1bs \x1bp2\x1bs".to_vec(),
        b"\xebi\xeca plain".to_vec(),
    ]);
}

#[test]
fn read_survives() {
    let text = "=LDR  00714cam a2200205 a 4500\n=001  12883376\n=245  10$aTitle :$bfull {eacute} $c1\n\n";
    let xml = r#"<collection xmlns="http://www.loc.gov/MARC21/slim"><record><leader>00714cam a2200205 a 4500</leader>
        <controlfield tag="001">1</controlfield><datafield tag="245" ind1="1" ind2="0"><subfield code="a">A &amp; b</subfield>
        </datafield></record></collection>"#;
    let json = r#"{"leader":"00714cam a2200205 a 4500","fields":[{"001":"1"},{"245":{"ind1":"1","ind2":"0","subfields":[{"a":"A"}]}}]}"#;
    read::survives([
        chosen(0, include_bytes!("data/iso2709/good.in")),
        chosen(8, include_bytes!("data/iso2709/marc8.in")),
        chosen(1, xml.as_bytes()),
        chosen(2, json.as_bytes()),
        chosen(3, text.as_bytes()),
    ]);
}
