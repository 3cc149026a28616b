//! The documents of a ranking: the texts of a message or a summary, and properties of these texts.

use std::borrow::Cow;

use memory_model::{LogEntry, Part, ResultContent, Role, Summary, Timestamp, decoded_strings};

use crate::calls::CallNames;
use sentence_model::fold::{composed, fold_case};
use sentence_model::words::{Language, Tokenizer, WordLists, is_stop_word, pieces, visit_words};

/// Maximum length of the text of a message that is embedded, in characters. These are about 2,000 tokens, which
/// embedding models accept.
const EMBEDDED_CHARS: usize = 8_000;

/// Maximum number of words without stop words at the beginning of a document that the ranking keeps in order. Words of
/// the best documents are added to a question, and the beginning of a very long document names its subject.
pub(super) const MOST_TELLING_WORDS: usize = 1 << 13;

/// The texts of a message or of a summary.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document<'a> {
    /// Name of the message's author. `None` if the message has none, and for a summary.
    pub name: Option<&'a str>,
    /// Role of the message's author. `None` for a summary.
    pub role: Option<Role>,
    /// Time at which the message was written, or at which the summary was made.
    pub created_at: Timestamp,
    /// The readable texts of the message or summary: texts, reasoning, names of tools, arguments and tool results.
    pub texts: Vec<Cow<'a, str>>,
}

impl<'a> Document<'a> {
    /// Returns the document of a log entry.
    pub(crate) fn of_entry(entry: &'a LogEntry) -> Self {
        Self::of_parts(entry, entry.message.parts.iter())
    }

    /// Returns the document of a log entry without echoes (calls and results of memory tools). `None` if the entry has
    /// no other texts. `calls` contains the tool calls before the entry.
    pub(crate) fn without_echoes(entry: &'a LogEntry, calls: &CallNames) -> Option<Self> {
        if !calls.has_echoes(entry) {
            return Some(Self::of_entry(entry));
        }
        let parts = entry.message.parts.iter();
        let said = parts.filter(|part| !calls.is_echo(entry, part));
        (!calls.is_all_echo(entry)).then(|| Self::of_parts(entry, said))
    }

    fn of_parts(entry: &'a LogEntry, parts: impl Iterator<Item = &'a Part>) -> Self {
        let mut texts = Vec::new();
        parts.for_each(|part| collect(part, &mut texts));
        Self {
            name: entry.message.name.as_deref(),
            role: Some(entry.message.role),
            created_at: entry.message.created_at,
            texts,
        }
    }

    /// Returns the document of a summary.
    pub(crate) fn of_summary(summary: &'a Summary) -> Self {
        let mut texts = vec![Cow::Borrowed(summary.text())];
        let messages = summary.messages.as_ref();
        texts.extend(messages.map(|messages| Cow::Owned(messages.decoded_strings())));
        Self {
            name: None,
            role: None,
            created_at: summary.created_at,
            texts,
        }
    }

    /// Returns the text that is embedded: the first 8,000 characters of all texts.
    pub(crate) fn text_to_embed(&self) -> String {
        let mut joined = String::new();
        let mut left = EMBEDDED_CHARS;
        for text in &self.texts {
            if left == 0 {
                break;
            }
            if !joined.is_empty() {
                joined.push('\n');
            }
            let end = text
                .char_indices()
                .nth(left)
                .map_or(text.len(), |(at, _)| at);
            let part = text.get(..end).unwrap_or_default();
            left -= part.chars().count();
            joined.push_str(part);
        }
        joined
    }

