//! What a provider said of itself.

use std::sync::Arc;

use openidconnect::core::CoreProviderMetadata;
use tokio::sync::Mutex;

/// What a provider says of itself, and when it was asked.
#[derive(Debug, Default)]
pub(crate) struct Known(pub(super) Mutex<Option<(Arc<CoreProviderMetadata>, i64)>>);
