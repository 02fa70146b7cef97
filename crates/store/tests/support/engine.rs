//! The engines that a test suite runs on, shared by several crates.

use std::sync::atomic::{AtomicU32, Ordering};

use pinakes_store::Location;

/// Where the records of a test are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    /// The cluster that `PINAKES_TEST_POSTGRES` names.
    Postgres,
}

/// Names the variable that holds the URL of a PostgreSQL cluster.
const POSTGRES: &str = "PINAKES_TEST_POSTGRES";

impl Engine {
    /// Returns the available engines.
    pub(crate) fn all() -> Vec<Self> {
        let postgres = std::env::var(POSTGRES).ok().map(|_| Self::Postgres);
        std::iter::once(Self::Sqlite).chain(postgres).collect()
    }

    /// Returns its name for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgresql",
        }
    }

    /// Returns a place that no other test uses.
    pub(crate) fn location(self, folder: &tempfile::TempDir) -> Result<Location, Box<dyn std::error::Error>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if self == Self::Sqlite {
            return Ok(Location::Folder(folder.path().into()));
        }
        let url = std::env::var(POSTGRES)?;
        let mark = if url.contains('?') { '&' } else { '?' };
        let started = std::time::UNIX_EPOCH.elapsed()?.as_millis();
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Location::Postgres(format!("{url}{mark}catalogue=t{}-{started}-{n}", std::process::id())))
    }
}
