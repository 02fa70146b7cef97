//! Metadata of array files: the headers of FITS, and the structure of NetCDF and HDF5 as NcML.
//!
//! The arrays themselves are not read. A file is a [`Source`] of byte ranges, so that only the head of a large file
//! in an object store is transferred; how much of it is read, and how much is returned, is bounded by [`Limits`].
//!
//! ```
//! use pinakes_arrays::{Limits, Source, ncml};
//!
//! // A classic NetCDF file: one dimension, one attribute, no variable.
//! let mut file = b"CDF\x01\0\0\0\0\0\0\0\x0a\0\0\0\x01\0\0\0\x03lat\0\0\0\0\x05".to_vec();
//! file.extend_from_slice(b"\0\0\0\x0c\0\0\0\x01\0\0\0\x05title\0\0\0\0\0\0\x02\0\0\0\x02Hi\0\0\0\0\0\0\0\0\0\0");
//! let described = ncml::describe(&Source::of(file), "sea.nc", &Limits::default())?;
//! assert!(described.xml.contains(r#"<dimension name="lat" length="5"/>"#));
//! assert!(described.xml.contains(r#"<attribute name="title" value="Hi"/>"#));
//! # Ok::<(), pinakes_arrays::ArrayError>(())
//! ```
//!
//! Sources: the FITS standard, version 4.0; the NetCDF file format specifications and NcML 2.2 of Unidata; the Attribute
//! Convention for Data Discovery 1.3 for bounding boxes.

pub mod fits;
pub mod ncml;
mod source;

pub use source::Source;

/// Results of this crate.
pub type Result<T, E = ArrayError> = std::result::Result<T, E>;

/// Why a file could not be described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// It violates the format.
    #[error("byte {offset}: {what}")]
    Damaged {
        /// The position.
        offset: u64,
        /// What was found and what was expected.
        what: String,
    },
    /// The reader of NetCDF and HDF5 refused it.
    #[error("{0}")]
    Refused(String),
    /// It exceeds the limits.
    #[error("{what}: at most {most} are read")]
    TooLarge {
        /// What exceeds them.
        what: &'static str,
        /// The maximum.
        most: u64,
    },
    /// Its bytes cannot be read.
    #[error("{0}")]
    Io(String),
}

/// The limits of a description.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of bytes read from a file (256 MiB).
    pub read_bytes: u64,
    /// Maximum number of ranges read (2,000,000).
    pub reads: u64,
    /// Maximum number of headers of a FITS file (10,000).
    pub headers: usize,
    /// Maximum number of cards of one FITS header (100,000).
    pub cards: usize,
    /// Maximum number of groups of an HDF5 file, counted each time they are linked (20,000).
    pub groups: usize,
    /// Maximum size of the NcML in bytes (16 MiB).
    pub xml_bytes: usize,
    /// Maximum size of one attribute's value in NcML, in bytes; a longer one is left out (64 KiB).
    pub value_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            read_bytes: 256 << 20,
            reads: 2_000_000,
            headers: 10_000,
            cards: 100_000,
            groups: 20_000,
            xml_bytes: 16 << 20,
            value_bytes: 64 << 10,
        }
    }
}
