//! Units as text: `(kg m^2) / s^2`.
//!
//! Source: `formatUnits` of mathjs 15.2. Factors with a positive power are the numerator, the others the denominator;
//! a side with several factors is put in parentheses if there is another side; without a numerator the powers are
//! written negative. Powers are written as JavaScript writes numbers.

/// Powers nearer to one than this are not written.
const POWER_TOLERANCE: f64 = 1e-15;

/// Prints `(name, power)` factors in the order given. Powers of zero are left out.
pub(crate) fn print<'a>(factors: impl Iterator<Item = (&'a str, &'a str, f64)> + Clone) -> String {
    let over: Vec<String> = factors
        .clone()
        .filter(|it| it.2 > 0.0)
        .map(|(prefix, name, power)| side(prefix, name, power))
        .collect();
    let below = factors.filter(|it| it.2 < 0.0);
    if over.is_empty() {
        let alone: Vec<String> =
            below.map(|(prefix, name, power)| format!("{prefix}{name}^{}", number(power))).collect();
        return alone.join(" ");
    }
    let below: Vec<String> = below.map(|(prefix, name, power)| side(prefix, name, -power)).collect();
    if below.is_empty() {
        return over.join(" ");
    }
    format!("{} / {}", grouped(&over), grouped(&below))
}

fn side(prefix: &str, name: &str, power: f64) -> String {
    if POWER_TOLERANCE < (power - 1.0).abs() {
        format!("{prefix}{name}^{}", number(power))
    } else {
        format!("{prefix}{name}")
    }
}

fn grouped(factors: &[String]) -> String {
    match factors {
        [alone] => alone.clone(),
        several => format!("({})", several.join(" ")),
    }
}

/// Formats a finite number as ECMAScript's `Number::toString` does: the shortest digits that read back as the
/// same double, positional from 1e-6 up to 1e21, scientific with a signed exponent beyond.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match exponent {
        -6..21 => format!("{value}"),
        ..-6 => format!("{digits}e{exponent}"),
        _ => format!("{digits}e+{exponent}"),
    }
}
