//! The metrics for Prometheus at `GET /metrics`.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::{HeaderValue, StatusCode};
use pinakes_store::{Catalogue, TenantStats};
use prometheus::{
    Counter, CounterVec, Encoder as _, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter,
    IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::answer;
use crate::process;
use crate::stages::{RequestScope, Stage};

/// Upper bounds of the histogram buckets for times, in seconds: 10 us to 10 s.
const TIMES_S: [f64; 13] =
    [0.000_01, 0.000_03, 0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// All metrics. Each is named and explained where it is created.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    requests: IntCounterVec,
    request_seconds: HistogramVec,
    stage_seconds: [Histogram; Stage::ALL.len()],
    panics: IntCounter,
    connections: IntGauge,
    held_bytes: IntGauge,
    open_tenants: IntGauge,
    queue_depth: IntGaugeVec,
    commits: IntCounterVec,
    writes: IntCounterVec,
    commit_seconds: CounterVec,
    idle_readers: IntGaugeVec,
    log_bytes: IntGaugeVec,
    log_left_bytes: IntGaugeVec,
    oldest_read_seconds: prometheus::GaugeVec,
    open_descriptors: IntGauge,
    most_descriptors: IntGauge,
    cpu_seconds: Counter,
    resident_bytes: Gauge,
}

impl Metrics {
    /// Registers all of them. Errors: two have the same name, which is a bug in this file.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let tenant = &["tenant"];
        let stages = histograms(
            &registry,
            "pinakes_stage_seconds",
            "Time of requests by stage; the stages are those of Server-Timing",
            &["stage"],
        )?;
        let inner = Inner {
            requests: register(
                &registry,
                IntCounterVec::new(
                    Opts::new(
                        "pinakes_requests_total",
                        "Requests answered, by dialect, route template and status",
                    ),
                    &["dialect", "route", "status"],
                )?,
            )?,
            request_seconds: histograms(
                &registry,
                "pinakes_request_seconds",
                "Time from the end of a request's head to the beginning of its answer",
                &["dialect"],
            )?,
            stage_seconds: Stage::ALL.map(|stage| stages.with_label_values(&[stage.name()])),
            panics: register(
                &registry,
                IntCounter::new(
                    "pinakes_panics_total",
                    "Handlers that panicked; each was answered with 500",
                )?,
            )?,
            connections: register(&registry, IntGauge::new("pinakes_connections", "Connections open now")?)?,
            held_bytes: register(
                &registry,
                IntGauge::new(
                    "pinakes_held_bytes",
                    "Bytes that bodies and answers under way hold, of limits.held_bytes",
                )?,
            )?,
            open_tenants: register(&registry, IntGauge::new("pinakes_open_tenants", "Tenants open now")?)?,
            queue_depth: gauges(
                &registry,
                "pinakes_writer_queue_depth",
                "Writes that wait for the tenant's writer",
                tenant,
            )?,
            commits: register(
                &registry,
                IntCounterVec::new(
                    Opts::new(
                        "pinakes_writer_commits_total",
                        "Commits since the tenant was opened; writes per commit is the batch size",
                    ),
                    tenant,
                )?,
            )?,
            writes: register(
                &registry,
                IntCounterVec::new(
                    Opts::new("pinakes_writer_writes_total", "Writes in those commits"),
                    tenant,
                )?,
            )?,
            commit_seconds: register(
                &registry,
                CounterVec::new(
                    Opts::new("pinakes_writer_commit_seconds_total", "Time spent in those commits"),
                    tenant,
                )?,
            )?,
            idle_readers: gauges(
                &registry,
                "pinakes_idle_readers",
                "Reading connections that wait for work",
                tenant,
            )?,
            log_bytes: gauges(
                &registry,
                "pinakes_log_bytes",
                "Size of the tenant's write-ahead log",
                tenant,
            )?,
            log_left_bytes: gauges(
                &registry,
                "pinakes_log_left_bytes",
                "Bytes of the write-ahead log that are not checkpointed, mostly because a long read needs them",
                tenant,
            )?,
            oldest_read_seconds: register(
                &registry,
                prometheus::GaugeVec::new(
                    Opts::new(
                        "pinakes_oldest_read_seconds",
                        "For how long the oldest read under way has been",
                    ),
                    tenant,
                )?,
            )?,
            open_descriptors: register(
                &registry,
                IntGauge::new("process_open_fds", "File descriptors in use")?,
            )?,
            most_descriptors: register(
                &registry,
                IntGauge::new("process_max_fds", "File descriptors that may be")?,
            )?,
            cpu_seconds: register(
                &registry,
                Counter::new("process_cpu_seconds_total", "Processor time, user and system, in seconds")?,
            )?,
            resident_bytes: register(
                &registry,
                Gauge::new("process_resident_memory_bytes", "Resident memory, mapped files included")?,
            )?,
            registry,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Returns the registry, for a dialect's own metrics (`pinakes_<dialect>_…`).
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// Counts an answered request.
    pub(crate) fn observe(&self, dialect: &str, status: StatusCode, took: Duration, scope: &RequestScope) {
        self.0.requests.with_label_values(&[dialect, scope.route(), status.as_str()]).inc();
        self.0.request_seconds.with_label_values(&[dialect]).observe(took.as_secs_f64());
        for (stage, histogram) in Stage::ALL.iter().zip(&self.0.stage_seconds) {
            let spent = scope.spent(*stage);
            if !spent.is_zero() {
                histogram.observe(spent.as_secs_f64());
            }
        }
    }

    pub(crate) fn count_panic(&self) {
        self.0.panics.inc();
    }

    pub(crate) fn connections(&self) -> &IntGauge {
        &self.0.connections
    }

    /// Answers `GET /metrics`, in Prometheus' text format.
    pub(crate) fn answer(&self, catalogue: &Catalogue, names: Names) -> Response {
        let tenants = catalogue.statistics();
        self.0.open_tenants.set(whole(tenants.len() as u64));
        match names {
            Names::Told => self.look_at(&tenants),
            Names::Hidden => self.look_at(&[together(&tenants)]),
        }
        self.0.held_bytes.set(whole(catalogue.budget().held_bytes()));
        // Counted elsewhere, since the start of the process.
        self.0.cpu_seconds.reset();
        self.0.cpu_seconds.inc_by(process::cpu_s());
        self.0.resident_bytes.set(process::resident_bytes());
        if let Some(descriptors) = process::descriptors() {
            self.0.open_descriptors.set(whole(descriptors.n_open));
            self.0.most_descriptors.set(whole(descriptors.most));
        }
        let (encoder, mut text) = (TextEncoder::new(), Vec::new());
        if let Err(error) = encoder.encode(&self.0.registry.gather(), &mut text) {
            tracing::error!(%error, "metrics could not be written");
            return answer::empty(StatusCode::INTERNAL_SERVER_ERROR);
        }
        answer::bytes(
            StatusCode::OK,
            HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
            text,
        )
    }

    #[expect(clippy::cast_precision_loss, reason = "microseconds of commits stay below 2^53 for centuries")]
    fn look_at(&self, tenants: &[TenantStats]) {
        let it = &*self.0;
        // Closed tenants drop out.
        for gauges in [&it.queue_depth, &it.idle_readers, &it.log_bytes, &it.log_left_bytes] {
            gauges.reset();
        }
        for counters in [&it.commits, &it.writes] {
            counters.reset();
        }
        it.commit_seconds.reset();
        it.oldest_read_seconds.reset();
        for tenant in tenants {
            let label = &[tenant.name.as_str()];
            it.queue_depth.with_label_values(label).set(whole(tenant.queue_depth));
            it.commits.with_label_values(label).inc_by(tenant.n_batches);
            it.writes.with_label_values(label).inc_by(tenant.n_writes);
            it.idle_readers.with_label_values(label).set(whole(tenant.n_idle_readers as u64));
            it.log_bytes.with_label_values(label).set(whole(tenant.log_bytes));
            it.log_left_bytes.with_label_values(label).set(whole(tenant.log_left_bytes));
            it.oldest_read_seconds.with_label_values(label).set(tenant.oldest_read_ms as f64 / 1e3);
            it.commit_seconds.with_label_values(label).inc_by(tenant.commit_us as f64 / 1e6);
        }
    }
}

/// Whether the client may know which tenants there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// Each tenant has its own figures.
    Told,
    /// One set of figures for all of them, under the name `*`.
    Hidden,
}

fn together(tenants: &[TenantStats]) -> TenantStats {
    let sum = |of: fn(&TenantStats) -> u64| tenants.iter().map(of).sum();
    TenantStats {
        name: "*".to_owned(),
        queue_depth: sum(|it| it.queue_depth),
        n_batches: sum(|it| it.n_batches),
        n_writes: sum(|it| it.n_writes),
        n_requested: sum(|it| it.n_requested),
        commit_us: sum(|it| it.commit_us),
        n_idle_readers: tenants.iter().map(|it| it.n_idle_readers).sum(),
        log_bytes: sum(|it| it.log_bytes),
        log_left_bytes: sum(|it| it.log_left_bytes),
        oldest_read_ms: tenants.iter().map(|it| it.oldest_read_ms).max().unwrap_or(0),
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn register<C: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    metric: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn gauges(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    register(registry, IntGaugeVec::new(Opts::new(name, help), labels)?)
}

fn histograms(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<HistogramVec, prometheus::Error> {
    register(registry, HistogramVec::new(HistogramOpts::new(name, help).buckets(TIMES_S.to_vec()), labels)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_together_are_their_sum() {
        let one = TenantStats {
            name: "secret".to_owned(),
            queue_depth: 1,
            n_batches: 2,
            n_writes: 3,
            n_requested: 4,
            commit_us: 5,
            n_idle_readers: 6,
            log_bytes: 7,
            log_left_bytes: 8,
            oldest_read_ms: 9,
        };
        let both = together(&[one.clone(), one]);
        assert_eq!((both.name.as_str(), both.n_writes, both.log_bytes, both.oldest_read_ms), ("*", 6, 14, 9));
    }
}
