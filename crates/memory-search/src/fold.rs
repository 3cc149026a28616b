//! Case folding.

/// Removes differences of case, so that texts that differ in case alone become equal. It works
/// character by character; a final sigma becomes a sigma.
pub fn fold_case(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.chars().flat_map(fold_char).collect()
    }
}

/// The characters that [`fold_case`] makes of a character.
pub(crate) fn fold_char(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c })
}
