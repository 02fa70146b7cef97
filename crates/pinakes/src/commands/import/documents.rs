//! `pinakes import documents`: index records of a library's catalogue, for the labe dialect.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use pinakes_labe::import::{BadLine, Existing, load};

use crate::commands::import::complete::complete_indexes;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, progress, say, thousands, warn};

/// Maximum number of bad lines reported; further ones are only counted.
const TOLD: u64 = 20;

/// Loads catalogue documents from the dump of an index: one JSON object per line with a string `id`, or
/// `id<TAB>object`; plain, gzip, zstd or zip.
///
/// A bad line is skipped and reported with its file, number and reason; the import continues, and the exit code is
/// 1. Existing documents are not changed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes import documents ai-short.ndjson.zst main-short.ndjson.zst
  pinakes import documents --replace slub-production.tsv")]
pub(super) struct DocumentsArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Files to read
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Replace existing documents
    #[arg(long)]
    replace: bool,
}

pub(super) fn run(args: &DocumentsArgs) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let (_house, tenant) = args.place.open(Missing::Begin)?;
    let existing = if args.replace { Existing::Replace } else { Existing::Keep };
    let (mut n_made, mut n_kept, mut n_bad) = (0, 0, 0);
    for file in &args.files {
        let mut tell = |bad: &BadLine| {
            n_bad += 1;
            if n_bad <= TOLD {
                warn(format!("{}:{}: {}", bad.file, bad.line, bad.reason));
            }
        };
        let loaded = load(&tenant, file, existing, &mut tell)?;
        n_made += loaded.n_made + loaded.n_replaced;
        n_kept += loaded.n_kept;
    }
    complete_indexes(&tenant, &progress(None));
    if TOLD < n_bad {
        warn(format!("{} more bad lines", thousands(n_bad - TOLD)));
    }
    let took_s = begun.elapsed().as_secs_f64();
    let (stored, kept) = (counted(n_made, "document"), thousands(n_kept));
    say(format!(
        "{stored} stored, {kept} were there already, {} left out, in {took_s:.1} s",
        thousands(n_bad)
    ))?;
    Ok(if n_bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
