//! Files in addition to the records: in a local folder or an S3 bucket, checksummed when written and when read.
//!
//! A record names its files by [`Blob`]s, one short text each; files that no record names belong to nobody. A
//! file is written under a temporary name (in S3 as a multipart upload), gets its random key when it is complete,
//! and becomes visible to others when the record that names it is committed. A file whose record was never
//! committed, or was deleted, is found by [`Blobs::sweep`]. Kinds that own files declare an identifier of the
//! scheme [`SCHEME`] at the path of the text, so that the catalogue itself records in the record's transaction
//! which files are owned.
//!
//! ```
//! use pinakes_blobs::Blobs;
//!
//! let folder = tempfile::tempdir()?;
//! let blobs = Blobs::open(&Default::default(), folder.path())?;
//! let blob = blobs.put_blocking("library", &b"a file"[..])?;
//! assert_eq!(blob.length, 6);
//! let mut text = String::new();
//! std::io::Read::read_to_string(&mut blobs.reader("library", &blob, None)?, &mut text)?;
//! assert_eq!(text, "a file");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blob;
mod blobs;
mod copy;
mod error;
mod folders;
mod reading;
mod settings;
mod sweep;
mod upload;

pub use blob::{Blob, SCHEME};
pub use blobs::Blobs;
pub use error::{BlobError, Result};
pub use reading::{BlobReader, Reading};
pub use settings::{SecretText, Settings};
pub use sweep::Swept;
pub use upload::Upload;
