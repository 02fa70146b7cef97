//! Cache of metadata schemas from other servers.

use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::published_data::schema::Schema;

/// Maximum number of cached schemas.
pub(crate) const KNOWN_SCHEMAS: usize = 256;

/// Recently fetched schemas, by URL.
#[derive(Clone)]
pub(crate) struct Schemas(pub(crate) Arc<Cache<String, Fetched>>);

#[derive(Clone)]
pub(crate) struct Fetched {
    pub(crate) at_ms: i64,
    /// `None` if there is no schema at that URL.
    pub(crate) schema: Option<Arc<Schema>>,
}

impl Default for Schemas {
    fn default() -> Self {
        Self(Arc::new(Cache::new(KNOWN_SCHEMAS)))
    }
}
