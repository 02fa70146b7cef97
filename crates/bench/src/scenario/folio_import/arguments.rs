//! The options of an import.

use std::time::Duration;

use clap::Args;

use crate::scenario::folio::FolioArgs;
use crate::scenario::{CommonArgs, Scale};

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct FolioImportArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Tenant and account.
    #[command(flatten)]
    pub folio: FolioArgs,
    /// Numbers of records of one import. Default: by scale, 1000,5000 or 1000,5000,10000,25000,50000.
    #[arg(long, value_delimiter = ',')]
    pub records: Vec<u64>,
    /// Further tenants where the same account exists, for imports in several at once.
    #[arg(long, value_delimiter = ',')]
    pub more_tenants: Vec<String>,
    /// Records that each of several tenants imports. Default: by scale, 2000 or 25000.
    #[arg(long)]
    pub tenant_records: Option<u64>,
    /// Users at desks during an import; 0 leaves this part out.
    #[arg(long, default_value_t = 5)]
    pub desks: usize,
    /// Pause of a user at a desk after each item, in milliseconds; not part of any transaction's time.
    #[arg(long, default_value_t = 100)]
    pub think_ms: u64,
    /// Records of the import during which desks work, which is restarted when it is over. Default: by scale, 5000
    /// or 50000.
    #[arg(long)]
    pub beside_records: Option<u64>,
    /// Items of each user at a desk, checked out in turn.
    #[arg(long, default_value_t = 20)]
    pub items: usize,
    /// Job profile, by its name.
    #[arg(long, default_value = "Default - Create SRS MARC Authority")]
    pub profile: String,
    /// Leave out the import with a profile that first looks up each record's 010 $a.
    #[arg(long)]
    pub no_match: bool,
    /// Number of the first record. Use another than 0 if an earlier run has left its records: the matching profile
    /// would find them.
    #[arg(long, default_value_t = 0)]
    pub first_record: u64,
    /// Polling interval for jobs, in milliseconds.
    #[arg(long, default_value_t = 100)]
    pub poll_ms: u64,
    /// Connections for cleaning up.
    #[arg(long, default_value_t = 32)]
    pub clean_connections: usize,
    /// Leave the data in the server afterwards.
    #[arg(long)]
    pub keep_data: bool,
}

impl FolioImportArgs {
    pub(crate) fn by_scale(&self, given: Option<u64>, quick: u64, more: u64) -> u64 {
        given.unwrap_or(if self.common.scale == Scale::Quick { quick } else { more })
    }

    pub(crate) fn records(&self) -> Vec<u64> {
        match (self.records.is_empty(), self.common.scale) {
            (false, _) => self.records.clone(),
            (true, Scale::Quick) => vec![1_000, 5_000],
            (true, Scale::Seed | Scale::Full) => vec![1_000, 5_000, 10_000, 25_000, 50_000],
        }
    }

    pub(crate) fn poll(&self) -> Duration {
        Duration::from_millis(self.poll_ms.max(1))
    }
}
