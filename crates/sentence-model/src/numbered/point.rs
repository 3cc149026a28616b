//! Full stops that belong to a number.

/// Returns whether the full stop at a byte offset belongs to a number or an abbreviation, as in `am 3. Mai` and `Nr. 5`,
/// and does not end the sentence.
pub fn is_point_of_number(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("");
    let behind = text.get(at + 1..).unwrap_or("");
    let mut words = before.rsplit(' ');
    let word = words.next().unwrap_or("");
    let digits = (1..=2).contains(&word.len()) && word.bytes().all(|c| c.is_ascii_digit());
    let article = [
        "am", "im", "der", "die", "das", "den", "dem", "des", "vom", "zum", "zur", "beim", "bis",
        "ab", "seit", "ins", "jeden",
    ];
    let follows = behind
        .strip_prefix(' ')
        .is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    let is_article = words
        .next()
        .is_some_and(|word| article.contains(&word.to_lowercase().as_str()));
    let is_number = || {
        behind
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit())
    };
    digits && is_article && follows || matches!(word, "Nr" | "nr" | "No") && is_number()
}
