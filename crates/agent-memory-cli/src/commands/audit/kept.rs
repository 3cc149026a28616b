//! Whether a text has the words of an item.

use std::collections::{BTreeSet, HashMap};

use agent_memory::transcripts::{CalledName, NamePatterns};

/// Number of letters of a word that count, so that `push` and `pushes` differ but `commit` and `commits` do not.
const STEM: usize = 5;
/// Number of lines in a row that may have the words of an item of one line.
const BESIDE: usize = 2;
/// Number of characters at the beginning of a request that are looked for. The rest is mostly pasted.
const BEGINNING: usize = 300;
/// Words that say nothing about a sentence.
const COMMON: [&str; 22] = [
    "the", "and", "for", "you", "that", "this", "with", "from", "are", "was", "were", "but", "can",
    "will", "have", "has", "its", "into", "all", "any", "out", "now",
];

/// First character of the scripts without spaces between words.
pub(super) const WIDE: char = '\u{2e80}';

/// A text in which items are looked for.
pub(super) struct Text {
    /// The text with single spaces, in lower case.
    flat: String,
    text: String,
    /// The text without lists of names.
    prose: String,
    /// Numbers of the lines with each word.
    lines: HashMap<String, Vec<usize>>,
}

impl Text {
    pub(super) fn new(text: String, patterns: &NamePatterns) -> Self {
        let mut lines: HashMap<String, Vec<usize>> = HashMap::new();
        for (n, line) in text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .enumerate()
        {
            for word in words(line) {
                lines.entry(word).or_default().push(n);
            }
        }
        Self {
            flat: flat(&text),
            prose: patterns.without_lists(&text).0,
            lines,
            text,
        }
    }

    /// Returns whether the text has a name to the letter.
    pub(super) fn names(&self, name: &CalledName) -> bool {
        name.is_in(&self.text, &self.prose)
    }

    /// Returns whether the text has a file's name, not as a part of a longer name.
    pub(super) fn has_file(&self, name: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        self.text.match_indices(name).any(|(at, _)| {
            let before = self
                .text
                .get(..at)
                .and_then(|text| text.chars().next_back());
            let after = self
                .text
                .get(at + name.len()..)
                .and_then(|text| text.chars().next());
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    }

    /// Returns whether the text has a request: half of the lines at its beginning that have three words.
    pub(super) fn requests(&self, request: &str) -> bool {
        let beginning = request
            .char_indices()
            .nth(BEGINNING)
            .map_or(request.len(), |(at, _)| at);
        let lines = request.get(..beginning).unwrap_or(request).lines();
        let lines: Vec<&str> = lines.filter(|line| words(line).len() > 2).collect();
        match lines.len() {
            0 => self.says(request),
            all => lines.into_iter().filter(|line| self.says(line)).count() * 2 >= all,
        }
    }

    /// Returns whether the text has the words of an item: word for word, or all of its numbers and two thirds of its
    /// other words within a few lines.
    pub(super) fn says(&self, item: &str) -> bool {
        let whole = flat(item);
        if whole.is_empty() || self.flat.contains(&whole) {
            return true;
        }
        let (numbers, others): (Vec<String>, Vec<String>) =
            words(item).into_iter().partition(|word| is_number(word));
        let rows = item.lines().filter(|line| !line.trim().is_empty()).count() + BESIDE;
        let none = Vec::new();
        let places = |word: &String| self.lines.get(word).unwrap_or(&none);
        let is_near = |word: &String, first: usize| {
            let places = places(word);
            let from = places.partition_point(|line| *line < first);
            places.get(from).is_some_and(|line| *line < first + rows)
        };
        if others.is_empty() {
            return false;
        }
        let starts: BTreeSet<usize> = others.iter().flat_map(places).copied().collect();
        starts.into_iter().any(|first| {
            let near = others.iter().filter(|word| is_near(word, first)).count();
            near * 3 >= others.len() * 2 && numbers.iter().all(|word| is_near(word, first))
        })
    }
}

fn flat(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Returns the different words of a text in lower case, each cut to its first letters; a number is never cut. Of scripts
/// without spaces each pair of characters is a word.
fn words(text: &str) -> BTreeSet<String> {
    let text = text.to_lowercase();
    let mut out = BTreeSet::new();
    let is_inner = |c: char| c.is_alphanumeric() || c == '-';
    for word in text.split(|c: char| !is_inner(c)) {
        // Ids and dates are one word.
        let parts: Vec<&str> = match word.contains(|c: char| c.is_ascii_digit()) {
            true => vec![word.trim_matches('-')],
            false => word.split('-').collect(),
        };
        out.extend(parts.into_iter().flat_map(stems));
    }
    out
}

fn stems(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    if letters.iter().any(|c| *c >= WIDE) {
        letters
            .windows(2)
            .map(|pair| pair.iter().collect())
            .collect()
    } else if is_number(word) {
        Vec::from_iter((letters.len() > 1).then(|| word.to_owned()))
    } else if letters.len() > 2 && !COMMON.contains(&word) {
        vec![letters.into_iter().take(STEM).collect()]
    } else {
        Vec::new()
    }
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        Text::new(text.to_owned(), &NamePatterns::new().unwrap())
    }

    #[test]
    fn an_item_is_kept_by_its_words_and_numbers() {
        let kept =
            text("The user wants:\n- commits only after asking,\n  lines of 120 columns at most");
        assert!(kept.says("Never commit without asking, only after asking."));
        assert!(kept.says("At most 120 columns in lines."));
        assert!(!kept.says("At most 100 columns in lines."));
        assert!(!kept.says("Never push to the main branch."));
        assert!(kept.says("  COMMITS only\nafter asking"));
        assert!(text("テストを実行してから確認").says("テストを実行する"));
    }

    #[test]
    fn words_far_apart_are_not_an_item() {
        let far = text("commits\n1\n2\n3\n4\nonly\n5\n6\n7\n8\nasking");
        assert!(!far.says("Commits only after asking."));
        assert!(!text("").says("...\n"));
        assert!(!text("a").says("!"));
    }

    #[test]
    fn a_request_is_kept_by_half_of_its_lines() {
        let kept = text("The user asked to trim the export of reports, id 6d7bc55f");
        assert!(kept.requests("Please trim the export\nFeb 09 10:22 DEBUG hook invoked"));
        assert!(!kept.requests("Please write the import\nFeb 09 10:22 DEBUG hook invoked"));
        assert!(kept.requests("Trim the report 6d7bc55f-f28f-40e9-bf76-867c7cde3fdd, ok?"));
        assert!(!kept.requests("Go on."));
    }

    #[test]
    fn a_file_is_kept_by_its_name_alone() {
        let kept = text("changed `src/tide.py`, and mod.rs");
        assert!(kept.has_file("tide.py") && kept.has_file("mod.rs"));
        assert!(!kept.has_file("ide.py") && !kept.has_file("od.rs") && !kept.has_file("tide.pyi"));
    }
}
