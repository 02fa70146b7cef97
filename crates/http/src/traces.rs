//! Traces: a span for each request, sent to a collector by OTLP over HTTP in its JSON form (OpenTelemetry protocol 1.x).
//!
//! A request that carries `traceparent` (W3C Trace Context) continues that trace and its sampling; of other requests a
//! share is sampled. Spans wait in a bounded queue and are sent in batches; spans that do not fit are dropped and
//! counted, so that an unreachable collector costs nothing but its traces.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method};
use pinakes_accounts::{Clock, Entropy};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::stages::{Exchange, RequestScope};

/// Number of spans that may wait to be sent.
const QUEUE: usize = 4096;
/// Spans in one request.
const BATCH: usize = 512;
/// How long a batch waits to fill up, in milliseconds.
const BATCH_MS: u64 = 2000;
/// How long the collector may take for a batch, in seconds.
const SEND_S: u64 = 10;

/// Where traces go: the table `[server.traces]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceSettings {
    /// Base URL of a collector that takes OTLP over HTTP, e.g. `http://localhost:4318`; empty: no traces.
    pub endpoint: String,
    /// The service name reported to the collector.
    pub service: String,
    /// Share of requests without a trace of their own that are traced, from 0 to 1.
    pub share: f64,
}

impl Default for TraceSettings {
    fn default() -> Self {
        Self { endpoint: String::new(), service: "pinakes".to_owned(), share: 1.0 }
    }
}

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The endpoint is not a URL.
    #[error("server.traces.endpoint is {0:?}; expected a URL such as \"http://localhost:4318\"")]
    Endpoint(String),
    /// The share is not valid.
    #[error("server.traces.share is {0}; expected a number from 0 to 1")]
    Share(f64),
    /// The HTTP client cannot be created.
    #[error("server.traces: {0}")]
    Client(String),
}

/// The position of a request in a trace, received or begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    trace: u128,
    parent: Option<u64>,
    span: u64,
}

/// Parses `traceparent`: trace, parent, whether the trace is sampled.
fn parsed(headers: &HeaderMap) -> Option<(u128, u64, bool)> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let mut parts = text.trim().split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |it: &str, n: usize| {
        it.len() == n && it.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
    };
    let is_sound = is_hex(version, 2) && is_hex(trace, 32) && is_hex(parent, 16) && is_hex(flags, 2);
    // Version 00 has four parts; later ones may have more. ff is not valid.
    if !is_sound || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let (trace, parent) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(parent, 16).ok()?);
    let flags = u8::from_str_radix(flags, 16).ok()?;
    (trace != 0 && parent != 0).then_some((trace, parent, flags & 1 == 1))
}

/// A finished span.
struct Span {
    place: Place,
    begin_ns: i128,
    end_ns: i128,
    method: Method,
    route: String,
    dialect: &'static str,
    status: u16,
    tenant: Option<String>,
    request_id: String,
    stages: Vec<(&'static str, Duration)>,
}

/// Creates spans and passes them to the sender. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Traces(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: mpsc::Sender<Span>,
    share: f64,
    clock: Clock,
    entropy: Entropy,
    n_dropped: Arc<AtomicU64>,
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Span").field("route", &self.route).finish_non_exhaustive()
    }
}

/// Sends spans until the last [`Traces`] is gone.
pub struct Sender {
    queue: mpsc::Receiver<Span>,
    url: String,
    service: String,
    client: reqwest::Client,
    n_dropped: Arc<AtomicU64>,
}

impl Traces {
    /// Creates them from settings; `None` if no endpoint is set. The sender is to be run beside the server.
    ///
    /// # Errors
    /// The endpoint is not a URL, or the share is not between 0 and 1.
    pub fn of(
        settings: &TraceSettings,
        clock: Clock,
        entropy: Entropy,
    ) -> Result<Option<(Self, Sender)>, TracesError> {
        if settings.endpoint.is_empty() {
            return Ok(None);
        }
        let is_web = settings.endpoint.starts_with("http://") || settings.endpoint.starts_with("https://");
        if !is_web || reqwest::Url::parse(&settings.endpoint).is_err() {
            return Err(TracesError::Endpoint(settings.endpoint.clone()));
        }
        if !(0.0..=1.0).contains(&settings.share) {
            return Err(TracesError::Share(settings.share));
        }
        pinakes_tls::provider();
        let client = reqwest::Client::builder().timeout(Duration::from_secs(SEND_S)).build();
        let client = client.map_err(|error| TracesError::Client(error.to_string()))?;
        let (sender, queue) = mpsc::channel(QUEUE);
        let n_dropped = Arc::new(AtomicU64::new(0));
        let url = format!("{}/v1/traces", settings.endpoint.trim_end_matches('/'));
        let service = settings.service.clone();
        let sending = Sender { queue, url, service, client, n_dropped: Arc::clone(&n_dropped) };
        let inner = Inner { queue: sender, share: settings.share, clock, entropy, n_dropped };
        Ok(Some((Self(Arc::new(inner)), sending)))
    }

