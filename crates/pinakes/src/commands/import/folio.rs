//! `pinakes import folio`: records of the FOLIO dialect, from an export or from responses of FOLIO's interfaces.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use pinakes_accounts::{Clock, Entropy};
use pinakes_folio::moving::{self, MoveParts};

use crate::commands::import::complete::complete_indexes;
use crate::commands::import::source::Source;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, progress, say, thousands, warn};

/// Loads records of FOLIO's modules: users, inventory, source records, circulation, fees, settings and the rest.
///
/// A file contains lines of `pinakes export folio`, or answers of FOLIO's interfaces: objects with a list of records
/// (`{"instances":[…],"totalRecords":…}`), or with --path single records; plain or compressed with gzip or zstd. Records keep their
/// ids, numbers and dates. An existing record is replaced, so an interrupted import can be run again. No notices are sent, and no
/// fees charged.
///
/// Files are read in the given order: name vocabularies, places and users before inventory, and inventory before circulation. A
/// record that refers to a later one in its file is retried at the end of the file. A refused record is reported with its place
/// and the reason; the import continues, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes import folio --tenant diku diku.ndjson.zst
  pinakes import folio --tenant diku users.json instances.json holdings.json items.json
  pinakes import folio --tenant diku --path /item-storage/items items.ndjson")]
pub(super) struct FolioArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Files to read; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Path of the records' collection [default: stated in the file]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
}

pub(super) fn run(args: &FolioArgs) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let sources = args.files.iter().map(|it| Source::open(it)).collect::<anyhow::Result<Vec<_>>>()?;
    let (house, tenant) = args.place.open(Missing::Begin)?;
    let parts =
        MoveParts { settings: house.config.folio.clone(), clock: Clock::System, entropy: Entropy::System };
    let bar = progress(sources.iter().map(|it| it.n_bytes).sum());
    let (mut n_stored, mut n_left_out) = (0, 0);
    for source in sources {
        let source = source.with_progress(&bar);
        let mut input = source.input;
        let mut note = |n| bar.set_message(counted(n, "record"));
        let input = &mut input as &mut dyn Read;
        let moved = moving::import(&tenant, input, args.path.as_deref(), &parts, &mut note)
            .with_context(|| source.name.clone())?;
        n_stored += moved.n_stored;
        n_left_out += moved.left_out.len() as u64;
        for it in &moved.left_out {
            bar.suspend(|| warn(format!("{}, object {}: {}: {}", source.name, it.place, it.id, it.reason)));
        }
    }
    complete_indexes(&tenant, &bar);
    bar.finish_and_clear();
    let took_s = begun.elapsed().as_secs_f64();
    let rate = thousands((n_stored as f64 / took_s) as u64);
    let n = counted(n_stored, "record");
    say(format!("{n} in {took_s:.1} s, {rate}/s; {} left out", thousands(n_left_out)))?;
    Ok(if n_left_out == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
