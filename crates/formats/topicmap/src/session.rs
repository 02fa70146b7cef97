//! Shared by readers: the map being read into, the loaded documents, limits, warnings.

use std::collections::HashSet;

use crate::builder::Builder;
use crate::error::{Error, Place, Warning};
use crate::format::Format;
use crate::model::{TopicId, TopicMap};

/// Returns the bytes of another document that one refers to, by its absolute IRI, or says why not. The caller
/// decides what may be read; nothing is loaded without a loader.
pub type Loader<'l> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'l;

/// How a document is read.
pub struct Options<'l> {
    /// Absolute IRI of the document: what its relative references are resolved against.
    pub base: String,
    /// Refuse what a standard does not allow. Lenient reading leaves it out, or reads it as it was probably meant, and
    /// warns.
    pub is_strict: bool,
    /// The source of other documents (`mergeMap`, `#INCLUDE`); without one such references are refused.
    pub loader: Option<&'l mut Loader<'l>>,
    /// Limits.
    pub limits: Limits,
}

/// Limits of reading.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of documents that one may include.
    pub n_documents_max: usize,
    /// Bytes of all documents together.
    pub len_max_bytes: usize,
    /// Nesting of elements, arrays and templates.
    pub depth_max: usize,
    /// Topics, and statements that templates expand to.
    pub n_statements_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { n_documents_max: 256, len_max_bytes: 2 << 30, depth_max: 64, n_statements_max: 50_000_000 }
    }
}

impl<'l> Options<'l> {
    /// Returns options for strict reading of a document that includes no others.
    pub fn new(base: impl Into<String>) -> Options<'l> {
        Options { base: base.into(), is_strict: true, loader: None, limits: Limits::default() }
    }
}

/// The result of reading.
#[derive(Debug)]
pub struct Reading {
    /// The map.
    pub map: TopicMap,
    /// What lenient reading left out or read differently.
    pub warnings: Vec<Warning>,
}

/// Number of warnings that are kept; further ones are dropped.
const WARNINGS_MAX: usize = 1000;

pub(crate) struct Session<'l> {
    pub(crate) builder: Builder,
    pub(crate) is_strict: bool,
    pub(crate) limits: Limits,
    pub(crate) warnings: Vec<Warning>,
    /// A document of XTM 1.0 was read, so that the map is to be converted at its end.
    pub(crate) has_read_xtm_1: bool,
    loader: Option<&'l mut Loader<'l>>,
    /// Documents merged, by IRI: each once.
    merged: HashSet<String>,
    /// Documents that include each other at this moment.
    including: Vec<String>,
    n_documents: usize,
    len_bytes: usize,
    n_statements: usize,
    n_anonymous: u64,
}

impl<'l> Session<'l> {
    pub(crate) fn new(options: Options<'l>) -> Session<'l> {
        Session {
            builder: Builder::new(),
            is_strict: options.is_strict,
            limits: options.limits,
            warnings: Vec::new(),
            has_read_xtm_1: false,
            loader: options.loader,
            merged: HashSet::from([options.base]),
            including: Vec::new(),
            n_documents: 0,
            len_bytes: 0,
            n_statements: 0,
            n_anonymous: 0,
        }
    }

    /// Refuses in strict reading, warns in lenient.
    pub(crate) fn complain(&mut self, place: &Place, text: impl Into<String>) -> Result<(), Error> {
        if self.is_strict {
            return Err(place.fault(text));
        }
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(Warning { place: place.clone(), text: text.into() });
        }
        Ok(())
    }

    /// Returns the bytes of a document to be merged; `None` if it was merged already.
    pub(crate) fn merge(&mut self, iri: &str, place: &Place) -> Result<Option<Vec<u8>>, Error> {
        if !self.merged.insert(iri.to_owned()) {
            return Ok(None);
        }
        self.load(iri, place).map(Some)
    }

    /// Reads a document into the same map, as part of it.
    pub(crate) fn merge_as(
        &mut self,
        format: Format,
        iri: &str,
        themes: &[TopicId],
        place: &Place,
    ) -> Result<(), Error> {
        let Some(bytes) = self.merge(iri, place)? else { return Ok(()) };
        if self.including.len() >= self.limits.depth_max {
            return Err(place.fault("documents merge each other too deeply"));
        }
        self.including.push(iri.to_owned());
        format.read_into(&bytes, iri, themes, self)?;
        self.including.pop();
        Ok(())
    }

    /// Returns the bytes of a document to be included; `None` if it is being included at this moment.
    pub(crate) fn include(&mut self, iri: &str, place: &Place) -> Result<Option<Vec<u8>>, Error> {
        if self.including.iter().any(|it| it == iri) {
            return Ok(None);
        }
        if self.including.len() >= self.limits.depth_max {
            return Err(place.fault("documents include each other too deeply"));
        }
        let bytes = self.load(iri, place)?;
        self.including.push(iri.to_owned());
        Ok(Some(bytes))
    }

    /// Returns whether the document being read is the one given by the caller.
    pub(crate) fn is_outermost(&self) -> bool {
        self.including.is_empty()
    }

    /// Ends what [`Session::include`] began.
    pub(crate) fn included(&mut self) {
        self.including.pop();
    }

    fn load(&mut self, iri: &str, place: &Place) -> Result<Vec<u8>, Error> {
        self.n_documents += 1;
        if self.n_documents > self.limits.n_documents_max {
            return Err(place.fault(format!("more than {} documents", self.limits.n_documents_max)));
        }
        let loader = self.loader.as_mut().ok_or_else(|| {
            place.fault(format!("names another document, {iri}; only what is handed over with it is read"))
        })?;
        let bytes = loader(iri).map_err(|why| place.fault(format!("{iri} cannot be read: {why}")))?;
        self.count_bytes(bytes.len(), place)?;
        Ok(bytes)
    }

    pub(crate) fn count_bytes(&mut self, n_bytes: usize, place: &Place) -> Result<(), Error> {
        self.len_bytes = self.len_bytes.saturating_add(n_bytes);
        if self.len_bytes > self.limits.len_max_bytes {
            return Err(place.fault(format!("more than {} bytes in all", self.limits.len_max_bytes)));
        }
        Ok(())
    }

    pub(crate) fn count_statement(&mut self, place: &Place) -> Result<(), Error> {
        self.n_statements += 1;
        if self.n_statements.max(self.builder.n_topics()) > self.limits.n_statements_max {
            return Err(
                place.fault(format!("expands to more than {} statements", self.limits.n_statements_max))
            );
        }
        Ok(())
    }

    /// Returns the number of the next topic without a name.
    pub(crate) fn next_anonymous(&mut self) -> u64 {
        self.n_anonymous += 1;
        self.n_anonymous
    }

    /// Returns whether the whole scope has a theme that the scope of the name lacks, as that of a variant
    /// must (ISO 13250-2, 5.5).
    pub(crate) fn is_wider(&self, whole: &[TopicId], of_name: &[TopicId]) -> bool {
        let of_name: Vec<TopicId> = of_name.iter().map(|&it| self.builder.find(it)).collect();
        whole.iter().any(|&it| !of_name.contains(&self.builder.find(it)))
    }
}
