//! Usage counts of Make Data Count: `tests/data/usage.http` is a sequence of requests, `usage.out` beside it holds the
//! answers, which this server gave; their sums were made by hand from `usage.json`, the report.
//! `BLESS=1 cargo test --test dataverse usage` rewrites them: read the diff before the commit.
//!
//! `{{tides}}` and `{{winds}}` are published, `{{draft}}` is not: its counts are not public.

use std::path::Path;

use http::StatusCode;
use pinakes_test_support::golden;
use serde_json::Value;

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_summed_over_published_datasets() -> Result<(), Failure> {
    let server = Server::start()?;
    let (root, fiona) = (server.superuser("root").await?, server.user("fiona").await?);
    let mut report = std::fs::read_to_string(data("usage.json"))?;
    let mut numbers = [0; 3];
    for (number, name) in numbers.iter_mut().zip(["tides", "winds", "draft"]) {
        let (dataset, pid) = server.dataset(&fiona, name).await?;
        if name != "draft" {
            server.publish(&fiona, name, dataset).await?;
        }
        report = report.replace(&format!("{{{{{name}}}}}"), pid.trim_start_matches("doi:"));
        *number = dataset;
    }
    let report: Value = serde_json::from_str(&report)?;
    let path = "/api/admin/makeDataCount/addUsageMetricsFromSushiReport";
    let got = server.json(&root, "POST", path, &report).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());

    let case = data("usage.http");
    let values = [("tides", numbers[0]), ("winds", numbers[1]), ("draft", numbers[2])];
    let out = server.exchanged(&case, &[("root", root.as_str())], &values).await?;
    Ok(golden::compare(&case.with_extension("out"), &out)?)
}

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}
