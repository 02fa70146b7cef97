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
//! Sources: mathjs 15.2 (`type/unit/Unit`); the `SciCat` backend 5.1 for the ångström and for what is done to a quantity
//! on write. The vectors in `tests/data` were computed by mathjs itself.
//!
//! A document has hundreds of quantities and few units, so [`unit()`] remembers what a text means: the second look costs
//! one hash of the text.

mod cache;
mod parse;
mod power;
mod prefix;
mod print;
mod table;

use std::sync::Arc;

use parse::Expression;
use table::{BASE_SYMBOLS, Scale};

/// Longest unit text that is read, in bytes. Longer ones are unknown.
pub const MAX_UNIT_BYTES: usize = 256;

/// Exponents nearer to zero than this are zero.
const EXPONENT_TOLERANCE: f64 = 1e-12;

/// Powers nearer to one than this are one.
const POWER_TOLERANCE: f64 = 1e-15;

/// What a unit text means.
#[derive(Debug)]
pub struct Unit {
    /// A value is multiplied by these one after the other: one product would round differently.
    multipliers: Vec<f64>,
    /// Exponents of the base units, in the order of [`BASE_SYMBOLS`].
    exponents: [f64; 9],
    /// The scale of the first factor.
    scale: Scale,
    /// Whether it is more than one name to the power of one. A derived unit has no zero of its own.
    is_derived: bool,
    /// Whether a number stood before the unit.
    has_number: bool,
    si_text: String,
    text: String,
}

/// Reads a unit text, from memory if it was met before. `None` if it is empty, unknown or beyond [`MAX_UNIT_BYTES`].
pub fn unit(text: &str) -> Option<Arc<Unit>> {
    if MAX_UNIT_BYTES < text.len() {
        return None;
    }
    cache::unit(text)
}

/// `value` in SI base units, and those units as text: `(20.0, "celsius")` gives `(293.15, "K")`.
///
/// `None` for an unknown unit and for one without a dimension, such as `m/m`. The result is infinite where a double
/// cannot hold it.
pub fn to_si(value: f64, unit_text: &str) -> Option<(f64, String)> {
    let unit = unit(unit_text)?;
    let si_text = unit.si_text()?.to_owned();
    Some((unit.value_to_si(value), si_text))
}

/// `value` of unit `from` in unit `to`. `None` if one is unknown, if they measure different things, or if `to` begins
/// with a number.
pub fn convert(value: f64, from: &str, to: &str) -> Option<f64> {
    unit(from)?.convert(value, &*unit(to)?)
}

/// A value in SI base units as a value of unit `to`: `(293.15, "celsius")` gives 20 (within a rounding).
///
/// `None` if `to` is unknown or begins with a number.
pub fn from_si(value_si: f64, to: &str) -> Option<f64> {
    let to = unit(to)?;
    (!to.has_number).then(|| to.divided(value_si + shift(Scale::Absolute, to.own_scale())))
}

impl Unit {
    fn new(expression: &Expression) -> Unit {
        let mut exponents = [0.0; 9];
        for factor in &expression.factors {
            for (sum, exponent) in exponents.iter_mut().zip(factor.base.dimensions) {
                *sum += f64::from(exponent) * factor.power;
            }
        }
        let kept = BASE_SYMBOLS.into_iter().zip(exponents).filter(|it| EXPONENT_TOLERANCE < it.1.abs());
        let factors = expression.factors.iter();
        Unit {
            multipliers: factors
                .clone()
                .map(|it| power::power(it.base.factor * it.prefix_factor, it.power))
                .collect(),
            exponents,
            scale: expression.factors.first().map_or(Scale::Absolute, |it| it.base.scale),
            is_derived: match expression.factors.as_slice() {
                [alone] => POWER_TOLERANCE < (alone.power - 1.0).abs(),
                _ => true,
            },
            has_number: expression.has_number,
            si_text: print::print(kept.map(|(symbol, exponent)| ("", symbol, exponent))),
            text: print::print(factors.map(|it| (&*it.prefix, it.base.name, it.power))),
        }
    }

    /// The SI base units of this one as text, e.g. `(kg m^2) / s^2`. `None` if it has no dimension.
    pub fn si_text(&self) -> Option<&str> {
        (!self.si_text.is_empty()).then_some(&self.si_text)
    }

    /// The unit itself in the one spelling that all its spellings share: `m/s` is `m / s`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether both measure the same: `mm` and `inch` do.
    pub fn is_same_kind(&self, other: &Unit) -> bool {
        self.exponents.iter().zip(other.exponents).all(|(a, b)| (a - b).abs() <= EXPONENT_TOLERANCE)
    }

    /// `value` of this unit in SI base units.
    pub fn value_to_si(&self, value: f64) -> f64 {
        self.multiplied(value) + shift(self.own_scale(), Scale::Absolute)
    }

    /// `value` of this unit in unit `to`. `None` if they measure different things or `to` begins with a number.
    pub fn convert(&self, value: f64, to: &Unit) -> Option<f64> {
        if to.has_number || !self.is_same_kind(to) {
            return None;
        }
        // A target's zero counts even if the target is derived: the original looks at its first factor alone.
        let moved = if self.is_derived { 0.0 } else { shift(self.scale, to.scale) };
        Some(to.divided(self.multiplied(value) + moved))
    }

    fn own_scale(&self) -> Scale {
        if self.is_derived { Scale::Absolute } else { self.scale }
    }

    fn multiplied(&self, value: f64) -> f64 {
        self.multipliers.iter().fold(value, |value, multiplier| value * multiplier)
    }

    fn divided(&self, value: f64) -> f64 {
        self.multipliers.iter().fold(value, |value, multiplier| value / multiplier)
    }
}

/// How many kelvin the zero of `from` lies above that of `to`; the double nearest to the exact difference.
fn shift(from: Scale, to: Scale) -> f64 {
    match (from, to) {
        (Scale::Celsius, Scale::Absolute) => 273.15,
        (Scale::Absolute, Scale::Celsius) => -273.15,
        (Scale::Fahrenheit, Scale::Absolute) => 255.372_222_222_222_23,
        (Scale::Absolute, Scale::Fahrenheit) => -255.372_222_222_222_23,
        (Scale::Celsius, Scale::Fahrenheit) => 17.777_777_777_777_78,
        (Scale::Fahrenheit, Scale::Celsius) => -17.777_777_777_777_78,
        _ => 0.0,
    }
}
