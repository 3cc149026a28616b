//! Forms of words and numbers that are equal if their meanings are.

use super::lexicon::LEXICON;

/// Number of characters of a word by which it is compared.
const STEM: usize = 5;

/// Returns the beginning of a word by which it is compared, without the ends `s`, `ed`, `ing` and `e`.
pub(super) fn stem(word: &str) -> String {
    let word = LEXICON.alias.get(word).copied().unwrap_or(word);
    let word = word.strip_suffix("'s").unwrap_or(word);
    let is_long = |bare: &&str| bare.chars().count() > 2;
    let bare = word.strip_suffix('s').filter(|bare| !bare.ends_with('s'));
    let word = bare.filter(is_long).unwrap_or(word);
    let bare = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed"));
    let bare = bare.filter(|bare| bare.chars().count() > 3);
    let mut word = bare
        .or_else(|| word.strip_suffix('e'))
        .filter(is_long)
        .unwrap_or(word);
    let mut ends = word.chars().rev();
    // `Shipping`, but not `selling`.
    if bare.is_some() && ends.next() == ends.next() && !word.ends_with('l') {
        word = word.get(..word.len() - 1).unwrap_or(word);
    }
    word.chars().take(STEM).collect()
}

/// Returns the number that a text writes, without separators of thousands.
pub(super) fn amount_of(text: &str) -> Option<f64> {
    let groups: Vec<&str> = text.split([',', '.']).collect();
    let thousands = groups.len() > 1
        && groups
            .first()
            .is_some_and(|group| (1..=3).contains(&group.len()) && *group != "0")
        && groups.iter().skip(1).all(|group| group.len() == 3);
    match thousands {
        true => groups.concat().parse().ok(),
        false => text.replace(',', ".").parse().ok(),
    }
}

pub(super) fn written(amount: f64) -> String {
    let text = format!("{amount:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
