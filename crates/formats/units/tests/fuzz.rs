//! Runs this crate's fuzz targets on mutated inputs of a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/unit.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod unit;

#[test]
fn unit_survives() {
    unit::survives(["kg m^2 / s^2", "degC", "1/angstrom", "mm", "kilometer / hour", "(m s)^-1"]);
}
