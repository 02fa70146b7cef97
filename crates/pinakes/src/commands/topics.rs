//! `pinakes topics`: converts topic maps from one format to another, without a catalogue.

use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use pinakes_topicmap::{Format, Options, read, write};

use crate::config::Misuse;
use crate::terminal::warn;

/// Converts topic maps from one format to another.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Convert(ConvertArgs),
}

/// Writes a topic map in another format to standard output.
///
/// Reads XTM 1.0, 2.0 and 2.1, JTM 1.0 and 1.1, LTM, CTM, SKOS in RDF/XML and the dumps of the Open Directory; writes
/// XTM 2.1, 2.0 and 1.0, JTM 1.1 and CXTM. Documents that the input merges or includes are read only from its own
/// folder. An invalid document is refused with its line and reason, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes topics convert --from xtm --to cxtm opera.xtm
  pinakes topics convert --to jtm ItalianOpera.ltm > opera.jtm
  pinakes topics convert --from ctm --to xtm --base http://example.org/map - < map.ctm")]
struct ConvertArgs {
    /// Format of the file [default: by its name]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    from: Option<Format>,
    /// Format to write: xtm (2.1), xtm2, xtm1, jtm or cxtm
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    to: Format,
    /// IRI that relative references are resolved against [default: that of the file]
    #[arg(long, value_name = "IRI")]
    base: Option<String>,
    /// Accept input that the standards do not allow, with a warning, where its meaning is clear
    #[arg(long)]
    lenient: bool,
    /// File to read; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Returns a format by its name.
pub(crate) fn format(name: &str) -> Result<Format, String> {
    let known = || Format::ALL.map(|it| it.0).join(", ");
    Format::named(name).ok_or_else(|| format!("expected one of {}", known()))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Command::Convert(args) = &args.command;
    convert(args)
}

fn convert(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let document = Document::open(&args.file, args.from, args.base.as_deref())?;
    let map = document.read(args.lenient)?;
    let mut out = BufWriter::new(io::stdout());
    write(args.to, &map, &document.base, &mut out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A file with a topic map.
pub(crate) struct Document {
    pub(crate) format: Format,
    pub(crate) base: String,
    bytes: Vec<u8>,
    folder: Option<PathBuf>,
}

impl Document {
    /// Reads a file, decompressed if it is gzip; `-` is standard input.
    pub(crate) fn open(path: &Path, format: Option<Format>, base: Option<&str>) -> anyhow::Result<Self> {
        let is_input = path == Path::new("-");
        let name = path.file_name().map_or_else(String::new, |it| it.to_string_lossy().into_owned());
        let format = format.or_else(|| Format::of_file(&name)).ok_or_else(|| {
            Misuse(format!("the name of {} does not indicate a format; give --from", path.display()))
        })?;
        let mut bytes = Vec::new();
        if is_input {
            io::stdin().lock().read_to_end(&mut bytes)?;
        } else {
            bytes = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        }
        if bytes.starts_with(&[0x1F, 0x8B]) {
            let mut unpacked = Vec::new();
            flate2::read::MultiGzDecoder::new(&bytes[..])
                .read_to_end(&mut unpacked)
                .with_context(|| format!("{} cannot be unpacked", path.display()))?;
            bytes = unpacked;
        }
        let (own, folder) = match is_input {
            true => ("file:///standard-input".to_owned(), None),
            false => {
                let whole = std::fs::canonicalize(path)?;
                (file_iri(&whole), whole.parent().map(Path::to_owned))
            }
        };
        Ok(Self { format, base: base.map_or(own, str::to_owned), bytes, folder })
    }

    /// Reads the map; warnings go to standard error.
    pub(crate) fn read(&self, is_lenient: bool) -> anyhow::Result<pinakes_topicmap::TopicMap> {
        let base = pinakes_topicmap::iri::resolve(&self.base, "./");
        let mut loader = |iri: &str| {
            let folder = self.folder.as_ref().ok_or("standard input has no folder")?;
            let decoded = pinakes_topicmap::iri::decode(&base);
            let name = iri.strip_prefix(&decoded).filter(|it| !it.is_empty() && !it.contains(['/', '\\']));
            let name = name
                .filter(|it| *it != ".." && *it != ".")
                .ok_or("it does not lie in the folder of the document")?;
            std::fs::read(folder.join(name)).map_err(|error| error.to_string())
        };
        let options =
            Options { is_strict: !is_lenient, loader: Some(&mut loader), ..Options::new(self.base.clone()) };
        let reading = read(self.format, &self.bytes, options)?;
        for warning in &reading.warnings {
            warn(warning.to_string());
        }
        Ok(reading.map)
    }
}

/// Returns the IRI of a file, with characters that an IRI cannot hold escaped.
fn file_iri(path: &Path) -> String {
    let text = path.to_string_lossy().replace('%', "%25").replace('#', "%23").replace('?', "%3F");
    format!("file://{}", text.replace(' ', "%20"))
}
