//! OAI-PMH 2.0, the side of the provider: arguments checked, answers written, lists continued.
//!
//! A program gives [`answer()`] the arguments of a request and a [`Repository`], which knows the records. All rules of
//! the protocol are here: which arguments a verb takes, what dates look like, what is refused with which code, how a
//! document, a header and a resumption token are written. How a page of records is found, and in which metadata formats
//! a record is described, is the repository's.
//!
//! Source: <https://www.openarchives.org/OAI/openarchivesprotocol.html>, version 2.0 of 2002, edition of 2015.
//!
//! Three choices that the standard leaves open:
//!
//! - The element `request` has attributes only if there is no error. The standard demands this of `badVerb` and
//!   `badArgument`.
//! - A list that has become empty between two pages ends with an empty token, not with an error: the harvester has
//!   everything, and must not begin again.
//! - A list gives the number of its records, and of those before the page.

mod answer;
mod datestamp;
mod fault;
mod repository;
mod request;
mod token;
mod verb;
mod xml;

pub use answer::{Answer, Site, answer};
pub use datestamp::{Granularity, Range};
pub use fault::{Code, Fault};
pub use repository::{
    Deletions, Format, Header, Identity, Metadata, Page, Record, Repository, Selection, Set,
};
pub use token::TokenForm;
pub use verb::Verb;
pub use xml::escaped;
