//! `pinakes marc`: prints files of MARC records, checks them, and converts between their formats.
//!
//! Records go to standard output, their problems to standard error, one line a problem with the file, the
//! number of the record, the byte offset and the field. A bad record never stops the rest.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use pinakes_marc::{
    Encoding, Fault, Format, OutputEncoding, OutputError, ParsedRecord, Problem, Reader, Severity, Writer,
    parse, validate, worst,
};

/// Bytes buffered before they go to the output.
const OUTPUT_BUFFER_LEN_BYTES: usize = 256 * 1024;

/// Prints files of MARC records, checks them, converts between their formats.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print records as readable text.
    Cat(CatArgs),
    /// Count records: all, those that lost a part, those that cannot be read.
    Count(InputArgs),
    /// List all problems; exit code 1 if there are any.
    Validate(InputArgs),
    /// Write records in another format.
    Convert(ConvertArgs),
}

/// The input of a subcommand.
#[derive(Debug, clap::Args)]
struct InputArgs {
    /// Files of MARC records; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the input: iso2709 (mrc), xml, json or text (mrk) [default: detected by the first bytes].
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// Encoding of ISO 2709 input: leader (as position 09 says), utf-8 or marc-8.
    #[arg(long, value_name = "ENCODING", default_value_t)]
    encoding: Encoding,
    /// Stop after this many records in all.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct CatArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Format to print: iso2709 (mrc), xml, json or text (mrk).
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    to: Format,
    /// File to write instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ConvertArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Format to write: iso2709 (mrc), xml, json or text (mrk) [default: by the output file's extension].
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,
    /// Write ISO 2709 in MARC-8 instead of UTF-8.
    #[arg(long)]
    to_marc8: bool,
    /// File to write instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
///
/// A file cannot be read or written, records were lost, or `validate` found a problem.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::Cat(CatArgs { input, to, output }) => {
            convert(&input, to, OutputEncoding::Utf8, output.as_deref())
        }
        Command::Convert(args) => {
            let to = args.output_format()?;
            let encoding = if args.to_marc8 { OutputEncoding::Marc8 } else { OutputEncoding::Utf8 };
            convert(&args.input, to, encoding, args.output.as_deref())
        }
        Command::Count(input) => count(&input),
        Command::Validate(input) => check(&input),
    }
}

impl ConvertArgs {
    fn output_format(&self) -> anyhow::Result<Format> {
        if let Some(format) = self.to {
            return Ok(format);
        }
        let ending = self.output.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
        match ending {
            Some(ending) => {
                ending.parse().context("the output file's name does not indicate a format; give --to")
            }
            None => bail!("no format to write; give --to iso2709, xml, json or text"),
        }
    }
}

/// What was found in all files.
#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    /// Records, good and bad.
    n_records: u64,
    /// Records that lost a part.
    n_lossy: u64,
    /// Records that could not be read, and bytes that are not a record.
    n_unreadable: u64,
    /// Records that the output format cannot hold.
    n_unwritable: u64,
    n_problems: u64,
    /// Files that were read to their end.
    n_files: u64,
    /// Files that could not be read to their end.
    n_failed_files: u64,
}

impl Totals {
    fn add(&mut self, parsed: &ParsedRecord, problems: &[Problem]) {
        let is_record = !problems.iter().any(|it| matches!(it.fault, Fault::NotARecord { .. }));
        self.n_records += u64::from(is_record);
        self.n_unreadable += u64::from(parsed.record.is_none());
        self.n_lossy += u64::from(parsed.record.is_some() && worst(problems) >= Some(Severity::Loss));
        self.n_problems += problems.len() as u64;
    }

    /// Returns what was found since an earlier state.
    fn since(&self, before: &Self) -> Self {
        Self {
            n_records: self.n_records - before.n_records,
            n_lossy: self.n_lossy - before.n_lossy,
            n_unreadable: self.n_unreadable - before.n_unreadable,
            n_unwritable: self.n_unwritable - before.n_unwritable,
            n_problems: self.n_problems - before.n_problems,
            n_files: self.n_files - before.n_files,
            n_failed_files: self.n_failed_files - before.n_failed_files,
        }
    }

    fn refuse_losses(&self) -> anyhow::Result<()> {
        if self.n_failed_files != 0 {
            bail!("{} of the files could not be read", self.n_failed_files);
        }
        if self.n_unreadable + self.n_unwritable != 0 {
            bail!(
                "{} records could not be read and {} not be written; the others were",
                self.n_unreadable,
                self.n_unwritable
            );
        }
        Ok(())
    }
}

/// Prints problems on standard error.
fn report(path: &Path, problems: &[Problem]) {
    for problem in problems {
        eprintln!("{}: {problem} [{}]", path.display(), problem.severity());
    }
}

