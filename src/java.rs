//! What Java computes, where clients in different languages must agree on the answer.
//!
//! A message is routed by the `hashCode` of its sharding key, so a producer written in Java and one
//! written here must find the same number for the same key. Java's strings are sequences of UTF-16
//! code units, and its integers wrap; neither holds for Rust's, hence this module.
//!
//! Source: `java.lang.String`, `Long`, `Boolean` and `Double`, method `hashCode`, as specified by
//! the Java SE 17 API. All functions are pure and allocate nothing.

#![forbid(unsafe_code)]

/// `String.hashCode`: `h = 31 * h + unit` over the UTF-16 code units, wrapping at 32 bits.
///
/// ```
/// use lanekeeper::java::string_hash;
/// assert_eq!(string_hash("TagA"), 2598919);
/// assert_eq!(string_hash("😀"), 1772899); // two code units, not one character
/// ```
#[must_use]
pub fn string_hash(text: &str) -> i32 {
    utf16_hash(text.encode_utf16())
}

/// [`string_hash`] of a string that is at hand as UTF-16 code units, lone surrogates included.
#[must_use]
pub fn utf16_hash(units: impl IntoIterator<Item = u16>) -> i32 {
    units.into_iter().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// `Long.hashCode`: the two halves, exclusive-or.
///
/// `Integer`, `Short`, `Byte` and `Character` hash to their own value and need no function.
#[must_use]
pub fn long_hash(value: i64) -> i32 {
    let bits = value.cast_unsigned();
    // The cast keeps the low half, as Java's `(int)` does.
    ((bits ^ (bits >> 32)) as u32).cast_signed()
}

/// `Boolean.hashCode`.
#[must_use]
pub fn boolean_hash(value: bool) -> i32 {
    if value { 1231 } else { 1237 }
}

/// `Double.hashCode`: [`long_hash`] of `doubleToLongBits`, which knows a single NaN.
#[must_use]
pub fn double_hash(value: f64) -> i32 {
    const CANONICAL_NAN: u64 = 0x7ff8_0000_0000_0000;
    let bits = if value.is_nan() { CANONICAL_NAN } else { value.to_bits() };
    long_hash(bits.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    // mxsm/rocketmq-rust#5735: the hash must run over UTF-16 units, not bytes or scalars.
    #[test]
    fn strings_hash_by_utf16_units() {
        let cases = [
            ("", 0),
            ("é", 233),
            ("Aa", 2112),
            ("BB", 2112),
            ("TagA", 2_598_919),
            ("订单", 1_129_459),
            ("😀", 1_772_899),
            ("polygenelubricants", i32::MIN),
        ];
        for (text, hash) in cases {
            assert_eq!(string_hash(text), hash, "{text:?}");
        }
    }

    #[test]
    fn a_lone_surrogate_hashes_as_one_unit() {
        assert_eq!(utf16_hash([0xd83d]), 0xd83d);
        assert_eq!(utf16_hash([0xd83d, 0xde00]), string_hash("😀"));
    }

    #[test]
    fn boxed_numbers_hash_as_in_java() {
        assert_eq!(long_hash(0), 0);
        assert_eq!(long_hash(-1), 0);
        assert_eq!(long_hash(i64::MIN), i32::MIN);
        assert_eq!(long_hash(1 << 32), 1);
        assert_eq!((boolean_hash(true), boolean_hash(false)), (1231, 1237));
        assert_eq!(double_hash(1.5), 1_073_217_536);
        assert_eq!(double_hash(-0.0), i32::MIN);
        let odd_nan = f64::from_bits(0xfff8_0000_0000_0001);
        assert_eq!(double_hash(odd_nan), 2_146_959_360);
    }
}
