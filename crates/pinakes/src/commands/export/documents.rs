//! `pinakes export documents`: index records of a library's catalogue, in the labe dialect.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::commands::export::output::written;
use crate::place::{Missing, TenantPlace};

/// Writes catalogue documents of the labe dialect, one JSON object a line, from one consistent state, also while they are served.
///
/// An object is written as it is sent. An object whose own id is missing or different has its id and a tab before it.
/// `pinakes import documents` reads the file back.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes export documents --output catalogue.ndjson.zst
  pinakes export documents --tenant library | wc -l")]
pub(super) struct DocumentsArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// File to write, compressed if its name ends in .gz or .zst [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &DocumentsArgs) -> anyhow::Result<ExitCode> {
    let (_house, tenant) = args.place.open(Missing::Refuse)?;
    written(args.output.as_deref(), "document", |output, note| {
        Ok(pinakes_labe::export::export(&tenant, output, note)?)
    })?;
    Ok(ExitCode::SUCCESS)
}
