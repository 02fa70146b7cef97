//! Units of measurement as scientific metadata writes them, converted to SI.
//!
//! `SciCat` stores beside every quantity its value in SI base units, so that a search for 1 mm finds 0.001 m. Its unit
//! language is that of mathjs: metric and binary prefixes, `^ * /`, parentheses, a blank for multiplication, and the
//! ångström. This crate speaks the same language and computes the same doubles, to the last bit.
//!
//! ```
//! assert_eq!(pinakes_units::to_si(20.0, "celsius"), Some((293.15, "K".to_owned())));
//! assert_eq!(pinakes_units::convert(1.0, "bar", "mbar"), Some(1000.0));
//! assert_eq!(pinakes_units::to_si(5.0, "counts"), None);
//! ```
//!
//! Sources: mathjs 15.2 (`type/unit/Unit`); the `SciCat` backend 5.1 for the ångström and for the processing of a
//! quantity on write. The vectors in `tests/data` were computed by mathjs itself.
//!
//! A document has hundreds of quantities and few units, so [`unit()`] caches the meaning of a text: the second look-up
//! costs one hash of the text.

mod cache;
mod parse;
mod power;
mod prefix;
mod print;
mod table;
mod unit;

use std::sync::Arc;

use crate::unit::shift;
use table::Scale;

pub use self::unit::Unit;

/// Longest unit text that is read, in bytes. Longer ones are unknown.
pub const MAX_UNIT_BYTES: usize = 256;

/// Parses a unit text, using the cache if it was met before. `None` if it is empty, unknown or beyond
/// [`MAX_UNIT_BYTES`].
pub fn unit(text: &str) -> Option<Arc<Unit>> {
    if MAX_UNIT_BYTES < text.len() {
        return None;
    }
    cache::unit(text)
}

/// Converts `value` to SI base units, and returns those units as text: `(20.0, "celsius")` gives `(293.15,
/// "K")`.
///
/// `None` for an unknown unit and for one without a dimension, such as `m/m`. The result is infinite if a double
/// cannot hold it.
pub fn to_si(value: f64, unit_text: &str) -> Option<(f64, String)> {
    let unit = unit(unit_text)?;
    let si_text = unit.si_text()?.to_owned();
    Some((unit.value_to_si(value), si_text))
}

/// Converts `value` of unit `from` to unit `to`. `None` if one is unknown, if they measure different things, or if
/// `to` begins with a number.
pub fn convert(value: f64, from: &str, to: &str) -> Option<f64> {
    unit(from)?.convert(value, &*unit(to)?)
}

/// Converts a value in SI base units to unit `to`: `(293.15, "celsius")` gives 20 (within a rounding).
///
/// `None` if `to` is unknown or begins with a number.
pub fn from_si(value_si: f64, to: &str) -> Option<f64> {
    let to = unit(to)?;
    (!to.has_number).then(|| to.divided(value_si + shift(Scale::Absolute, to.own_scale())))
}
