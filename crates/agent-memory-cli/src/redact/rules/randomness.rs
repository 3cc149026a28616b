//! Randomness of a text, by its entropy.

use super::placeholders::is_placeholder;

/// Returns the entropy of a text's bytes, in bits for each byte.
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let length = text.len() as f64;
    let shares = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / length);
    shares.map(|share| -share * share.log2()).sum()
}

/// Returns whether a text looks as if it was drawn at random: letters and digits with at least this entropy.
pub(super) fn is_random(text: &str, bits: f64) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
        && text.contains(|c: char| c.is_ascii_alphabetic())
        && !is_placeholder(text)
        && entropy(text) >= bits
}

/// The same for a long text after the beginning of a token, which may have letters alone, of both cases in equal shares.
pub(super) fn is_drawn(text: &str, bits: f64) -> bool {
    let letters = text.chars().filter(char::is_ascii_alphabetic).count();
    let capitals = text.chars().filter(char::is_ascii_uppercase).count();
    let is_mixed = (letters * 3..=letters * 7).contains(&(capitals * 10));
    is_random(text, bits)
        || (text.len() >= 36 && is_mixed && !is_placeholder(text) && entropy(text) >= 4.0)
}

pub(super) fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}
