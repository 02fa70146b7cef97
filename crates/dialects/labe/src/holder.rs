//! Whether an institution holds a document: decided by the document's class, once for each class in a
//! request.

use std::collections::HashMap;

use pinakes_store::{Class, Record, View};
use serde_json::Value;

use crate::error::LabeError;
use crate::kinds::DOCUMENT;

/// An institution, with cached results.
pub(crate) struct Holder<'a> {
    isil: &'a str,
    known: HashMap<Class, bool>,
}

impl<'a> Holder<'a> {
    /// Creates a holder for the institution with an ISIL.
    pub(crate) fn new(isil: &'a str) -> Self {
        Self { isil, known: HashMap::new() }
    }

    /// Says whether the institution holds a document. A document without a list is held by nobody.
    ///
    /// # Errors
    /// The document's institutions are not a list of strings; the store fails.
    pub(crate) fn holds(&mut self, view: &mut View<'_>, document: &Record) -> Result<bool, LabeError> {
        if let Some(is_held) = self.known.get(&document.class) {
            return Ok(*is_held);
        }
        let fields = view.class(&DOCUMENT, document.class)?;
        let is_held = match fields.get("institution") {
            None | Some(Value::Null) => Some(false),
            Some(Value::Array(list)) if list.iter().all(|it| it.is_string() || it.is_null()) => {
                Some(list.iter().any(|it| it.as_str() == Some(self.isil)))
            }
            Some(_) => None,
        };
        let is_held = is_held.ok_or_else(|| LabeError::Institution { id: document.id.clone() })?;
        self.known.insert(document.class, is_held);
        Ok(is_held)
    }
}
