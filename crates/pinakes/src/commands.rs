//! The subcommands, one file each.

pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod citations;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod marc;
pub(crate) mod moving;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod tenant;
pub(crate) mod token;
pub(crate) mod topics;
pub(crate) mod user;

use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::allocator;
use crate::cli::{Cli, Command};

/// Runs a subcommand. Errors are meant to be read by a person; findings are reported by the exit code.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(args) => serve::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::User(args) => user::run(args),
        Command::Token(args) => token::run(args),
        Command::Tenant(args) => tenant::run(args),
        Command::Import(args) => {
            allocator::keep_freed_memory();
            import::run(args)
        }
        Command::Export(args) => export::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Move(args) => moving::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
        Command::Marc(args) => marc::run(args).map(|()| ExitCode::SUCCESS),
        Command::Citations(args) => citations::run(args).map(|()| ExitCode::SUCCESS),
        Command::Topics(args) => topics::run(&args),
        Command::Bench(args) => bench::run(&args),
    }
}
