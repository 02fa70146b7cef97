//! `pinakes export dataverse`: collections with their datasets and files, of the Dataverse dialect.

use std::path::PathBuf;
use std::process::ExitCode;

use pinakes_dataverse::moving::{self, Exporting, MoveParts, MovingError};

use crate::config::Misuse;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, progress, warn};

/// Writes collections with their datasets and files into a folder, from one consistent state, also while they are served.
///
/// The folder gets files of JSON lines (site, users, collections, datasets), the bytes of files below `files`, by their
/// SHA-256, and `export.json`, which is written last. The folder must be new, empty or hold an earlier export: bytes
/// that exist already are not written again. `pinakes import dataverse` reads the folder back. Versions, states, dates,
/// persistent identifiers, terms, embargoes, roles and groups are in it. Passwords, tokens, private URLs, guestbook
/// entries, settings and harvested datasets are not: `pinakes backup` copies everything.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes export dataverse --output everything
  pinakes export dataverse --collection physics --output physics
  pinakes export dataverse --without-files --output described
  jq -r 'select(.dataset) | .dataset.pid' everything/datasets.jsonl")]
pub(super) struct DataverseArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Collection to write with everything in it, by its alias [default: all]
    #[arg(long, value_name = "ALIAS")]
    collection: Option<String>,
    /// Omit the bytes of files; their metadata are written
    #[arg(long)]
    without_files: bool,
    /// Folder to write
    #[arg(long, short, value_name = "FOLDER")]
    output: PathBuf,
}

pub(super) fn run(args: &DataverseArgs) -> anyhow::Result<ExitCode> {
    let (house, tenant) = args.place.open(Missing::Refuse)?;
    let parts = MoveParts { context: house.context(), settings: house.config.dataverse.clone() };
    let asked = Exporting { collection: args.collection.clone(), without_files: args.without_files };
    let bar = progress(None);
    let mut note = |n_bytes| bar.inc(n_bytes);
    let (counts, missing) = match moving::export(&parts, &tenant, &args.output, &asked, &mut note) {
        Err(MovingError::Refused(what)) => return Err(Misuse(what).into()),
        other => other?,
    };
    bar.finish_and_clear();
    for it in &missing {
        warn(format!("{}, {}: {}", it.file, it.name, it.reason));
    }
    warn(in_words(counts));
    Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Formats counts as `2 collections, 3 datasets, 4 versions, 5 files, 6 users`.
pub(in crate::commands) fn in_words(counts: moving::Counts) -> String {
    let numbers = [
        (counts.collections, "collection"),
        (counts.datasets, "dataset"),
        (counts.versions, "version"),
        (counts.files, "file"),
        (counts.users, "user"),
    ];
    numbers.map(|(n, noun)| counted(n, noun)).join(", ")
}
