//! A unit: the factor and zero of its values, and what it measures.

use crate::parse::Expression;
use crate::table::{BASE_SYMBOLS, Scale};
use crate::{power, print};

/// Exponents nearer to zero than this are zero.
pub(crate) const EXPONENT_TOLERANCE: f64 = 1e-12;

/// Powers nearer to one than this are one.
pub(crate) const POWER_TOLERANCE: f64 = 1e-15;

/// A parsed unit text.
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
    pub(crate) has_number: bool,
    si_text: String,
    text: String,
}

impl Unit {
    pub(crate) fn new(expression: &Expression) -> Unit {
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

    /// Returns the SI base units of this one as text, e.g. `(kg m^2) / s^2`. `None` if it has no dimension.
    pub fn si_text(&self) -> Option<&str> {
        (!self.si_text.is_empty()).then_some(&self.si_text)
    }

    /// Returns the unit itself in the one spelling that all its spellings share: `m/s` is `m / s`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether both measure the same thing: `mm` and `inch` do.
    pub fn is_same_kind(&self, other: &Unit) -> bool {
        self.exponents.iter().zip(other.exponents).all(|(a, b)| (a - b).abs() <= EXPONENT_TOLERANCE)
    }

    /// Converts `value` of this unit to SI base units.
    pub fn value_to_si(&self, value: f64) -> f64 {
        self.multiplied(value) + shift(self.own_scale(), Scale::Absolute)
    }

    /// Converts `value` of this unit to unit `to`. `None` if they measure different things or `to` begins with
    /// a number.
    pub fn convert(&self, value: f64, to: &Unit) -> Option<f64> {
        if to.has_number || !self.is_same_kind(to) {
            return None;
        }
        // A target's zero counts even if the target is derived: the original checks only its first factor.
        let moved = if self.is_derived { 0.0 } else { shift(self.scale, to.scale) };
        Some(to.divided(self.multiplied(value) + moved))
    }

    pub(crate) fn own_scale(&self) -> Scale {
        if self.is_derived { Scale::Absolute } else { self.scale }
    }

    fn multiplied(&self, value: f64) -> f64 {
        self.multipliers.iter().fold(value, |value, multiplier| value * multiplier)
    }

    pub(crate) fn divided(&self, value: f64) -> f64 {
        self.multipliers.iter().fold(value, |value, multiplier| value / multiplier)
    }
}

/// Returns how many kelvin the zero of `from` is above that of `to`; the double nearest to the exact
/// difference.
pub(crate) fn shift(from: Scale, to: Scale) -> f64 {
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
