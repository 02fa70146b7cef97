//! Any bytes as a file of any format: a table or an error, within bounds.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use pinakes_tabular::{Format, Limits, read};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        label_bytes: 1 << 20,
        long_string_bytes: 1 << 20,
        frame_bytes: 1 << 20,
        ..Limits::default()
    };
    for format in [
        Format::Csv,
        Format::Tsv,
        Format::Stata,
        Format::Spss,
        Format::SpssPortable,
        Format::Xlsx,
        Format::RData,
    ] {
        let mut tab = Vec::new();
        if let Ok(table) = read(format, Cursor::new(bytes), &mut tab, &limits) {
            assert_eq!(table.n_bytes, tab.len() as u64);
        }
    }
});
