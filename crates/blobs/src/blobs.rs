//! The store of files: opening it, and operations on single files.

use std::fmt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt as _, RetryConfig};
use tokio::runtime::Runtime;

use crate::blob::is_key;
use crate::folders::{self, Folders};
use crate::settings::Addressing;
use crate::{Blob, BlobError, Result, Settings};

/// Folder of the files in the catalogue's folder.
const FOLDER: &str = "blobs";
/// Prefix of the place of an S3 bucket.
const S3: &str = "s3://";
/// How many times a request to S3 is retried.
const RETRIES: usize = 4;
/// Timeout of connecting to S3.
const CONNECT: Duration = Duration::from_secs(5);
/// Minimum size of a part that S3 accepts.
const FEWEST_PART_BYTES: usize = 5 << 20;

/// The files of all tenants. Clones share it.
#[derive(Clone)]
pub struct Blobs(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The folder, if the files are in one.
    pub(crate) folder: Option<PathBuf>,
    prefix: Path,
    pub(crate) settings: Settings,
    folders: Folders,
    runtime: OwnRuntime,
}

/// The runtime on which blocking calls wait.
#[derive(Default)]
struct OwnRuntime(OnceLock<Runtime>);

impl Drop for OwnRuntime {
    /// Does not wait, as the last owner may be on a thread of another runtime.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Blobs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Blobs({})", self.place())
    }
}

impl Blobs {
    /// Opens the place that the settings name; a folder is created in `folder`, accessible only to its owner.
    ///
    /// Errors: the settings are invalid; the folder cannot be created. S3 is first accessed when a file is.
    pub fn open(settings: &Settings, folder: &FilePath) -> Result<Self> {
        match settings.place.strip_prefix(S3) {
            Some(bucket) => Self::open_s3(settings, bucket),
            None if settings.place.is_empty() => Self::open_folder(settings, &folder.join(FOLDER)),
            None => Err(BlobError::Settings(format!(
                "place is {:?}; expected s3://BUCKET, s3://BUCKET/PREFIX, or nothing for a folder beside the records",
                settings.place
            ))),
        }
    }

    /// Creates a store in memory, for tests: it is deleted with the last clone.
    pub fn in_memory() -> Self {
        Self::of(Arc::new(InMemory::new()), None, Path::default(), &Settings::default())
    }

    fn open_folder(settings: &Settings, folder: &FilePath) -> Result<Self> {
        let failed = |error| BlobError::Unavailable(format!("{}: {error}", folder.display()));
        folders::make(folder).map_err(failed)?;
        let store = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
        Ok(Self::of(Arc::new(store), Some(folder.to_owned()), Path::default(), settings))
    }

    fn open_s3(settings: &Settings, place: &str) -> Result<Self> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if bucket.is_empty() {
            return Err(BlobError::Settings("place names no bucket; expected s3://BUCKET".to_owned()));
        }
        if settings.part_bytes < FEWEST_PART_BYTES {
            return Err(BlobError::Settings(format!(
                "part_bytes is {}; S3 takes parts of {FEWEST_PART_BYTES} bytes and more",
                settings.part_bytes
            )));
        }
        pinakes_tls::provider();
        let timeout = Duration::from_millis(settings.timeout_ms);
        let client = ClientOptions::new()
            .with_timeout(timeout.saturating_mul(10))
            .with_read_timeout(timeout)
            .with_connect_timeout(CONNECT.min(timeout))
            .with_allow_http(settings.endpoint.starts_with("http://"));
        let retry =
            RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES, retry_timeout: timeout };
        let is_host = settings.addressing == Addressing::Host;
        // The environment supplies what the settings do not contain: session tokens, roles of machines.
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_region(&settings.region)
            .with_virtual_hosted_style_request(is_host)
            .with_client_options(client)
            .with_retry(retry);
        for (key, value) in [
            (AmazonS3ConfigKey::Endpoint, &settings.endpoint),
            (AmazonS3ConfigKey::AccessKeyId, &settings.access_key_id),
            (AmazonS3ConfigKey::SecretAccessKey, &settings.secret_access_key.0),
        ] {
            if !value.is_empty() {
                builder = builder.with_config(key, value);
            }
        }
        let store = builder.build().map_err(|error| BlobError::Settings(error.to_string()))?;
        let prefix = Path::parse(prefix).map_err(|error| BlobError::Settings(format!("place: {error}")))?;
        Ok(Self::of(Arc::new(store), None, prefix, settings))
    }

    fn of(store: Arc<dyn ObjectStore>, folder: Option<PathBuf>, prefix: Path, settings: &Settings) -> Self {
        let (folders, runtime) = (Folders::default(), OwnRuntime::default());
        Self(Arc::new(Inner { store, folder, prefix, settings: settings.clone(), folders, runtime }))
    }

    /// Describes where the files are, for display; contains no secret.
    pub fn place(&self) -> String {
        match (&self.0.folder, self.0.settings.place.as_str()) {
            (Some(folder), _) => folder.display().to_string(),
            (None, "") => "memory".to_owned(),
            (None, place) => place.to_owned(),
        }
    }

    /// Returns the settings with which it was opened.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// Deletes a file. A missing file is not an error, as the caller's goal is reached.
    pub async fn delete(&self, tenant: &str, key: &str) -> Result<()> {
        match self.0.store.delete(&self.path(tenant, key)?).await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Says whether the file exists with the length in its record.
    pub async fn has(&self, tenant: &str, blob: &Blob) -> Result<bool> {
        match self.0.store.head(&self.path(tenant, &blob.key)?).await {
            Ok(meta) => Ok(meta.size == blob.length),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that the store answers, by asking for a file that does not exist.
    ///
    /// Errors: it does not answer, or refuses.
    pub async fn probe(&self) -> Result<()> {
        if let Some(folder) = &self.0.folder {
            let found = std::fs::metadata(folder);
            found.map_err(|error| BlobError::Unavailable(format!("{}: {error}", folder.display())))?;
        }
        match self.0.store.head(&self.0.prefix.clone().join("probe")).await {
            Err(object_store::Error::NotFound { .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for `work` on the store's own runtime.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        let make = || {
            // One thread drives all sockets; the work itself is polled by the waiting thread.
            let built = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("blobs")
                .enable_all()
                .build();
            built.unwrap_or_else(|error| {
                panic!("the threads of the store of files cannot be started: {error}")
            })
        };
        self.0.runtime.0.get_or_init(make).block_on(work)
    }

    /// Returns the folder of a tenant's files.
    pub(crate) fn tenant_path(&self, tenant: &str) -> Path {
        self.0.prefix.clone().join(tenant)
    }

    /// If files are in folders, flushes the name of the folder that contains a new file to disk.
    pub(crate) async fn keep_folder(&self, path: &Path) -> Result<()> {
        let Some(root) = self.0.folder.clone() else { return Ok(()) };
        let (blobs, file) = (self.clone(), root.join(path.as_ref()));
        let kept = tokio::task::spawn_blocking(move || blobs.0.folders.keep(&root, &file));
        let failed = |error| BlobError::Unavailable(format!("the folder of {path}: {error}"));
        kept.await.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(failed)
    }

    /// Returns `PREFIX/TENANT/first two digits/rest`. Errors: the key is invalid.
    pub(crate) fn path(&self, tenant: &str, key: &str) -> Result<Path> {
        if !is_key(key) {
            return Err(BlobError::Reference(key.to_owned()));
        }
        let (folder, file) = key.split_at(2);
        Ok(self.tenant_path(tenant).join(folder).join(file))
    }
}
