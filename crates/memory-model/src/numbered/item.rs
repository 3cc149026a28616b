//! Numbers with the words that belong to them.

use std::ops::Range;

use super::lexicon::LEXICON;
use super::sentence::{CLOCK, CODE, PLAIN};

/// Number of characters of a word by which it is compared.
const STEM: usize = 5;

/// A number with the words that belong to it.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Tokens that belong to the number.
    pub(super) tokens: Range<usize>,
    pub(super) range: Range<usize>,
    pub(super) form: Form,
    /// The number as it is written.
    pub(super) number: String,
    pub(super) is_former: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// The number names by its form: `#17`, `the first draft`.
    Name {
        key: String,
    },
    /// The number has a label, and its place decides: `tier 2`, `port 8080`.
    Label {
        key: String,
    },
    /// A word with digits, such as `worker-3` or `CA12`, whose place decides.
    Code {
        key: String,
        text: String,
    },
    /// A point in time, which may name.
    Date {
        dimension: &'static str,
        amount: String,
    },
    Value {
        dimension: String,
        amount: String,
    },
}

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

pub(super) fn point(dimension: &'static str, amount: String) -> Form {
    Form::Date { dimension, amount }
}

pub(super) fn value(dimension: &str, amount: &str) -> Form {
    let (dimension, amount) = (dimension.to_owned(), amount.to_owned());
    Form::Value { dimension, amount }
}

pub(super) fn clock(hour: u32, minute: u32) -> Form {
    value(CLOCK, &format!("{hour:02}:{minute:02}"))
}

pub(super) fn plain(number: &str) -> Form {
    value(
        PLAIN,
        &amount_of(number).map_or_else(|| number.to_owned(), written),
    )
}

/// Returns the dimension of a number that may be a value.
pub(super) fn dimension(item: &Item) -> Option<&str> {
    match &item.form {
        Form::Name { .. } => None,
        Form::Label { key } => Some(key),
        Form::Code { .. } => Some(CODE),
        Form::Date { dimension, .. } => Some(dimension),
        Form::Value { dimension, .. } => Some(dimension),
    }
}
