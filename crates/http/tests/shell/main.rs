//! The shell over real sockets: recorded exchanges, and what takes more than one exchange.

extern crate pinakes_test_support as libfuzzer_sys;

mod common;
mod exchanges;
mod fuzz;
mod patience;
mod serving;
