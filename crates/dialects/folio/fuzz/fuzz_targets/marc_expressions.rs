//! Fuzzes the expressions that search MARC records, evaluated on a record: `cargo fuzz run marc_expressions`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&str, &str)| pinakes_folio::fuzzing::marc_expressions(input.0, input.1));
