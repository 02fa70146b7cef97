//! The figures that the operators of the original systems published, for comparison with ours. They were
//! measured on other machines: the ratio says what a user of the published system would see change, not what
//! the same machine would give.

use serde::{Deserialize, Serialize};

/// A figure, or a range if it was published as one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
}

impl Range {
    /// Returns a single figure.
    pub const fn exactly(value: f64) -> Self {
        Self { low: value, high: value }
    }

    /// Returns a range of figures.
    pub const fn between(low: f64, high: f64) -> Self {
        Self { low, high }
    }
}

/// The published figures for the conditions of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Conditions of the figures, as published.
    pub conditions: String,
    /// Median latency, in milliseconds.
    pub p50_ms: Option<Range>,
    /// 99th percentile, in milliseconds.
    pub p99_ms: Option<Range>,
    /// 99.5th percentile, in milliseconds.
    #[serde(default)]
    pub p99_5_ms: Option<Range>,
    /// Mean, in milliseconds.
    #[serde(default)]
    pub mean_ms: Option<Range>,
    /// Answers per second.
    pub rate_per_s: Option<Range>,
    /// Time of a single request, in milliseconds.
    pub single_ms: Option<Range>,
}

/// Returns Conclave's figures for the page of one hot topic among 780,000, concurrency 8 to 8192, eight
/// threads.
pub fn conclave_pages() -> Published {
    Published {
        conditions: "one hot topic of 780,000, concurrency 8 to 8192, no random topics".to_owned(),
        rate_per_s: Some(Range::between(3_600.0, 7_600.0)),
        ..Published::default()
    }
}

/// Returns Dataverse's figures for the five calls of a deposit by 100 users, ten times each, on new hardware.
pub fn dataverse_deposit() -> Published {
    Published {
        conditions: "100 users, 10 deposits each, five calls".to_owned(),
        mean_ms: Some(Range::exactly(4_470.0)),
        rate_per_s: Some(Range::exactly(20.3)),
        ..Published::default()
    }
}

/// Returns SciCat's figures for reads by PID and by fullquery, 1,000 to 1,000,000 datasets at 1,000 requests
/// per second. The range of p99 is over all numbers of datasets.
pub fn scicat_reads(rate_per_s: f64) -> Option<Published> {
    const PUBLISHED_RATE_PER_S: f64 = 1000.0;
    ((rate_per_s - PUBLISHED_RATE_PER_S).abs() < 0.5).then(|| Published {
        conditions: "1K to 1M datasets, rate 1000/s".to_owned(),
        p50_ms: Some(Range::between(5.0, 7.0)),
        p99_ms: Some(Range::between(160.0, 23_800.0)),
        rate_per_s: Some(Range::exactly(1000.0)),
        ..Published::default()
    })
}

/// Returns SciCat's highest published rate of reads.
pub fn scicat_reads_saturation() -> Published {
    Published {
        conditions: "1K to 1M datasets, highest rate".to_owned(),
        rate_per_s: Some(Range::exactly(1000.0)),
        ..Published::default()
    }
}

/// Returns SciCat's figures for creating datasets with 100, 250 or 1,000 metadata fields; `rate_per_s` is the
/// offered rate.
pub fn scicat_ingest(n_fields: usize, rate_per_s: f64) -> Option<Published> {
    let published = [100, 250, 1000].contains(&n_fields) && (rate_per_s - 500.0).abs() < 0.5;
    published.then(|| Published {
        conditions: "100 / 250 / 1000 fields, rate 500/s".to_owned(),
        p50_ms: Some(Range::between(47_000.0, 54_000.0)),
        rate_per_s: Some(Range::between(140.0, 150.0)),
        ..Published::default()
    })
}

/// Returns SciCat's highest rate of creations, 100 to 1,000 fields.
pub fn scicat_ingest_saturation(n_fields: usize) -> Option<Published> {
    [100, 250, 1000].contains(&n_fields).then(|| Published {
        conditions: "100 / 250 / 1000 fields, highest rate".to_owned(),
        rate_per_s: Some(Range::between(140.0, 150.0)),
        ..Published::default()
    })
}

/// Returns SciCat's figures for one block of files: 75,000 files is its maximum.
pub fn scicat_block(n_files: u64) -> Option<Published> {
    (n_files == 75_000).then(|| Published {
        conditions: "75K files, the most accepted".to_owned(),
        single_ms: Some(Range::exactly(86_000.0)),
        ..Published::default()
    })
}

/// Returns labe's figures for citation documents of random ids, 8 to 48 requests in parallel over the whole of
/// COCI of early 2022 (1.2 billion citations, warm cache of the most linked).
pub fn labe_random() -> Published {
    Published {
        conditions: "1.24 billion citations, random ids, 8 to 48 in parallel, most linked cached".to_owned(),
        p50_ms: Some(Range::between(25.0, 37.0)),
        p99_5_ms: Some(Range::between(330.0, 1_080.0)),
        ..Published::default()
    }
}

/// Returns labe's figures for the thousand ids with the most citations, nothing cached.
pub fn labe_dearest() -> Published {
    Published {
        conditions: "1.24 billion citations, dearest 1,000 ids, cold".to_owned(),
        mean_ms: Some(Range::exactly(17_000.0)),
        ..Published::default()
    }
}

/// By how many per cent a check-out takes longer during an import of authorities, as published.
pub const FOLIO_BESIDE_PERCENT: Range = Range::between(39.0, 59.0);

/// Returns FOLIO's figures for a check-out with its reads at five desks, in milliseconds, idle or during an
/// import of authorities.
pub fn folio_check_out_ms(n_desks: usize, is_beside_import: bool) -> Option<Range> {
    const IDLE_MS: f64 = 1100.0;
    let longer = |percent: f64| IDLE_MS * (1.0 + percent / 100.0);
    let published = if is_beside_import {
        Range::between(longer(FOLIO_BESIDE_PERCENT.low), longer(FOLIO_BESIDE_PERCENT.high))
    } else {
        Range::exactly(IDLE_MS)
    };
    (n_desks == 5).then_some(published)
}

/// Returns FOLIO's figures for importing new authorities in one tenant.
pub fn folio_import(n_records: u64) -> Option<Published> {
    (n_records == 50_000).then(|| Published {
        conditions: "50K new authorities, match on 010 $a, one tenant: 10 min 31 s".to_owned(),
        single_ms: Some(Range::exactly(631_000.0)),
        rate_per_s: Some(Range::exactly(79.0)),
        ..Published::default()
    })
}
