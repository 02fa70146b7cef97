//! Powers of a unit's factor, as V8 computes `Math.pow`.
//!
//! SI values must be the doubles that mathjs computes in Node, and its `Math.pow` differs in the last bit from the C
//! library's in one of ten powers. V8 uses FDLIBM's algorithm, `2^(y log2 x)` with both steps in double-double
//! arithmetic, with a slip of its own in the last division, which is kept here on purpose. Only positive, finite
//! bases and finite exponents occur.
//!
//! Sources: FDLIBM 5.3, `e_pow.c` (algorithm and constants); V8 12.4, `base/ieee754.cc` (the slip), against which
//! `tests/data/powers.txt` was computed.

// Polynomial for (3/2)(log(x) - 2s - 2/3 s^3), s = (x-1)/(x+1).
const L: [f64; 6] = [
    f64::from_bits(0x3FE3_3333_3333_3303),
    f64::from_bits(0x3FDB_6DB6_DB6F_ABFF),
    f64::from_bits(0x3FD5_5555_518F_264D),
    f64::from_bits(0x3FD1_7460_A91D_4101),
    f64::from_bits(0x3FCD_864A_93C9_DB65),
    f64::from_bits(0x3FCA_7E28_4A45_4EEF),
];
// Polynomial for x(1 - x (e^x + 1) / (e^x - 1)).
const P: [f64; 5] = [
    f64::from_bits(0x3FC5_5555_5555_553E),
    f64::from_bits(0xBF66_C16C_16BE_BD93),
    f64::from_bits(0x3F11_566A_AF25_DE2C),
    f64::from_bits(0xBEBB_BD41_C5D2_6BF1),
    f64::from_bits(0x3E66_3769_72BE_A4D0),
];
// log(2), and the same as a sum of a short and a small number.
const LN2: f64 = f64::from_bits(0x3FE6_2E42_FEFA_39EF);
const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E43_0000_0000);
const LN2_LOW: f64 = f64::from_bits(0xBE20_5C61_0CA8_6C39);
// 2 / (3 log(2)), likewise.
const CP: f64 = f64::from_bits(0x3FEE_C709_DC3A_03FD);
const CP_HIGH: f64 = f64::from_bits(0x3FEE_C709_E000_0000);
const CP_LOW: f64 = f64::from_bits(0xBE3E_2FE0_145B_01F5);
// log2(1.5), likewise.
const LOG2_1_5_HIGH: f64 = f64::from_bits(0x3FE2_B803_4000_0000);
const LOG2_1_5_LOW: f64 = f64::from_bits(0x3E4C_FDEB_43CF_D006);

/// 2^53 brings the smallest doubles into the normal range.
const TWO_53: f64 = 9_007_199_254_740_992.0;

/// Beyond this exponent every base but one over- or underflows.
const MAX_EXPONENT: f64 = 2_147_483_648.0;

/// A sum of two doubles of which the second is small beside the first.
#[derive(Clone, Copy)]
struct Pair {
    high: f64,
    low: f64,
}

/// `base` to the power of `exponent`; `base` is positive and finite, `exponent` finite.
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    let is_plain = base == 1.0 || exponent == 0.0 || MAX_EXPONENT < exponent.abs();
    if is_plain {
        return base.powf(exponent);
    }
    if exponent == 1.0 {
        base
    } else if exponent == -1.0 {
        1.0 / base
    } else if exponent == 2.0 {
        base * base
    } else if exponent == 0.5 {
        base.sqrt()
    } else {
        exp2(times(exponent, log2(base)))
    }
}

/// Returns the binary logarithm of a positive number.
fn log2(base: f64) -> Pair {
    let (scaled, exponent_shift) =
        if base < f64::MIN_POSITIVE { (base * TWO_53, -53.0) } else { (base, 0.0) };
    let bits = scaled.to_bits();
    let fraction = (bits >> 32) & 0x000f_ffff;
    let mut exponent = exponent_shift + f64::from(i16_of(bits >> 52)) - 1023.0;
    // The mantissa is taken relative to 1, 1.5 or 2, whichever is near.
    let (near, log_near) = if fraction <= 0x0003_988e {
        (1.0, Pair { high: 0.0, low: 0.0 })
    } else if fraction < 0x000b_b67a {
        (1.5, Pair { high: LOG2_1_5_HIGH, low: LOG2_1_5_LOW })
    } else {
        exponent += 1.0;
        (1.0, Pair { high: 0.0, low: 0.0 })
    };
    let biased = if 0x000b_b67a <= fraction { 0x3fe } else { 0x3ff };
    let mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | biased << 52);
    let series = log_series(mantissa, near);
    let z_high = CP_HIGH * series.high;
    let z_low = CP_LOW * series.high + series.low * CP + log_near.low;
    let high = short(((z_high + z_low) + log_near.high) + exponent);
    Pair { high, low: z_low - (((high - exponent) - log_near.high) - z_high) }
}

