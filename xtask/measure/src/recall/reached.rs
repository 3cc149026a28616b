//! Whether a text has a message's words.

use std::collections::BTreeSet;

/// The part of a message's long words that stands for the message.
const PART: f64 = 0.7;

/// Length of a long word, in characters.
const LONG: usize = 4;

/// The words of a text, in lower case.
pub(super) struct Words {
    /// All of them in their order, with a space around each.
    line: String,
    /// The long ones.
    long: BTreeSet<String>,
}

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let text = without_escapes(text).to_lowercase();
        let words = text.split(|c: char| !c.is_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let is_long = |word: &&&str| word.chars().count() >= LONG;
        let long = words.iter().filter(is_long);
        Self {
            long: long.map(|word| (*word).to_owned()).collect(),
            line: format!(" {} ", words.join(" ")),
        }
    }

    /// Whether all words of a message are here, in their order and with none between.
    pub(super) fn has_whole(&self, message: &Self) -> bool {
        self.line.contains(&message.line)
    }

    /// Whether the message is here whole, or at least 70 % of its long words are, wherever.
    pub(super) fn reach(&self, message: &Self) -> bool {
        let here = message.long.intersection(&self.long).count() as f64;
        let all = message.long.len() as f64;
        self.has_whole(message) || (all > 0.0 && here >= PART * all)
    }
}

/// Text with a space for each escape of a quoted line.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(' ');
        match chars.peek() {
            Some('n' | 't' | 'r') => {
                chars.next();
            }
            Some('u') => {
                // At most six digits between braces.
                let mut ahead = chars.clone().skip(1).take(8);
                if ahead.next() == Some('{') && ahead.any(|c| c == '}') {
                    chars.by_ref().find(|c| *c == '}');
                }
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(text: &str, message: &str) -> (bool, bool) {
        let (text, message) = (Words::of(text), Words::of(message));
        (text.has_whole(&message), text.reach(&message))
    }

    #[test]
    fn a_message_is_there_whole_or_by_its_long_words() {
        let said = "The blue harbour opened on Monday";
        assert_eq!(
            reached("… the blue\nharbour, opened on monday!", said),
            (true, true)
        );
        // Three of four long words; two of four.
        assert_eq!(reached("monday: harbour opened", said), (false, true));
        assert_eq!(reached("monday: harbour", said), (false, false));
        assert_eq!(
            reached("their blue harbour opening", "the blue"),
            (false, true)
        );
        // Without long words only the whole counts.
        assert_eq!(reached("so do I", "I do"), (false, false));
        assert_eq!(reached("yes, I do so", "I do"), (true, true));
    }

    #[test]
    fn quoted_lines_are_read_as_what_they_quote() {
        let said = "first \"line\"\nnext\u{200d}one";
        assert!(Words::of(&format!("1. {said:?}")).has_whole(&Words::of(said)));
        assert!(format!("{said:?}").contains("\\u{200d}"), "{said:?}");
    }
}
