//! Runs this crate's fuzz targets on mutated inputs of a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/harvest.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod harvest;

#[test]
fn harvest_survives() {
    harvest::survives([
        "verb=Identify",
        "verb=ListMetadataFormats\nidentifier=oai:example.org:1",
        "verb=ListRecords\nmetadataPrefix=oai_dc\nset=s0\nfrom=2026-01-01\nuntil=2026-01-31T10:20:30Z",
        "verb=ListRecords\nresumptionToken=after=2&cursor=2&metadataPrefix=notes&set=s0&from=2026-01-01",
        "verb=ListIdentifiers\nresumptionToken=YWZ0ZXI9MiZjdXJzb3I9Mg",
        "verb=ListSets\nresumptionToken=after=sets&cursor=100",
        "verb=GetRecord\nidentifier=oai:example.org:1\nmetadataPrefix=notes",
    ]);
}