/// Reads all files, or as many records as wanted. A file that cannot be read is reported, and the next one is
/// read.
fn each_record(
    input: &InputArgs,
    totals: &mut Totals,
    mut each: impl FnMut(&Path, ParsedRecord, &mut Totals) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut n_left = input.limit.unwrap_or(u64::MAX);
    for path in &input.files {
        if n_left == 0 {
            break;
        }
        let mut reader = match open(path, input.from) {
            Ok(reader) => reader,
            Err(error) => {
                eprintln!("{error:#}");
                totals.n_failed_files += 1;
                continue;
            }
        };
        let format = reader.format();
        while 0 < n_left {
            let raw = match reader.next_record() {
                Ok(Some(raw)) => raw,
                Ok(None) => break,
                Err(error) => {
                    eprintln!("{}: cannot read on after byte {}: {error}", path.display(), reader.offset());
                    totals.n_failed_files += 1;
                    break;
                }
            };
            n_left -= 1;
            each(path, parse(format, input.encoding, raw), totals)?;
        }
        if 0 < n_left
            && let Some(problem) = reader.stray_end()
        {
            totals.n_problems += 1;
            report(path, &[problem]);
        }
    }
    Ok(())
}

fn open(path: &Path, format: Option<Format>) -> anyhow::Result<Reader<Box<dyn Read>>> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
    };
    match format {
        Some(format) => Ok(Reader::new(input, format)),
        None => Reader::open(input).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Runs `cat` and `convert`.
fn convert(
    input: &InputArgs,
    to: Format,
    encoding: OutputEncoding,
    output: Option<&Path>,
) -> anyhow::Result<()> {
    let mut totals = Totals::default();
    let mut writer = Writer::new(create(input, output)?, to, encoding);
    each_record(input, &mut totals, |path, parsed, totals| {
        totals.add(&parsed, &parsed.problems);
        report(path, &parsed.problems);
        let Some(record) = &parsed.record else { return Ok(()) };
        match writer.write(record) {
            Err(OutputError::Record(error)) => {
                let (number, offset) = (parsed.number, parsed.offset);
                eprintln!("{}: record {number} (byte {offset}): not written: {error}", path.display());
                totals.n_unwritable += 1;
                Ok(())
            }
            other => Ok(other?),
        }
    })?;
    if writer.n_replaced() != 0 {
        eprintln!("{} characters that XML cannot hold were replaced by U+FFFD", writer.n_replaced());
    }
    writer.finish()?;
    totals.refuse_losses()
}

/// Opens the output file or standard output. An input file is not overwritten while it is read.
fn create(input: &InputArgs, output: Option<&Path>) -> anyhow::Result<BufWriter<Box<dyn Write>>> {
    let output: Box<dyn Write> = match output {
        None => Box::new(io::stdout().lock()),
        Some(path) if path == Path::new("-") => Box::new(io::stdout().lock()),
        Some(path) => {
            let real = path.canonicalize().ok();
            if real.is_some() && input.files.iter().any(|file| file.canonicalize().ok() == real) {
                bail!("{} is an input file; choose another output", path.display());
            }
            Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?)
        }
    };
    Ok(BufWriter::with_capacity(OUTPUT_BUFFER_LEN_BYTES, output))
}

/// Runs `count`: prints a line for each file and, for more than one, a line for all.
fn count(input: &InputArgs) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let mut totals = Totals::default();
    let mut left = input.limit;
    for path in &input.files {
        let before = totals;
        let one = InputArgs { files: vec![path.clone()], limit: left, ..*input };
        let mut n_pieces = 0;
        each_record(&one, &mut totals, |_, parsed, totals| {
            n_pieces += 1;
            totals.add(&parsed, &parsed.problems);
            Ok(())
        })?;
        left = left.map(|left| left - n_pieces);
        let found = totals.since(&before);
        if found.n_failed_files == 0 {
            if totals.n_files == 0 {
                writeln!(out, "{:>10} {:>10} {:>10}  file", "records", "lossy", "unreadable")?;
            }
            totals.n_files += 1;
            write_count(&mut out, &found, &path.display().to_string())?;
        }
    }
    if 1 < totals.n_files {
        write_count(&mut out, &totals, "all files")?;
    }
    if totals.n_failed_files != 0 {
        bail!("{} of the files could not be read", totals.n_failed_files);
    }
    Ok(())
}

fn write_count(out: &mut impl Write, found: &Totals, name: &str) -> io::Result<()> {
    writeln!(out, "{:>10} {:>10} {:>10}  {name}", found.n_records, found.n_lossy, found.n_unreadable)
}

/// Runs `validate`: the problems are the output.
fn check(input: &InputArgs) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut totals = Totals::default();
    let mut n_bad_records = 0_u64;
    each_record(input, &mut totals, |path, parsed, totals| {
        let problems = validate(&parsed);
        totals.add(&parsed, &problems);
        n_bad_records += u64::from(!problems.is_empty());
        for problem in &problems {
            writeln!(out, "{}: {problem} [{}]", path.display(), problem.severity())?;
        }
        Ok(())
    })?;
    out.flush()?;
    if totals.n_failed_files != 0 {
        bail!("{} of the files could not be read", totals.n_failed_files);
    }
    if totals.n_problems != 0 {
        bail!("{} problems, {n_bad_records} records with problems", totals.n_problems);
    }
    Ok(())
}
