//! Numbers as text: exact, or a misfit.

use super::Why;

/// Digits alone, with a `-` before them or not, that fit `T`. Leading zeros are fine: the declared type wins.
pub(crate) fn integer<T: TryFrom<i64>>(text: &str) -> Result<T, Why> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return Err(Why::unless_empty(text, Why::NotWhole));
    }
    // Up to 18 digits cannot overflow; the sum is taken negative so that the least i64 has a place too.
    let value = if digits.len() <= 18 {
        let mut value = 0_i64;
        for &byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return Err(Why::NotWhole);
            }
            value = value.wrapping_mul(10).wrapping_sub(i64::from(digit));
        }
        Some(value)
    } else {
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(Why::NotWhole);
        }
        digits.iter().try_fold(0_i64, |value, &byte| value.checked_mul(10)?.checked_sub(i64::from(byte - b'0')))
    };
    let value = if negative { value } else { value.and_then(i64::checked_neg) };
    value.and_then(|value| T::try_from(value).ok()).ok_or(Why::OutOfRange)
}

/// A decimal number, as text, split into its parts.
struct Digits {
    negative: bool,
    /// The digits as one number, without trailing zeros; none: more than 38 of them.
    mantissa: Option<u128>,
    /// The power of ten that `mantissa` is multiplied with.
    exponent: i64,
}

/// Reads `[-]digits[.digits][e[+|-]digits]` with a digit before or after the point.
fn digits(text: &str) -> Result<Digits, Why> {
    let mut bytes = text.as_bytes();
    let negative = matches!(bytes, [b'-', ..]);
    if negative {
        bytes = bytes.get(1..).unwrap_or_default();
    }
    let mut mantissa = Some(0_u128);
    let (mut seen, mut zeros, mut fraction) = (0_u32, 0_u32, None::<i64>);
    let mut exponent = 0_i64;
    let mut rest = bytes.iter();
    while let Some(&byte) = rest.next() {
        match byte {
            b'0'..=b'9' => {
                seen += 1;
                fraction = fraction.map(|places| places + 1);
                if byte == b'0' {
                    // Zeros count only once another digit follows, so that any number of trailing ones is fine.
                    zeros += 1;
                } else {
                    mantissa = match mantissa {
                        Some(0) => Some(u128::from(byte - b'0')),
                        Some(value) => 10_u128
                            .checked_pow(zeros + 1)
                            .and_then(|power| value.checked_mul(power))
                            .and_then(|value| value.checked_add(u128::from(byte - b'0'))),
                        None => None,
                    };
                    zeros = 0;
                }
            }
            b'.' if fraction.is_none() => fraction = Some(0),
            b'e' | b'E' if seen > 0 => {
                exponent = power(rest.as_slice())?;
                break;
            }
            _ => return Err(Why::NotNumber),
        }
    }
    if seen == 0 {
        return Err(Why::unless_empty(text, Why::NotNumber));
    }
    Ok(Digits { negative, mantissa, exponent: exponent + i64::from(zeros) - fraction.unwrap_or(0) })
}

/// The digits after an `e`; beyond a million it only matters that it is far too much.
fn power(text: &[u8]) -> Result<i64, Why> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Why::NotNumber);
    }
    let value = digits.iter().fold(0_i64, |value, byte| (value * 10 + i64::from(byte - b'0')).min(1_000_000));
    Ok(if negative { -value } else { value })
}

/// A number as a decimal's unscaled value: every digit kept, trailing zeros aside.
pub(crate) fn decimal128(text: &str, precision: u8, scale: i8) -> Result<i128, Why> {
    let Digits { negative, mantissa, exponent } = digits(text)?;
    let Some(mantissa) = mantissa else {
        // 39 significant digits fit nowhere; they are too many or too fine by where the last one stands.
        return Err(if exponent < -i64::from(scale) { Why::PastScale } else { Why::TooManyDigits });
    };
    if mantissa == 0 {
        return Ok(0);
    }
    let shift = exponent + i64::from(scale);
    if shift < 0 {
        return Err(Why::PastScale);
    }
    let limit = 10_u128.checked_pow(u32::from(precision)).ok_or(Why::OutOfRange)?;
    let value = u32::try_from(shift)
        .ok()
        .and_then(|shift| 10_u128.checked_pow(shift))
        .and_then(|power| mantissa.checked_mul(power))
        .filter(|value| *value < limit)
        .and_then(|value| i128::try_from(value).ok())
        .ok_or(Why::TooManyDigits)?;
    Ok(if negative { -value } else { value })
}

/// Whether text starts as a number does, which rules out the words that Rust's own reading of floats takes.
fn starts_as_number(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0'..=b'9' | b'.', ..] | [b'-', b'0'..=b'9' | b'.', ..])
}

/// The nearest double to a decimal number, or `NaN`, `Infinity`, `-Infinity`, `Inf`, `-Inf` spelled just so.
/// A number beyond the greatest double is a misfit, not infinity.
pub(crate) fn float64(text: &str) -> Result<f64, Why> {
    if !starts_as_number(text) {
        return match text {
            "NaN" => Ok(f64::NAN),
            "Infinity" | "Inf" => Ok(f64::INFINITY),
            "-Infinity" | "-Inf" => Ok(f64::NEG_INFINITY),
            _ => Err(Why::unless_empty(text, Why::NotNumber)),
        };
    }
    if let Some(value) = short_float64(text) {
        return Ok(value);
    }
    let value: f64 = text.parse().map_err(|_| Why::NotNumber)?;
    if value.is_infinite() { Err(Why::OutOfRange) } else { Ok(value) }
}

/// Reads `[-]digits[.digits]` of at most 15 digits, which most numbers are, faster than Rust's own way: such digits as
/// one number and the power of ten below 16 are both exact doubles, so that their quotient is the nearest double.
#[inline]
fn short_float64(text: &str) -> Option<f64> {
    const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() > 16 {
        return None;
    }
    let (mut mantissa, mut seen, mut point) = (0_i64, 0, None);
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + i64::from(digit);
            seen += 1;
        } else if byte == b'.' && point.is_none() {
            point = Some(seen);
        } else {
            return None;
        }
    }
    if seen == 0 || seen > 15 {
        return None;
    }
    let value = mantissa as f64 / POWERS.get(seen - point.unwrap_or(seen))?;
    Some(if negative { -value } else { value })
}

/// As [`float64`], for floats.
pub(crate) fn float32(text: &str) -> Result<f32, Why> {
    if !starts_as_number(text) {
        return match text {
            "NaN" => Ok(f32::NAN),
            "Infinity" | "Inf" => Ok(f32::INFINITY),
            "-Infinity" | "-Inf" => Ok(f32::NEG_INFINITY),
            _ => Err(Why::unless_empty(text, Why::NotNumber)),
        };
    }
    let value: f32 = text.parse().map_err(|_| Why::NotNumber)?;
    if value.is_infinite() { Err(Why::OutOfRange) } else { Ok(value) }
}
