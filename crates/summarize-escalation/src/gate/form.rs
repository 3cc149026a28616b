//! Form of an answer: its lines, its sentences, and how it ends.

use std::collections::{HashMap, HashSet};

use super::words::{self, Word};
use crate::prompt::Template;

/// Beginnings of the lines that the prompts ask for besides the summary's text.
const FILES: &str = "files:";
const EXPAND: &str = "expand for details about:";
/// Beginnings of further lines, which tell more than the text, but not without it.
const TOLD: [&str; 3] = ["constraints:", "open:", "next:"];
/// Names of tags between which models write text that is not the answer.
const REASONING_TAGS: [&str; 7] = [
    "think",
    "thinking",
    "thought",
    "reasoning",
    "analysis",
    "scratchpad",
    "reflection",
];
/// Minimum number of words of a sentence.
const SENTENCE_WORDS: usize = 4;
/// Minimum length of a sentence that counts as repeated, in bytes. Shorter ones, such as `Tests pass.`, recur in good
/// summaries.
const REPEATED_BYTES: usize = 24;
/// Number of times that a sentence may occur, and a line of two words or more.
const MOST_TIMES: (usize, usize) = (2, 3);
/// Number of words from which a line is no short label with a value, such as `Next: run the tests`, and needs a mark at
/// its end.
const LONG_LINE: usize = 10;
/// Number of words from which an answer has the lines that the prompt asks for at its end.
const LONG_TEXT: usize = 100;
/// Length below which an answer may be a remark to the reader, in characters.
const REMARK_CHARS: usize = 400;
/// Number of consecutive words that are compared to find text that goes round in circles.
const CIRCLE_WORDS: usize = 4;
/// Minimum number of words of a text that is searched for circles.
const CIRCLE_TEXT: usize = 24;
/// A text goes in circles if more than two fifths of its runs of words occurred before. In summaries by strong models
/// it is at most an eighth, where rows of a list are alike.
const CIRCLE_SHARE: (usize, usize) = (2, 5);

/// Returns whether an answer to this prompt was cut off: it asks for lines at its end, such as `Expand for details about:`, and it
/// is long, has none of them, and ends without a mark.
pub fn is_cut(prompt: &Template, answer: &str) -> bool {
    let asks = |line: &str| line.to_lowercase().contains(EXPAND);
    prompt.lines().any(asks) && Form::of(answer).lacks_end()
}

/// Kind of a line of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// A line that the prompts ask for besides the text, or an item of its list.
    Form,
    Heading,
    Item,
    Prose,
}

/// Lines of an answer, each with its kind. Blank lines and fences of code are left out.
pub(super) struct Form<'a> {
    lines: Vec<(Line, &'a str)>,
    /// Whether a block of code is not closed.
    open_code: bool,
}

