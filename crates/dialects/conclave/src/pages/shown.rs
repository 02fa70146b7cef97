//! The topic that a page shows, borrowed from the stored body: pages are read far more often than anything else, and an
//! owned topic would need a hundred small allocations for each.

use std::borrow::Cow;

use serde::Deserialize;

use crate::error::{ConclaveError, Result};
use crate::model::Occurrence;
use crate::names::{DEFAULT_SCOPE, LABEL};

/// A topic as pages show it. The fields are those of [`crate::model::Topic`], without those that no page shows.
#[derive(Debug, Deserialize)]
pub(super) struct Shown<'b> {
    #[serde(borrow)]
    pub(super) id: Cow<'b, str>,
    #[serde(borrow)]
    pub(super) map: Cow<'b, str>,
    #[serde(rename = "at", default)]
    pub(super) modified_ms: i64,
    #[serde(borrow, default)]
    pub(super) metadata: Vec<Said<'b>>,
    #[serde(borrow, default)]
    pub(super) arcs: Vec<Leading<'b>>,
    #[serde(default)]
    pub(super) occurrences: Vec<Occurrence>,
}

/// A metadata entry.
#[derive(Debug, Deserialize)]
pub(super) struct Said<'b> {
    #[serde(borrow)]
    pub(super) scope: Cow<'b, str>,
    #[serde(borrow)]
    pub(super) name: Cow<'b, str>,
    #[serde(borrow)]
    pub(super) value: Cow<'b, str>,
}

/// An arc.
#[derive(Debug, Deserialize)]
pub(super) struct Leading<'b> {
    #[serde(borrow)]
    pub(super) ty: Cow<'b, str>,
    #[serde(borrow)]
    pub(super) scope: Cow<'b, str>,
    #[serde(borrow, rename = "ref")]
    pub(super) reference: Cow<'b, str>,
    #[serde(borrow)]
    pub(super) role: Cow<'b, str>,
    #[serde(borrow, default)]
    pub(super) metadata: Vec<Said<'b>>,
}

/// Returns the label in some metadata, by the rules of [`crate::model::label_of`].
fn label_of<'m>(metadata: &'m [Said<'_>], scope: &str) -> Option<&'m str> {
    let mut labels = metadata.iter().filter(|it| it.name == LABEL);
    let first = labels.clone().find(|it| it.scope == scope);
    let first =
        first.or_else(|| labels.clone().find(|it| it.scope == DEFAULT_SCOPE)).or_else(|| labels.next());
    first.map(|it| &*it.value)
}

impl<'b> Shown<'b> {
    /// Parses the body of a record.
    pub(super) fn of(body: &'b [u8]) -> Result<Shown<'b>> {
        let damaged = |error: &dyn std::fmt::Display| ConclaveError::damaged(error.to_string());
        // UTF-8 is validated once for the whole body rather than per text.
        let text = std::str::from_utf8(body).map_err(|error| damaged(&error))?;
        serde_json::from_str(text).map_err(|error| damaged(&error))
    }

    /// Keeps the members whose scope the reader may see.
    pub(super) fn retain(&mut self, may_see: impl Fn(&str) -> bool) {
        self.metadata.retain(|it| may_see(&it.scope));
        self.arcs.retain_mut(|it| {
            it.metadata.retain(|it| may_see(&it.scope));
            may_see(&it.scope)
        });
        self.occurrences.retain(|it| may_see(&it.scope));
    }

    /// Returns the label for a reader of `scope`.
    pub(super) fn label(&self, scope: &str) -> &str {
        label_of(&self.metadata, scope).unwrap_or(&self.id)
    }

    /// Returns a metadata value.
    pub(super) fn get(&self, scope: &str, name: &str) -> Option<&str> {
        self.metadata.iter().find(|it| it.scope == scope && it.name == name).map(|it| &*it.value)
    }
}

impl Leading<'_> {
    /// Returns the label for a reader of `scope`.
    pub(super) fn label(&self, scope: &str) -> &str {
        label_of(&self.metadata, scope).unwrap_or(&self.reference)
    }
}
