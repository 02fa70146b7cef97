//! `pinakes bench`: the load generator. All of it is in the crate `pinakes-bench`; this only puts it on the
//! command line.

pub(crate) use pinakes_bench::cli::{BenchArgs, run};
