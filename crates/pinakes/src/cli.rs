//! The command line: the subcommands, and the pages that `--help` shows.

use crate::commands::{
    backup, bench, check, citations, config, demo, export, import, marc, moving, restore, serve, shell,
    tenant, token, topics, user,
};

/// One server for the records of a research institution.
#[derive(Debug, clap::Parser)]
#[command(version, long_about = ABOUT, after_long_help = AFTER, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Serve(serve::Args),
    Demo(demo::Args),
    User(user::Args),
    Token(token::Args),
    Tenant(tenant::Args),
    Import(import::Args),
    Export(export::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Check(check::Args),
    Move(moving::Args),
    Config(config::Args),
    Completions(shell::Completions),
    Man(shell::Man),
    Marc(marc::Args),
    Citations(citations::Args),
    Topics(topics::Args),
    /// Measures a server, this one or another: load generator, scenarios, reports
    Bench(Box<bench::BenchArgs>),
}

const ABOUT: &str = "\
Pinakes stores the records of a research institution and serves them through the interfaces that existing \
programs use: SciCat, Dataverse, FOLIO, labe and Conclave. Clients work unchanged. One folder contains \
everything: a file for each tenant, the accounts, and the secret that signs tokens. A write is acknowledged \
only when it is on disk.";

const AFTER: &str = "\
Getting started:
  pinakes demo                                 a catalogue full of sample records, and logins
  pinakes serve --data /srv/pinakes            serve a catalogue of your own
  pinakes user add ingestor --group ingestor   give somebody an account
  pinakes import scicat datasets.ndjson.zst    load records

Exit codes: 0 success; 1 failure, or bad records or faults were found; 2 the command line or the
configuration is wrong.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
