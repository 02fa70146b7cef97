//! `pinakes export folio`: a tenant's records of the FOLIO dialect.

use std::path::PathBuf;
use std::process::ExitCode;

use pinakes_folio::moving;

use crate::commands::export::output::written;
use crate::place::{Missing, TenantPlace};
use crate::terminal::warn;

/// Writes the records of the FOLIO dialect as NDJSON, from one consistent state, also while it is served.
///
/// A line is `{"path":"/instance-storage/instances","id":"…","record":{…}}`. `pinakes import folio` reads the file
/// back; records keep their ids, numbers and dates. Logins with their permissions, passwords, PINs, mails and their
/// server, logins of interfaces, timers and jobs are not in it: `pinakes backup` copies everything.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes export folio --tenant diku --output diku.ndjson.zst
  pinakes export folio --tenant diku | jq -r 'select(.path == \"/users\") | .record.username'")]
pub(super) struct FolioArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// File to write, compressed if its name ends in .gz or .zst [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &FolioArgs) -> anyhow::Result<ExitCode> {
    let (_house, tenant) = args.place.open(Missing::Refuse)?;
    let counts =
        written(args.output.as_deref(), "record", |output, note| Ok(moving::export(&tenant, output, note)?))?;
    for (path, n) in counts.iter().filter(|it| 0 < it.1) {
        warn(format!("{path}: {n}"));
    }
    Ok(ExitCode::SUCCESS)
}
