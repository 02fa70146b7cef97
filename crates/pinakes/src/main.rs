//! The `pinakes` command: serves the catalogue, fills it, manages its accounts, and maintains its data.
//!
//! This crate wires the others together and holds no rules of its own. Each subcommand is one file in `commands/`;
//! shared parts are `place.rs` (which catalogue), `config.rs` (the settings), `files.rs` (files and the records that
//! name them) and `terminal.rs` (output for people). Exit codes: 0 done, 1 not done or something was found, 2 the
//! command line or the configuration is wrong.

mod allocator;
mod catalogue;
mod cli;
mod commands;
mod config;
mod dialect;
mod dialects;
mod effective;
mod files;
mod load;
mod password;
mod place;
mod recent_lines;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // Records, hashes and secrets are readable only by the owner of the process, whatever folder they are in.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    match commands::run(cli.command) {
        Ok(code) => code,
        Err(error) if terminal::is_closed_output(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let code = if error.is::<config::Misuse>() { 2 } else { 1 };
            terminal::complain(&error);
            ExitCode::from(code)
        }
    }
}