    /// Returns the position of a request in a trace; `None` if it is not traced.
    pub(crate) fn place(&self, headers: &HeaderMap) -> Option<Place> {
        let random = self.0.entropy.bytes::<24>();
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        trace.copy_from_slice(&random[..16]);
        span.copy_from_slice(&random[16..]);
        let (trace, span) = (u128::from_be_bytes(trace).max(1), u64::from_be_bytes(span).max(1));
        match parsed(headers) {
            Some((trace, parent, true)) => Some(Place { trace, parent: Some(parent), span }),
            Some(_) => None,
            // The upper half of the trace's id decides, as a number from 0 to 1.
            None => {
                let drawn = (trace >> 64) as f64 / u64::MAX as f64;
                (drawn < self.0.share || self.0.share == 1.0).then_some(Place { trace, parent: None, span })
            }
        }
    }

    /// Passes on the span of a request that was just answered.
    pub(crate) fn answered(&self, place: Place, exchange: &Exchange<'_>, scope: &RequestScope) {
        let Exchange { method, dialect, status, request_id, took } = *exchange;
        let end_ns = i128::from(self.0.clock.now_ms()) * 1_000_000;
        let span = Span {
            place,
            begin_ns: end_ns - i128::try_from(took.as_nanos()).unwrap_or(0),
            end_ns,
            method: method.clone(),
            route: scope.route().to_owned(),
            dialect,
            status,
            tenant: scope.tenant().map(str::to_owned),
            request_id: request_id.to_str().unwrap_or_default().to_owned(),
            stages: scope.stages(),
        };
        if self.0.queue.try_send(span).is_err() {
            self.0.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn attribute(key: &str, value: Value) -> Value {
    let value = match value {
        Value::String(text) => json!({"stringValue": text}),
        // 64-bit numbers are strings in OTLP's JSON.
        Value::Number(it) if it.is_u64() => json!({"intValue": it.to_string()}),
        other => json!({"doubleValue": other}),
    };
    json!({"key": key, "value": value})
}

impl Span {
    /// Uses the names of OpenTelemetry's conventions for HTTP; stages have our own.
    fn json(&self) -> Value {
        let mut attributes = vec![
            attribute("http.request.method", json!(self.method.as_str())),
            attribute("http.route", json!(self.route)),
            attribute("http.response.status_code", json!(self.status)),
            attribute("pinakes.dialect", json!(self.dialect)),
            attribute("pinakes.request_id", json!(self.request_id)),
        ];
        attributes.extend(self.tenant.as_ref().map(|it| attribute("pinakes.tenant", json!(it))));
        let ms = |it: Duration| it.as_secs_f64() * 1000.0;
        let stages = self.stages.iter();
        attributes.extend(stages.map(|it| attribute(&format!("pinakes.stage.{}_ms", it.0), json!(ms(it.1)))));
        let mut span = json!({
            "traceId": format!("{:032x}", self.place.trace), "spanId": format!("{:016x}", self.place.span),
            "name": format!("{} {}", self.method, self.route), "kind": 2,
            "startTimeUnixNano": self.begin_ns.to_string(), "endTimeUnixNano": self.end_ns.to_string(),
            "attributes": attributes,
            // An error of a server's span is a fault of the server.
            "status": if 500 <= self.status { json!({"code": 2}) } else { json!({}) },
        });
        if let Some(parent) = self.place.parent {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        span
    }
}

impl Sender {
    /// Sends spans, in batches, until no [`Traces`] is left.
    pub async fn run(mut self) {
        let mut was_refused = false;
        while let Some(first) = self.queue.recv().await {
            let mut batch = vec![first];
            let wait = Duration::from_millis(BATCH_MS);
            let _ = timeout(wait, async {
                while batch.len() < BATCH {
                    match self.queue.recv().await {
                        Some(span) => batch.push(span),
                        None => break,
                    }
                }
            })
            .await;
            let sent = self.send(&batch).await;
            match &sent {
                Err(reason) if !was_refused => {
                    tracing::warn!(
                        reason,
                        url = self.url,
                        "traces cannot be sent; they are dropped until they can"
                    );
                }
                Ok(()) if was_refused => tracing::info!(url = self.url, "traces can be sent again"),
                _ => {}
            }
            was_refused = sent.is_err();
            let n_dropped = self.n_dropped.swap(0, Ordering::Relaxed);
            if 0 < n_dropped {
                tracing::warn!(n_dropped, "the queue of traces is full; spans were dropped");
            }
        }
    }

    async fn send(&self, batch: &[Span]) -> Result<(), String> {
        let body = self.body(batch).to_string();
        let request = self.client.post(&self.url).header("content-type", "application/json").body(body);
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("the collector answered {}", answer.status())),
            Err(error) => Err(error.without_url().to_string()),
        }
    }

    fn body(&self, batch: &[Span]) -> Value {
        let spans: Vec<Value> = batch.iter().map(Span::json).collect();
        let resource = [
            attribute("service.name", json!(self.service)),
            attribute("service.version", json!(env!("CARGO_PKG_VERSION"))),
        ];
        json!({"resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{"scope": {"name": "pinakes"}, "spans": spans}],
        }]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::Stage;

    use std::time::Instant;

    use pinakes_store::Budget;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    fn headers(traceparent: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Ok(value) = traceparent.parse() {
            headers.insert("traceparent", value);
        }
        headers
    }

    #[test]
    fn a_trace_that_comes_along_is_read_as_the_standard_says() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        for (text, expected) in [
            (format!("00-{trace}-b7ad6b7169203331-01"), Some(true)),
            (format!("00-{trace}-b7ad6b7169203331-00"), Some(false)),
            (format!("01-{trace}-b7ad6b7169203331-01-more"), Some(true)),
            (format!("00-{trace}-b7ad6b7169203331-01-more"), None),
            (format!("ff-{trace}-b7ad6b7169203331-01"), None),
            (format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)), None),
            (format!("00-{trace}-{}-01", "0".repeat(16)), None),
            (format!("00-{}-b7ad6b7169203331-01", trace.to_uppercase()), None),
            ("x".to_owned(), None),
        ] {
            assert_eq!(parsed(&headers(&text)).map(|it| it.2), expected, "{text}");
        }
    }

