//! Input and output of imports that read entry by entry.

use std::collections::HashMap;

use crate::error::{ConclaveError, Result};
use crate::model::Topic;

/// Input and output of an import that reads entry by entry.
pub struct Streaming<'s> {
    /// Name of the document, for error messages.
    pub document: &'s str,
    /// Map that the topics go to.
    pub map: &'s str,
    /// How the Open Directory is read.
    pub how: Dmoz,
    /// Paths of Curlie's categories by number, from the tables read so far.
    pub categories: &'s mut Categories,
    /// Receives the topics.
    pub sink: &'s mut dyn FnMut(Topic) -> Result<()>,
}

impl Streaming<'_> {
    /// Passes on a topic, or a part of one, that ends at a line. Errors: 422 with document and line if it breaks a rule
    /// of the model.
    pub(crate) fn put(&mut self, line: u64, topic: Topic) -> Result<()> {
        let checked = topic.check();
        checked.map_err(|error| {
            ConclaveError::rule(format!("{}, line {line}: {}", self.document, error.detail()))
        })?;
        (self.sink)(topic)
    }
}

/// Paths of categories, by number.
#[derive(Debug, Clone, Default)]
pub struct Categories(pub(crate) HashMap<u64, String>);

/// How the Open Directory is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dmoz {
    /// Whether to imitate the original loader: only relations without digits, texts cut at 50 characters, a fixed text
    /// in each topic.
    pub is_seed: bool,
    /// Maximum number of links kept per category; 0 for all.
    pub n_links_max: usize,
}
