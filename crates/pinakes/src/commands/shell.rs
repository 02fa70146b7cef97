//! `pinakes completions` and `pinakes man`: shell completions and man pages of the command.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;

use crate::terminal::say;

/// Prints the completions of a shell.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes completions bash > /etc/bash_completion.d/pinakes
  pinakes completions zsh > /usr/local/share/zsh/site-functions/_pinakes")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Writes a man page of every subcommand into a folder.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  pinakes man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// The folder; it must exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn completions(args: &Completions, mut command: Command) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "pinakes", &mut text);
    say(String::from_utf8_lossy(&text).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &Man, command: Command) -> anyhow::Result<ExitCode> {
    let written = clap_mangen::generate_to(command, &args.folder);
    written.with_context(|| format!("man pages cannot be written into {}", args.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
