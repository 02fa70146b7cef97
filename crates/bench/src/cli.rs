//! The command line: `pinakes bench <subcommand>`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::ceiling::{BareServer, client_ceiling, measure};
use crate::compare::compare;
use crate::error::BenchError;
use crate::generate::datasets::{DatasetShape, dataset};
use crate::generate::marc::{MarcKind, record};
use crate::generate::{citations, files, topics, users};
use crate::load::ClientSettings;
use crate::report;
use crate::runner::Finished;
use crate::scenario::conclave_load::ConclaveLoadArgs;
use crate::scenario::conclave_pages::ConclavePagesArgs;
use crate::scenario::dataverse_deposit::DataverseDepositArgs;
use crate::scenario::folio_desk::FolioDeskArgs;
use crate::scenario::folio_import::arguments::FolioImportArgs;
use crate::scenario::folio_search::FolioSearchArgs;
use crate::scenario::http::HttpArgs;
use crate::scenario::labe::LabeArgs;
use crate::scenario::labe_data::LabeDataArgs;
use crate::scenario::scicat_ingest::ScicatIngestArgs;
use crate::scenario::scicat_origdatablocks::ScicatOrigdatablocksArgs;
use crate::scenario::scicat_reads::ScicatReadsArgs;
use crate::scenario::search::SearchArgs;
use crate::scenario::{
    conclave_load, conclave_pages, dataverse_deposit, folio_desk, folio_import, folio_search, http, labe,
    labe_data, scicat_ingest, scicat_origdatablocks, scicat_reads, search, seconds,
};
use crate::stop::Stop;
use crate::verdict::{rate, thousands};

/// Exit code of a run that was interrupted or ended early: its report holds the part that ran.
const PARTIAL_EXIT_CODE: u8 = 1;

/// Arguments of `pinakes bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// SciCat: read datasets by PID and by fullquery while the catalogue grows.
    ScicatReads(ScicatReadsArgs),
    /// SciCat: facets, words, quantities, patterns and pages over a large catalogue.
    Search(SearchArgs),
    /// SciCat: create datasets with many metadata fields.
    ScicatIngest(ScicatIngestArgs),
    /// SciCat: register the files of a dataset in blocks.
    ScicatOrigdatablocks(ScicatOrigdatablocksArgs),
    /// labe: citation documents of random ids, of ids without citations, and of the most expensive ids.
    Labe(LabeArgs),
    /// Write the catalogue and the citations that `labe` queries.
    LabeData(LabeDataArgs),
    /// Dataverse: create a collection, a dataset and a file, and delete them.
    DataverseDeposit(DataverseDepositArgs),
    /// FOLIO: check out and check in at the desks.
    FolioDesk(FolioDeskArgs),
    /// FOLIO: import MARC authorities, also with concurrent desks and in several tenants.
    FolioImport(FolioImportArgs),
    /// FOLIO: words, people, subjects, facets and windows of lists over many instances.
    FolioSearch(FolioSearchArgs),
    /// Conclave: load an Open Directory of generated topics.
    ConclaveLoad(ConclaveLoadArgs),
    /// Conclave: the page of one topic and of random topics.
    ConclavePages(ConclavePagesArgs),
    /// Any URL under any kind of load.
    Http(Box<HttpArgs>),
    /// Compare two runs, or two folders of repeated runs.
    Compare(CompareArgs),
    /// What this client can send, and what a bare server achieves on this machine.
    Ceiling(CeilingArgs),
    /// Run the bare server, to point other load generators at it.
    BareServer(BareServerArgs),
    /// Write generated data to a file.
    Generate(GenerateArgs),
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The run to compare with: `result.json`, its folder, or a folder of such folders.
    pub a: PathBuf,
    /// The run that is compared.
    pub b: PathBuf,
}

