//! `pinakes backup`: a consistent copy of a catalogue, taken while it is served.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use pinakes_accounts::SECRET_FILE;
use serde::{Deserialize, Serialize};

use crate::catalogue::House;
use crate::config::Misuse;
use crate::place::{Missing, Place};
use crate::terminal::{counted, say, thousands};

/// File that marks a folder as a complete backup; written last.
pub(crate) const MANIFEST: &str = "backup.json";
/// The format of backups that this program writes and reads.
pub(crate) const FORM: u32 = 1;

/// Copies a catalogue into a new folder, also while it is served.
///
/// Each tenant's copy is one consistent state, made with SQLite's own backup while reads and writes continue. The copy
/// holds records, users, tokens and the signing secret, so keep it as safe as the catalogue. Files of `[blobs]` are
/// copied separately (docs/operate.md). The folder is itself a catalogue; `pinakes restore` puts it into place.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes backup /backups/$(date +%F)
  pinakes check --data /backups/2026-11-21      is the backup sound?")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Folder to create; it must be empty if it exists
    to: PathBuf,
}

/// What a backup holds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// [`FORM`].
    pub(crate) form: u32,
    /// Version of the program that made it.
    pub(crate) version: String,
    /// The tenants.
    pub(crate) tenants: Vec<Copied>,
}

/// One tenant of a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// Its name.
    pub(crate) name: String,
    /// Size of its file, in bytes.
    pub(crate) bytes: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let house = args.place.open(Missing::Refuse)?;
    require_empty(&args.to)?;
    let shown = args.to.display().to_string();
    let aside = aside(&args.to)?;
    let copied = copy(&house, &aside).inspect_err(|_| {
        // An incomplete backup is useless; report the error that ended it.
        let _ = fs::remove_dir_all(&aside);
    });
    let manifest =
        copied.with_context(|| format!("the backup into {shown} failed, nothing of it is kept"))?;
    put_in_place(&aside, &args.to).with_context(|| format!("the backup cannot be put at {shown}"))?;
    let bytes = manifest.tenants.iter().map(|it| it.bytes).sum();
    let tenants = counted(manifest.tenants.len() as u64, "tenant");
    say(format!("backed up {tenants}, {} bytes, into {shown}", thousands(bytes)))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that something may be put at `folder`.
pub(crate) fn require_empty(folder: &Path) -> anyhow::Result<()> {
    let is_free = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if is_free {
        return Ok(());
    }
    let reason = "is there already and not an empty folder; name one that is not there yet";
    Err(Misuse(format!("{} {reason}", folder.display())).into())
}

/// Creates a new folder beside `target`, to be renamed when it is complete.
pub(crate) fn aside(target: &Path) -> anyhow::Result<PathBuf> {
    let name = target
        .file_name()
        .ok_or_else(|| Misuse(format!("{} is not the name of a folder", target.display())))?;
    let mut name = name.to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let aside = target.with_file_name(name);
    let made = pinakes_store::make_folder(&aside);
    made.with_context(|| format!("the folder {} cannot be created", aside.display()))?;
    Ok(aside)
}

/// Gives a complete folder its name, which is on disk when this returns.
pub(crate) fn put_in_place(aside: &Path, target: &Path) -> std::io::Result<()> {
    fs::rename(aside, target)?;
    let above = target.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(above)?.sync_all()
}

fn copy(house: &House, to: &Path) -> anyhow::Result<Manifest> {
    let folder = to.join("tenants");
    fs::create_dir(&folder)?;
    let mut tenants = Vec::new();
    for info in house.catalogue.tenants()? {
        let file = folder.join(format!("{}.sqlite", info.name));
        house.catalogue.tenant(&info.name)?.backup(&file)?;
        tenants.push(Copied { name: info.name, bytes: fs::metadata(&file)?.len() });
    }
    let secret = house.config.server.data.join(SECRET_FILE);
    if secret.exists() {
        copy_durably(&secret, &to.join(SECRET_FILE))?;
    }
    let manifest = Manifest { form: FORM, version: env!("CARGO_PKG_VERSION").to_owned(), tenants };
    let mut file = File::create_new(to.join(MANIFEST))?;
    file.write_all(&serde_json::to_vec_pretty(&manifest)?)?;
    file.sync_all()?;
    File::open(to)?.sync_all()?;
    Ok(manifest)
}

/// Copies a file durably, readable only by its owner.
pub(crate) fn copy_durably(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to).with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o600))?;
    Ok(File::open(to)?.sync_all()?)
}
