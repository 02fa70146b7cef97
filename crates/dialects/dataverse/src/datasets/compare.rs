//! Differences of versions.
