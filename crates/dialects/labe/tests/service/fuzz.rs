//! The fuzz targets of this crate on mutated inputs with a fixed seed; `just fuzz` runs them for longer.

#[path = "../../fuzz/fuzz_targets/documents.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod documents;

#[test]
fn documents_survives() {
    documents::survives([
        include_bytes!("../data/content/documents.ndjson").to_vec(),
        b"{\"id\": \"a\", \"n\": 1.0}\n\n".to_vec(),
    ]);
}
