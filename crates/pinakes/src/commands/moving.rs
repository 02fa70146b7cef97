//! `pinakes move`: a catalogue from one engine to another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use indicatif::ProgressBar;
use pinakes_accounts::Secret;
use pinakes_blobs::{Blob, BlobError, Blobs, Settings};
use pinakes_store::{Catalogue, CopiedKind, CopyProgress, CopyStage, Location, Tenant, copy_tenant};

use crate::catalogue::{House, OpenCatalogue, SIGNING_SECRET, own_places};
use crate::config::{Config, Misuse};
use crate::files;
use crate::place::unhurried;
use crate::terminal::{counted, progress_of_records, say, thousands, warn};

/// Time between two lines of progress, where no bar can be shown.
const LINES_EVERY: Duration = Duration::from_secs(5);

/// Copies a catalogue from one engine to another: records, users, tokens, waiting jobs, files, the signing secret.
///
/// Stop the servers first: records written to the source meanwhile are detected at the end, not copied. The
/// target must be empty, or hold the result of an earlier run of the same command: an interrupted run resumes
/// where it ended, and nothing is copied twice. At the end both sides are read and compared kind by kind. The
/// source is only read; start the servers with the target when this has ended with 0.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes move --from sqlite:/srv/pinakes --to postgres://pinakes@db.example.org/pinakes
  pinakes move --from postgres://pinakes@db.example.org/pinakes --to sqlite:/srv/pinakes --tenant library
  pinakes move --from sqlite:/srv/pinakes --to postgres://db.example.org/pinakes --files-to s3://pinakes