/// Arguments of `ceiling`.
#[derive(Debug, Args)]
pub struct CeilingArgs {
    /// Connections.
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// Sender threads.
    #[arg(long, default_value_t = 1)]
    pub client_threads: usize,
    /// Bytes of each request's body.
    #[arg(long, default_value_t = 0)]
    pub request_bytes: u64,
    /// Bytes of each answer's body.
    #[arg(long, default_value_t = 2048)]
    pub answer_bytes: u64,
}

/// Arguments of `bare-server`.
#[derive(Debug, Args)]
pub struct BareServerArgs {
    /// Where to listen. `GET /2048` gives 2048 bytes.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Time that each answer waits, in milliseconds.
    #[arg(long, default_value_t = 0.0)]
    pub delay_ms: f64,
    /// Stop after this time, in seconds.
    #[arg(long, default_value_t = 3600.0)]
    pub for_s: f64,
}

/// What can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GeneratedKind {
    /// SciCat datasets, one JSON object a line.
    ScicatDatasets,
    /// Blocks of 50 files of SciCat datasets, one JSON object a line.
    ScicatBlocks,
    /// MARC 21 authorities, ISO 2709.
    MarcAuthorities,
    /// MARC 21 bibliographic records, ISO 2709.
    MarcBibliographic,
    /// Citations as CSV.
    Citations,
    /// Categories of a DMOZ dump.
    TopicsStructure,
    /// Pages of a DMOZ dump.
    TopicsContent,
    /// Accounts, one JSON object a line.
    Users,
}

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to write.
    #[arg(value_enum)]
    pub kind: GeneratedKind,
    /// How many.
    #[arg(long, default_value_t = 1000)]
    pub count: u64,
    /// Seed: the same seed gives the same bytes.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Metadata fields of each dataset.
    #[arg(long, default_value_t = 20)]
    pub fields: usize,
    /// File to write.
    #[arg(long)]
    pub out: PathBuf,
}

/// Runs the command. The exit code is 0 for a complete run, 1 for one whose report holds only a part.
///
/// Errors leave nothing to report: wrong options, no server, a login refused.
pub fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(run_command(&args.command));
    // A look-up or an address that hangs must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(200));
    Ok(code?)
}

async fn run_command(command: &Command) -> Result<ExitCode, BenchError> {
    let stop = Stop::default();
    stop.on_ctrl_c();
    match command {
        Command::ScicatReads(args) => conclude(scicat_reads::run(args, &stop).await?),
        Command::Search(args) => conclude(search::run(args, &stop).await?),
        Command::ScicatIngest(args) => conclude(scicat_ingest::run(args, &stop).await?),
        Command::ScicatOrigdatablocks(args) => conclude(scicat_origdatablocks::run(args, &stop).await?),
        Command::Labe(args) => conclude(labe::run(args, &stop).await?),
        Command::LabeData(args) => print(&labe_data::run(args)?),
        Command::DataverseDeposit(args) => conclude(dataverse_deposit::run(args, &stop).await?),
        Command::FolioDesk(args) => conclude(folio_desk::run(args, &stop).await?),
        Command::FolioImport(args) => conclude(folio_import::run(args, &stop).await?),
        Command::FolioSearch(args) => conclude(folio_search::run(args, &stop).await?),
        Command::ConclaveLoad(args) => conclude(conclave_load::run(args, &stop).await?),
        Command::ConclavePages(args) => conclude(conclave_pages::run(args, &stop).await?),
        Command::Http(args) => conclude(http::run(args, &stop).await?),
        Command::Compare(args) => print(&compare(&args.a, &args.b)?),
        Command::Ceiling(args) => ceiling(args, &stop).await,
        Command::BareServer(args) => serve_bare(args, &stop).await,
        Command::Generate(args) => generate(args).map(|()| ExitCode::SUCCESS),
    }
}

/// Prints the report of a run. A run without results is an error; a partial one says why it ended.
fn conclude(run: Finished) -> Result<ExitCode, BenchError> {
    let Finished { result, outcome } = run;
    match outcome {
        Err(error) if result.steps.is_empty() => Err(error),
        Err(error) => {
            print(&report::markdown::render(&result))?;
            eprintln!("{error}");
            Ok(ExitCode::from(PARTIAL_EXIT_CODE))
        }
        Ok(()) => print(&report::markdown::render(&result)),
    }
}

