//! The destination of an export, compressed or not.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;

use crate::terminal::{counted, progress};

/// Level of zstd: as small as gzip's best, at several hundred megabytes a second.
pub(crate) const ZSTD_LEVEL: i32 = 3;

/// Number of records after which the displayed count is updated.
pub(crate) const NOTED_RECORDS: u64 = 1_000;

/// Bytes written at once.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Runs `export` with a file, or standard output, as its destination; a bar counts what it notes, by the
/// bytes of each.
pub(crate) fn written<T>(
    path: Option<&Path>,
    unit: &str,
    export: impl FnOnce(&mut Output, &mut dyn FnMut(u64)) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let bar = progress(None);
    let mut n_records = 0_u64;
    let mut note = |n_bytes| {
        n_records += 1;
        bar.inc(n_bytes);
        if n_records.is_multiple_of(NOTED_RECORDS) {
            bar.set_message(counted(n_records, unit));
        }
    };
    let mut output = Output::open(path)?;
    let result = export(&mut output, &mut note)?;
    output.finish()?;
    bar.finish_and_clear();
    Ok(result)
}

/// The destination of records.
pub(crate) enum Output {
    Plain(Box<dyn Write>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl Output {
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Plain(Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()))));
        };
        let created = File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, created);
        Ok(match path.extension().and_then(|it| it.to_str()) {
            Some("gz") => Self::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
            Some("zst") => Self::Zstd(zstd::stream::write::Encoder::new(file, ZSTD_LEVEL)?),
            _ => Self::Plain(Box::new(file)),
        })
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(mut file) => file.flush(),
            Self::Gzip(encoder) => encoder.finish()?.flush(),
            Self::Zstd(encoder) => encoder.finish()?.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