Passwords: the key server.database of --config does for a side that is left out, so that none is in the command. Such a
side has its tenants where `[databases]` says.")]
pub(crate) struct Args {
    /// What to copy: `sqlite:FOLDER` or `postgres://USER@HOST/DATABASE` [default: key server.database]
    #[arg(long, value_name = "PLACE")]
    from: Option<String>,
    /// Where to: `sqlite:FOLDER`, created if it does not exist, or `postgres://USER@HOST/DATABASE` [default:
    /// key server.database]
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Tenant to copy [default: all]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Where the source's files are: `s3://BUCKET`, `s3://BUCKET/PREFIX` or a catalogue's folder [default: key
    /// blobs.place, else the folder of the side, for a database key server.data]
    #[arg(long, value_name = "PLACE")]
    files_from: Option<String>,
    /// Where to put the target's files, as --files-from
    #[arg(long, value_name = "PLACE")]
    files_to: Option<String>,
    /// Configuration file; `pinakes config` prints one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// One side of a move.
struct Side {
    catalogue: OpenCatalogue,
    /// The catalogue's folder; for a database it holds at most its files.
    folder: PathBuf,
    is_folder: bool,
    blobs: Blobs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut config = Config::load(args.config.as_deref())?;
    unhurried(&mut config.limits);
    if args.from == args.to {
        return Err(Misuse("--from and --to name one place; give two".to_owned()).into());
    }
    let from = Side::open(args.from.as_deref(), args.files_from.as_deref(), &config, Existence::Required)?;
    let to = Side::open(args.to.as_deref(), args.files_to.as_deref(), &config, Existence::Made)?;
    copy_secret(&from, &to)?;
    let mut outcome = Outcome::default();
    for info in from.catalogue.tenants()? {
        if args.tenant.as_ref().is_none_or(|it| *it == info.name) {
            let source = from.catalogue.tenant(&info.name)?;
            let target = to.catalogue.tenant_or_new_described(&info.name, &info.description)?;
            copy_files(&from.blobs, &to.blobs, &source, &mut outcome)?;
            copy_records(&source, &target, &mut outcome)?;
        }
    }
    if outcome.n_tenants == 0 {
        let name = args.tenant.as_deref().unwrap_or("any");
        return Err(Misuse(format!("the source has no tenant {name}; nothing was copied")).into());
    }
    outcome.tell()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existence {
    Required,
    Made,
}

impl Side {
    fn open(
        place: Option<&str>,
        files: Option<&str>,
        config: &Config,
        existence: Existence,
    ) -> anyhow::Result<Self> {
        let text = place.unwrap_or(&config.server.database);
        let location: Location = text.parse().map_err(|_| Misuse(expected(text)))?;
        let (folder, is_folder) = match &location {
            Location::Folder(folder) => (folder.clone(), true),
            _ => (config.server.data.clone(), false),
        };
        if is_folder && existence == Existence::Required && !folder.join("tenants").is_dir() {
            return Err(Misuse(format!("there is no catalogue in {}", folder.display())).into());
        }
        if is_folder {
            crate::catalogue::make_folder(&folder)?;
        }
        // A side that is not named is the configured catalogue, including tenants in databases of their own.
        let own = if place.is_none() { own_places(config)? } else { BTreeMap::new() };
        let catalogue = Catalogue::open_spread(location, &own, None, House::kinds(), config.limits.clone())?;
        let blobs = open_files(files, &config.blobs, &folder)?;
        Ok(Self { catalogue: OpenCatalogue::new(catalogue), folder, is_folder, blobs })
    }
}

/// Describes what a side may be, without repeating the value given: it may contain a password.
fn expected(text: &str) -> String {
    let found = if text.is_empty() { "a side is not named" } else { "a side cannot be read" };
    format!("{found}; expected sqlite:FOLDER or postgres://USER@HOST/DATABASE for --from and --to")
}

fn open_files(place: Option<&str>, settings: &Settings, folder: &Path) -> anyhow::Result<Blobs> {
    let (place, folder) = match place {
        Some(bucket) if bucket.starts_with("s3://") => (bucket.to_owned(), folder.to_owned()),
        Some(folder) => (String::new(), PathBuf::from(folder)),
        None => (settings.place.clone(), folder.to_owned()),
    };
    Ok(Blobs::open(&Settings { place, ..settings.clone() }, &folder)?)
}

/// Copies the secret that web tokens are signed with to the target, unless it has one.
fn copy_secret(from: &Side, to: &Side) -> anyhow::Result<()> {
    let secret = match from.is_folder {
        true => Secret::text_in(&from.folder)?,
        false => from.catalogue.constant(SIGNING_SECRET, || None)?,
    };
    let Some(secret) = secret else { return Ok(()) };
    let kept = match to.is_folder {
        true => Secret::keep_text(&to.folder, &secret)?,
        false => to.catalogue.constant(SIGNING_SECRET, || Some(secret.clone()))?.unwrap_or_default(),
    };
    if kept != secret {
        warn(
            "the target has a signing secret of its own: web tokens of the source end; API tokens stay valid",
        );
    }
    Ok(())
}

/// The result, over all tenants.
#[derive(Default)]
struct Outcome {
    n_tenants: u64,
    n_records: u64,
    n_bytes: u64,
    n_files: u64,
    n_missing: u64,
    kinds: Vec<CopiedKind>,
}

impl Outcome {
    fn tell(&self) -> anyhow::Result<ExitCode> {
        for it in self.kinds.iter().filter(|it| it.n_records != 0) {
            let records = counted(it.n_records, "record");
            let same = "the same on both sides";
            say(format!("{}: {}: {records}, checksum {:016x}, {same}", it.tenant, it.kind, it.checksum))?;
        }
        let (records, files) = (counted(self.n_records, "record"), counted(self.n_files, "file"));
        let tenants = counted(self.n_tenants, "tenant");
        say(format!("copied {records}, {} bytes, and {files} of {tenants}", thousands(self.n_bytes)))?;
        Ok(if self.n_missing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn copy_files(from: &Blobs, to: &Blobs, tenant: &Tenant, outcome: &mut Outcome) -> anyhow::Result<()> {
    if from.place() == to.place() {
        return Ok(());
    }
    files::for_each(tenant, |text| {
        let blob: Blob = text.parse()?;
        match from.block_on(from.copy(to, tenant.name(), &blob)) {
            Ok(is_new) => outcome.n_files += u64::from(is_new),
            Err(error @ (BlobError::Missing { .. } | BlobError::Damaged { .. })) => {
                outcome.n_missing += 1;
                warn(format!("{}: {error}", tenant.name()));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    })
}

fn copy_records(from: &Tenant, to: &Tenant, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut telling = Telling::new();
    let copied = copy_tenant(from, to, &mut |progress| telling.tell(&progress));
    telling.bar.finish_and_clear();
    let advice = "the same command goes on where this one ended";
    let copied = copied.with_context(|| format!("tenant {} is not copied; {advice}", from.name()))?;
    outcome.n_tenants += 1;
    outcome.n_records += copied.n_records;
    outcome.n_bytes += copied.n_bytes;
    outcome.kinds.extend(copied.kinds);
    Ok(())
}

/// Shows progress: a bar on a terminal, otherwise lines now and then.
struct Telling {
    bar: ProgressBar,
    last_line: Instant,
}

impl Telling {
    fn new() -> Self {
        Self { bar: progress_of_records(), last_line: Instant::now() }
    }

    fn tell(&mut self, progress: &CopyProgress<'_>) {
        let verb = match progress.stage {
            CopyStage::Copying => "copied",
            CopyStage::Comparing => "compared",
        };
        let what = format!("{}: {} {verb}", progress.tenant, progress.kind);
        if self.bar.is_hidden() {
            if LINES_EVERY <= self.last_line.elapsed() {
                self.last_line = Instant::now();
                let (n, of) = (thousands(progress.n_done), thousands(progress.n_records));
                warn(format!("{what}: {n} of {of} records"));
            }
            return;
        }
        self.bar.set_length(progress.n_records);
        self.bar.set_position(progress.n_done);
        self.bar.set_message(what);
    }
}
