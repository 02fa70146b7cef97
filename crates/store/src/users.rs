//! Other users of a tenant's tables.

/// Whether anybody else has a tenant open while its tables are brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    /// Nobody.
    None,
    /// Another process, or an instance of this one that is closing.
    Others,
}
