//! `pinakes-bench`: the load generator alone, for a client machine without a server. The same as `pinakes
//! bench`.

use std::process::ExitCode;

use clap::Parser;
use pinakes_bench::cli::{BenchArgs, run};

/// Measures servers of research catalogues and reruns their published benchmarks.
#[derive(Debug, Parser)]
#[command(name = "pinakes-bench", version)]
struct Cli {
    #[command(flatten)]
    args: BenchArgs,
}

fn main() -> anyhow::Result<ExitCode> {
    run(&Cli::parse().args)
}
