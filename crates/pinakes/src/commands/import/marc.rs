//! `pinakes import marc`: a file of MARC records, as FOLIO's data import takes it.

use std::io::{IsTerminal as _, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pinakes_accounts::{Clock, Entropy};
use pinakes_folio::data_import::{FileImport, ImportProgress, import_file};

use crate::commands::import::complete::complete_indexes;
use crate::commands::import::source::Source;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, say, thousands, warn};

/// The job profile that creates authorities.
const CREATE_AUTHORITIES: &str = "Default - Create SRS MARC Authority";

/// Loads MARC records as FOLIO's data import does: source records, and the records that the job profile derives from
/// them.
///
/// The file contains ISO 2709, MARCXML, MARC-in-JSON or mnemonic text, plain or compressed with gzip or zstd. The tenant
/// keeps it with the job and its log, which `/metadata-provider` shows. An interrupted import continues when the server
/// runs, or with the next import.
///
/// A record that cannot be imported is reported with its number, position and reason, and its bytes are kept; the
/// import continues, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes import marc --tenant diku authorities.mrc
  pinakes import marc --tenant diku --profile 'Default - Create instance and SRS MARC Bib' books.mrc")]
pub(super) struct MarcArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// File to read; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name or id of the job profile
    #[arg(long, value_name = "PROFILE", default_value = CREATE_AUTHORITIES)]
    profile: String,
}

pub(super) fn run(args: &MarcArgs) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let bar = bar();
    let source = Source::open(&args.file)?.with_progress(&ProgressBar::hidden());
    let (house, tenant) = args.place.open(Missing::Begin)?;
    let file_name =
        args.file.file_name().map_or_else(|| source.name.clone(), |it| it.to_string_lossy().into_owned());
    let mut input = source.input;
    let mut note = |now: ImportProgress| show(&bar, now);
    let import = FileImport {
        input: &mut input as &mut dyn Read,
        file_name,
        profile: args.profile.clone(),
        clock: Clock::System,
        entropy: Entropy::System,
        settings: house.config.folio.clone(),
    };
    let imported = import_file(&tenant, import, &mut note);
    complete_indexes(&tenant, &bar);
    bar.finish_and_clear();
    let (done, faults) = imported.with_context(|| format!("{} was not imported", source.name))?;
    for fault in &faults {
        warn(format!("{}: {}", source.name, fault.reason));
    }
    let took_s = begun.elapsed().as_secs_f64();
    let rate = thousands((done.n_done as f64 / took_s) as u64);
    let n_done = counted(done.n_done, "record");
    say(format!("{n_done} in {took_s:.1} s, {rate}/s; {} not imported", thousands(done.n_failed)))?;
    Ok(if done.n_failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns a progress bar with records, records per second, remaining time, and the number of failures.
fn bar() -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(0), target);
    let style = "{bar:30} {human_pos}/{human_len} records {per_sec} {msg} {eta} left";
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn show(bar: &ProgressBar, now: ImportProgress) {
    bar.set_length(now.n_total);
    bar.set_position(now.n_done);
    bar.set_message(format!("{} failed,", thousands(now.n_failed)));
}
