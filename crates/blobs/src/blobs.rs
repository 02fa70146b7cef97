//! The store of files: opening it, and what is asked of one file.

use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, GetOptions, ObjectStore, ObjectStoreExt as _, RetryConfig};
use tokio::runtime::Runtime;

use crate::blob::{hexadecimal, is_key};
use crate::settings::Addressing;
use crate::{Blob, BlobError, BlobReader, Reading, Result, Settings, Upload};

/// Folder of the files in the catalogue's folder.
const FOLDER: &str = "blobs";
/// Begins the place of an S3 bucket.
const S3: &str = "s3://";
/// How often a request to S3 is tried again.
const RETRIES: usize = 4;
/// How long one connection to S3 is tried.
const CONNECT: Duration = Duration::from_secs(5);
/// Bytes that one read of a caller that is not asynchronous hands to an upload.
const COPY_BYTES: usize = 64 << 10;
/// Smallest part that S3 takes.
const FEWEST_PART_BYTES: usize = 5 << 20;

/// The files of all tenants. Clones share it.
#[derive(Clone)]
pub struct Blobs(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The folder, if the files lie in one.
    pub(crate) folder: Option<PathBuf>,
    prefix: Path,
    pub(crate) settings: Settings,
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
        use std::os::unix::fs::DirBuilderExt as _;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| BlobError::Unavailable(format!("{}: {error}", folder.display())))?;
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
        let runtime = OwnRuntime::default();
        Self(Arc::new(Inner { store, folder, prefix, settings: settings.clone(), runtime }))
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

    /// Begins a file of a tenant. It is there when [`Upload::finish`] has returned, and owned when a record names it.
    pub fn begin(&self, tenant: &str) -> Result<Upload> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)
            .map_err(|error| BlobError::Unavailable(format!("no randomness: {error}")))?;
        self.begin_as(tenant, hexadecimal(&random))
    }

    fn begin_as(&self, tenant: &str, key: String) -> Result<Upload> {
        let path = self.path(tenant, &key)?;
        Ok(Upload::new(self.clone(), path, key))
    }

    /// Writes a whole stream as a file of a tenant. Nothing is left of one that stops in an error.
    ///
    /// Errors: [`BlobError::Source`] with what the stream says; it is too long; the store fails.
    pub async fn put<E: fmt::Display>(
        &self,
        tenant: &str,
        stream: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Blob> {
        fill(self.begin(tenant)?, stream).await
    }

    /// The same for callers that are not asynchronous. Not to be called on a thread that drives a runtime.
    pub fn put_blocking(&self, tenant: &str, mut source: impl Read) -> Result<Blob> {
        let mut upload = self.begin(tenant)?;
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => return self.block_on(upload.finish()),
                Ok(n) => self.block_on(upload.write(Bytes::copy_from_slice(&buffer[..n])))?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.block_on(upload.abort());
                    return Err(BlobError::Source(error.to_string()));
                }
            }
        }
    }

    /// Reads a file, or a range of its bytes. A whole file is compared with its checksum: one that differs ends
    /// in an error before its last piece is given.
    pub async fn get(&self, tenant: &str, blob: &Blob, range: Option<Range<u64>>) -> Result<Reading> {
        let path = self.path(tenant, &blob.key)?;
        if let Some(Range { start, end }) = range.clone()
            && (end < start || blob.length < end)
        {
            return Err(BlobError::Range { start, end, length: blob.length });
        }
        let asked = range.clone().unwrap_or(0..blob.length);
        if range.is_some() && asked.is_empty() {
            return Ok(Reading::empty(blob));
        }
        let options = GetOptions::default().with_range(range.map(object_store::GetRange::Bounded));
        let found = self.0.store.get_opts(&path, options).await.map_err(|error| missing(error, &blob.key))?;
        if found.meta.size != blob.length {
            return Err(BlobError::Damaged {
                key: blob.key.clone(),
                found: format!("{} bytes", found.meta.size),
                expected: format!("{} bytes", blob.length),
            });
        }
        Ok(Reading::of(blob, &asked, found.into_stream()))
    }

    /// The same for callers that are not asynchronous. Not to be used on a thread that drives a runtime.
    pub fn reader(&self, tenant: &str, blob: &Blob, range: Option<Range<u64>>) -> Result<BlobReader> {
        let reading = self.block_on(self.get(tenant, blob, range))?;
        Ok(BlobReader::of(self.clone(), reading))
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

    /// Copies a file into another store, under its own key; false when it is there already. Its checksum is
    /// compared on the way.
    pub async fn copy(&self, to: &Self, tenant: &str, blob: &Blob) -> Result<bool> {
        if to.has(tenant, blob).await? {
            return Ok(false);
        }
        let source = self.get(tenant, blob, None).await?;
        fill(to.begin_as(tenant, blob.key.clone())?, source).await.map(|_| true)
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

    /// `PREFIX/TENANT/first two digits/rest`. Errors: the key is none.
    fn path(&self, tenant: &str, key: &str) -> Result<Path> {
        if !is_key(key) {
            return Err(BlobError::Reference(key.to_owned()));
        }
        let (folder, file) = key.split_at(2);
        Ok(self.tenant_path(tenant).join(folder).join(file))
    }
}

async fn fill<E: fmt::Display>(
    mut upload: Upload,
    stream: impl Stream<Item = Result<Bytes, E>>,
) -> Result<Blob> {
    let mut stream = std::pin::pin!(stream);
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => upload.write(piece).await?,
            Err(error) => {
                upload.abort().await;
                return Err(BlobError::Source(error.to_string()));
            }
        }
    }
    upload.finish().await
}

fn missing(error: object_store::Error, key: &str) -> BlobError {
    match error {
        object_store::Error::NotFound { .. } => BlobError::Missing { key: key.to_owned() },
        other => other.into(),
    }
}
