//! Errors that can end a measurement, worded so that the reader knows which input is meant and what to do.

use std::io;
use std::path::PathBuf;

/// Why a run, a comparison or a generator stopped.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The URL cannot be read.
    #[error("URL {url:?}: {reason}; expected http://host:port[/path], for example http://127.0.0.1:3000")]
    BadUrl {
        /// As given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The host is another machine and nobody allowed that.
    #[error(
        "URL {url:?} is {address}, which is not this machine: load is sent to other machines only with \
         --allow-remote, and only with the consent of whoever runs them"
    )]
    NotLoopback {
        /// As given.
        url: String,
        /// What the name resolves to.
        address: String,
    },
    /// Nothing accepts connections there.
    #[error("no server accepts connections at {address}: {reason}; is it started, and is the port right?")]
    CannotConnect {
        /// `host:port`.
        address: String,
        /// What the operating system said.
        reason: String,
    },
    /// A server answers, but does not speak the scenario's dialect.
    #[error("{url} does not answer as {expected} does: {found}; is this the right port and path?")]
    OtherDialect {
        /// The address asked.
        url: String,
        /// The dialect and the answer that were expected.
        expected: String,
        /// Status and start of the body that came.
        found: String,
    },
    /// The credentials were refused.
    #[error(
        "{url} refused the login of {username:?} with status {status}: {message}; check --username, and the \
         password in --password or in the environment variable {variable}"
    )]
    LoginRefused {
        /// The address asked.
        url: String,
        /// The account.
        username: String,
        /// HTTP status.
        status: u16,
        /// The server's message.
        message: String,
        /// Where the password is looked for.
        variable: &'static str,
    },
    /// No password was given.
    #[error(
        "a password for {username:?} is needed: set the environment variable {variable} (or use {option})"
    )]
    NoPassword {
        /// The account.
        username: String,
        /// Where the password is looked for.
        variable: &'static str,
        /// The option that gives it too.
        option: &'static str,
    },
    /// The scenario's data could not be put in place.
    #[error("preparing {what}: {done} of {wanted} done, then {reason}")]
    Preparation {
        /// What was being prepared.
        what: String,
        /// How many there are.
        done: u64,
        /// How many were wanted.
        wanted: u64,
        /// The first failure.
        reason: String,
    },
    /// The server went away while it was measured.
    #[error(
        "the server at {address} stopped accepting connections during step {step:?}; what was measured before \
         is in the report"
    )]
    ServerGone {
        /// `host:port`.
        address: String,
        /// Name of the step.
        step: String,
    },
    /// Ctrl-C.
    #[error("interrupted; what was measured before is in the report")]
    Interrupted,
    /// More connections than this process may open.
    #[error(
        "{wanted} connections need {needed} open files, the limit of this process is {limit}: raise it with \
         `ulimit -n {needed}` or use fewer --connections"
    )]
    OpenFiles {
        /// Connections of the step.
        wanted: usize,
        /// Open files needed.
        needed: usize,
        /// Soft limit.
        limit: usize,
    },
    /// An option's value is invalid.
    #[error("{option} {value:?}: {reason}")]
    BadOption {
        /// The option.
        option: &'static str,
        /// As given.
        value: String,
        /// What is wrong and what is expected.
        reason: String,
    },
    /// A file could not be written.
    #[error("writing {path}: {source}{hint}", path = path.display(), hint = write_hint(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("reading {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A stored result is not one of ours.
    #[error("{path}: not a result of this program: {reason}", path = path.display())]
    BadResult {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A plot could not be drawn.
    #[error("drawing the plot {plot:?}: {reason}")]
    Plot {
        /// Its title.
        plot: String,
        /// The plotting library's message.
        reason: String,
    },
    /// One of our threads could not be started or did not return.
    #[error("{what}: {reason}")]
    Thread {
        /// Which thread.
        what: &'static str,
        /// The cause.
        reason: String,
    },
}

/// Returns what to do about a failed write, if the cause is known.
fn write_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull => "; the disk is full: free space or name another folder with --out",
        io::ErrorKind::PermissionDenied => "; name another folder with --out",
        _ => "",
    }
}
