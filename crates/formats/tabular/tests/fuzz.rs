//! Runs this crate's fuzz targets on mutated inputs of a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/read.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod read;

#[test]
fn read_survives() {
    let stata = [&b"\x72\x02\x01\0\x01\0\x01\0\0\0"[..], &[0; 400]].concat();
    let spss = [&b"$FL2@(#) SPSS DATA FILE"[..], &[b' '; 37], b"\x02\0\0\0\x01\0\0\0", &[0; 400]].concat();
    read::survives([
        b"name,size,when\n\"a, b\",1.5,2026-01-02\nc,-2,2026-01-03 10:00:00\n".to_vec(),
        b"name\tsize\nx\t1\ny\t\n".to_vec(),
        stata,
        spss,
        b"RDA2\nA\n2\n263168\n131840\n1026\n1\n9\n1\nt\n787\n2\n14\n2\n1.5\nNA\n16\n2\n9\n2\na\\n\n9\n-1\n1026\n1\n9\n5\nnames\n16\n2\n\
          9\n1\nx\n9\n1\ny\n1026\n1\n9\n5\nclass\n16\n1\n9\n10\ndata.frame\n254\n254\n"
            .to_vec(),
    ]);
}
