//! CTM, the compact syntax (draft of ISO/IEC 13250-6 of 2010-03-31).
//!
//! A document is parsed as a whole (`parse.rs`), then run (`run.rs`): a template may be used before it is
//! defined.

mod parse;
mod run;
mod syntax;
mod tokens;
mod values;

pub(crate) use run::read;
