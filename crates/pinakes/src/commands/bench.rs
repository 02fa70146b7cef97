//! `pinakes bench`: the measuring program. All of it is in the crate `pinakes-bench`; here it only gets its
//! place on the command line.

pub(crate) use pinakes_bench::cli::{BenchArgs, run};
