//! `pinakes serve`: the catalogue over HTTP, until it is told to stop.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::Context as _;
use pinakes_blobs::Blobs;
use pinakes_http::{Context, Drained, MountPoint, Neighbour, Shell, Tls, Traces};
use pinakes_scicat::testing::Testing;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::catalogue::House;
use crate::config::{Config, LogFormat, Misuse, Server};
use crate::dialects::{self, Parts};
use crate::effective::note_flag;
use crate::files::Sweeper;
use crate::place::{Missing, Place, open};
use crate::recent_lines::RecentLines;
use crate::terminal::{say, warn};

/// Threads for blocking work in addition to scans and password checks: needed by the runtime itself (name
/// look-ups, files).
const SPARE_BLOCKING_THREADS: usize = 16;
/// Time, at the end, for work that nobody waits for any more, such as reads for connections that were cut.
const STRAGGLERS: Duration = Duration::from_secs(2);
/// Number of a dialect's paths that are printed at the start.
const BASES_SHOWN: usize = 4;
/// Exit code after a second signal while draining, the one shells use for SIGINT.
const IMPATIENT_EXIT_CODE: i32 = 130;

/// Serves a catalogue over HTTP, until SIGTERM or SIGINT.
///
/// Prints where it listens and which dialects are mounted where. A catalogue that does not exist yet is created,
/// with a tenant named `default`. On SIGTERM or SIGINT it stops accepting connections, finishes the answers in
/// progress and exits with 0; a second signal ends it at once. Acknowledged writes are on disk either way. On
/// SIGHUP it looks for a new citation graph at once, which it does every second anyway, and continues to serve.
///
/// Other commands (user, token, import, backup, ...) may be used on the same folder meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes serve                                        serve pinakes-data on 127.0.0.1:3000
  pinakes serve --data /srv/pinakes --listen 0.0.0.0:80
  pinakes serve --config /etc/pinakes.toml             see `pinakes config` for every key
  pinakes serve --listen 127.0.0.1:0                   a free port, which is printed
  JWT_SECRET=... ADMIN_GROUPS=admin pinakes serve      with the variables of a SciCat site")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Where to listen; port 0 picks a free one [default: key server.listen, else 127.0.0.1:3000]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Add routes with which anybody can empty the catalogue, for the test suites of client programs; only
    /// allowed on a loopback address
    #[arg(long)]
    testing: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut config = args.place.settings()?;
    if let Some(listen) = args.listen {
        config.server.listen = listen;
        note_flag(&mut config.site.effective, "server.listen", &listen.to_string());
    }
    let testing = testing(args.testing, config.server.listen)?;
    begin_log(&config)?;
    for (variable, advice) in
        pinakes_scicat::settings::not_honoured(std::env::vars_os().filter_map(|it| it.0.into_string().ok()))
    {
        tracing::warn!(variable, advice, "an environment variable is set that this server ignores");
    }
    fit_descriptors(&mut config);
    serve(open(config, Missing::Begin)?, testing, &[], async |_, _| Ok(()))
}

/// Serves until a signal. `notes` are printed below the list of what is served where; `{url}` in them is the server's.
/// `before` runs when the dialects exist but cannot be reached yet.
pub(crate) fn serve(
    house: House,
    testing: Testing,
    notes: &[String],
    before: impl AsyncFnOnce(&[Neighbour], &Context) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let runtime = runtime(&house.config)?;
    let ended = runtime.block_on(serve_until_told(house, testing, notes, before));
    leave(runtime);
    ended
}

/// Ends the threads of a runtime; what is not finished in time is left behind, and ends with the process.
fn leave(runtime: Runtime) {
    runtime.shutdown_timeout(STRAGGLERS);
}

