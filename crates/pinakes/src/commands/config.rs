//! `pinakes config`: the settings that there are.

use std::process::ExitCode;

use crate::config::REFERENCE;
use crate::terminal::say;

/// Prints every setting with its default and its meaning, as a file that `--config` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  pinakes config > pinakes.toml     then change what should differ; the rest may be left out")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> anyhow::Result<ExitCode> {
    say(REFERENCE.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
