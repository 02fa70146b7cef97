//! The prefixes that unit names take: metric (`k`, `kilo`) and binary (`Ki`, `kibi`).
//!
//! Each unit belongs to one [`Family`] that says which spellings it accepts, so that `kmeter` and `kilom` stay
//! unknown. Source: the prefix tables of mathjs 15.2.

/// Which prefixes a unit takes. Every family takes the empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Only the empty prefix.
    None,
    /// Metric symbols: `mm`.
    Short,
    /// Metric names: `millimeter`.
    Long,
    /// Metric symbols and names: `mbar`, `millibar`.
    ShortLong,
    /// Metric symbols of a squared unit: one `mm2` is 1e-6 `m2`.
    Squared,
    /// Metric symbols of a cubed unit: one `mm3` is 1e-9 `m3`.
    Cubic,
    /// `MM` for a million, customary in the trade for BTU.
    Btu,
    /// Upward metric and binary symbols: `kB`, `KiB`.
    BinaryShort,
    /// Upward metric and binary names: `kilobytes`, `kibibytes`.
    BinaryLong,
}

/// Metric prefixes: symbol, name, exponent of ten.
const METRIC: [(&str, &str, i32); 24] = [
    ("da", "deca", 1),
    ("h", "hecto", 2),
    ("k", "kilo", 3),
    ("M", "mega", 6),
    ("G", "giga", 9),
    ("T", "tera", 12),
    ("P", "peta", 15),
    ("E", "exa", 18),
    ("Z", "zetta", 21),
    ("Y", "yotta", 24),
    ("R", "ronna", 27),
    ("Q", "quetta", 30),
    ("d", "deci", -1),
    ("c", "centi", -2),
    ("m", "milli", -3),
    ("u", "micro", -6),
    ("n", "nano", -9),
    ("p", "pico", -12),
    ("f", "femto", -15),
    ("a", "atto", -18),
    ("z", "zepto", -21),
    ("y", "yocto", -24),
    ("r", "ronto", -27),
    ("q", "quecto", -30),
];

/// Exponents of ten of the metric prefixes that information takes: kilo to yotta.
const INFORMATION_METRIC: std::ops::RangeInclusive<i32> = 3..=24;

/// Binary prefixes: symbol, name, exponent of 1024. `exi` is the original's spelling.
const BINARY: [(&str, &str, i32); 8] = [
    ("Ki", "kibi", 1),
    ("Mi", "mebi", 2),
    ("Gi", "gibi", 3),
    ("Ti", "tebi", 4),
    ("Pi", "pebi", 5),
    ("Ei", "exi", 6),
    ("Zi", "zebi", 7),
    ("Yi", "yobi", 8),
];

/// Returns the factor by which `prefix` multiplies a unit of `family`; `None` if that family does not accept
/// it.
pub(crate) fn factor(family: Family, prefix: &str) -> Option<f64> {
    if prefix.is_empty() {
        return Some(1.0);
    }
    match family {
        Family::None => None,
        Family::Short => symbol_exponent(prefix).map(decimal),
        Family::Long => name_exponent(prefix).map(decimal),
        Family::ShortLong => symbol_exponent(prefix).or_else(|| name_exponent(prefix)).map(decimal),
        Family::Squared => symbol_exponent(prefix).map(|n| decimal(2 * n)),
        Family::Cubic => symbol_exponent(prefix).map(|n| decimal(3 * n)),
        Family::Btu => (prefix == "MM").then_some(1e6),
        Family::BinaryShort => upward(symbol_exponent(prefix))
            .or_else(|| BINARY.iter().find(|it| it.0 == prefix).map(|it| 1024f64.powi(it.2))),
        Family::BinaryLong => upward(name_exponent(prefix))
            .or_else(|| BINARY.iter().find(|it| it.1 == prefix).map(|it| 1024f64.powi(it.2))),
    }
}

fn symbol_exponent(prefix: &str) -> Option<i32> {
    METRIC.iter().find(|it| it.0 == prefix).map(|it| it.2)
}

fn name_exponent(prefix: &str) -> Option<i32> {
    METRIC.iter().find(|it| it.1 == prefix).map(|it| it.2)
}

fn upward(exponent: Option<i32>) -> Option<f64> {
    exponent.filter(|n| INFORMATION_METRIC.contains(n)).map(decimal)
}

/// Returns the double nearest to 10^`exponent`. It goes through the text, because multiplying tens rounds
/// more than once.
fn decimal(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}
