//! Mnemonic text, the form in which people read and edit records (`.mrk`, as `MarcEdit` and the Library of
//! Congress's `MARCMaker` write it): one line a field, a blank line after each record.
//!
//! ```text
//! =LDR  00714cam a2200205 a 4500
//! =001  12883376
//! =245  10$aA title /$cAnn Example.
//! ```
//!
//! A backslash stands for a blank in indicators and in fields without subfields. `$` in a text is written
//! `{dollar}`, braces `{lcub}` and `{rcub}`, a backslash in a field without subfields `{bsol}`. Line ends and other
//! control characters, for which the format has no mnemonic, are written `{u000A}`.

mod cut;
mod read;
mod write;

pub(crate) use cut::cut;
pub(crate) use read::parse;
pub use write::write;
