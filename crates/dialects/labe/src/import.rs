//! Imports catalogue documents from files: one JSON object with an `id`, or `id<TAB>object`, per line; plain, gzip,
//! zstd or zip.
//!
//! A [`Reader`] splits a file into lines; [`prepare`] turns a line into a record, on any thread; [`load`] does all this
//! concurrently and writes batches. A bad line is reported with file, line and reason, and skipped. Existing records
//! are replaced or kept, as [`Existing`] says.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pinakes_citations::source::{self, SourceError};
use pinakes_store::{Document, StoreError, Tenant, Txn, pipeline};
use serde_json::Value;

use crate::kinds::DOCUMENT;
use crate::{envelope, json_text};

/// Maximum length of a line, in bytes (16 MiB).
pub const LINE_LEN_MAX_BYTES: usize = 16 << 20;
/// May precede the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Maximum number of records written in one transaction.
const BATCH_RECORDS: usize = 8_000;
/// Approximate maximum of bytes written in one transaction (8 MiB).
const BATCH_BYTES: usize = 8 << 20;

/// How documents that already exist are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Existing documents stay unchanged.
    Keep,
    /// Existing documents are replaced by those of the file.
    Replace,
}

/// The outcome of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loaded {
    /// Number of created documents.
    pub n_made: u64,
    /// Number of replaced documents.
    pub n_replaced: u64,
    /// Number of existing documents that were left unchanged.
    pub n_kept: u64,
    /// Number of skipped lines.
    pub n_bad: u64,
}

/// A line that is not a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// The file; members of an archive as `dump.zip!part`.
    pub file: String,
    /// Line number in it, from 1.
    pub line: u64,
    /// What is wrong.
    pub reason: LineFault,
}

impl std::fmt::Display for BadLine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}: {}", self.file, self.line, self.reason)
    }
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// Longer than [`LINE_LEN_MAX_BYTES`].
    #[error("line skipped: it is longer than {LINE_LEN_MAX_BYTES} bytes; is the file JSON lines?")]
    TooLong,
    /// Not JSON.
    #[error("line skipped: not JSON ({0}); expected one object per line, or id, tab, object")]
    NotJson(String),
    /// JSON, but not an object.
    #[error("line skipped: the document is {found}, expected an object")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// There is no id.
    #[error("line skipped: there is no string `id`; give one, or write the line as id, tab, object")]
    NoId,
    /// An invalid id.
    #[error("line skipped: {0}")]
    Id(String),
}