impl<'a> Form<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let (mut lines, mut open_code, mut ended) = (Vec::new(), false, false);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line.starts_with("```") || line.starts_with("~~~") {
                open_code = !open_code;
                continue;
            }
            let kind = match label(line) {
                Some(EXPAND) => {
                    ended = true;
                    Line::Form
                }
                Some(_) => Line::Form,
                None if ended => Line::Form,
                None if open_code => Line::Item,
                None if line.starts_with('#') => Line::Heading,
                None if is_item(line) => Line::Item,
                None => Line::Prose,
            };
            lines.push((kind, line));
        }
        Self { lines, open_code }
    }

    /// Returns the text without the lines that the prompts ask for besides it.
    pub(super) fn body(&self) -> String {
        let lines = self.lines.iter().filter(|(kind, _)| *kind != Line::Form);
        lines.map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the lines that list files.
    pub(super) fn files(&self) -> impl Iterator<Item = &'a str> {
        let files = self.lines.iter().filter(|(kind, line)| {
            *kind == Line::Form && label(line).is_some_and(|label| label == FILES)
        });
        files.map(|(_, line)| *line)
    }

    /// Returns whether there is a line beside headings and the lines of the form.
    pub(super) fn has_text(&self) -> bool {
        self.said().next().is_some()
    }

    /// Returns whether a line beside headings and the lines of the form has as many words as a sentence.
    pub(super) fn has_sentence(&self) -> bool {
        self.said().any(|line| length(line) >= SENTENCE_WORDS)
    }

    fn said(&self) -> impl Iterator<Item = &'a str> {
        let said = self
            .lines
            .iter()
            .filter(|(kind, line)| matches!(kind, Line::Item | Line::Prose) && !begins(line, TOLD));
        said.map(|(_, line)| *line)
    }

    /// Returns whether the text is short, has no line of the form, and talks to its reader: it ends with a question, or
    /// says I and you. `is_of_source` tells whether it names something of the source.
    pub(super) fn is_remark(&self, is_of_source: bool) -> bool {
        let has_form = self.lines.iter().any(|(kind, _)| *kind == Line::Form);
        let body = self.body();
        if has_form || body.chars().nth(REMARK_CHARS).is_some() {
            return false;
        }
        let low = body.to_lowercase();
        let says = |wanted: &[&str]| {
            let mut words = low.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '’'));
            words.any(|word| wanted.contains(&word))
        };
        body.trim_end().ends_with(['?', '？'])
            || (!is_of_source
                && says(&["i", "i'm", "i’m", "i'll", "i’ll", "me"])
                && says(&["you", "your", "you're", "you’re"]))
    }

    /// Returns whether a sentence or a line occurs too often, or the text goes round in circles.
    pub(super) fn repeats(&self) -> bool {
        let (most_sentences, most_lines) = MOST_TIMES;
        let mut times: [HashMap<u64, usize>; 2] = Default::default();
        let [sentence_times, line_times] = &mut times;
        let mut all: Vec<Word> = Vec::new();
        for (_, line) in &self.lines {
            let before = all.len();
            for sentence in sentences(line) {
                let words = words::words(sentence);
                if sentence.len() >= REPEATED_BYTES
                    && words.len() >= SENTENCE_WORDS
                    && again(sentence_times, &words) > most_sentences
                {
                    return true;
                }
                all.extend(words);
            }
            let words = all.get(before..).unwrap_or_default();
            if words.len() >= 2 && again(line_times, words) > most_lines {
                return true;
            }
        }
        let mut seen = HashSet::new();
        let runs = words::runs(&all, CIRCLE_WORDS).count();
        let again = words::runs(&all, CIRCLE_WORDS)
            .filter(|run| !seen.insert(*run))
            .count();
        all.len() >= CIRCLE_TEXT && again * CIRCLE_SHARE.1 > runs * CIRCLE_SHARE.0
    }

    /// Returns whether the text ends in the middle. `is_cut_name` tells of the last word whether it is the beginning of
    /// a longer name of the source.
    ///
    /// A sentence ends with a mark. An item of a list and a short label with a value need none, unless most lines of
    /// their kind have one.
    pub(super) fn is_unfinished(&self, is_cut_name: impl Fn(&str) -> bool) -> bool {
        let Some((kind, last)) = self.lines.last().copied() else {
            return false;
        };
        if self.open_code {
            return true;
        }
        if kind == Line::Form || is_ended(last) {
            return false;
        }
        let word = last
            .rsplit(|c: char| !(c == '_' || c.is_alphanumeric()))
            .next();
        if last.ends_with([',', '(', '[', '「', '（', '、', '，', '-', '–', '—', '/'])
            || opens(last)
            || word.is_some_and(is_cut_name)
        {
            return true;
        }
        match kind {
            Line::Prose if self.most_end(Line::Prose) || sentences(last).nth(1).is_some() => true,
            Line::Prose if is_labelled(last) => length(last) >= LONG_LINE,
            Line::Prose => length(last) >= SENTENCE_WORDS,
            Line::Item => self.most_end(Line::Item) || has_sentence_before(last),
            Line::Form | Line::Heading => false,
        }
    }

    /// Returns whether a long text has no line of the form and no mark at its end.
    fn lacks_end(&self) -> bool {
        let words: usize = self.lines.iter().map(|(_, line)| length(line)).sum();
        let has_form = self.lines.iter().any(|(kind, _)| *kind == Line::Form);
        let is_ended = self.lines.last().is_some_and(|(_, last)| is_ended(last));
        words >= LONG_TEXT && !has_form && !is_ended
    }

    /// Returns whether there are lines of a kind before the last one, and most of them end with a mark. Lines that
    /// introduce a list do not count.
    fn most_end(&self, wanted: Line) -> bool {
        let before = self.lines.iter().rev().skip(1);
        let alike = before.filter(|(kind, line)| *kind == wanted && !line.ends_with([':', '：']));
        let (count, ended) = alike.fold((0, 0), |(count, ended), (_, line)| {
            (count + 1, ended + usize::from(is_ended(line)))
        });
        ended * 2 > count
    }
}

