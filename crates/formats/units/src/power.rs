//! x to the power of y.
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    if exponent == 1.0 { base } else { base.powf(exponent) }
}