async fn serve_until_told(
    house: House,
    testing: Testing,
    notes: &[String],
    before: impl AsyncFnOnce(&[Neighbour], &Context) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let (interrupted, terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let context = house.context();
    let House { config, catalogue, blobs, .. } = house;
    let shell = Shell::new(context.clone())?.access_log(config.server.access_log);
    let mut parts = Parts {
        context,
        config,
        kinds: House::kinds(),
        testing,
        at_hangup: Vec::new(),
        neighbours: Vec::new(),
    };
    let shell = dialects::mount(shell, &mut parts)?;
    let Parts { context, config, mut at_hangup, neighbours, .. } = parts;
    let tls = encryption(&config.server)?;
    let (shell, scheme) = match tls {
        Some(tls) => {
            let files = tls.clone();
            at_hangup.push(Box::new(move || files.reload_if_changed()));
            (shell.tls(tls), "https")
        }
        None => (shell, "http"),
    };
    let (clock, entropy) = (context.clock().clone(), context.entropy().clone());
    let traces = Traces::of(&config.server.traces, clock, entropy);
    let shell = match traces.map_err(|error| Misuse(error.to_string()))? {
        Some((traces, sender)) => {
            tokio::spawn(sender.run());
            shell.traces(traces)
        }
        None => shell,
    };
    before(&neighbours, &context).await?;
    reload_at_hangup(at_hangup)?;
    let listener = listen(config.server.listen)?;
    let url = format!("{scheme}://{}", listener.local_addr()?);
    announce(&url, &shell, &config.server, &blobs, testing, notes)?;
    let sweeper = Sweeper::start(&catalogue, &blobs)?;
    let drained = shell.serve(listener, told(interrupted, terminated)).await;
    sweeper.stop();
    catalogue.close();
    match drained {
        Drained::Finished => say("stopped; all answers under way were finished")?,
        Drained::Cut(n) => say(format!("stopped; {n} connections were cut, their answers took too long"))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes SIGHUP reload the server's files at once; it never ends the server.
fn reload_at_hangup(reloads: Vec<Box<dyn Fn() + Send + Sync>>) -> anyhow::Result<()> {
    let reloads = Arc::new(reloads);
    let mut hung_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hung_up.recv().await.is_some() {
            let reloads = Arc::clone(&reloads);
            if tokio::task::spawn_blocking(move || reloads.iter().for_each(|it| it())).await.is_err() {
                warn("looking for new files failed; the former ones stay");
            }
        }
    });
    Ok(())
}

/// Reads certificate and key of the settings. Errors: one is given without the other, or they cannot be used.
fn encryption(server: &Server) -> anyhow::Result<Option<Tls>> {
    let (certificate, key) = (&server.tls.certificate, &server.tls.key);
    match (certificate.as_os_str().is_empty(), key.as_os_str().is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some(Tls::load(certificate, key).map_err(|error| Misuse(error.to_string()))?)),
        (true, false) => {
            Err(Misuse("server.tls.key is set and server.tls.certificate is not; set both".to_owned()).into())
        }
        (false, true) => {
            Err(Misuse("server.tls.certificate is set and server.tls.key is not; set both".to_owned()).into())
        }
    }
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    pinakes_http::listen(address).with_context(|| {
        format!("{address} cannot be listened on; choose another with --listen, port 0 picks a free one")
    })
}

/// Waits for the first signal. The second one ends the program at once.
async fn told(mut interrupted: Signal, mut terminated: Signal) {
    either(&mut interrupted, &mut terminated).await;
    warn("stopping: answers under way are finished; a second signal stops at once");
    tokio::spawn(async move {
        either(&mut interrupted, &mut terminated).await;
        std::process::exit(IMPATIENT_EXIT_CODE);
    });
}

async fn either(a: &mut Signal, b: &mut Signal) {
    tokio::select! {
        _ = a.recv() => {}
        _ = b.recv() => {}
    }
}

fn announce(
    url: &str,
    shell: &Shell,
    server: &Server,
    blobs: &Blobs,
    testing: Testing,
    notes: &[String],
) -> anyhow::Result<()> {
    if testing == Testing::On {
        warn("WARNING: --testing is on: anybody who reaches this server may empty its catalogue.");
    }
    say(format!("pinakes {} listens on {url}", env!("CARGO_PKG_VERSION")))?;
    say(format!("  data     {}", server.data.display()))?;
    if !server.database.is_empty() {
        say("  records  in the PostgreSQL database of server.database")?;
    }
    if !blobs.settings().place.is_empty() {
        say(format!("  files    in {}", blobs.place()))?;
    }
    for (dialect, point, bases) in shell.mounted() {
        say(format!("  {dialect:<8} {}", place_of(point, bases)))?;
    }
    say("  server   /metrics /health/live /health/ready /openapi.json")?;
    notes.iter().try_for_each(|note| say(note.replace("{url}", url)))
}

/// Describes in a line where a dialect is served: its first paths, the number of further ones, and its hosts.
fn place_of(point: &MountPoint, bases: &[String]) -> String {
    let shown = bases.iter().take(BASES_SHOWN).map(|it| format!("{}{it}", point.prefix));
    let mut line = shown.collect::<Vec<_>>().join(" ");
    if BASES_SHOWN < bases.len() {
        line.push_str(&format!(" and {} more paths", bases.len() - BASES_SHOWN));
    }
    if !point.hosts.is_empty() {
        line.push_str(&format!(" on {}", point.hosts.join(", ")));
    }
    line
}

/// Decides whether the testing routes are wanted and allowed.
fn testing(wanted: bool, listen: SocketAddr) -> anyhow::Result<Testing> {
    match (wanted, listen.ip().is_loopback()) {
        (false, _) => Ok(Testing::Off),
        (true, true) => Ok(Testing::On),
        (true, false) => Err(Misuse(format!(
            "--testing lets anybody empty the catalogue, so it is refused on {listen}; \
             listen on a loopback address such as 127.0.0.1:3000, or leave --testing out"
        ))
        .into()),
    }
}