/// Counts words once more, and returns how often they occurred.
fn again(times: &mut HashMap<u64, usize>, words: &[Word]) -> usize {
    let times = times
        .entry(words::joined(words.iter().map(|word| word.hash)))
        .or_default();
    *times += 1;
    *times
}

/// Returns the label of a line that the prompts ask for besides the text.
fn label(line: &str) -> Option<&'static str> {
    [FILES, EXPAND]
        .into_iter()
        .find(|label| begins(line, [*label]))
}

/// Returns whether a line begins with one of these labels.
fn begins<'l>(line: &str, labels: impl IntoIterator<Item = &'l str>) -> bool {
    let line = line.trim_start_matches(['*', '_', '-', '#', '`', '>', ' ']);
    labels.into_iter().any(|label| {
        line.get(..label.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(label))
    })
}

/// Returns the number of words of a line. Two characters of a script without spaces count as a word.
fn length(line: &str) -> usize {
    let words = words::words(line);
    let single = words.iter().filter(|word| word.single).count();
    words.len() - single + single / 2
}

fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '•', '+', '|', '・', '◦', '–'])
        || (rest.len() < line.len() && rest.starts_with(['.', ')', ':']))
}

/// Returns whether a line begins with a short label, such as `Next: run the tests`.
fn is_labelled(line: &str) -> bool {
    let colon = line.find([':', '：']);
    colon.is_some_and(|at| {
        line.get(..at)
            .is_some_and(|label| label.chars().count() <= 32)
    })
}

/// Returns whether a line ends with a mark that ends a sentence, a quotation, a bracket or a table's row.
fn is_ended(line: &str) -> bool {
    line.ends_with([
        '.', '!', '?', '…', ';', ')', ']', '}', '"', '\'', '`', '*', '|', '>', '。', '！', '？',
        '；', '」', '』', '）', '】', '”', '’', '»', '।', '؟', '~',
    ])
}

/// Returns whether a line opens a bracket or a quotation in backticks that it does not close.
fn opens(line: &str) -> bool {
    let count = |wanted: char| line.chars().filter(|c| *c == wanted).count();
    count('(') > count(')')
        || count('「') > count('」')
        || count('（') > count('）')
        || count('`') % 2 == 1
        || count('"') % 2 == 1
}

/// Returns whether a sentence of a line ends before its last one.
fn has_sentence_before(line: &str) -> bool {
    let ended = sentences(line).collect::<Vec<_>>();
    let before = ended
        .split_last()
        .map(|(_, before)| before)
        .unwrap_or_default();
    before
        .iter()
        .any(|sentence| length(sentence) >= SENTENCE_WORDS)
}

/// Returns the sentences of a line.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    line.split_inclusive(['。', '！', '？'])
        .flat_map(|part| part.split(". "))
        .flat_map(|part| part.split("! "))
        .flat_map(|part| part.split("? "))
}

/// Returns whether an answer has tags of a model's reasoning or of a chat's template, or speaks more than once of the
/// task of summarizing. `is_said` tells whether the conversation has a text.
pub(super) fn has_reasoning(text: &str, is_said: impl Fn(&str) -> bool) -> bool {
    let tag = text.match_indices('<').any(|(at, _)| {
        let rest = text.get(at..).unwrap_or_default();
        let Some(end) = rest.find('>').filter(|end| *end <= 32) else {
            return false;
        };
        let tag = rest.get(..=end).unwrap_or_default();
        let name = tag.trim_matches(['<', '>', '/']);
        let of_template = name.len() > 2 && name.starts_with('|') && name.ends_with('|');
        let of_reasoning = REASONING_TAGS
            .iter()
            .any(|tag| name.eq_ignore_ascii_case(tag));
        (of_template || of_reasoning) && !is_said(tag)
    });
    tag || task_sentences(text) > 1
}

