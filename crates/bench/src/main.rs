//! `pinakes-bench`: the measuring program alone, for a client machine that has no server on it. The same
//! as `pinakes bench`.

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
