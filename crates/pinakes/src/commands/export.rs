//! `pinakes export`: records as NDJSON.

pub(super) mod dataverse;
mod documents;
mod folio;
pub(crate) mod output;
mod topics;

use std::path::PathBuf;
use std::process::ExitCode;

use pinakes_scicat::export::export;
use pinakes_scicat::import::RecordType;

use crate::commands::export::output::written;
use crate::place::{Missing, TenantPlace};
use crate::terminal::warn;

/// Writes records as NDJSON, one JSON object a line, from one consistent state, also while it is served.
///
/// Datasets come first, then blocks with all their files, attachments, samples, proposals, instruments,
/// policies, jobs and published data. `pinakes import scicat` reads the file back as it is. Users and tokens are
/// not in it: `pinakes backup` copies everything.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes export --output everything.ndjson.zst
  pinakes export --kind dataset | jq -r .pid
  pinakes export --kind proposal --kind sample --tenant library")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    place: TenantPlace,
    /// Type of record to write; may be given more than once [default: all]
    #[arg(long = "kind", value_name = "SORT")]
    sorts: Vec<RecordType>,
    /// File to write, compressed if its name ends in .gz or .zst [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Exports of records other than SciCat's.
#[derive(Debug, clap::Subcommand)]
enum Command {
    Dataverse(dataverse::DataverseArgs),
    Documents(documents::DocumentsArgs),
    Folio(folio::FolioArgs),
    Topics(topics::TopicsArgs),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(Command::Dataverse(args)) => return dataverse::run(args),
        Some(Command::Documents(args)) => return documents::run(args),
        Some(Command::Topics(args)) => return topics::run(args),
        Some(Command::Folio(args)) => return folio::run(args),
        None => {}
    }
    let (_house, tenant) = args.place.open(Missing::Refuse)?;
    let sorts = if args.sorts.is_empty() { RecordType::all().collect() } else { args.sorts.clone() };
    let counts =
        written(args.output.as_deref(), "record", |output, note| Ok(export(&tenant, &sorts, output, note)?))?;
    for (sort, n) in counts.iter().filter(|it| 0 < it.1) {
        warn(format!("{sort}: {n}"));
    }
    Ok(ExitCode::SUCCESS)
}
