//! `pinakes restore`: puts a backup into place as the catalogue.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use pinakes_accounts::SECRET_FILE;

use super::backup::{FORM, MANIFEST, Manifest, aside, copy_durably, put_in_place, require_empty};
use super::check::findings;
use crate::config::{Config, Misuse};
use crate::place::{Missing, Place, open};
use crate::terminal::{counted, say};

/// Puts a backup into place as a catalogue.
///
/// The catalogue's folder must be empty or absent: move an old one away first, so that nothing is lost and no
/// running server uses its files. The restored catalogue is checked before it takes the folder's name;
/// the backup itself is only read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  mv pinakes-data pinakes-data.old
  pinakes restore /backups/2026-11-21
  pinakes serve")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// The folder that `pinakes backup` made
    from: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.place.settings()?;
    let manifest = manifest(&args.from)?;
    let data = config.server.data.clone();
    require_empty(&data)?;
    let aside = aside(&data)?;
    let copied = copy(&args.from, &aside, &manifest).and_then(|()| check(config, &aside)).inspect_err(|_| {
        // An incomplete copy is useless; report the error that ended it.
        let _ = fs::remove_dir_all(&aside);
    });
    copied.with_context(|| format!("{} could not be restored; nothing was changed", args.from.display()))?;
    put_in_place(&aside, &data)
        .with_context(|| format!("the restored catalogue cannot be put at {}", data.display()))?;
    let tenants = counted(manifest.tenants.len() as u64, "tenant");
    say(format!("restored {tenants} into {}; all of it is sound", data.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn manifest(folder: &Path) -> anyhow::Result<Manifest> {
    let path = folder.join(MANIFEST);
    let text = fs::read(&path).map_err(|error| {
        let reason = "is no backup: its backup.json cannot be read";
        Misuse(format!("{} {reason} ({error}); name a folder that `pinakes backup` made", folder.display()))
    })?;
    let manifest: Manifest =
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
    if FORM < manifest.form {
        let (found, version) = (manifest.form, &manifest.version);
        return Err(Misuse(format!(
            "{} was made by pinakes {version} in form {found}, this one reads up to {FORM}; use a newer pinakes",
            folder.display()
        ))
        .into());
    }
    Ok(manifest)
}

fn copy(from: &Path, to: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let folder = to.join("tenants");
    fs::create_dir(&folder)?;
    for tenant in &manifest.tenants {
        let name = format!("{}.sqlite", tenant.name);
        copy_durably(&from.join("tenants").join(&name), &folder.join(&name))?;
    }
    if from.join(SECRET_FILE).exists() {
        copy_durably(&from.join(SECRET_FILE), &to.join(SECRET_FILE))?;
    }
    File::open(&folder)?.sync_all()?;
    Ok(File::open(to)?.sync_all()?)
}

/// Checks that the copy is sound.
fn check(mut config: Config, folder: &Path) -> anyhow::Result<()> {
    config.server.data = folder.to_owned();
    let house = open(config, Missing::Refuse)?;
    for info in house.catalogue.tenants()? {
        let found = findings(&house.catalogue.tenant(&info.name)?)?;
        anyhow::ensure!(
            found.is_empty(),
            "tenant {} of the backup is not sound: {}",
            info.name,
            found.join("; ")
        );
    }
    Ok(())
}
