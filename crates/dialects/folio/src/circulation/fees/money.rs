//! Amounts of money, counted in hundredths of the tenant's currency.

use std::iter::Sum;
use std::ops::{Add, Neg, Sub};

use serde_json::Value;

/// An amount, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Money(i64);

impl Money {
    pub(crate) const ZERO: Self = Self(0);

    /// Parses a number, or a number written as text; halves are rounded up. `None` for anything else, and for amounts
    /// beyond ten billion.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let number = match value {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        Self::of_number(number)
    }

    /// Converts a number.
    pub(crate) fn of_number(number: f64) -> Option<Self> {
        const MAX: f64 = 1e10;
        if !number.is_finite() || MAX < number.abs() {
            return None;
        }
        // Round the binary number to its nearest decimal first: 1.005 is stored as slightly less.
        let hundredths = (number * 1e6).round() / 1e4;
        #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
        Some(Self(hundredths.round() as i64))
    }

    /// Reads a field of a record; zero if it is not an amount.
    pub(crate) fn at(body: &Value, name: &str) -> Self {
        Self::of(&body[name]).unwrap_or_default()
    }

    pub(crate) fn is_positive(self) -> bool {
        0 < self.0
    }

    /// Multiplies the amount by `n`; saturates at the largest amount.
    pub(crate) fn times(self, n: i64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// Returns an equal share among `n`, rounded down; the remainder goes into the later shares.
    pub(crate) fn share(self, n: usize) -> Self {
        Self(self.0 / i64::try_from(n.max(1)).unwrap_or(i64::MAX))
    }

    /// Returns the amount as a number, the form in which it is stored and sent.
    pub(crate) fn number(self) -> Value {
        #[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53 hundredths")]
        let number = self.0 as f64 / 100.0;
        number.into()
    }

    /// Formats the amount with two decimal places: `90.00`.
    pub(crate) fn text(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        format!("{sign}{}.{:02}", self.0.abs() / 100, self.0.abs() % 100)
    }
}

impl Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Money {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Money {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_are_hundredths() {
        let check = |value: Value, expected: Option<&str>| {
            assert_eq!(Money::of(&value).map(Money::text).as_deref(), expected, "{value}");
        };
        check(json!(30), Some("30.00"));
        check(json!("30"), Some("30.00"));
        check(json!(-0.5), Some("-0.50"));
        check(json!(20.444_444_444_444_444), Some("20.44"));
        check(json!(1.005), Some("1.01"));
        check(json!("literal amount"), None);
        check(json!("NaN"), None);
        check(json!(1e300), None);
        check(json!(null), None);
        assert_eq!(Money(12_345).number(), json!(123.45));
    }
}
