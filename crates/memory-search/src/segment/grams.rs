//! Runs of three characters.

use crate::fold::fold_char;

/// Number of messages in a group. A segment stores which groups have a run of characters, and not which of their
/// messages. Larger groups take fewer bytes, but more messages are read for each one that has a phrase.
pub(crate) const GROUP: u32 = 2;

/// Three characters, 21 bits each, in the order of their text.
pub(super) type Gram = u64;

/// Marks the end of a text.
const END: char = '\0';

/// A character as runs have it. The long s is an s, as in regular expressions.
pub(super) fn folded(c: char) -> impl Iterator<Item = char> {
    fold_char(c).map(|c| if c == 'ſ' { 's' } else { c })
}

/// Adds the runs of a text: one begins at each character, so that each one and each two characters of a
/// text begin one.
pub(super) fn add_grams(text: &str, grams: &mut Vec<Gram>) {
    let chars = text.chars().flat_map(folded).chain([END, END]);
    let (mut gram, mut seen) = (0_u64, 0_usize);
    for c in chars {
        gram = ((gram << 21) | u64::from(u32::from(c))) & 0x7fff_ffff_ffff_ffff;
        seen += 1;
        if seen >= 3 {
            grams.push(gram);
        }
    }
}

/// The text of a run.
pub(super) fn text_of(gram: Gram) -> String {
    [gram >> 42, gram >> 21, gram]
        .into_iter()
        .filter_map(|bits| char::from_u32((bits & 0x1f_ffff) as u32))
        .collect()
}

/// The runs that each text with this pattern has, in any case. Empty for a pattern of one or two characters.
pub(super) fn grams_of(pattern: &str) -> Vec<String> {
    let chars: Vec<char> = pattern.chars().flat_map(folded).collect();
    let mut grams: Vec<String> = chars
        .windows(3)
        .map(|three| three.iter().collect())
        .collect();
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// A pattern as the beginnings of runs have it.
pub(super) fn folded_text(pattern: &str) -> String {
    pattern.chars().flat_map(folded).collect()
}
