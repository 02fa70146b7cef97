//! Errors of writing and reading files.

/// Result of a call of this crate.
pub type Result<T, E = BlobError> = std::result::Result<T, E>;

/// An error. Its text contains no key or secret of the store.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is no file with the key.
    #[error(
        "the file {key} is not there; was it swept, or does [blobs] name another place than when it was written?"
    )]
    Missing {
        /// The requested key.
        key: String,
    },
    /// The content that was read differs from what was written.
    #[error("the file {key} is damaged: {found}, expected {expected}; restore it from a backup")]
    Damaged {
        /// The key.
        key: String,
        /// What was found.
        found: String,
        /// What its record states.
        expected: String,
    },
    /// The input is larger than a file may be.
    #[error("the file is larger than blobs.file_bytes allows ({most_bytes} bytes)")]
    TooLarge {
        /// The limit.
        most_bytes: u64,
    },
    /// A text that is not a reference to a file.
    #[error(
        "{0:?} names no file; expected 32 hexadecimal digits, `-`, a length in bytes, `-`, a SHA-256 in hexadecimal"
    )]
    Reference(String),
    /// A range that the file does not have.
    #[error("bytes {start} to {end} were requested of a file of {length} bytes")]
    Range {
        /// First byte.
        start: u64,
        /// The position after the last byte.
        end: u64,
        /// Length of the file in bytes.
        length: u64,
    },
    /// The configuration cannot be used.
    #[error("[blobs]: {0}")]
    Settings(String),
    /// The disk or the bucket is full.
    #[error("no space left for files; free some and try again")]
    Full,
    /// The store does not answer or refuses; unfinished files do not exist.
    #[error("the store of files cannot be used: {0}")]
    Unavailable(String),
    /// The sender of the file stopped.
    #[error("the file was not received: {0}")]
    Source(String),
}

impl From<object_store::Error> for BlobError {
    fn from(error: object_store::Error) -> Self {
        if is_full(&error) { Self::Full } else { Self::Unavailable(chain(&error)) }
    }
}

/// Says whether an I/O error, or any of its causes, means that the disk is full.
fn is_full(error: &object_store::Error) -> bool {
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = at {
        let full = [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded];
        if cause.downcast_ref::<std::io::Error>().is_some_and(|it| full.contains(&it.kind())) {
            return true;
        }
        at = cause.source();
    }
    false
}

/// Formats an error with its causes; causes that only repeat the text are left out.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        at = cause.source();
    }
    text
}
