//! The dialect behind the shell, over a real socket: recorded answers, a simple model, imports and replaced
//! graphs.

extern crate pinakes_test_support as libfuzzer_sys;

mod fuzz;
mod golden;
mod hubs;
mod imports;
mod model;
mod public_kinds;
mod real_files;
mod recorded;
mod server;
mod shelf;
mod swap;
mod works;
