//! The files beside the records, and the records that name them: finds those that lack the other.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use pinakes_blobs::{Blob, BlobError, Blobs, SCHEME, Swept};
use pinakes_store::{Catalogue, StoreError, Tenant};

use crate::terminal::{counted, thousands};

/// Names looked up in the catalogue at once.
const PAGE: u32 = 1_000;
/// Maximum number of missing files that are listed; further ones are counted.
const LISTED: usize = 20;
/// Queue of the tenants to be swept; each job is a tenant.
const QUEUE: &str = "pinakes:sweep";
/// The only job of a tenant's queue.
const JOB: &str = "files";
/// How long one server may take to sweep a tenant before another may, in milliseconds (an hour).
const LEASE_MS: u32 = 3_600_000;
/// How long a swept tenant is not swept again, in milliseconds (a day).
const REST_MS: u32 = 24 * 3_600_000;
/// Time between two checks whether a tenant is due.
const PAUSE: Duration = Duration::from_secs(600);

/// Lists the files that the records of a tenant name but that do not exist.
pub(crate) fn findings(blobs: &Blobs, tenant: &Tenant) -> anyhow::Result<Vec<String>> {
    let (mut lines, mut n_more) = (Vec::new(), 0_u64);
    for_each(tenant, |text| {
        let found = match text.parse::<Blob>() {
            Ok(blob) if blobs.block_on(blobs.has(tenant.name(), &blob))? => return Ok(()),
            Ok(blob) => format!("file {} of {} bytes is not in {}", blob.key, blob.length, blobs.place()),
            Err(error) => error.to_string(),
        };
        if lines.len() < LISTED {
            lines.push(found)
        } else {
            n_more += 1
        }
        Ok(())
    })?;
    if n_more != 0 {
        lines.push(format!("{} more", counted(n_more, "file")));
    }
    Ok(lines)
}

/// Passes each file that a record of the tenant names to `visit`, as text.
pub(crate) fn for_each(
    tenant: &Tenant,
    mut visit: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut after = String::new();
    loop {
        let page = tenant.read_blocking(|view| view.identifiers(SCHEME, &after, PAGE))?;
        let Some(last) = page.last() else { return Ok(()) };
        page.iter().try_for_each(|text| visit(text))?;
        after.clone_from(last);
    }
}

/// Deletes the files of a tenant that no record names and that are old enough.
pub(crate) fn sweep(blobs: &Blobs, tenant: &Tenant) -> anyhow::Result<Swept> {
    let age = Duration::from_secs(blobs.settings().sweep_after_s);
    let swept = blobs.block_on(blobs.sweep(tenant.name(), age, |keys| {
        let owned = tenant.read_blocking(|view| {
            keys.iter()
                .map(|key| {
                    let next = view.identifiers(SCHEME, key, 1)?;
                    Ok(next.first().is_some_and(|it| it.starts_with(key)))
                })
                .collect::<Result<Vec<bool>, StoreError>>()
        });
        owned.map_err(|error| BlobError::Source(error.to_string()))
    }));
    Ok(swept?)
}

/// Formats the result as `2 of 5 files, 1,234 bytes`.
pub(crate) fn in_words(swept: &Swept) -> String {
    let files = counted(swept.n_files, "file");
    format!("{} of {files}, {} bytes", thousands(swept.n_deleted), thousands(swept.n_bytes))
}

/// A thread that sweeps each tenant once a day. Of several servers over one catalogue, one does it: a lease in
/// the tenant says which, and when the tenant is due again.
pub(crate) struct Sweeper {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Sweeper {
    pub(crate) fn start(catalogue: &Catalogue, blobs: &Blobs) -> anyhow::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let (catalogue, blobs) = (catalogue.clone(), blobs.clone());
        let run = move || {
            // The first check comes after a pause: a start is busy enough.
            while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(PAUSE) {
                if let Err(error) = sweep_due(&catalogue, &blobs) {
                    tracing::warn!(%error, "files were not swept; this will be retried");
                }
            }
        };
        let thread = std::thread::Builder::new().name("sweeper".to_owned()).spawn(run)?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread when its current work is done, which may outlast the server; nobody waits for it.
    pub(crate) fn stop(self) {
        drop(self.stop);
        drop(self.thread);
    }
}

/// Sweeps the tenants that are due and that no other server sweeps.
pub(crate) fn sweep_due(catalogue: &Catalogue, blobs: &Blobs) -> anyhow::Result<()> {
    for info in catalogue.tenants()? {
        let tenant = catalogue.tenant(&info.name)?;
        let owner = std::process::id().to_string();
        let taken = tenant.write_blocking(move |txn| {
            txn.queue_job(QUEUE, JOB)?;
            txn.take_lease_of(QUEUE, JOB, &owner, LEASE_MS)
        })?;
        let Some(lease) = taken else { continue };
        let swept = sweep(blobs, &tenant)?;
        if swept.n_deleted != 0 {
            tracing::info!(tenant = info.name, "swept {}", in_words(&swept));
        }
        match tenant.write_blocking(move |txn| txn.release_lease(&lease, REST_MS)) {
            // It took longer than the lease: the other server says when it is due again.
            Err(StoreError::LeaseLost { .. }) => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pinakes_blobs::Settings;
    use pinakes_store::{Identifier, Kind, Limits, Location};
    use serde_json::json;

    use super::*;

    static UPLOAD: Kind =
        Kind { identifiers: &[Identifier { scheme: SCHEME, path: "file" }], ..Kind::named("upload") };
    static KINDS: &[&Kind] = &[&UPLOAD];

    /// One file belongs to a record, one to a deleted record, one was never named.
    #[test]
    fn files_without_a_record_are_swept_once_a_day() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let catalogue = Catalogue::open(Location::Folder(folder.path().into()), KINDS, Limits::default())?;
        let tenant = catalogue.create_tenant("library", "")?;
        let blobs = Blobs::open(&Settings { sweep_after_s: 0, ..Settings::default() }, folder.path())?;
        let put = |text: &'static str| blobs.put_blocking("library", text.as_bytes());
        let (kept, deleted, _nobodys) = (put("kept")?, put("deleted")?, put("nobody's")?);
        for (id, blob) in [("kept", kept.clone()), ("deleted", deleted)] {
            tenant.write_blocking(move |txn| txn.insert(&UPLOAD, id, &json!({"file": blob})))?;
        }
        tenant.write_blocking(|txn| txn.delete(&UPLOAD, "deleted"))?;
        assert_eq!(findings(&blobs, &tenant)?, Vec::<String>::new());
        sweep_due(&catalogue, &blobs)?;
        // The next check finds nothing due: the unnamed file stays until tomorrow, or until somebody sweeps
        // by hand.
        put("late")?;
        sweep_due(&catalogue, &blobs)?;
        let swept = sweep(&blobs, &tenant)?;
        assert_eq!((swept.n_files, swept.n_deleted, swept.n_bytes), (2, 1, 4));
        assert!(blobs.block_on(blobs.has("library", &kept))?);
        blobs.block_on(blobs.delete("library", &kept.key))?;
        assert_eq!(
            findings(&blobs, &tenant)?,
            [format!("file {} of 4 bytes is not in {}", kept.key, blobs.place())]
        );
        Ok(())
    }
}
