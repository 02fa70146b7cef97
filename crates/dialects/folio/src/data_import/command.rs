//! An import from the command line: the same job, run by the program itself.

use std::io::Read;
use std::sync::mpsc;
use std::time::Duration;

use pinakes_accounts::{Clock, Entropy};
use pinakes_store::{Tenant, Txn, View};
use serde_json::{Value, json};

use super::files;
use super::job::{Job, NewJob};
use super::journal::stored::{Shown, Stored, each_batch_of};
use crate::data_import::change_manager::associate;
use crate::data_import::imports::Imports;
use crate::data_import::profiles::{self, ProfileType};
use crate::modules::COLLECTIONS;
use crate::platform::collection::Writer;
use crate::platform::error::FolioError;
use crate::platform::settings::Settings;
use crate::reference;

/// Interval between two looks at the progress, in milliseconds.
const LOOK_MS: u64 = 200;

/// The import of a file.
pub struct FileImport<'a> {
    /// The content of the file.
    pub input: &'a mut dyn Read,
    /// The file's name in the log.
    pub file_name: String,
    /// Id or name of the job profile.
    pub profile: String,
    /// The clock.
    pub clock: Clock,
    /// Source of ids.
    pub entropy: Entropy,
    /// The site's settings.
    pub settings: Settings,
}

/// The progress of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportProgress {
    /// Number of processed records.
    pub n_done: u64,
    /// Number of processed records that failed.
    pub n_failed: u64,
    /// Number of records in the file; 0 while they are being counted.
    pub n_total: u64,
}

/// A record that was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFault {
    /// Number within the file, from 1.
    pub number: u64,
    /// The reason.
    pub reason: String,
}

/// Imports a file into a tenant; returns the final progress and the failures in the order of the file. `note` is called
/// periodically.
///
/// Errors: a profile that does not exist or does not fit; an unreadable file; errors of the store.
pub fn import_file(
    tenant: &Tenant,
    import: FileImport<'_>,
    note: &mut dyn FnMut(ImportProgress),
) -> Result<(ImportProgress, Vec<RecordFault>), FolioError> {
    let FileImport { input, file_name, profile, clock, entropy, settings } = import;
    let now_ms = clock.now_ms();
    let known = settings.clone();
    if !tenant.read_blocking(move |view| reference::is_loaded(view, &known, COLLECTIONS))? {
        let known = settings.clone();
        tenant.write_blocking(move |txn: &mut Txn<'_>| reference::load(txn, &known, now_ms, COLLECTIONS))?;
    }
    let named = profile.clone();
    let found = tenant.read_blocking(move |view| profiles::find(view, ProfileType::Job, &named))?;
    let found = found.and_then(|it| it.get("id").and_then(Value::as_str).map(str::to_owned));
    let profile_id = found.ok_or_else(|| {
        FolioError::not_found(format!(
            "there is no job profile with the id or name '{profile}'; GET /data-import-profiles/jobProfiles lists them"
        ))
    })?;
    let part_id = entropy.uuid_at(now_ms).to_string();
    let part = files::store(tenant, part_id.clone(), &part_id, input)
        .map_err(|error| FolioError::bad_request(error.to_string()))?;
    let id = begin(tenant, &file_name, &profile_id, json!([[part.id, part.n_bytes]]), now_ms, &entropy)?;
    run(tenant, &id, Imports::alone(clock, entropy, settings.into(), COLLECTIONS), note)?;
    outcome(tenant, &id)
}

/// Creates the job.
fn begin(
    tenant: &Tenant,
    file_name: &str,
    profile: &str,
    parts: Value,
    now_ms: i64,
    entropy: &Entropy,
) -> Result<String, FolioError> {
    let id = entropy.uuid_at(now_ms).to_string();
    let (at, name, profile, entropy) =
        (id.clone(), file_name.to_owned(), profile.to_owned(), entropy.clone());
    let refused = tenant.write_blocking(move |txn: &mut Txn<'_>| -> Result<Option<String>, FolioError> {
        let writer = Writer::new(now_ms, None, entropy.clone(), COLLECTIONS);
        let mut job = Job::create(
            txn,
            NewJob {
                id: at.clone(),
                parent: at.clone(),
                subordination: "PARENT_SINGLE",
                file_name: name.clone(),
                user_id: String::new(),
                run_by: json!({"firstName": "", "lastName": "command line"}),
                profile: None,
                now_ms,
            },
        )?;
        let refused = associate(txn, &writer, &mut job, &profile, "MARC")?.err();
        match &refused {
            Some(message) => job.fail("PROFILE_SNAPSHOT_CREATING_ERROR", message, now_ms),
            None => {
                job.take_file(&parts, "file");
            }
        }
        job.save(txn)?;
        Ok(refused)
    })?;
    match refused {
        None => Ok(id),
        Some(message) => Err(FolioError::bad_request(message)),
    }
}

