//! Numeric literals.

use crate::Operand;

/// The value of an integer literal: decimal, `0x`, `0b` or octal, with an optional `U`.
pub(crate) fn integer(text: &str) -> Option<u64> {
    let text = text.strip_suffix(['U', 'u']).unwrap_or(text);
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok();
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        radix(digits, 16)
    } else if let Some(digits) = text.strip_prefix("0b").or(text.strip_prefix("0B")) {
        radix(digits, 2)
    } else if text.len() > 1 && text.starts_with('0') {
        radix(&text[1..], 8)
    } else {
        text.parse().ok()
    }
}

/// The operand that a literal is: an integer, `0f` or `0d` bits, or a decimal fraction (an f64).
pub(crate) fn operand(text: &str, negative: bool) -> Option<Operand> {
    let bits = |prefix: [&str; 2]| prefix.iter().find_map(|p| text.strip_prefix(p));
    if let Some(digits) = bits(["0f", "0F"]).filter(|digits| digits.len() == 8) {
        let value = u32::from_str_radix(digits, 16).ok()?;
        return Some(Operand::F32(value ^ (u32::from(negative) << 31)));
    }
    if let Some(digits) = bits(["0d", "0D"]).filter(|digits| digits.len() == 16) {
        let value = u64::from_str_radix(digits, 16).ok()?;
        return Some(Operand::F64(value ^ (u64::from(negative) << 63)));
    }
    if text.contains('.') {
        let value: f64 = text.parse().ok()?;
        return Some(Operand::F64(
            if negative { -value } else { value }.to_bits(),
        ));
    }
    let value = integer(text)?;
    Some(Operand::Integer(if negative {
        value.wrapping_neg()
    } else {
        value
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_four_radices() {
        assert_eq!(integer("42"), Some(42));
        assert_eq!(integer("0"), Some(0));
        assert_eq!(integer("0xffU"), Some(255));
        assert_eq!(integer("0b101"), Some(5));
        assert_eq!(integer("017"), Some(15));
        assert_eq!(integer("18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer("18446744073709551616"), None);
        assert_eq!(integer("08"), None);
    }

    #[test]
    fn float_bits_keep_their_width_and_sign() {
        assert_eq!(
            operand("0f3F800000", false),
            Some(Operand::F32(0x3f80_0000))
        );
        assert_eq!(operand("0f3F800000", true), Some(Operand::F32(0xbf80_0000)));
        assert_eq!(
            operand("0dBFF0000000000000", false),
            Some(Operand::F64((-1f64).to_bits()))
        );
        assert_eq!(
            operand("1.5", true),
            Some(Operand::F64((-1.5f64).to_bits()))
        );
        assert_eq!(operand("0f3F80", false), None);
        assert_eq!(
            operand("5", true),
            Some(Operand::Integer(5u64.wrapping_neg()))
        );
    }
}
