//! Deletes files that no record names.

use std::path::Path as FilePath;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;

use crate::blob::is_key;
use crate::{Blobs, Result};

/// Number of files whose ownership is checked at once.
const STEP_FILES: usize = 500;

/// The outcome of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Number of files seen.
    pub n_files: u64,
    /// Number of deleted files, which belonged to nobody and were old enough. Unfinished files of dead writers are
    /// included.
    pub n_deleted: u64,
    /// Their size in bytes.
    pub n_bytes: u64,
}

impl Blobs {
    /// Deletes the files of a tenant that are older than `age` and that no record names. `is_owned` is called with
    /// up to 500 keys at a time and answers in their order. It may answer from a later state of the records, never
    /// from an earlier one, as a file that it does not know is deleted if it is old enough.
    pub async fn sweep<E: From<crate::BlobError>>(
        &self,
        tenant: &str,
        age: Duration,
        mut is_owned: impl FnMut(&[String]) -> Result<Vec<bool>, E>,
    ) -> Result<Swept, E> {
        let mut swept = Swept::default();
        let until = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let list = self.inner().store.list(Some(&self.tenant_path(tenant)));
        let mut steps = list.map_err(crate::BlobError::from).try_chunks(STEP_FILES).boxed();
        while let Some(step) = steps.next().await {
            let step = step.map_err(|error| error.1)?;
            swept.n_files += step.len() as u64;
            let old = step.into_iter().filter(|it| SystemTime::from(it.last_modified) < until);
            let (keys, files): (Vec<_>, Vec<_>) =
                old.filter_map(|it| Some((key_of(&it.location)?, it))).unzip();
            if keys.is_empty() {
                continue;
            }
            for ((key, file), owned) in keys.iter().zip(&files).zip(is_owned(&keys)?) {
                if !owned {
                    self.delete(tenant, key).await?;
                    swept.n_deleted += 1;
                    swept.n_bytes += file.size;
                }
            }
        }
        if let Some(folder) = &self.inner().folder {
            sweep_beginnings(&folder.join(tenant), until, &mut swept)?;
        }
        Ok(swept)
    }
}

/// Returns the key of a path `…/first two digits/rest`.
fn key_of(path: &Path) -> Option<String> {
    let mut parts: Vec<_> = path.parts().collect();
    let (rest, folder) = (parts.pop()?, parts.pop()?);
    let key = format!("{}{}", folder.as_ref(), rest.as_ref());
    is_key(&key).then_some(key)
}

/// Deletes unfinished files of dead writers: files whose names end in `#` and a number.
fn sweep_beginnings(folder: &FilePath, until: SystemTime, swept: &mut Swept) -> Result<()> {
    let failed =
        |error: std::io::Error| crate::BlobError::Unavailable(format!("{}: {error}", folder.display()));
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let meta = match entry.metadata() {
            // The upload has finished or was aborted meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.map_err(failed)?,
        };
        if meta.is_dir() {
            sweep_beginnings(&entry.path(), until, swept)?;
        } else if entry.file_name().to_string_lossy().contains('#')
            && meta.modified().map_err(failed)? < until
        {
            std::fs::remove_file(entry.path()).map_err(failed)?;
            swept.n_deleted += 1;
            swept.n_bytes += meta.len();
        }
    }
    Ok(())
}
