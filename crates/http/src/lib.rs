//! What the dialects share of HTTP: authentication, tenants, limits, errors, timing, metrics.
//!
//! A [`Shell`] serves [`Mount`]s, one per dialect, on a listener. Around each request it does what is the same
//! everywhere: an id, a clock, limits on size and time, catching panics, compression, cross-origin headers,
//! `Server-Timing`, metrics, a log line. A dialect's handlers use a [`Context`] to find the tenant's [`Db`]
//! and the caller, [`body`] to receive, [`answer`] and [`etag`] to answer. There are no extractors that answer
//! in a shape of their own: every refusal is a [`Refusal`], which the dialect renders.
//!
//! ```no_run
//! # async fn example(context: pinakes_http::Context) -> Result<(), Box<dyn std::error::Error>> {
//! use pinakes_http::{Mount, Shell};
//!
//! let router = axum::Router::new().route("/hello", axum::routing::get(|| async { "hello" }));
//! let shell = Shell::new(context)?.mount(Mount::new("greeter", &["/"], router))?;
//! let listener = pinakes_http::listen("127.0.0.1:0".parse()?)?;
//! println!("http://{}", listener.local_addr()?);
//! shell.serve(listener, async { tokio::signal::ctrl_c().await.unwrap_or(()) }).await;
//! # Ok(())
//! # }
//! ```

mod access_log;
pub mod answer;
pub mod body;
mod compress;
mod connection;
mod context;
mod cors;
pub mod entrance;
pub mod etag;
mod held;
mod inflate;
mod json;
mod local;
mod metrics;
mod mount;
mod neighbour;
mod openapi;
mod parameters;
mod path;
mod process;
mod public_url;
mod refusal;
mod request_id;
pub mod request_line;
mod secrets;
mod serve;
mod shell;
mod slow;
mod speed;
pub mod stages;
mod stream;
mod tenant;
mod tls;
mod traces;

pub use access_log::AccessLog;
pub use context::{Asking, Context, Db};
pub use cors::Cors;
pub use entrance::{Entrance, TokenPlace};
pub use local::is_of_this_machine;
pub use metrics::Metrics;
pub use mount::{Mount, MountPoint};
pub use neighbour::{Inside, Neighbour, OnBehalf, Question, Said, Unheard};
pub use parameters::Parameters;
pub use path::{AskedUri, DoubleSlashes, FinalSlash, PathRules};
pub use public_url::{MountedAt, origin};
pub use refusal::{Refusal, retry_after_s, status_of_store};
pub use request_id::X_REQUEST_ID;
pub use secrets::is_secret_name;
pub use serve::{Drained, listen};
pub use shell::{Shell, ShellError};
pub use slow::{SlowRequest, SlowRequests};
pub use stages::{RequestScope, Stage};
pub use stream::{Gone, Sink};
pub use tenant::{TenantChoice, host_name};
pub use tls::{Tls, TlsError};
pub use traces::{Sender, TraceSettings, Traces, TracesError};
