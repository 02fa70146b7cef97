//! Measures how fast ISO 2709 is scanned and turned into MARC-in-JSON, on one core.
//!
//!     cargo run --release -p pinakes-marc --example throughput -- FILE.mrc [SECONDS [WORK]]
//!
//! The file is read into memory once, and repeated there until it has 64 MB, so that it does not fit into the
//! processor's caches. Each kind of work is repeated for SECONDS (3 by default); the best round counts, by the
//! thread's time on a processor (Linux; elsewhere by the clock), so that a busy machine measures as far as
//! possible the same as an idle one. WORK is a part of the name of a kind of work, to run only that one under a
//! profiler.

#![allow(clippy::print_stdout, reason = "a measuring program for people")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use pinakes_marc::{Encoding, Format, Reader, RecordView, json, parse, records};

/// Minimum number of bytes that one round works on.
const ROUND_LEN_BYTES: usize = 64 << 20;

/// Works on all records of the data and returns how many there are.
type Work = fn(&[u8]) -> usize;

const WORKS: [(&str, Work); 5] = [
    ("cut into records", cut),
    ("cut, walk the directory", scan),
    ("the same from a stream", scan_stream),
    ("to MARC-in-JSON", to_json),
    ("to owned records", to_records),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: throughput FILE.mrc [SECONDS [WORK]]")?;
    let seconds: u64 = args.next().map_or(Ok(3), |text| text.parse())?;
    let file = std::fs::read(&path)?;
    if file.is_empty() {
        return Err(format!("{path} is empty").into());
    }
    let data = file.repeat(ROUND_LEN_BYTES.div_ceil(file.len()));
    println!("{path}: {} bytes, repeated to {}", file.len(), data.len());
    let limit = Duration::from_secs(seconds);
    let wanted = args.next().unwrap_or_default();
    for (name, work) in WORKS.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        measure(name, limit, &data, work);
    }
    Ok(())
}

/// Runs `work` again and again and prints the best round.
fn measure(what: &str, limit: Duration, data: &[u8], work: Work) {
    let start = Instant::now();
    let mut best = Duration::MAX;
    let mut n_records = 0;
    while start.elapsed() < limit {
        let round = Stopwatch::start();
        n_records = black_box(work(black_box(data)));
        best = best.min(round.elapsed());
    }
    #[allow(clippy::cast_precision_loss, reason = "three digits are printed")]
    let (bytes_s, records_s) =
        (data.len() as f64 / best.as_secs_f64(), n_records as f64 / best.as_secs_f64());
    println!("{what:<26}{:>8.0} MB/s {:>12.0} records/s", bytes_s / 1e6, records_s);
}

/// Measures time on a processor where the system reports it, otherwise wall-clock time.
struct Stopwatch {
    on_cpu: Option<Duration>,
    clock: Instant,
}

impl Stopwatch {
    fn start() -> Self {
        Self { on_cpu: time_on_cpu(), clock: Instant::now() }
    }

    fn elapsed(&self) -> Duration {
        match (self.on_cpu, time_on_cpu()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.clock.elapsed(),
        }
    }
}

/// Returns how long this thread has been on a processor: the first number of its `schedstat`, in nanoseconds.
fn time_on_cpu() -> Option<Duration> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    line.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn cut(data: &[u8]) -> usize {
    records(Format::Iso2709, data).inspect(|raw| _ = black_box(raw.bytes.len())).count()
}

fn scan(data: &[u8]) -> usize {
    records(Format::Iso2709, data).map(RecordView::new).inspect(|view| _ = black_box(view.n_fields())).count()
}

fn scan_stream(data: &[u8]) -> usize {
    let mut reader = Reader::new(data, Format::Iso2709);
    let mut n_records = 0;
    while let Ok(Some(raw)) = reader.next_record() {
        black_box(RecordView::new(raw));
        n_records += 1;
    }
    n_records
}

fn to_json(data: &[u8]) -> usize {
    let mut out = Vec::new();
    let mut n_records = 0;
    for raw in records(Format::Iso2709, data) {
        out.clear();
        black_box(json::write_view(&RecordView::new(raw), Encoding::Leader, &mut out));
        black_box(&out);
        n_records += 1;
    }
    n_records
}

fn to_records(data: &[u8]) -> usize {
    records(Format::Iso2709, data)
        .map(|raw| black_box(parse(Format::Iso2709, Encoding::Leader, raw)))
        .filter(|parsed| parsed.record.is_some())
        .count()
}