/// 3/2 of log(`mantissa` / `near`).
fn log_series(mantissa: f64, near: f64) -> Pair {
    let numerator = mantissa - near;
    let inverse = 1.0 / (mantissa + near);
    let s = numerator * inverse;
    let s_high = short(s);
    let sum_high = sum_high_word(mantissa, near);
    let sum_low = mantissa - (sum_high - near);
    let s_low = inverse * ((numerator - s_high * sum_high) - s_high * sum_low);
    let s2 = s * s;
    let tail = s2 * s2 * (L[0] + s2 * (L[1] + s2 * (L[2] + s2 * (L[3] + s2 * (L[4] + s2 * L[5])))))
        + s_low * (s_high + s);
    let s2 = s_high * s_high;
    let t_high = short(3.0 + s2 + tail);
    let t_low = tail - ((t_high - 3.0) - s2);
    let u = s_high * t_high;
    let v = s_low * t_high + t_low * s;
    let high = short(u + v);
    Pair { high, low: v - (high - u) }
}

/// Returns the upper half of `mantissa + near`, rounded the way that FDLIBM assembles it from bits.
fn sum_high_word(mantissa: f64, near: f64) -> f64 {
    let word = (mantissa.to_bits() >> 32) & 0xffff_ffff;
    let quarter = if near == 1.0 { 0 } else { 1 << 18 };
    f64::from_bits((((word >> 1) | 0x2000_0000) + 0x0008_0000 + quarter) << 32)
}

/// Returns the product of a number and a pair.
fn times(factor: f64, pair: Pair) -> Pair {
    let factor_high = short(factor);
    Pair { high: factor_high * pair.high, low: (factor - factor_high) * pair.high + factor * pair.low }
}

/// 2 to the power of a pair.
fn exp2(exponent: Pair) -> f64 {
    let sum = exponent.low + exponent.high;
    if 1024.0 <= sum {
        return f64::INFINITY;
    }
    if sum < -1075.0 {
        return 0.0;
    }
    let whole = if 0.5 < sum.abs() { (sum.abs() + 0.5).floor().copysign(sum) } else { 0.0 };
    let high = exponent.high - whole;
    let t = short(exponent.low + high);
    let u = t * LN2_HIGH;
    let v = (exponent.low - (t - high)) * LN2 + t * LN2_LOW;
    let z = u + v;
    let w = v - (z - u);
    let z2 = z * z;
    let t1 = z - z2 * (P[0] + z2 * (P[1] + z2 * (P[2] + z2 * (P[3] + z2 * P[4]))));
    // FDLIBM has (z t1) / (t1 - 2) - (w + z w). V8 put the correction into the divisor.
    let r = (z * t1) / ((t1 - 2.0) - (w + z * w));
    scaled_by_power_of_two(1.0 - (r - z), whole)
}

/// `value * 2^exponent` with one rounding, also for results below the normal range.
fn scaled_by_power_of_two(value: f64, exponent: f64) -> f64 {
    let power = |exponent: f64| 2f64.powf(exponent);
    if exponent < -1000.0 {
        value * power(exponent + 200.0) * power(-200.0)
    } else if 1000.0 < exponent {
        value * power(exponent - 200.0) * power(200.0)
    } else {
        value * power(exponent)
    }
}

/// Returns the upper 32 bits of a double: short enough that products of two are exact.
fn short(value: f64) -> f64 {
    f64::from_bits(value.to_bits() & 0xffff_ffff_0000_0000)
}

/// Returns the biased exponent of a positive double.
fn i16_of(biased: u64) -> i16 {
    i16::try_from(biased).unwrap_or(i16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line of `tests/data/powers.txt` is base, exponent and `Math.pow` of them, as the bits of doubles.
    #[test]
    fn powers_are_those_of_v8() {
        let mut n_cases = 0;
        for line in include_str!("../tests/data/powers.txt").lines().filter(|it| !it.starts_with('#')) {
            let bits: Vec<u64> = line.split(' ').map(|it| u64::from_str_radix(it, 16).unwrap()).collect();
            let (base, exponent) = (f64::from_bits(bits[0]), f64::from_bits(bits[1]));
            let found = power(base, exponent);
            assert_eq!(found.to_bits(), bits[2], "{base:e} ^ {exponent} is {found:e}");
            n_cases += 1;
        }
        assert!(3000 < n_cases, "only {n_cases} powers");
    }
}