/// Works until the job is finished, on a separate thread, while this one reports progress.
fn run(
    tenant: &Tenant,
    id: &str,
    imports: Imports,
    note: &mut dyn FnMut(ImportProgress),
) -> Result<(), FolioError> {
    let (done, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let work = scope.spawn(move || {
            let result = loop {
                let result = imports.run(tenant);
                let is_final = progress(tenant, id).map(|it| it.1);
                match (result, is_final) {
                    (Err(error), _) => break Err(FolioError::from(error)),
                    (Ok(()), Err(error)) => break Err(error),
                    (Ok(()), Ok(true)) => break Ok(()),
                    // Another process holds the lease on the tenant's imports and does the work.
                    (Ok(()), Ok(false)) => std::thread::sleep(Duration::from_millis(LOOK_MS)),
                }
            };
            // The reporting loop ends when the sender is dropped.
            drop(done);
            result
        });
        while let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(Duration::from_millis(LOOK_MS)) {
            if let Ok((now, _)) = progress(tenant, id) {
                note(now);
            }
        }
        work.join().unwrap_or_else(|_| Err(pinakes_store::StoreError::Panicked.into()))
    })
}

/// Returns the progress of a job, and whether it is finished.
fn progress(tenant: &Tenant, id: &str) -> Result<(ImportProgress, bool), FolioError> {
    let id = id.to_owned();
    let job = tenant.read_blocking(move |view| Job::get(view, &id))?;
    let job = job.ok_or_else(|| FolioError::not_found("the job is not there any more"))?;
    let now = ImportProgress {
        n_done: job.work_number("order"),
        n_failed: job.work_number("failed"),
        n_total: job.total(),
    };
    Ok((now, job.is_final()))
}

/// Returns the result of a finished job.
fn outcome(tenant: &Tenant, id: &str) -> Result<(ImportProgress, Vec<RecordFault>), FolioError> {
    let at = id.to_owned();
    let (now, error, faults) = tenant.read_blocking(move |view: &mut View<'_>| -> Result<_, FolioError> {
        let job =
            Job::get(view, &at)?.ok_or_else(|| FolioError::not_found("the job is not there any more"))?;
        let (mut faults, mut all) = (Vec::new(), Shown::default());
        each_batch_of(view, &at, true, |record, batch| {
            all.add(record.body.len())?;
            let failed = batch.entries.iter().filter(|it| !it.error.0.is_empty());
            let fault =
                |it: &Stored<'_>| RecordFault { number: it.order + 1, reason: it.error.0.to_string() };
            faults.extend(failed.map(fault));
            Ok(())
        })?;
        let now = ImportProgress {
            n_done: job.work_number("order"),
            n_failed: job.work_number("failed"),
            n_total: job.total(),
        };
        let error = job.work("error").as_str().map(str::to_owned);
        Ok((now, error, faults))
    })?;
    match error {
        Some(message) => Err(FolioError::bad_request(message)),
        None => Ok((now, faults)),
    }
}