/// Reason why a load stopped. What was written before stays.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Turns a line into a record.
///
/// The text is stored as `labed` would send it; `institution`, and the first DOI in `doi_str_mv`, are extracted from
/// it.
///
/// # Errors
/// The reason why it is not a document.
pub fn prepare(line: &[u8]) -> Result<Document, LineFault> {
    let (id, text) = match line.first() {
        Some(b'{' | b' ') | None => (None, line),
        Some(_) => match memchr::memchr(b'\t', line) {
            Some(tab) => (Some(&line[..tab]), &line[tab + 1..]),
            None => (None, line),
        },
    };
    let text = json_text::compact(text).map_err(|error| LineFault::NotJson(error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| LineFault::NotJson(error.to_string()))?;
    let Value::Object(document) = &value else {
        return Err(LineFault::NotAnObject { found: name_of(&value) });
    };
    let id = match id {
        Some(id) => str::from_utf8(id).map_err(|_| LineFault::Id("the id is not UTF-8".to_owned()))?,
        None => document.get("id").and_then(Value::as_str).ok_or(LineFault::NoId)?,
    };
    if id.is_empty() {
        return Err(LineFault::NoId);
    }
    let body = envelope::body(text, document);
    Document::new(&DOCUMENT, id, &body).map_err(|error| LineFault::Id(error.to_string()))
}

/// Loads a file into a tenant in batches, of which only a few are in memory at a time. Calls `tell` with each bad line,
/// in the order of the file. Everything that was loaded is on disk when this returns.
///
/// # Errors
/// The file cannot be read; the store failed.
pub fn load(
    tenant: &Tenant,
    path: &Path,
    existing: Existing,
    tell: &mut dyn FnMut(&BadLine),
) -> Result<Loaded, ImportError> {
    let mut loaded = Loaded::default();
    let read = pipeline(
        |take| read_all(path, take),
        Prepared::of,
        |batch| {
            loaded.n_bad += batch.bad.len() as u64;
            batch.bad.iter().for_each(&mut *tell);
            let documents = batch.documents.clone();
            let written = tenant.load_blocking(move |txn| write(txn, &documents, existing))?;
            loaded.n_made += written.n_made;
            loaded.n_replaced += written.n_replaced;
            loaded.n_kept += written.n_kept;
            Ok::<_, ImportError>(batch)
        },
    )?;
    // What a load has written is durable once a later write is.
    tenant.write_blocking(|_| Ok::<_, StoreError>(()))?;
    read.map(|()| loaded)
}

/// Lines of one file, each with its number.
struct Lines {
    file: String,
    n_bytes: usize,
    lines: Vec<(u64, Result<Vec<u8>, LineFault>)>,
}

impl Lines {
    fn of(file: &str) -> Self {
        Self { file: file.to_owned(), n_bytes: 0, lines: Vec::new() }
    }

    fn is_full(&self) -> bool {
        BATCH_RECORDS <= self.lines.len() || BATCH_BYTES <= self.n_bytes
    }
}

/// Splits a file into batches, until the receiver stops.
fn read_all(path: &Path, take: &mut dyn FnMut(Lines) -> bool) -> Result<(), ImportError> {
    let n_read = AtomicU64::new(0);
    let result = source::visit_members::<Stop>(path, &std::env::temp_dir(), &n_read, &mut |member| {
        let mut reader = Reader::new(BufReader::with_capacity(1 << 18, member.bytes));
        let mut batch = Lines::of(&member.name);
        let ended = loop {
            match reader.next_line() {
                Ok(Some((number, line))) => {
                    batch.n_bytes += line.map_or(0, <[u8]>::len);
                    batch.lines.push((number, line.map(<[u8]>::to_vec).ok_or(LineFault::TooLong)));
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(SourceError::Read { file: member.name.clone(), error }),
            }
            if batch.is_full() && !take(std::mem::replace(&mut batch, Lines::of(&member.name))) {
                return Err(Stop::Unwanted);
            }
        };
        // What was read before a failure is loaded.
        if !take(batch) {
            return Err(Stop::Unwanted);
        }
        Ok(ended?)
    });
    match result {
        Err(Stop::Source(error)) => Err(error.into()),
        // Writing has ended, and reports the reason itself.
        Ok(()) | Err(Stop::Unwanted) => Ok(()),
    }
}

/// Reason why reading ended early.
enum Stop {
    Source(SourceError),
    Unwanted,
}

impl From<SourceError> for Stop {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

/// A batch ready to be written.
struct Prepared {
    documents: Arc<[Document]>,
    bad: Vec<BadLine>,
}

impl Prepared {
    fn of(lines: Lines) -> Self {
        let (mut documents, mut bad) = (Vec::with_capacity(lines.lines.len()), Vec::new());
        for (number, line) in lines.lines {
            match line.and_then(|line| prepare(&line)) {
                Ok(document) => documents.push(document),
                Err(reason) => bad.push(BadLine { file: lines.file.clone(), line: number, reason }),
            }
        }
        Self { documents: documents.into(), bad }
    }
}

fn write(txn: &mut Txn<'_>, documents: &[Document], existing: Existing) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded::default();
    let made = txn.insert_missing(&documents.iter().collect::<Vec<_>>())?;
    for (document, is_made) in documents.iter().zip(made) {
        match (is_made, existing) {
            (true, _) => loaded.n_made += 1,
            (false, Existing::Keep) => loaded.n_kept += 1,
            (false, Existing::Replace) => {
                txn.update_document(document)?;
                loaded.n_replaced += 1;
            }
        }
    }
    Ok(loaded)
}

/// Splits a stream into lines; holds no more of a line than the maximum length.
pub struct Reader<R> {
    source: R,
    line: Vec<u8>,
    n_lines: u64,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader of a plain stream.
    pub fn new(source: R) -> Self {
        Self { source, line: Vec::new(), n_lines: 0 }
    }

    /// Returns the next line that is not empty: its number, from 1, and its bytes without the line end, or `None` in
    /// place of the bytes if it is too long. Returns `None` at the end; the last line needs no line end.
    ///
    /// # Errors
    /// The stream's own.
    #[expect(clippy::type_complexity, reason = "a line with its number, or that it is too long")]
    pub fn next_line(&mut self) -> std::io::Result<Option<(u64, Option<&[u8]>)>> {
        loop {
            self.line.clear();
            let Some(is_whole) = self.fill()? else { return Ok(None) };
            self.n_lines += 1;
            if !is_whole {
                return Ok(Some((self.n_lines, None)));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let mut line = self.line.as_slice();
        // Programs on Windows put it at the start of files.
        if self.n_lines == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        Ok(Some((self.n_lines, Some(line.strip_suffix(b"\r").unwrap_or(line)))))
    }

    /// Reads up to the end of the line and returns whether the whole line is held; `None` at the end of the stream.
    fn fill(&mut self) -> std::io::Result<Option<bool>> {
        let (mut is_whole, mut is_begun) = (true, false);
        loop {
            let buffer = self.source.fill_buf()?;
            if buffer.is_empty() {
                return Ok(is_begun.then_some(is_whole));
            }
            is_begun = true;
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            is_whole = is_whole && self.line.len() + part.len() <= LINE_LEN_MAX_BYTES;
            if is_whole {
                self.line.extend_from_slice(part);
            }
            let n_used = end.map_or(buffer.len(), |end| end + 1);
            self.source.consume(n_used);
            if end.is_some() {
                return Ok(Some(is_whole));
            }
        }
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
