//! `pinakes import`: loads records from files, in batches, leaving out bad ones.
//!
//! One thread reads and splits, others parse and check, this one writes; the queues between them are bounded in number
//! and bytes, and so is memory. Batches are written in the order of the files.

mod complete;
mod dataverse;
mod documents;
mod folio;
mod marc;
mod pipeline;
pub(crate) mod source;
mod split;
mod topics;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use indicatif::ProgressBar;
use pinakes_scicat::import::{Existing, Importer, RecordType};
use pinakes_store::Tenant;

use self::complete::complete_indexes;
use self::pipeline::{Rejected, load};
use crate::commands::import::source::Source;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, progress, say, thousands, warn};

/// Loads records from files.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Scicat(ScicatArgs),
    Dataverse(dataverse::DataverseArgs),
    Documents(documents::DocumentsArgs),
    Folio(folio::FolioArgs),
    Marc(marc::MarcArgs),
    Topics(topics::TopicsArgs),
}

/// Loads SciCat's records: datasets, origdatablocks, datablocks, attachments, samples, proposals, instruments,
/// policies, jobs and published data.
///
/// A file contains one JSON object per line (NDJSON), a JSON array, or consecutive objects, plain or compressed
/// with gzip or zstd. Output of `pinakes export`, SciCat's API and mongoexport is accepted, including MongoDB's
/// dates and ids (`$date`, `$oid`). The fields of a record determine its type, unless --kind is given. Records
/// keep their ids, dates and names; missing fields are filled in as when a record is created.
///
/// A bad record is skipped and reported with its file, line and reason; the import continues, and the exit code
/// is 1. Existing records are not changed, so an interrupted import can be run again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes import scicat datasets.ndjson.zst origdatablocks.ndjson.zst
  mongoexport --db dacat --collection Dataset | pinakes import scicat --kind dataset -
  pinakes import scicat --replace --rejected bad.ndjson dump/*.json")]
struct ScicatArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Files to read; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What all records are: dataset, origdatablock, datablock, attachment, sample, proposal, instrument, policy,
    /// job or publisheddata [default: by the fields of each]
    #[arg(long, value_name = "SORT")]
    kind: Option<RecordType>,
    /// Replace existing records
    #[arg(long)]
    replace: bool,
    /// File to write the bad records to, unchanged, one per line
    #[arg(long, value_name = "FILE")]
    rejected: Option<PathBuf>,
    /// Name for createdBy and updatedBy of records that have none
    #[arg(long, value_name = "USER", default_value = "import")]
    user: String,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Scicat(args) => import_scicat(&args),
        Command::Dataverse(args) => dataverse::run(&args),
        Command::Documents(args) => documents::run(&args),
        Command::Folio(args) => folio::run(&args),
        Command::Marc(args) => marc::run(&args),
        Command::Topics(args) => topics::run(&args),
    }
}

fn import_scicat(args: &ScicatArgs) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let sources = args.files.iter().map(|it| Source::open(it)).collect::<anyhow::Result<Vec<_>>>()?;
    let (house, tenant) = args.place.open(Missing::Begin)?;
    // The search index begins when the load ends, before `complete_indexes`.
    let _hurry = tenant.hurry_indexes();
    let importer = Importer::new(house.context(), house.config.scicat.clone(), args.user.as_str(), args.kind);
    let existing = if args.replace { Existing::Replace } else { Existing::Keep };
    let bar = progress(sources.iter().map(|it| it.n_bytes).sum());
    let sources = sources.into_iter().map(|it| it.with_progress(&bar)).collect();
    let mut rejects = Rejects::open(args.rejected.as_deref())?;
    let limit_bytes = usize::try_from(house.config.limits.stream_body_bytes).unwrap_or(usize::MAX);
    let mut reject = |it: &Rejected| rejects.take(&bar, it);
    let totals = load(&importer, &tenant, existing, sources, limit_bytes, &bar, &mut reject)?;
    complete_indexes(&tenant, &bar);
    bar.finish_and_clear();
    let n_rejected = rejects.finish()?;
    for line in totals.lines() {
        say(line)?;
    }
    let took_s = begun.elapsed().as_secs_f64();
    let n = totals.n_records();
    let rate = thousands((n as f64 / took_s) as u64);
    say(format!("{} in {took_s:.1} s, {rate}/s; {} left out", counted(n, "record"), thousands(n_rejected)))?;
    Ok(if n_rejected == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reports bad records and keeps their bytes.
struct Rejects {
    file: Option<BufWriter<File>>,
    n: u64,
}

impl Rejects {
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let create = |path: &Path| {
            File::create(path)
                .with_context(|| format!("{} cannot be written", path.display()))
                .map(BufWriter::new)
        };
        Ok(Self { file: path.map(create).transpose()?, n: 0 })
    }

    fn take(&mut self, bar: &ProgressBar, rejected: &Rejected) -> anyhow::Result<()> {
        self.n += 1;
        bar.suspend(|| warn(format!("{}:{}: {}", rejected.source, rejected.line, rejected.reason)));
        if let Some(file) = &mut self.file {
            file.write_all(rejected.record.trim_ascii())?;
            file.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<u64> {
        if let Some(mut file) = self.file {
            file.flush()?;
        }
        Ok(self.n)
    }
}

/// Loads records built into the program: the sample records of `pinakes demo`.
///
/// Errors: one of them is bad.
pub(crate) fn load_built_in(
    importer: &Importer,
    tenant: &Tenant,
    sources: Vec<Source>,
) -> anyhow::Result<Vec<String>> {
    let bar = ProgressBar::hidden();
    let mut reject = |it: &Rejected| anyhow::bail!("{}:{}: {}", it.source, it.line, it.reason);
    let totals = load(importer, tenant, Existing::Keep, sources, usize::MAX, &bar, &mut reject)?;
    Ok(totals.lines())
}
