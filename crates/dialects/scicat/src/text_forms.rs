//! Formats that a text field can require: ISO 8601 dates, e-mail addresses, URLs.
//!
//! Each accepts exactly what validator.js 13.15 accepts with its default options, as clients were written
//! against that: an ISO date may be a year, a week or an ordinal date, and need not exist (`2020-02-31`).

mod email;
mod iso_date;
mod url;

pub use email::is_email;
pub use iso_date::is_iso_date;
pub use url::{is_url, is_url_of_any_protocol};
