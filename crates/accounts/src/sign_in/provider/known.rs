//! Cache of the provider's metadata.

use std::sync::Arc;

use openidconnect::core::CoreProviderMetadata;
use tokio::sync::Mutex;

/// The provider's metadata, and when it was requested.
#[derive(Debug, Default)]
pub(crate) struct Known(pub(super) Mutex<Option<(Arc<CoreProviderMetadata>, i64)>>);
