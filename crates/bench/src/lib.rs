//! Load generator, scenarios and reports; knows a server only by its URL.
//!
//! - [`load`]: the engine. Open load by a timetable, closed load by users, saturation search, mixes, concurrent
//!   groups; the results are a [`load::StepRecord`].
//! - [`scenario`]: the published reports, one file each. It also says how to add one.
//! - [`generate`]: deterministic data: datasets, file lists, MARC, citations, topic trees, users.
//! - [`observe`]: the server's process, machine and metrics page, second by second.
//! - [`ceiling`]: a bare server with the same bytes, and what the client itself can send.
//! - [`verdict`]: what limited a step, with the evidence.
//! - [`report`], [`compare`](mod@compare), [`result`]: the results of a run.
//!
//! The guide for users is `docs/bench.md`.

pub mod ceiling;
pub mod cli;
pub mod client;
pub mod compare;
pub mod error;
pub mod generate;
pub mod load;
pub mod machine;
pub mod observe;
pub mod progress;
pub mod published;
pub mod report;
pub mod result;
pub mod runner;
pub mod scenario;
pub mod stop;
pub mod target;
pub mod verdict;

pub use error::BenchError;
