//! The session at the logbook service.

use std::sync::{Arc, Mutex, PoisonError};

/// The service's token from the last sign-in.
#[derive(Clone, Default)]
pub(crate) struct Session(Arc<Mutex<Option<String>>>);

impl Session {
    pub(crate) fn token(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn keep(&self, token: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }
}
