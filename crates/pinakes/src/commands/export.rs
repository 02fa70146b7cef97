//! `pinakes export`: records as NDJSON.

pub(super) mod dataverse;
mod documents;
mod folio;
mod topics;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use pinakes_scicat::export::export;
use pinakes_scicat::import::RecordType;

use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, progress, warn};

/// Level of zstd: as small as gzip's best, at several hundred megabytes a second.
const ZSTD_LEVEL: i32 = 3;
/// Records after which the count shown is brought up to date.
const NOTED_RECORDS: u64 = 1_000;
/// Bytes written at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Writes records as NDJSON, one JSON object a line, from one consistent state, also while it is served.
///
/// Datasets come first, then blocks with all their files, attachments, samples, proposals, instruments,
/// policies, jobs and published data. `pinakes import scicat` takes the file back as it is. Users and tokens are
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
    /// Sort of record to write; may be given again [default: all]
    #[arg(long = "kind", value_name = "SORT")]
    sorts: Vec<RecordType>,
    /// File to write, compressed if its name ends in .gz or .zst [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What is no record of SciCat.
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

/// Has `export` write to a file, or to standard output; a bar counts what it notes, by the bytes of each.
fn written<T>(
    path: Option<&Path>,
    unit: &str,
    export: impl FnOnce(&mut Output, &mut dyn FnMut(u64)) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let bar = progress(None);
    let mut n_records = 0_u64;
    let mut note = |n_bytes| {
        n_records += 1;
        bar.inc(n_bytes);
        if n_records.is_multiple_of(NOTED_RECORDS) {
            bar.set_message(counted(n_records, unit));
        }
    };
    let mut output = Output::open(path)?;
    let result = export(&mut output, &mut note)?;
    output.finish()?;
    bar.finish_and_clear();
    Ok(result)
}

/// Where records go.
enum Output {
    Plain(Box<dyn Write>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl Output {
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Plain(Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()))));
        };
        let created = File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, created);
        Ok(match path.extension().and_then(|it| it.to_str()) {
            Some("gz") => Self::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
            Some("zst") => Self::Zstd(zstd::stream::write::Encoder::new(file, ZSTD_LEVEL)?),
            _ => Self::Plain(Box::new(file)),
        })
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(mut file) => file.flush(),
            Self::Gzip(encoder) => encoder.finish()?.flush(),
            Self::Zstd(encoder) => encoder.finish()?.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
