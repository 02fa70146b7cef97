//! `pinakes config`: all settings, and those in force with a file.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::{Config, REFERENCE};
use crate::effective;
use crate::terminal::{say, table};

/// Prints every setting with its default and its meaning, as a file for `--config`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  pinakes config > pinakes.toml     then edit it; unchanged keys may be removed
  pinakes config check pinakes.toml the resulting settings, with the origin of each value")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Checks a configuration file, and prints the resulting settings with the origin of each value
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        None => say(REFERENCE.trim_end())?,
        Some(What::Check { file }) => {
            Config::load(Some(file))?;
            let settings = effective::of_file(Some(file))?;
            let rows: Vec<_> = settings.into_iter().map(|it| vec![it.key, it.value, it.origin]).collect();
            say(table(&["key", "value", "origin"], &rows))?;
            for name in effective::variables() {
                say(format!("{name} is set in the environment and overrides the file"))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
