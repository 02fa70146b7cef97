//! The store of files: opening it, and what is asked of one file.

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
/// Begins the place of an S3 bucket.
const S3: &str = "s3://";
/// How often a request to S3 is tried again.
const RETRIES: usize = 4;
/// How long one connection to S3 is tried.
const CONNECT: Duration = Duration::from_secs(5);
/// Smallest part that S3 takes.
const FEWEST_PART_BYTES: usize = 5 << 20;

/// The files of all tenants. Clones share it.
#[derive(Clone)]
pub struct Blobs(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The folder, if the files lie in one.
    pub(crate) folder: Option<PathBuf>,
    prefix: Path,
    pub(crate) settings: Settings,
    folders: Folders,
    runtime: OwnRuntime,
}

/// The runtime on which calls wait that are not asynchronous themselves.
#[derive(Default)]
struct OwnRuntime(OnceLock<Runtime>);

impl Drop for OwnRuntime {
    /// Does not wait: the last owner may be on a thread of another runtime.
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
    /// Opens the place that the settings name; a folder is made in `folder`, for its owner alone.
    ///
    /// Errors: the settings cannot be used; the folder cannot be made. S3 is first asked when a file is.
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

    /// In memory, for tests: gone with the last clone.
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
        // The environment gives what the settings do not know: session tokens, roles of machines.
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

    /// Where the files lie, for people: no secret is in it.
    pub fn place(&self) -> String {
        match (&self.0.folder, self.0.settings.place.as_str()) {
            (Some(folder), _) => folder.display().to_string(),
            (None, "") => "memory".to_owned(),
            (None, place) => place.to_owned(),
        }
    }

    /// The settings that it was opened with.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// Takes a file away. One that is not there is no error: whoever asked has what it wants.
    pub async fn delete(&self, tenant: &str, key: &str) -> Result<()> {
        match self.0.store.delete(&self.path(tenant, key)?).await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the file is there with the length that its record says.
    pub async fn has(&self, tenant: &str, blob: &Blob) -> Result<bool> {
        match self.0.store.head(&self.path(tenant, &blob.key)?).await {
            Ok(meta) => Ok(meta.size == blob.length),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the store answers: asks for a file that is not there.
    ///
    /// Errors: it does not, or refuses.
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

    /// Waits for `work` on a runtime of the store's own.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        let make = || {
            // One thread drives all sockets; work itself is polled by whoever waits.
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

    /// The folder of a tenant's files.
    pub(crate) fn tenant_path(&self, tenant: &str) -> Path {
        self.0.prefix.clone().join(tenant)
    }

    /// Has the folder in which a new file lies on disk, where files lie in folders.
    pub(crate) async fn keep_folder(&self, path: &Path) -> Result<()> {
        let Some(root) = self.0.folder.clone() else { return Ok(()) };
        let (blobs, file) = (self.clone(), root.join(path.as_ref()));
        let kept = tokio::task::spawn_blocking(move || blobs.0.folders.keep(&root, &file));
        let failed = |error| BlobError::Unavailable(format!("the folder of {path}: {error}"));
        kept.await.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(failed)
    }

    /// `PREFIX/TENANT/first two digits/rest`. Errors: the key is none.
    pub(crate) fn path(&self, tenant: &str, key: &str) -> Result<Path> {
        if !is_key(key) {
            return Err(BlobError::Reference(key.to_owned()));
        }
        let (folder, file) = key.split_at(2);
        Ok(self.tenant_path(tenant).join(folder).join(file))
    }
}
