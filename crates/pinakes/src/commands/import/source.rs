//! Input of an import, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context as _;
use indicatif::ProgressBar;

/// Bytes read at once.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// A file to read.
pub(crate) struct Source {
    /// Its name in error messages.
    pub(crate) name: String,
    /// Its content, decompressed.
    pub(crate) input: Box<dyn BufRead + Send>,
    raw: Option<File>,
    pub(crate) n_bytes: Option<u64>,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            let input: Box<dyn BufRead + Send> =
                Box::new(BufReader::with_capacity(BUFFER_BYTES, io::stdin()));
            return Ok(Self { name: "standard input".into(), input, raw: None, n_bytes: None });
        }
        let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let n_bytes = file.metadata()?.len();
        Ok(Self {
            name: path.display().to_string(),
            input: Box::new(io::empty()),
            raw: Some(file),
            n_bytes: Some(n_bytes),
        })
    }

    /// Returns a source of bytes built into the program.
    pub(crate) fn built_in(name: &str, content: &'static [u8]) -> Self {
        let input: Box<dyn BufRead + Send> = Box::new(content);
        Self { name: name.to_owned(), input, raw: None, n_bytes: Some(content.len() as u64) }
    }

    /// Shows the reading progress on a bar, and decompresses according to the first bytes.
    pub(crate) fn with_progress(mut self, bar: &ProgressBar) -> Self {
        if let Some(file) = self.raw.take() {
            self.input = decompressed(BufReader::with_capacity(BUFFER_BYTES, bar.wrap_read(file)));
        } else {
            self.input = decompressed(self.input);
        }
        self
    }
}

/// Decompresses gzip or zstd, recognised by the first bytes. An input that cannot be inspected will fail when it is
/// read.
pub(crate) fn decompressed(mut input: impl BufRead + Send + 'static) -> Box<dyn BufRead + Send> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    let first = input.fill_buf().map(|it| it[..it.len().min(4)].to_vec()).unwrap_or_default();
    if first.starts_with(GZIP) {
        return buffered(flate2::bufread::MultiGzDecoder::new(input));
    }
    if first.starts_with(ZSTD) {
        return match zstd::stream::read::Decoder::with_buffer(input) {
            Ok(decoder) => buffered(decoder),
            Err(error) => buffered(Failing(Some(error))),
        };
    }
    Box::new(input)
}

pub(crate) fn buffered(input: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, input))
}

/// Input that fails when it is read, where the error can be reported.
pub(crate) struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
