//! MARC-8, the character coding of MARC records before Unicode, to Unicode and back.
//!
//! A MARC-8 text has two halves: bytes 21-7E hex belong to the set in G0, bytes A1-FE to the set in G1. A text
//! begins with ASCII in G0 and extended Latin (ANSEL) in G1; escape sequences select other sets. Combining marks
//! come before their letter, in Unicode after it. Subfields do not inherit the sets of the subfield before them.
//!
//! Source: MARC 21 Specifications for Record Structure, Character Sets, and Exchange Media, "Character Sets and
//! Encoding Options" (Library of Congress), part 2 (MARC-8) and part 4 (conversion, lossless method).

mod decode;
mod encode;
mod tables;

pub use decode::{Marc8Fault, decode};
pub(crate) use decode::{decode_with, is_plain};
pub use encode::encode;

/// The byte that begins an escape sequence.
const ESCAPE: u8 = 0x1B;
