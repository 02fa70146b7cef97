//! Topic maps (ISO/IEC 13250): reads XTM, JTM, LTM, CTM, SKOS and the dumps of the Open Directory into one model,
//! and writes XTM 2.1, 2.0 and 1.0, JTM 1.1 and the canonical form CXTM.
//!
//! Bytes in, a [`TopicMap`] out, and back. No files, no network, no threads: a document that another one refers to
//! is requested from a [`Loader`] given by the caller, or refused.
//!
//! ```
//! use pinakes_topicmap::{Format, Options, read, write};
//!
//! let ltm = br#"[oslo : city = "Oslo"]  capital-of(oslo : capital, norway : country)"#;
//! let reading = read(Format::Ltm, ltm, Options::new("file:///cities.ltm"))?;
//! assert_eq!(reading.map.counts().topics, 10);
//!
//! let mut xtm = Vec::new();
//! write(Format::Xtm, &reading.map, "file:///cities.ltm", &mut xtm).unwrap();
//! assert_eq!(read(Format::Xtm, &xtm, Options::new("file:///cities.ltm"))?.map.counts(), reading.map.counts());
//! # Ok::<(), pinakes_topicmap::Error>(())
//! ```
//!
//! # Merging
//!
//! A [`Builder`] merges topics the moment two of them prove to be one: by a shared subject identifier, subject locator
//! or item identifier, or by a subject identifier of one that is the item identifier of the other. At the end it folds
//! duplicate names, variants, occurrences, associations and roles, merges the topics that reify them, and refuses a map
//! in which one identifier or one topic stands for two things.
//!
//! # Strict and lenient
//!
//! Strict reading refuses what the standards do not allow; lenient reading leaves it out or reads it as it was
//! probably meant and reports a [`Warning`]. An [`Error`] names the document, the line and the reason.
//!
//! # Hostile input
//!
//! No document types are read and no entities expanded; nesting, the number of documents, their bytes and the
//! expansion of templates are bounded ([`Limits`]).

mod builder;
mod codecs;
mod ctm;
mod cxtm;
pub mod dmoz;
mod error;
mod finish;
mod format;
pub mod iri;
mod jtm;
mod ltm;
mod ltm_tokens;
mod model;
mod references;
mod session;
mod skos;
mod text;
mod words;
mod xml;
mod xtm;

pub use crate::codecs::{read, write};
pub use builder::{Builder, IdentityKind};
pub use error::{Error, Place, Warning};
pub use finish::Conflict;
pub use format::Format;
pub use model::{Association, Counts, Item, Name, Occurrence, Role, Topic, TopicId, TopicMap, Variant};
pub use session::{Limits, Loader, Options, Reading};