    fn traces(share: f64) -> Result<(Traces, Sender), Box<dyn std::error::Error>> {
        let settings =
            TraceSettings { endpoint: "http://127.0.0.1:4318/".into(), share, ..TraceSettings::default() };
        Traces::of(&settings, Clock::fixed(1_000), Entropy::seeded(7))?.ok_or_else(|| "no traces".into())
    }

    #[test]
    fn a_span_goes_on_with_its_trace_and_says_where_the_time_went() -> Outcome {
        let (traces, mut sender) = traces(1.0)?;
        assert_eq!(sender.url, "http://127.0.0.1:4318/v1/traces");
        let place = traces.place(&headers("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        let place = place.ok_or("it is sampled")?;
        let scope = RequestScope::new(Instant::now(), Arc::default(), &Budget::new(1 << 20));
        scope.add(Stage::Store, Duration::from_millis(3));
        let id = http::HeaderValue::from_static("r1");
        let exchange = Exchange {
            method: &Method::GET,
            dialect: "scicat",
            status: 500,
            request_id: &id,
            took: Duration::from_millis(5),
        };
        traces.answered(place, &exchange, &scope);
        let span = sender.queue.try_recv()?;
        let body = sender.body(&[span]);
        let span = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(span["parentSpanId"], "b7ad6b7169203331");
        assert_eq!(
            (&span["startTimeUnixNano"], &span["endTimeUnixNano"]),
            (&json!("995000000"), &json!("1000000000"))
        );
        assert_eq!((&span["kind"], &span["status"]["code"]), (&json!(2), &json!(2)));
        let attributes = span["attributes"].to_string();
        assert!(
            attributes.contains(r#"{"key":"pinakes.stage.store_ms","value":{"doubleValue":3.0}}"#),
            "{attributes}"
        );
        assert!(attributes.contains(r#""intValue":"500""#), "{attributes}");
        Ok(())
    }

    #[test]
    fn a_share_of_requests_is_traced_and_what_says_no_is_not() -> Outcome {
        let (none, _sender) = traces(0.0)?;
        assert_eq!((0..100).filter(|_| none.place(&HeaderMap::new()).is_some()).count(), 0);
        let (half, _sender) = traces(0.5)?;
        let n_traced = (0..1000).filter(|_| half.place(&HeaderMap::new()).is_some()).count();
        assert!((400..600).contains(&n_traced), "{n_traced}");
        let refused = headers("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
        assert_eq!(traces(1.0)?.0.place(&refused), None);
        for (endpoint, share) in [("localhost:4318", 1.0), ("http://[", 1.0), ("http://a", 1.5)] {
            let settings = TraceSettings { endpoint: endpoint.into(), share, ..TraceSettings::default() };
            assert!(
                Traces::of(&settings, Clock::fixed(0), Entropy::seeded(1)).is_err(),
                "{endpoint} {share}"
            );
        }
        Ok(())
    }
}