/// File descriptors that an open tenant takes: its files, locks, and some reader connections.
const OF_TENANT: u64 = 20;
/// File descriptors that the process needs besides tenants and connections.
const OF_PROCESS: u64 = 128;

/// Raises the limit on open files as far as the system allows, and lowers those on connections and tenants to what
/// fits.
fn fit_descriptors(config: &mut Config) {
    let found = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: found.maximum, maximum: found.maximum })
    {
        warn(format!("the limit on open files could not be raised: {error}"));
    }
    // No limit means unbounded.
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let limits = &mut config.limits;
    let (connections, tenants) = fitted(most, limits.connections, limits.open_tenants);
    if (connections, tenants) != (limits.connections, limits.open_tenants) {
        warn(format!(
            "{most} files may be open (ulimit -n): limits.connections is {connections} instead of {}, \
             limits.open_tenants {tenants} instead of {}",
            limits.connections, limits.open_tenants
        ));
        (limits.connections, limits.open_tenants) = (connections, tenants);
    }
}

/// Returns the numbers of connections and tenants that fit into so many descriptors: half of them each, or
/// what the other leaves.
fn fitted(most: u64, connections: usize, tenants: usize) -> (usize, usize) {
    let whole = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let left = most.saturating_sub(OF_PROCESS);
    let of_tenants = (tenants as u64).saturating_mul(OF_TENANT);
    let for_connections = left.saturating_sub(of_tenants).max(left / 2);
    let connections = connections.min(whole(for_connections)).max(1);
    let for_tenants = left.saturating_sub(connections as u64) / OF_TENANT;
    (connections, tenants.min(whole(for_tenants)).max(1))
}

/// Builds the runtime: as many threads as cores for requests; blocking threads for everything that the limits
/// allow at once.
fn runtime(config: &Config) -> anyhow::Result<Runtime> {
    let n_cores = available_parallelism().map_or(1, usize::from);
    let n_threads = if config.server.threads == 0 { n_cores } else { config.server.threads };
    let limits = &config.limits;
    let n_blocking = limits.scans + limits.slow_streams + limits.password_checks + SPARE_BLOCKING_THREADS;
    let built = Builder::new_multi_thread()
        .worker_threads(n_threads)
        .max_blocking_threads(n_blocking)
        .enable_all()
        .build();
    built.context("the server's threads cannot be started")
}

/// Starts logging to standard error, and to the in-memory log that shows operators the latest lines.
pub(crate) fn begin_log(config: &Config) -> anyhow::Result<()> {
    let server = &config.server;
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|it| !it.is_empty());
    let wanted = wanted.as_deref().unwrap_or(&server.log);
    let filter = EnvFilter::try_new(wanted)
        .map_err(|error| Misuse(format!("server.log {wanted:?}: {error}; expected e.g. \"info\"")))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match server.log_format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let recent = RecentLines(config.site.log.clone());
    let begun = tracing_subscriber::registry().with(filter).with(lines).with(recent).try_init();
    begun.map_err(|error| anyhow::anyhow!("logging cannot begin: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_tenants_fit_into_the_descriptors() {
        assert_eq!(fitted(u64::MAX, 20_000, 256), (20_000, 256));
        assert_eq!(fitted(1_048_576, 20_000, 256), (20_000, 256));
        assert_eq!(fitted(1_024, 20_000, 256), (448, 22));
        assert_eq!(fitted(1_024, 100, 256), (100, 39));
        assert_eq!(fitted(64, 20_000, 256), (1, 1));
    }

    /// Waits for ever if work that does not end keeps the server.
    #[test]
    fn work_without_an_end_does_not_keep_the_server() -> anyhow::Result<()> {
        let runtime = runtime(&Config::default())?;
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        runtime.spawn_blocking(move || {
            drop(begin);
            ended.recv()
        });
        assert!(begun.recv().is_err(), "the work tells that it runs by letting go");
        leave(runtime);
        drop(end);
        Ok(())
    }

    #[test]
    fn testing_is_for_loopback_alone() -> Result<(), Box<dyn std::error::Error>> {
        let (local, open) = ("127.0.0.1:0".parse()?, "0.0.0.0:3000".parse()?);
        assert_eq!(testing(true, local)?, Testing::On);
        assert_eq!(testing(true, "[::1]:3000".parse()?)?, Testing::On);
        assert_eq!(testing(false, open)?, Testing::Off);
        assert!(testing(true, open).is_err_and(|error| error.is::<Misuse>()));
        Ok(())
    }
}
