//! Runs this crate's fuzz targets on mutated inputs of a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/arrays.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod arrays;

#[test]
fn arrays_survives() {
    let fits = [
        "SIMPLE  =                    T",
        "BITPIX  =                    8",
        "NAXIS   =                    0",
        "END",
    ];
    let fits: String = fits.iter().map(|it| format!("{it:<80}")).collect();
    arrays::survives([
        include_bytes!("files/classic.nc").to_vec(),
        include_bytes!("files/ocean.nc").to_vec(),
        include_bytes!("files/scan.h5").to_vec(),
        format!("{fits:<2880}").into_bytes(),
    ]);
}
