//! The Prometheus text format, as far as a server's own numbers are read from it
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>). Other lines are skipped: an unusual
//! metrics page must not end a measurement.

use std::collections::BTreeMap;

/// One sample: a name, labels, a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name, with `_sum`, `_count` or `_bucket` of a histogram.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Value.
    pub value: f64,
}

/// Reads a metrics page.
pub fn parse(text: &str) -> Vec<Metric> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Metric> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let name_end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = parse_labels(inner, &mut labels)?;
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Metric { name: name.to_owned(), labels, value })
}

/// Reads `a="x",b="y"}` into `labels` and returns the rest.
fn parse_labels<'a>(text: &'a str, labels: &mut BTreeMap<String, String>) -> Option<&'a str> {
    let mut rest = text.trim_start();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some(after);
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = parse_quoted(after)?;
        labels.insert(name.trim().to_owned(), value);
        rest = after;
    }
}

/// Reads up to the closing quote; `\\`, `\"` and `\n` are escapes.
fn parse_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// Returns the sum of all samples called `name`.
pub fn total(metrics: &[Metric], name: &str) -> Option<f64> {
    let mut found = metrics.iter().filter(|metric| metric.name == name).peekable();
    found.peek()?;
    Some(found.map(|metric| metric.value).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_a_page() {
        let page = "# HELP x y\n# TYPE x histogram\npinakes_stage_seconds_sum{stage=\"commit\"} 1.5 1700000\n\
                    pinakes_stage_seconds_bucket{stage=\"a\\\"b\\n\",le=\"+Inf\",} 3\nprocess_cpu_seconds_total 2e1\nnonsense\nx{a=\"b\n";
        let metrics = parse(page);
        assert_eq!(metrics.len(), 3);
        assert_eq!(metrics[0].labels["stage"], "commit");
        assert_eq!(metrics[1].labels["stage"], "a\"b\n");
        assert_eq!(total(&metrics, "process_cpu_seconds_total"), Some(20.0));
        assert_eq!(total(&metrics, "absent"), None);
    }

    proptest! {
        #[test]
        fn no_input_panics(text in "[a-z{}\"\\\\=,. 0-9\n#é]{0,200}") {
            let _metrics = parse(&text);
        }
    }
}
