//! A table of local ids and DOIs held in memory, in addition to the one in the graph.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pinakes_citations::id_table::{IdRow, read_id_table};
use pinakes_citations::source::{self, SourceError};

use crate::doi::exact_of;
use crate::error::MountError;

/// Maximum number of bad rows that are reported individually.
const TOLD_MAX: u64 = 20;

/// Maps local ids to DOIs and back. For each id the first row counts.
#[derive(Default)]
pub(crate) struct ExtraIds {
    by_id: HashMap<Arc<str>, Entry>,
    by_doi: HashMap<Arc<str>, Vec<Arc<str>>>,
}

/// The DOI of an id.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Normalised form.
    pub(crate) doi: Arc<str>,
    /// Spelling in the table.
    pub(crate) spelled: Arc<str>,
}

impl ExtraIds {
    /// Reads a table; bad rows are logged and skipped.
    ///
    /// # Errors
    /// The file cannot be read, or has more than `rows_max` rows.
    pub(crate) fn read(path: &Path, rows_max: usize) -> Result<Self, MountError> {
        let mut table = Self::default();
        let (n_read, mut n_bad) = (AtomicU64::new(0), 0);
        let too_long = || MountError::IdsTooLong { path: path.to_owned(), rows_max };
        source::visit_members::<MountError>(path, &std::env::temp_dir(), &n_read, &mut |member| {
            let name = member.name;
            read_id_table::<ReadError>(member.bytes, &mut |line, row| {
                match row {
                    Ok(row) => table.add(&row),
                    Err(reason) => {
                        n_bad += 1;
                        if n_bad <= TOLD_MAX {
                            tracing::warn!(file = name, line, %reason, "a row of the table of ids is left out");
                        }
                    }
                }
                if rows_max < table.by_id.len() { Err(ReadError::TooLong) } else { Ok(()) }
            })
            .map_err(|error| match error {
                ReadError::TooLong => too_long(),
                ReadError::Io(error) => SourceError::Read { file: name.clone(), error }.into(),
            })
        })?;
        tracing::info!(path = %path.display(), n_ids = table.by_id.len(), n_bad, "the table of ids is read");
        Ok(table)
    }

    /// Returns the DOI of an id.
    pub(crate) fn doi_of(&self, id: &str) -> Option<&Entry> {
        self.by_id.get(id)
    }

    /// Returns the ids of a normalised DOI, in the order of the table.
    pub(crate) fn ids_of(&self, doi: &str) -> &[Arc<str>] {
        self.by_doi.get(doi).map_or(&[], Vec::as_slice)
    }

    /// Says whether the table is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    fn add(&mut self, row: &IdRow<'_>) {
        let texts = (str::from_utf8(row.id), str::from_utf8(row.spelled), str::from_utf8(row.doi));
        // An id that is not UTF-8 cannot be requested in a path.
        let (Ok(id), Ok(spelled), Ok(doi)) = texts else { return };
        if self.by_id.contains_key(id) {
            return;
        }
        let id: Arc<str> = id.into();
        let doi: Arc<str> =
            self.by_doi.get_key_value(doi).map_or_else(|| doi.into(), |(key, _)| Arc::clone(key));
        let spelled = if *doi == *spelled { Arc::clone(&doi) } else { spelled.into() };
        self.by_doi.entry(Arc::clone(&doi)).or_default().push(Arc::clone(&id));
        // Trailing punctuation may be part of the DOI.
        if let Some(exact) = exact_of(&spelled).filter(|it| **it != *doi) {
            self.by_doi.entry(exact.into()).or_default().push(Arc::clone(&id));
        }
        self.by_id.insert(id, Entry { doi, spelled });
    }
}

/// Reason why reading a table stopped.
enum ReadError {
    TooLong,
    Io(std::io::Error),
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
