//! The command line: what there is, and the pages that `--help` shows.

use crate::commands::{
    backup, bench, check, citations, config, demo, export, import, marc, restore, serve, tenant, token, user,
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
    /// Serve a catalogue over HTTP
    Serve(serve::Args),
    /// Fill a fresh catalogue with sample records and serve it
    Demo(demo::Args),
    /// Add, list, remove and import users
    User(user::Args),
    /// Make, list and remove API tokens
    Token(token::Args),
    /// Add, list and remove tenants
    Tenant(tenant::Args),
    /// Load records from files
    Import(import::Args),
    /// Write records as NDJSON
    Export(export::Args),
    /// Copy a catalogue, also while it is served
    Backup(backup::Args),
    /// Put a backup into place
    Restore(restore::Args),
    /// Compare indexes, counters and references with the records
    Check(check::Args),
    /// Print every setting with its default
    Config(config::Args),
    /// Look into files of MARC records, check and convert them
    Marc(marc::Args),
    /// Build and read graphs of who cites whom
    Citations(citations::Args),
    /// Measure a server, this one or another
    Bench(bench::BenchArgs),
}

const ABOUT: &str = "\
Pinakes keeps the records of a research institution and speaks the interfaces that its programs already \
use, so that clients go on unchanged. One folder holds everything: a file per tenant, the accounts, and the \
secret that tokens are signed with. A write that was acknowledged is on disk.";

const AFTER: &str = "\
Begin here:
  pinakes demo                                  a catalogue full of sample records, with logins to try
  pinakes serve --data /srv/pinakes             serve a catalogue of your own
  pinakes user add ingestor --group ingestor    give somebody an account (asks for the password)
  pinakes import scicat datasets.ndjson.zst     load records

Exit codes: 0 done; 1 not done, or bad records or faults were found; 2 the command line or the
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
