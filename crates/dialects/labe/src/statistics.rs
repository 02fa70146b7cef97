//! The statistics at `/stats`: requests, sizes and times since the start, and of the current second.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use serde_json::{Map, Value, json};

/// Counts of a running server. Clones share them.
#[derive(Clone)]
pub(crate) struct Statistics(Arc<Mutex<Counts>>);

struct Counts {
    started: Instant,
    /// Status codes of the current second.
    second: BTreeMap<u16, u64>,
    second_at_s: u64,
    total: BTreeMap<u16, u64>,
    n_bytes: u64,
    took: Duration,
    parts: [PartCount; Part::ALL.len()],
}

#[derive(Default, Clone, Copy)]
struct PartCount {
    n: u64,
    took: Duration,
}

/// Parts of the work that are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Looking up ids and neighbours.
    LookUp,
    /// Reading documents.
    Documents,
}

impl Part {
    const ALL: [Self; 2] = [Self::LookUp, Self::Documents];

    /// Returns the name that clients know.
    fn name(self) -> &'static str {
        match self {
            Self::LookUp => "sql_query",
            Self::Documents => "index_data_fetch",
        }
    }
}

impl Statistics {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Counts {
            started: Instant::now(),
            second: BTreeMap::new(),
            second_at_s: 0,
            total: BTreeMap::new(),
            n_bytes: 0,
            took: Duration::ZERO,
            parts: Default::default(),
        })))
    }

    /// Records the time of a part of the work.
    pub(crate) fn note_part(&self, part: Part, took: Duration) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = &mut counts.parts[part as usize];
        count.n += 1;
        count.took += took;
    }

    /// Counts an answer, and its bytes as they are sent if their number is not known before.
    pub(crate) fn note_answer(&self, answer: Response, took: Duration) -> Response {
        let n_bytes = http_body::Body::size_hint(answer.body()).exact();
        {
            let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let status = answer.status().as_u16();
            *counts.this_second().entry(status).or_default() += 1;
            *counts.total.entry(status).or_default() += 1;
            counts.took += took;
            counts.n_bytes += n_bytes.unwrap_or(0);
        }
        if n_bytes.is_some() {
            return answer;
        }
        let statistics = self.clone();
        answer.map(|body| Body::new(Counted { body, statistics }))
    }

    fn note_bytes(&self, n_bytes: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).n_bytes += n_bytes as u64;
    }

    /// Returns the document.
    pub(crate) fn json(&self, now_ms: i64) -> Value {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let uptime = counts.started.elapsed();
        let second = counts.this_second().clone();
        let n_total: u64 = counts.total.values().sum();
        let mean_took = mean(counts.took, n_total);
        json!({
            "pid": std::process::id(),
            "hostname": "",
            "uptime": go_duration(uptime),
            "uptime_sec": uptime.as_secs_f64(),
            "time": time_text(now_ms),
            "unixtime": now_ms.div_euclid(1000),
            "status_code_count": by_code(&second),
            "total_status_code_count": by_code(&counts.total),
            "count": second.values().sum::<u64>(),
            "total_count": n_total,
            "total_response_time": go_duration(counts.took),
            "total_response_time_sec": counts.took.as_secs_f64(),
            "total_response_size": counts.n_bytes,
            "average_response_size": counts.n_bytes.checked_div(n_total).unwrap_or(0),
            "average_response_time": go_duration(mean_took),
            "average_response_time_sec": mean_took.as_secs_f64(),
            "total_metrics_counts": counts.each_part(|count| Value::from(count.n)),
            "average_metrics_timers": counts.each_part(|count| mean(count.took, count.n).as_secs_f64().into()),
        })
    }
}

impl Counts {
    /// Returns the counts of the current second; empty if it has just begun.
    fn this_second(&mut self) -> &mut BTreeMap<u16, u64> {
        let now_s = self.started.elapsed().as_secs();
        if self.second_at_s != now_s {
            self.second_at_s = now_s;
            self.second.clear();
        }
        &mut self.second
    }

    /// Returns the parts that occurred.
    fn each_part(&self, value: impl Fn(&PartCount) -> Value) -> Map<String, Value> {
        let parts = Part::ALL.iter().zip(&self.parts).filter(|(_, count)| 0 < count.n);
        parts.map(|(part, count)| (part.name().to_owned(), value(count))).collect()
    }
}

/// A body whose bytes are counted as they are sent.
struct Counted {
    body: Body,
    statistics: Statistics,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.statistics.note_bytes(frame.data_ref().map_or(0, Bytes::len));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.body)
    }
}

fn by_code(counts: &BTreeMap<u16, u64>) -> Map<String, Value> {
    counts.iter().map(|(code, n)| (code.to_string(), Value::from(*n))).collect()
}

fn mean(sum: Duration, n: u64) -> Duration {
    let nanoseconds = sum.as_nanos().checked_div(u128::from(n)).unwrap_or(0);
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// Formats a duration like Go: `1h2m3.5s`, `1.5ms`, `0s`.
fn go_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    let decimal = |value: f64, unit: &str| format!("{value}{unit}");
    match ns {
        0 => "0s".to_owned(),
        1..=999 => format!("{ns}ns"),
        1_000..=999_999 => decimal(ns as f64 / 1e3, "µs"),
        1_000_000..=999_999_999 => decimal(ns as f64 / 1e6, "ms"),
        _ => {
            let (minutes, rest_ns) = (ns / 60_000_000_000, ns % 60_000_000_000);
            let seconds = decimal(rest_ns as f64 / 1e9, "s");
            match (minutes / 60, minutes % 60) {
                (0, 0) => seconds,
                (0, minutes) => format!("{minutes}m{seconds}"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
            }
        }
    }
}

/// Formats a point in time like Go.
fn time_text(now_ms: i64) -> String {
    let form = time::macros::format_description!(
        "[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:3] +0000 UTC"
    );
    let moment = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(now_ms) * 1_000_000);
    moment.ok().and_then(|it| it.format(form).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_does() {
        for (ns, expected) in [
            (0, "0s"),
            (999, "999ns"),
            (1_500, "1.5µs"),
            (250_000_000, "250ms"),
            (61_500_000_000, "1m1.5s"),
            (3_723_000_000_000, "1h2m3s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(ns)), expected);
        }
    }

    #[test]
    fn a_second_is_forgotten_the_total_stays() {
        let statistics = Statistics::new();
        let answer = || Response::new(Body::from("four"));
        let _ = statistics.note_answer(answer(), Duration::from_millis(2));
        let _ = statistics.note_answer(answer(), Duration::from_millis(4));
        let told = statistics.json(0);
        assert_eq!(told["total_status_code_count"], json!({"200": 2}));
        assert_eq!(told["total_response_size"], 8);
        assert_eq!(told["average_response_time"], "3ms");
        assert_eq!(told["time"], "1970-01-01 00:00:00.000 +0000 UTC");
        assert_eq!(told["total_metrics_counts"], json!({}));
    }
}
