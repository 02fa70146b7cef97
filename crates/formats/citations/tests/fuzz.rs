//! Runs this crate's fuzz targets on mutated inputs of a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/graph.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod graph;
#[path = "../fuzz/fuzz_targets/rows.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod rows;

#[test]
fn graph_survives() {
    // Pairs of a place and a byte; the second input changes the header.
    graph::survives([b"\x00\x02\x00\x00\xff".to_vec(), b"\x08\x00\x00\x00\x01\x10\x05\x00\x00\x80".to_vec()]);
}

#[test]
fn rows_survives() {
    rows::survives([
        "oci,citing,cited,creation,timespan,journal_sc,author_sc\n0200101-0200102,10.1/a,10.1/b,2020-01,P1Y,no,yes\n",
        "\"id\",\"title\",\"author\"\n\"omid:br/0601 doi:10.1/a pmid:7\",\"A \"\"title\"\"\",\"Doe, J.\"\n",
        "id-1\t10.1/a\nid-2\thttps://doi.org/10.1/B\n",
        "10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2.",
        "-P2Y3M10D",
    ]);
}
