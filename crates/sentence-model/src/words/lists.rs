//! Word lists of languages, read from data files.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, OnceLock};

use super::language::Language;
use crate::fold::fold_case;

/// The word lists of one language. A missing list is empty.
#[derive(Debug, Default)]
pub struct WordLists {
    /// Stop words, which do not describe the subject of a text, such as `the`.
    pub stop: HashSet<&'static str>,
    /// Words that ask instead of describing, such as `kind`.
    pub asking: HashSet<&'static str>,
    /// Words in the first person, such as `I` and `my`.
    pub first_person: HashSet<&'static str>,
    /// Words in questions that ask for a time, such as `when`.
    pub when: HashSet<&'static str>,
    /// Words that name a time, such as `yesterday`.
    pub time: HashSet<&'static str>,
    /// Maps the name of a month to its number, 1 to 12.
    pub months: HashMap<&'static str, i8>,
    /// Maps irregular and short forms of words to their usual forms.
    forms: HashMap<&'static str, &'static str>,
    /// Maps the stems of irregular and short forms to the stems of their usual forms.
    stems: OnceLock<HashMap<String, Vec<String>>>,
}

impl WordLists {
    /// Returns the lists of a language.
    pub fn of(language: Language) -> &'static WordLists {
        static NONE: LazyLock<WordLists> = LazyLock::new(WordLists::default);
        let [english, .., russian] = &*ALL;
        match language {
            Language::English => english,
            Language::Russian => russian,
            Language::Arabic | Language::Greek => &NONE,
        }
    }

    /// Returns the stop words of all languages that have word lists.
    pub fn stop_words() -> impl Iterator<Item = &'static str> {
        ALL.iter().flat_map(|lists| lists.stop.iter().copied())
    }

    /// Returns the number of a month, 1 to 12, from its case-folded name in any language that has word lists.
    pub fn month(word: &str) -> Option<i8> {
        ALL.iter().find_map(|lists| lists.months.get(word).copied())
    }

    /// Returns the usual form of a case-folded word. Returns the word itself if it has no other form.
    pub fn usual_form<'w>(&self, word: &'w str) -> &'w str
    where
        'static: 'w,
    {
        self.forms.get(word).copied().unwrap_or(word)
    }

    /// Returns each irregular or short form with its usual form.
    pub fn forms(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.forms.iter().map(|(form, usual)| (*form, *usual))
    }

    /// Finds the irregular and short forms with the stem `stem`, and returns the stems of their usual forms. `language`
    /// is the language of these lists.
    pub fn usual_stems(&self, language: Language, stem: &str) -> Vec<String> {
        let stems = self.stems.get_or_init(|| {
            let mut pairs: Vec<_> = self.forms.iter().collect();
            pairs.sort_unstable();
            let mut stems: HashMap<String, Vec<String>> = HashMap::new();
            for (form, usual) in pairs {
                stems
                    .entry(language.stem(form))
                    .or_default()
                    .push(language.stem(usual));
            }
            stems
        });
        stems.get(stem).cloned().unwrap_or_default()
    }

    fn read(text: &'static str) -> Self {
        let mut lists = WordLists::default();
        for (name, words) in text.lines().filter_map(|line| line.split_once(':')) {
            let words = words.split_whitespace();
            match name {
                "stop" => lists.stop = words.collect(),
                "asking" => lists.asking = words.collect(),
                "first-person" => lists.first_person = words.collect(),
                "when" => lists.when = words.collect(),
                "time" => lists.time = words.collect(),
                "months" => lists.months = words.zip(1..).collect(),
                "forms" => lists.forms = words.filter_map(|pair| pair.split_once('=')).collect(),
                _ => {}
            }
        }
        lists
    }
}

/// Returns whether a word is a stop word, which does not describe the subject of a text. Case is ignored.
pub fn is_stop_word(word: &str) -> bool {
    let folded = fold_case(word);
    Language::of_word(&folded)
        .is_some_and(|language| WordLists::of(language).stop.contains(folded.as_str()))
}

/// The word lists of English, German, French, Spanish and Russian.
static ALL: LazyLock<[WordLists; 5]> = LazyLock::new(|| {
    [
        include_str!("lists/english.txt"),
        include_str!("lists/german.txt"),
        include_str!("lists/french.txt"),
        include_str!("lists/spanish.txt"),
        include_str!("lists/russian.txt"),
    ]
    .map(WordLists::read)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let english = WordLists::of(Language::English);
        assert!(english.stop.contains("the") && english.asking.contains("kind"));
        assert_eq!(english.months["december"], 12);
        assert_eq!(english.usual_form("went"), "go");
        assert_eq!(english.usual_form("walk"), "walk");
        assert!(ALL.iter().all(|lists| lists.stop.len() > 50));
        assert!(WordLists::of(Language::Russian).stop.contains("что"));
        assert!(WordLists::of(Language::Greek).stop.is_empty());
    }
}
