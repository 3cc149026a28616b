//! The longest stretch of a text without white space.

/// Minimum length of a stretch that is listed, in characters. Shorter stretches are words, which nearly every message
/// contains.
pub(crate) const SHORTEST: u8 = 16;

/// Returns the number of characters in the longest stretch without white space. Returns 255 for longer ones.
pub(super) fn longest_unbroken(text: &str) -> u8 {
    let stretches = text.split_whitespace();
    // A stretch has at least as many bytes as characters.
    let long = stretches.filter(|stretch| stretch.len() >= SHORTEST.into());
    let longest = long.map(|stretch| stretch.chars().count()).max();
    u8::try_from(longest.unwrap_or(0)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_between_white_space_are_counted() {
        assert_eq!(longest_unbroken(""), 0);
        assert_eq!(longest_unbroken("short words alone"), 0);
        assert_eq!(longest_unbroken("a /path/to/some/file.rs b"), 21);
        assert_eq!(longest_unbroken("ein längeres\u{a0}Wort"), 0);
        assert_eq!(longest_unbroken(&"ß".repeat(16)), 16);
        assert_eq!(
            longest_unbroken(&format!("a\u{3000}{}", "語".repeat(40))),
            40
        );
        assert_eq!(longest_unbroken(&"x".repeat(256)), u8::MAX);
    }
}
