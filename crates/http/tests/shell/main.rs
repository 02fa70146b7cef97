//! Tests of the shell over real sockets: recorded exchanges, and cases that take more than one exchange.

extern crate pinakes_test_support as libfuzzer_sys;

mod common;
mod exchanges;
mod fuzz;
mod patience;
mod serving;
