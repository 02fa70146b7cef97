//! `raw.csv.gz`: all counts, in long form (one value a line), for spreadsheets and statistics programs. Compressed,
//! as a long run fills tens of megabytes. Columns: step, repeat, flow, record, at, name, value.
//!
//! `record` is `second` (at: second of the window; values by name), `bucket` (at: latency in
//! microseconds; value: count) or `sample` (at: second; resources by name).

use std::fmt::Write as _;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::observe::Sample;
use crate::result::{FlowResult, RunResult, StepResult};

/// Returns the file: the text, compressed by gzip.
pub fn compressed(result: &RunResult) -> io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    out.write_all(render(result).as_bytes())?;
    out.finish()
}

fn render(result: &RunResult) -> String {
    let mut text = "step,repeat,flow,record,at,name,value\n".to_owned();
    for step in &result.steps {
        for flow in &step.flows {
            write_flow(&mut text, step, flow);
        }
        for sample in &step.samples {
            write_sample(&mut text, step, sample);
        }
    }
    text
}

fn write_flow(text: &mut String, step: &StepResult, flow: &FlowResult) {
    for second in &flow.seconds {
        let at = second.at_s as f64;
        write_line(text, step, &flow.name, "second", at, "n_ok", second.n_ok as f64);
        write_line(text, step, &flow.name, "second", at, "n_errors", second.n_errors as f64);
        write_line(text, step, &flow.name, "second", at, "p50_ms", second.p50_ms);
        write_line(text, step, &flow.name, "second", at, "p99_ms", second.p99_ms);
    }
    for (latency_us, count) in &flow.buckets {
        write_line(text, step, &flow.name, "bucket", *latency_us as f64, "n", *count as f64);
    }
}

fn write_sample(text: &mut String, step: &StepResult, sample: &Sample) {
    let values = [
        ("server_cpu_cores", sample.server_cpu_cores),
        ("server_memory_bytes", sample.server_memory_bytes.map(|bytes| bytes as f64)),
        ("disk_read_bytes_per_s", sample.disk_read_bytes_per_s),
        ("disk_write_bytes_per_s", sample.disk_write_bytes_per_s),
        ("machine_cpu_cores", sample.machine_cpu_cores),
        ("machine_io_wait_cores", sample.machine_io_wait_cores),
        ("machine_stolen_cores", sample.machine_stolen_cores),
        ("network_bytes_per_s", sample.network_bytes_per_s),
        ("writer_queue_depth", sample.writer_queue_depth),
    ];
    for (name, value) in values {
        if let Some(value) = value {
            write_line(text, step, "", "sample", sample.at_s, name, value);
        }
    }
}

fn write_line(
    text: &mut String,
    step: &StepResult,
    flow: &str,
    record: &str,
    at: f64,
    name: &str,
    value: f64,
) {
    let (step_name, flow) = (quoted(&step.name), quoted(flow));
    writeln!(text, "{step_name},{},{flow},{record},{at},{name},{value}", step.repeat)
        .expect("writing to a string cannot fail");
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("plain"), "plain");
    }
}
