//! Any bytes as FITS, NetCDF or HDF5: a description or an error, within bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_arrays::{Limits, Source, fits, ncml};

// A panic of the HDF5 reader is a refusal, see `ncml::describe`; a panic of this target still ends the run.
fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |bytes: &[u8]| {
    let limits = Limits { read_bytes: 1 << 20, reads: 1_000, xml_bytes: 1 << 20, ..Limits::default() };
    let source = Source::of(bytes.to_vec());
    if let Ok(headers) = fits::headers(&source, &limits) {
        assert!(!headers.is_empty());
    }
    if let Ok(described) = ncml::describe(&source, "fuzz", &limits) {
        assert!(described.xml.ends_with("</netcdf>\n"));
    }
});
