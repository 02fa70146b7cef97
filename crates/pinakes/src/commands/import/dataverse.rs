//! `pinakes import dataverse`: collections with their datasets and files, from an export.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use pinakes_dataverse::moving::{self, Importing, LeftOut, MoveParts, MovingError};

use crate::commands::export::dataverse::in_words;
use crate::commands::import::complete::complete_indexes;
use crate::config::Misuse;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{progress, say, thousands, warn};

/// Loads collections with their datasets and files from a folder that `pinakes export dataverse` wrote.
///
/// Datasets keep their persistent identifiers, versions, states and dates; nothing is registered or published, and nobody is notified. An
/// empty tenant takes over the root collection and all numbers; in any other tenant, the numbers are shifted above the existing
/// ones. Existing collections (by alias), datasets (by identifier) and users (by name) are not changed. Users are imported
/// without a password: `pinakes user password` sets one.
///
/// A dataset is loaded completely or not at all, and its files are compared with their checksums. A dataset that cannot be loaded
/// is reported with its line and the reason; the import continues, and the exit code is 1. An interrupted import can be run again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes import dataverse everything
  pinakes import dataverse physics --into science --tenant university")]
pub(super) struct DataverseArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Folder to read
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Collection to put the exported one into, by its alias [default: the one that contained it]
    #[arg(long, value_name = "ALIAS")]
    into: Option<String>,
}

pub(super) fn run(args: &DataverseArgs) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let (house, tenant) = args.place.open(Missing::Begin)?;
    let parts = MoveParts { context: house.context(), settings: house.config.dataverse.clone() };
    let asked = Importing { into: args.into.clone() };
    let bar = progress(Some(moving::n_bytes(&args.folder)));
    let mut note = |n_bytes| bar.inc(n_bytes);
    let moved = match moving::import(&parts, &tenant, &args.folder, &asked, &mut note) {
        Err(MovingError::Refused(what)) => return Err(Misuse(what).into()),
        other => other?,
    };
    complete_indexes(&tenant, &bar);
    bar.finish_and_clear();
    moved.notes.iter().chain(&moved.left_out).for_each(told);
    let took_s = begun.elapsed().as_secs_f64();
    let rate = thousands((moved.stored.datasets as f64 / took_s) as u64);
    let (there, n_left_out) = (thousands(moved.n_there), moved.left_out.len() as u64);
    let n = in_words(moved.stored);
    say(format!(
        "{n} in {took_s:.1} s, {rate}/s; {there} there already, {} left out",
        thousands(n_left_out)
    ))?;
    Ok(if n_left_out == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn told(it: &LeftOut) {
    let LeftOut { file, line, name, reason } = it;
    match line {
        0 => warn(format!("{file}: {name}: {reason}")),
        line => warn(format!("{file}, line {line}: {name}: {reason}")),
    }
}
