//! A server with a graph built from edges, a table of ids and documents; and a client on the level of bytes.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinakes_accounts::{Accounts, Clock, Entropy, Secret};
use pinakes_citations::{BuildOptions, Leftover, Observer, Problem, Progress, build};
use pinakes_http::{Context, Drained, Shell, TenantChoice};
use pinakes_labe::import::{self, Existing, Loaded};
use pinakes_labe::{DOCUMENT, Reload, Settings};
use pinakes_store::{Catalogue, Identifier, Kind, Limits, Location};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Maximum time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A kind of another dialect, whose records have DOIs.
pub(crate) static THING: Kind =
    Kind { identifiers: &[Identifier { scheme: "doi", path: "about.doi" }], ..Kind::named("toy_thing") };
static KINDS: &[&Kind] = &[&DOCUMENT, &THING];

/// The content of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    /// Rows of a citation table.
    pub(crate) edges: String,
    /// `id<TAB>DOI`, in the graph.
    pub(crate) graph_ids: String,
    /// `id<TAB>DOI`, in the additional table.
    pub(crate) extra_ids: String,
    /// JSON lines.
    pub(crate) documents: String,
    /// Meta rows with OMIDs.
    pub(crate) works: String,
}

/// A running server.
pub(crate) struct Server {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) catalogue: Catalogue,
    pub(crate) reload: Reload,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Drained>,
}

impl Server {
    /// Starts a server for `content`; `change` may change the settings.
    pub(crate) async fn start(
        content: &Content,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let mut settings = Settings {
            graph: build_graph(folder.path(), content)?,
            graph_check_ms: 0,
            // Answers wait for the shelf: otherwise timing would decide which of them come from it.
            shelf_first: true,
            data: folder.path().to_owned(),
            ..Settings::default()
        };
        if !content.extra_ids.is_empty() {
            settings.ids = folder.path().join("extra.tsv");
            fs::write(&settings.ids, &content.extra_ids)?;
        }
        settings.kinds = KINDS;
        change(&mut settings);
        let place = Location::Folder(folder.path().join("data"));
        let catalogue = Catalogue::open(place, KINDS, Limits::default())?;
        catalogue.create_tenant("default", "")?;
        let documents = folder.path().join("documents.ndjson");
        fs::write(&documents, &content.documents)?;
        load(&catalogue, &documents)?;
        let accounts = pinakes_accounts::Settings {
            secret: Secret::from_text("a secret of the tests")?,
            everyone: Vec::new(),
            clock: Clock::fixed(0),
            entropy: Entropy::seeded(1),
        };
        let limits = Limits::default();
        let accounts = Accounts::new(accounts, &limits);
        let context = Context::new(catalogue.clone(), accounts, limits, TenantChoice::default());
        let (mount, reload) = pinakes_labe::mount(context.clone(), settings)?;
        let shell = Shell::new(context)?.mount(mount)?;
        let listener = pinakes_http::listen("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(shell.serve(listener, async {
            // Dropping the sender stops it as well.
            let _ = stopped.await;
        }));
        Ok(Self { folder, catalogue, reload, address, stop, served })
    }

    /// Stops the server.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        drop(self.stop);
        timeout(PATIENCE, self.served).await??;
        Ok(())
    }

    /// Returns the answer to a request line such as `GET /stats`, with additional header lines.
    pub(crate) async fn ask(&self, line: &str, headers: &[&str]) -> Result<Answer, Failure> {
        let mut stream = TcpStream::connect(self.address).await?;
        let host =
            if headers.iter().any(|it| it.starts_with("Host:")) { "" } else { "Host: example.org:8000\r\n" };
        let headers: String = headers.iter().map(|it| format!("{it}\r\n")).collect();
        // HTTP/1.0 has no chunked encoding to decode.
        let request = format!("{line} HTTP/1.0\r\n{host}{headers}\r\n");
        timeout(PATIENCE, stream.write_all(request.as_bytes())).await??;
        let mut all = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut all)).await??;
        Answer::parse(&all)
    }

    /// Returns the answer to `GET path`.
    pub(crate) async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.ask(&format!("GET {path}"), &[]).await
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    fn parse(all: &[u8]) -> Result<Self, Failure> {
        let end = all.windows(4).position(|it| it == b"\r\n\r\n").ok_or("no end of the head")?;
        let head = str::from_utf8(&all[..end])?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|it| it.split(' ').nth(1)).ok_or("no status")?.parse()?;
        let headers =
            lines.filter_map(|it| it.split_once(": ")).map(|(a, b)| (a.to_lowercase(), b.to_owned()));
        let body = String::from_utf8(all[end + 4..].to_vec())?;
        Ok(Self { status, headers: headers.collect(), body })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> Result<serde_json::Value, Failure> {
        Ok(serde_json::from_str(&self.body)?)
    }
}

/// Returns a document without its time.
pub(crate) fn untimed(body: &str) -> String {
    let (before, rest) = body.split_once("\"took\":").unwrap_or((body, ""));
    let rest = rest.trim_start_matches(|it: char| it.is_ascii_digit() || it == '.');
    format!("{before}{rest}")
}

/// Loads a file of documents into the default tenant.
pub(crate) fn load(catalogue: &Catalogue, path: &Path) -> Result<(Loaded, Vec<String>), Failure> {
    let mut told = Vec::new();
    let tenant = catalogue.tenant("default")?;
    let loaded = import::load(&tenant, path, Existing::Replace, &mut |bad| {
        told.push(format!("{}: {}", bad.line, bad.reason));
    })?;
    Ok((loaded, told))
}

/// Builds a graph in a folder and returns its file.
pub(crate) fn build_graph(folder: &Path, content: &Content) -> Result<PathBuf, Failure> {
    let write = |name: &str, text: &str| -> Result<Vec<PathBuf>, Failure> {
        let path = folder.join(name);
        fs::write(&path, text)?;
        Ok(if text.is_empty() { Vec::new() } else { vec![path] })
    };
    let options = BuildOptions {
        edges: write("edges.csv", &content.edges)?,
        works: write("works.csv", &content.works)?,
        ids: write("ids.tsv", &content.graph_ids)?,
        out: folder.join("graph"),
        n_threads: 1,
        checkpoint_rows: BuildOptions::CHECKPOINT_ROWS,
        keys_at_once: BuildOptions::KEYS_AT_ONCE,
        leftover: Leftover::Refuse,
    };
    build(&options, &mut Silent)?;
    Ok(options.out)
}

struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: Progress) {}

    fn problem(&mut self, problem: &Problem) {
        assert!(!problem.reason.skips_row(), "{problem}");
    }
}
