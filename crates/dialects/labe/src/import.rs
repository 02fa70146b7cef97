//! Catalogue documents from files: a JSON object a line with an `id`, or `id<TAB>object`, plain, gzip, zstd or zip.
//!
//! A [`Reader`] cuts a file into lines; [`prepare`] makes a record of a line, on any thread; [`load`] does all this at
//! once and writes batches. A bad line is told of with file, line and reason, and left out. Records that are there
//! already are replaced, or kept, as [`Existing`] says.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pinakes_citations::source::{self, SourceError};
use pinakes_store::{Document, StoreError, Tenant, Txn, pipeline};
use serde_json::Value;

use crate::kinds::DOCUMENT;
use crate::{envelope, json_text};

/// Longest line taken, in bytes (16 MiB).
pub const LINE_LEN_MAX_BYTES: usize = 16 << 20;
/// What may stand before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Records written in one transaction at most.
const BATCH_RECORDS: usize = 8_000;
/// Bytes written in one transaction, about (8 MiB).
const BATCH_BYTES: usize = 8 << 20;

/// What happens to documents that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// They stay as they are.
    Keep,
    /// They become what the file says.
    Replace,
}

/// What a load did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loaded {
    /// Documents made.
    pub n_made: u64,
    /// Documents replaced.
    pub n_replaced: u64,
    /// Documents that were there already and stayed.
    pub n_kept: u64,
    /// Lines left out.
    pub n_bad: u64,
}

/// A line that is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// The file; members of an archive as `dump.zip!part`.
    pub file: String,
    /// Line in it, from 1.
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
    #[error("line skipped: not JSON ({0}); expected one object a line, or id, tab, object")]
    NotJson(String),
    /// JSON, but no object.
    #[error("line skipped: the document is {found}, expected an object")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// No id.
    #[error("line skipped: there is no string `id`; give one, or write the line as id, tab, object")]
    NoId,
    /// An id that cannot be one.
    #[error("line skipped: {0}")]
    Id(String),
}

/// Why a load stopped. What was written before stays.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a record of a line.
///
/// The text is kept as `labed` would send it; `institution`, and the first DOI in `doi_str_mv`, are taken out beside it.
///
/// # Errors
/// Why it is no document.
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

/// Loads a file into a tenant, in batches, of which a few are in memory at a time; `tell` is told each bad line, in the
/// order of the file. What was loaded is on disk when this returns.
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
    // What a load has written is durable once a write behind it is.
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

/// Cuts a file into batches, until nobody takes them.
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
        // What came before a failure is loaded.
        if !take(batch) {
            return Err(Stop::Unwanted);
        }
        Ok(ended?)
    });
    match result {
        Err(Stop::Source(error)) => Err(error.into()),
        // The writing has ended, and says why.
        Ok(()) | Err(Stop::Unwanted) => Ok(()),
    }
}

/// Why reading ended before its time.
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

/// Cuts a stream into lines, of which none is held beyond the longest one taken.
pub struct Reader<R> {
    source: R,
    line: Vec<u8>,
    n_lines: u64,
}

impl<R: BufRead> Reader<R> {
    /// Of a plain stream.
    pub fn new(source: R) -> Self {
        Self { source, line: Vec::new(), n_lines: 0 }
    }

    /// The next line that is not empty: its number, from 1, and its bytes without the line end, `None` if it is too
    /// long. `None` at the end; a last line needs no line end.
    ///
    /// # Errors
    /// What the stream fails with.
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
        // Programs on Windows begin files so.
        if self.n_lines == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        Ok(Some((self.n_lines, Some(line.strip_suffix(b"\r").unwrap_or(line)))))
    }

    /// Reads to the line's end; whether the line is held as a whole. `None` at the end of the stream.
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
