//! What Java computes, where clients in different languages must agree on the answer.
//!
//! A message is routed by the `hashCode` of its sharding key, so a producer written in Java and one
//! written here must find the same number for the same key. Java's strings are sequences of UTF-16
//! code units, and its integers wrap; neither holds for Rust's, hence this module.
//!
//! Source: `java.lang.String`, `Long`, `Boolean` and `Double`, methods `hashCode` and `compareTo`,
//! as specified by the Java SE 17 API. All functions are pure and allocate nothing.

#![forbid(unsafe_code)]

use std::cmp::Ordering;

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

/// `String.compareTo`: the difference of the first code units that differ, else of the lengths.
///
/// It is the order of UTF-16, not of UTF-8: U+E000 to U+FFFF come after everything beyond.
///
/// ```
/// use lanekeeper::java::string_compare;
/// assert_eq!(string_compare("Topic2", "Topic10"), 1);
/// assert!(string_compare("\u{e000}", "😀") > 0);
/// ```
#[must_use]
pub fn string_compare(a: &str, b: &str) -> i32 {
    let mut units = a.encode_utf16().zip(b.encode_utf16());
    if let Some((x, y)) = units.find(|(x, y)| x != y) {
        return i32::from(x) - i32::from(y);
    }
    // Java's lengths are ints; of strings longer than that it has none.
    let length = |text: &str| i32::try_from(text.encode_utf16().count()).unwrap_or(i32::MAX);
    length(a).wrapping_sub(length(b))
}

/// The sign of [`string_compare`], without decoding: for sorting.
#[must_use]
pub fn string_order(a: &str, b: &str) -> Ordering {
    // UTF-8 has the order of the characters. UTF-16 differs from it in that the surrogates of
    // what lies beyond U+FFFF are below U+E000, which UTF-8 begins with 0xee: lift those.
    let lifted = |byte: u8| if byte == 0xee || byte == 0xef { byte + 0x10 } else { byte };
    match a.bytes().zip(b.bytes()).find(|(x, y)| x != y) {
        Some((x, y)) => lifted(x).cmp(&lifted(y)),
        None => a.len().cmp(&b.len()),
    }
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

    /// Every pair of characters around each border of the two encodings, alone and after others.
    #[test]
    fn the_quick_order_is_that_of_the_exact_difference() {
        let characters: Vec<char> = [
            0x0, 0x41, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xefff, 0xf000, 0xfffd, 0xffff,
            0x1_0000, 0x1_03ff, 0x1_0400, 0xf_ffff, 0x10_0000, 0x10_ffff,
        ]
        .into_iter()
        .map(|code| char::from_u32(code).unwrap())
        .collect();
        let mut texts = vec![String::new()];
        for &first in &characters {
            texts.push(first.to_string());
            texts.extend(characters.iter().map(|second| format!("{first}{second}")));
        }
        for a in &texts {
            for b in &texts {
                let exact = string_compare(a, b);
                assert_eq!(string_order(a, b), exact.cmp(&0), "{a:?} {b:?}");
                let units: (Vec<u16>, Vec<u16>) =
                    (a.encode_utf16().collect(), b.encode_utf16().collect());
                assert_eq!(units.0.cmp(&units.1), exact.cmp(&0), "{a:?} {b:?}");
            }
        }
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