    /// Returns the texts in composed Unicode form, in which their words are read.
    pub(crate) fn composed_texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.texts.iter().map(|text| composed(text))
    }

    /// Returns the words of the document without stop words, in order. At most the first 8,192 words are returned.
    pub(crate) fn telling_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for text in self.composed_texts() {
            for (_, piece) in pieces(&text) {
                if words.len() >= MOST_TELLING_WORDS {
                    break;
                }
                Tokenizer::RANKING.visit_text(piece, &mut |range, term| {
                    if !is_stop_word(piece.get(range).unwrap_or_default()) {
                        words.push(term);
                    }
                });
            }
        }
        words.truncate(MOST_TELLING_WORDS);
        words
    }

    /// Returns the share of the text that consists of questions, from 0 to 1.
    pub(crate) fn question_share(&self) -> f64 {
        let (mut asked, mut all) = (0, 0);
        for sentence in self.texts.iter().flat_map(|text| sentences(text)) {
            all += sentence.len();
            if sentence.ends_with(is_question_mark) {
                asked += sentence.len();
            }
        }
        asked as f64 / all.max(1) as f64
    }

    /// Returns whether the text contains a question mark.
    pub(crate) fn asks(&self) -> bool {
        self.texts
            .iter()
            .any(|text| text.contains(is_question_mark))
    }

    /// Returns whether the text is in the first person, and whether it names a time.
    pub(crate) fn traits(&self) -> (bool, bool) {
        let (mut first_person, mut names_time) = (false, false);
        for text in self.composed_texts() {
            visit_words(&text, &mut |word| {
                let word = fold_case(text.get(word.range).unwrap_or_default());
                if let Some(language) = Language::of_word(&word) {
                    let lists = WordLists::of(language);
                    first_person |= lists.first_person.contains(word.as_str());
                    names_time |= lists.time.contains(word.as_str());
                } else {
                    names_time |= is_year(&word);
                }
            });
        }
        (first_person, names_time)
    }
}

/// Constructors for tests.
#[cfg(test)]
impl<'a> Document<'a> {
    /// Creates a document with one text.
    pub(crate) fn new(text: impl Into<Cow<'a, str>>, created_at: Timestamp) -> Self {
        Self {
            name: None,
            role: None,
            created_at,
            texts: vec![text.into()],
        }
    }

    /// Sets the name of the participant.
    #[must_use]
    pub(crate) fn with_name(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }

    /// Sets the role.
    #[must_use]
    pub(crate) fn with_role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }
}

/// Adds the texts of a part. The texts of arguments are their decoded strings.
fn collect<'a>(part: &'a Part, texts: &mut Vec<Cow<'a, str>>) {
    match part {
        Part::ToolCall {
            name, arguments, ..
        } => {
            texts.push(Cow::Borrowed(name));
            texts.push(Cow::Owned(decoded_strings(arguments.as_str())));
        }
        Part::Unknown { raw } => texts.push(Cow::Owned(decoded_strings(raw.as_str()))),
        Part::ToolResult {
            content: ResultContent::Parts(parts),
            ..
        } => parts.iter().for_each(|part| collect(part, texts)),
        other => other.visit_texts(&mut |text| texts.push(text)),
    }
}

/// Returns whether a word is a year from 1900 to 2099.
pub(super) fn is_year(word: &str) -> bool {
    word.len() == 4 && matches!(word.parse(), Ok(1900..=2099))
}

fn is_question_mark(c: char) -> bool {
    matches!(c, '?' | '？' | '؟')
}

/// Returns the sentences of a text, each with the mark that ends it.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| matches!(c, '.' | '!' | '?' | '。' | '！' | '？' | '؟' | '\n');
    text.split_inclusive(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_from_statements() {
        let share = |text: &str| Document::new(text, Timestamp(0)).question_share();
        assert_eq!(share("Why? How?"), 1.0);
        assert_eq!(share("I ran. Why"), 0.0);
        assert_eq!(share("Ran. Why?"), 5.0 / 9.0);
        assert_eq!(share(""), 0.0);
        assert!(Document::new("猫ですか？", Timestamp(0)).asks());
    }

    #[test]
    fn a_long_text_is_embedded_in_part() {
        let mut document = Document::new("one", Timestamp(0));
        document.texts.push("ä".repeat(9_000).into());
        document.texts.push("never".into());
        let text = document.text_to_embed();
        assert_eq!(text.chars().count(), EMBEDDED_CHARS + 1);
        assert!(text.starts_with("one\nä") && !text.contains("never"));
    }

    #[test]
    fn persons_and_times_are_seen() {
        let traits = |text: &str| Document::new(text, Timestamp(0)).traits();
        assert_eq!(traits("I went last week"), (true, true));
        assert_eq!(traits("they met in 2019"), (false, true));
        assert_eq!(traits("they met in 20199"), (false, false));
    }
}
