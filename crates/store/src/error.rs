//! The errors of the store.

/// A refusal or failure of the store. A write that returns one has changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A record, or a value of a unique column, exists already.
    #[error("{kind}: {column} {value:?} exists already")]
    Duplicate {
        /// Name of the kind.
        kind: &'static str,
        /// `id`, or the unique column's name.
        column: &'static str,
        /// The value that is taken.
        value: String,
    },
    /// A record to change or delete does not exist.
    #[error("{kind}: no record with id {id:?}")]
    Missing {
        /// Name of the kind.
        kind: &'static str,
        /// The id asked for.
        id: String,
    },
    /// The write queue of the tenant is full; try again after `retry_after_s` seconds.
    #[error("the write queue is full ({depth} waiting); try again in {retry_after_s} s")]
    Busy {
        /// Writes waiting.
        depth: usize,
        /// Seconds after which a retry makes sense.
        retry_after_s: u32,
    },
    /// The requests under way hold as many bytes as they may together; try again after `retry_after_s` seconds.
    #[error(
        "the requests under way hold {held_bytes} bytes, as many as limits.held_bytes allows; try again in {retry_after_s} s"
    )]
    Crowded {
        /// The bound, in bytes.
        held_bytes: u64,
        /// Seconds after which a retry makes sense.
        retry_after_s: u32,
    },
    /// A kind is being rebuilt after its declaration changed, and this needs a part that is not rebuilt yet; try again
    /// after `retry_after_s` seconds.
    #[error(
        "{kind} is being rebuilt for this version, and this request needs a part that is not finished; try again in {retry_after_s} s"
    )]
    Remaking {
        /// Name of the kind.
        kind: &'static str,
        /// Seconds after which a retry makes sense.
        retry_after_s: u32,
    },
    /// The tenant does not exist.
    #[error("no tenant named {0:?}; `pinakes tenant list` shows those that exist")]
    UnknownTenant(String),
    /// The tenant exists already.
    #[error("a tenant named {0:?} already exists")]
    TenantExists(String),
    /// The name cannot be a tenant's.
    #[error(
        "{0:?} cannot name a tenant: expected 1 to 63 of a-z, 0-9, `-`, `_`, beginning with a letter or digit"
    )]
    TenantName(String),
    /// The program declares no such kind.
    #[error("no kind named {0:?}")]
    UnknownKind(String),
    /// The query exceeds a limit or is not well formed.
    #[error("query: {0}")]
    Query(String),
    /// The data was written by a newer version of the program.
    #[error(
        "{place} has store format {found}, this program reads up to {known}; run a newer version of pinakes"
    )]
    Newer {
        /// The file or schema.
        place: String,
        /// Format found there.
        found: i64,
        /// Newest format known here.
        known: i64,
    },
    /// The stored data is inconsistent; `pinakes check` says more.
    #[error("damaged: {0}; run `pinakes check`, restore from a backup if it confirms this")]
    Damaged(String),
    /// The server is shutting down.
    #[error("the store is closing")]
    Closed,
    /// The disk is full; nothing of the write was kept.
    #[error("no space left for {0}; free some and try again")]
    Full(String),
    /// A search index failed; it is rebuilt.
    #[error("search index: {0}")]
    Index(String),
    /// A read exceeded its time limit and was stopped.
    #[error(
        "the read took longer than limits.read_timeout_ms allows; narrow the condition or raise the limit"
    )]
    TooLong,
    /// The commit that many writes shared failed; none of them was kept.
    #[error("the commit failed, nothing was written: {0}")]
    Commit(String),
    /// A committed write could not be flushed to disk, as the text says.
    #[error(
        "the log could not be flushed to disk: {0}; it is unknown whether this write was kept until the server is restarted, and nothing is written until then"
    )]
    NotFlushed(String),
    /// The tenant accepts no more writes, since the log could not be flushed: what is on disk is unknown.
    #[error(
        "nothing is written any more, because the log could not be flushed earlier ({0}); restart the server"
    )]
    Halted(String),
    /// The closure of a write panicked; nothing of the write was kept.
    #[error("a write failed by an internal fault; nothing of it was kept")]
    Panicked,
    /// The write conflicted with others that changed the same records, on every retry.
    #[error("too many changes to the same records at once: {0}; try again")]
    Conflict(String),
    /// A job no longer belongs to this owner: its lease ended and another took it, or it was removed from its queue.
    #[error(
        "the lease of job {id:?} in {queue} is lost: it ended and another took the job, or the job was cancelled"
    )]
    LeaseLost {
        /// The queue of the job.
        queue: String,
        /// The job.
        id: String,
    },
    /// The database does not respond or refuses the connection; nothing of the write was kept.
    #[error("the database cannot be used: {0}")]
    Unavailable(String),
    /// The connection was lost during a commit: the write may or may not be stored. It was not acknowledged.
    #[error("the connection was lost during the commit; the write may or may not have happened: {0}")]
    Uncertain(String),
    /// The database refused a statement.
    #[error("postgresql: {message}")]
    Postgres {
        /// The five characters of its error code.
        code: String,
        /// Its message.
        message: String,
    },
    /// The embedded engine failed.
    #[error("sqlite: {0}")]
    Sqlite(rusqlite::Error),
    /// A file of the store could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        // The index of the write-ahead log is a file of its own, which the engine cannot create on a full disk.
        let is_without_index =
            |it: &rusqlite::ffi::Error| it.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        if error.sqlite_error().is_some_and(is_without_index) {
            return Self::Full("the tenant's file".into());
        }
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full("the tenant's file".into()),
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                Self::Damaged(error.to_string())
            }
            Some(rusqlite::ErrorCode::OperationInterrupted) => Self::TooLong,
            _ => Self::Sqlite(error),
        }
    }
}

impl From<tantivy::TantivyError> for StoreError {
    fn from(error: tantivy::TantivyError) -> Self {
        match error {
            tantivy::TantivyError::LockFailure(..) => {
                Self::Unavailable("another process keeps the search index".to_owned())
            }
            error => Self::Index(error.to_string()),
        }
    }
}

/// The result of a call to the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Returns the error for declarations that changed since the tenant was opened.
pub(crate) fn outdated() -> StoreError {
    StoreError::Unavailable(
        "another version of pinakes has opened this tenant and made its declarations its own; run one of the two".to_owned(),
    )
}
