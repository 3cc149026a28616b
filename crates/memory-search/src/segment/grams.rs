//! Runs of three characters, by which a segment finds phrases.

use sentence_model::fold::fold_char;

/// Number of documents in a group. For each run of characters, a segment stores the groups that contain it, not the
/// documents. Larger groups take fewer bytes, but more messages are read for each message with a phrase.
pub(crate) const GROUP: u32 = 2;

/// A run of three characters as a number, with 21 bits for each character. Numbers have the same order as the texts.
pub(super) type Gram = u64;

/// Character after the end of a text.
const END: char = '\0';

/// Returns a character in the form in which runs contain it: in lower case. The long s becomes `s`, as in regular
/// expressions.
pub(super) fn folded(c: char) -> impl Iterator<Item = char> {
    fold_char(c).map(|c| if c == 'ſ' { 's' } else { c })
}

/// Adds the runs of a text. One run begins at each character, so that every one or two adjacent characters are the
/// beginning of a run.
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

/// Returns the text of a run.
pub(super) fn text_of(gram: Gram) -> String {
    [gram >> 42, gram >> 21, gram]
        .into_iter()
        .filter_map(|bits| char::from_u32((bits & 0x1f_ffff) as u32))
        .collect()
}

/// Returns the runs that every text with this pattern contains, ignoring case. Empty for a pattern of one or two
/// characters.
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

/// Returns a pattern in the form in which runs contain it.
pub(super) fn folded_text(pattern: &str) -> String {
    pattern.chars().flat_map(folded).collect()
}
