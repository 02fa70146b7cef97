//! Runs this crate's fuzz targets on mutated inputs of a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/metrics_page.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod metrics_page;
#[path = "../fuzz/fuzz_targets/target_url.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod target_url;

#[test]
fn metrics_page_survives() {
    metrics_page::survives([
        "# HELP a b\n# TYPE a counter\na{b=\"c\\\"d\",e=\"f\"} 1.5e3 1700000000\nx NaN\n",
    ]);
}

#[test]
fn target_url_survives() {
    target_url::survives(["http://127.0.0.1:8080/", "http://[::1]:1/", "http://10.0.0.1/"]);
}