/// Returns the number of sentences in which somebody plans to write a summary.
fn task_sentences(text: &str) -> usize {
    const WHO: [&str; 6] = ["i ", "i'll ", "we ", "let me ", "let's ", "i’ll "];
    const PLANS: [&str; 9] = [
        "need to", "should", "must", "have to", "will ", "'ll ", "let me", "let's", "going to",
    ];
    let planned = |sentence: &str| {
        let low = sentence.trim().to_lowercase();
        let low = low.trim_start_matches(['*', '-', '#', '>', '"', ' ']);
        let low = low
            .strip_prefix("okay, ")
            .or(low.strip_prefix("ok, "))
            .unwrap_or(low);
        let low = low.strip_prefix("so ").unwrap_or(low);
        WHO.iter().any(|who| low.starts_with(who))
            && PLANS.iter().any(|plan| low.contains(plan))
            && [
                "summar",
                "segment",
                "the user wants",
                "the conversation",
                "format",
                "tokens",
                "the last line",
            ]
            .iter()
            .any(|task| low.contains(task))
    };
    text.lines()
        .flat_map(sentences)
        .filter(|sentence| planned(sentence))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfinished(text: &str) -> bool {
        Form::of(text).is_unfinished(|_| false)
    }

    #[test]
    fn sentences_are_told_from_the_lines_of_the_form() {
        for text in [
            "Files: none",
            "Expand for details about:\n- Tariff\n- Status of the ferry at noon",
            "# Progress of the whole work so far\nFiles: a.rs",
            "- done\n- ok",
        ] {
            assert!(!Form::of(text).has_sentence(), "{text}");
        }
        for text in [
            "The ferry now leaves at noon.",
            "- fixed the tide table\nFiles: none",
            "潮の表を直した。次は公開。",
        ] {
            assert!(Form::of(text).has_sentence(), "{text}");
        }
    }

    #[test]
    fn repetition_is_found_in_sentences_lines_and_words() {
        let line = "The user asked for a summary of the tides.";
        assert!(!Form::of(&format!("{line} {line}")).repeats());
        assert!(Form::of(&format!("{line} Yes. {line} No. {line}")).repeats());
        assert!(Form::of(&"Files: none\n".repeat(20)).repeats());
        assert!(Form::of(&"tide and ".repeat(20)).repeats());
        assert!(Form::of(&"潮の表を直した。".repeat(4)).repeats());
        let rows: String = (0..9)
            .map(|n| format!("- a{n}.rs: changed line {n} of {}\n", n * 7))
            .collect();
        assert!(!Form::of(&rows).repeats(), "{rows}");
    }

    #[test]
    fn endings_are_judged_by_the_lines_before() {
        for whole in [
            "",
            "Done.",
            "It works.\nFiles: a.rs (changed)\nExpand for details about: the tide table",
            "- one thing was done\n- another was not",
            "Next: run the tests",
            "直した。",
            "# Goal\nFix it.\n# Next\n1. Run `tide --all`",
            "Done so far:\n- the table",
        ] {
            assert!(!unfinished(whole), "{whole}");
        }
        for cut in [
            "It works, and the next step is to",
            "The table (of",
            "- One thing was done.\n- Another was not done.\n- A third one is",
            "Decided: the house is taken for a week in June and they go there by",
            "Run `tide --a",
            "It works.\nNext: ru",
            "A.\n1. \"What is it.\"\n2. 표를 수정",
            "It works. The table",
            "- All of the table was done. The next",
            "- the name is \"ti",
            "```\ncode",
            "潮の表を直した、そして次に",
        ] {
            assert!(unfinished(cut), "{cut}");
        }
        assert!(Form::of("- it changed tide_ta").is_unfinished(|word| word == "tide_ta"));
    }

    #[test]
    fn remarks_talk_to_the_reader() {
        for remark in [
            "I cannot do that. Is there anything else?",
            "¿Hay algo más en lo que pueda ayudar?",
            "I'm glad that you like the ferry!",
        ] {
            assert!(Form::of(remark).is_remark(false), "{remark}");
        }
        assert!(!Form::of("You asked for the table; I wrote it.").is_remark(true));
        assert!(!Form::of("Open: does the ferry wait?\nFiles: none").is_remark(false));
    }

    #[test]
    fn reasoning_is_told_by_tags_and_plans() {
        let none = |_: &str| false;
        assert!(
            has_reasoning("<think>The user", none)
                && has_reasoning("x <|im_start|>assistant", none)
        );
        assert!(has_reasoning(
            "Okay, I need to write a summary. So let me go through the segment.\nDone.",
            none
        ));
        assert!(!has_reasoning(
            "The prompt wraps notes in <think>.",
            |tag| tag == "<think>"
        ));
        assert!(!has_reasoning(
            "We should write a summary of the tides. a <b> c",
            none
        ));
    }
}