fn print(text: &str) -> Result<ExitCode, BenchError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // `bench compare … | head` closes the pipe: this is intended.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(source) => Err(BenchError::Write { path: PathBuf::from("standard output"), source }),
    }
}

async fn ceiling(args: &CeilingArgs, stop: &Stop) -> Result<ExitCode, BenchError> {
    let settings = ClientSettings { threads: args.client_threads.max(1), ..ClientSettings::default() };
    let client = client_ceiling(args.connections, &settings, stop).await?;
    let bare = measure(args.request_bytes, args.answer_bytes, args.connections, &settings, stop).await?;
    let latency = &bare.flows[0].latency_us;
    print(&format!(
        "client ceiling: {} on one core of the client; {} in the measurement ({} threads, {} connections, 64-byte answers)\n\
         bare server:    {} with {} bytes up, {} bytes down; p50 {} us, p99 {} us\n",
        rate(client.rate_per_core_s),
        rate(client.rate_per_s),
        client.threads,
        client.connections,
        rate(bare.throughput_per_s()),
        thousands(args.request_bytes),
        thousands(args.answer_bytes),
        latency.value_at_quantile(0.5),
        latency.value_at_quantile(0.99),
    ))
}

async fn serve_bare(args: &BareServerArgs, stop: &Stop) -> Result<ExitCode, BenchError> {
    let delay = seconds("--delay-ms", args.delay_ms / 1e3)?;
    let server = BareServer::start_at(args.listen, delay)?;
    print(&format!("listening on http://{}\n", server.address))?;
    tokio::select! {
        () = stop.asked() => {}
        () = tokio::time::sleep(seconds("--for-s", args.for_s)?) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn generate(args: &GenerateArgs) -> Result<(), BenchError> {
    let failed = |source| BenchError::Write { path: args.out.clone(), source };
    let mut out = BufWriter::new(File::create(&args.out).map_err(failed)?);
    write_generated(args, &mut out).and_then(|()| out.flush()).map_err(failed)?;
    eprintln!("{} written to {}", thousands(args.count), display(&args.out));
    Ok(())
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

fn write_generated(args: &GenerateArgs, out: &mut impl Write) -> io::Result<()> {
    let (seed, count) = (args.seed, args.count);
    let is_topics = matches!(args.kind, GeneratedKind::TopicsStructure | GeneratedKind::TopicsContent);
    match args.kind {
        GeneratedKind::Citations => writeln!(out, "{}", citations::HEADER)?,
        _ if is_topics => out.write_all(topics::HEAD.as_bytes())?,
        _ => {}
    }
    let shape =
        DatasetShape { owner_group: "group1".to_owned(), tag: "generated".to_owned(), n_fields: args.fields };
    for n in 0..count {
        match args.kind {
            GeneratedKind::ScicatDatasets => writeln!(out, "{}", dataset(&shape, seed, n))?,
            GeneratedKind::ScicatBlocks => writeln!(out, "{}", files::visitors_block(seed, n))?,
            GeneratedKind::MarcAuthorities => out.write_all(&record(MarcKind::Authority, seed, n))?,
            GeneratedKind::MarcBibliographic => out.write_all(&record(MarcKind::Bibliographic, seed, n))?,
            // The real index has some twenty citations for each work.
            GeneratedKind::Citations => writeln!(out, "{}", citations::citation(seed, n, count / 20))?,
            GeneratedKind::TopicsStructure => out.write_all(topics::structure(seed, n, count).as_bytes())?,
            GeneratedKind::TopicsContent => out.write_all(topics::content(seed, n).as_bytes())?,
            GeneratedKind::Users => {
                let json = serde_json::to_string(&users::user(seed, n, 20)).map_err(io::Error::other)?;
                writeln!(out, "{json}")?;
            }
        }
    }
    if is_topics { out.write_all(topics::FOOT.as_bytes()) } else { Ok(()) }
}
