//! Sentences and excerpts of a text, in any language.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use sentence_model::is_unspaced;

use crate::cues::{
    CHANGES_OF_MIND, CLAIMS, CONTENT, CORRECTIONS, DECISIONS, DIRECTIVES, LEADS, NOS, STEPS, STILL,
    UNDOES,
};
use crate::later::BEGIN;
use crate::names::has_name;

/// Number of bytes that are read at the start of a long text.
const HEAD_BYTES: usize = 24 * 1024;
/// Number of bytes that are read at the end of a long text.
const TAIL_BYTES: usize = 8 * 1024;
/// Length from which a sentence says more than the assistant's next step, in bytes.
const STEP: usize = 200;
/// Length of the start of a sentence that is searched for an announcement of a step, in bytes.
const STEP_BEGINS: usize = 32;
/// Number of kept lines of a code block.
const CODE_LINES: usize = 2;

/// Returns the beginning of `text`, at most `bytes` bytes long, without cutting a character.
pub fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// Returns the end of `text`, at most `bytes` bytes long, without cutting a character.
pub fn tail(text: &str, bytes: usize) -> &str {
    let start = text.len().saturating_sub(bytes);
    text.get(text.ceil_char_boundary(start)..).unwrap_or(text)
}

/// Returns the first `start` and the last `end` bytes of a text. A text that is not longer than both together is
/// returned as `(text, "")`.
pub(crate) fn window(text: &str, start: usize, end: usize) -> (&str, &str) {
    if text.len() <= start + end {
        (text, "")
    } else {
        (head(text, start), tail(text, end))
    }
}

/// Returns the sentences of a text, without layout markup.
pub(crate) fn sentences(text: &str) -> Vec<String> {
    let (start, end) = window(text, HEAD_BYTES, TAIL_BYTES);
    let mut out = Vec::new();
    push_sentences(start, &mut out);
    push_sentences(end, &mut out);
    out
}

fn push_sentences(text: &str, out: &mut Vec<String>) {
    let mut code_line = None;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            code_line = match code_line {
                None => Some(0),
                Some(_) => None,
            };
            continue;
        }
        if let Some(n) = code_line {
            code_line = Some(n + 1);
            if n == CODE_LINES {
                out.push("…".to_owned());
            }
            if n >= CODE_LINES {
                continue;
            }
            let line = squeeze(line);
            if !line.is_empty() {
                out.push(line);
            }
            continue;
        }
        let line = layout_free(line);
        if line.chars().any(char::is_alphanumeric) {
            out.extend(line_sentences(&line));
        }
    }
}

/// Returns a line without layout markup: heading and list marks, emphasis, table bars.
fn layout_free(line: &str) -> String {
    let line = without_marks(line);
    let line: Cow<'_, str> = if line.starts_with('|') {
        let cells: Vec<&str> = line
            .split('|')
            .map(str::trim)
            .filter(|cell| !cell.trim_matches(['-', ':', ' ']).is_empty())
            .collect();
        Cow::Owned(cells.join(", "))
    } else {
        Cow::Borrowed(line)
    };
    squeeze(&line.replace("**", ""))
}

/// Returns a line without the marks of headings, lists and quotations before it. A mark is followed by a blank, except
/// `>` and `•`: the first characters of `#play`, `-5`, `--all` and `*.rs` are the writer's words.
fn without_marks(line: &str) -> &str {
    let mut line = line.trim_start();
    loop {
        let rest = match line.strip_prefix(['>', '•']) {
            Some(rest) => rest,
            None => line.trim_start_matches(['#', '*', '-', '+']),
        };
        let is_mark = line.starts_with(['>', '•']) || rest.starts_with([' ', '\t']);
        if rest.len() == line.len() || !is_mark {
            return line;
        }
        line = rest.trim_start();
    }
}

/// Returns a text on one line with single spaces, without control characters and rules of dots or dashes.
pub(crate) fn squeeze(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(4096));
    let mut space = false;
    let (mut last, mut run) = (' ', 0);
    for c in text.chars() {
        run = if c == last { run + 1 } else { 1 };
        last = c;
        if run > 4 && matches!(c, '.' | '-' | '=' | '_' | '*' | '#' | '~' | '─' | '━' | '═') {
            continue;
        }
        if c.is_whitespace() || c.is_control() {
            space = !out.is_empty();
        } else {
            if space {
                out.push(' ');
                space = false;
            }
            out.push(c);
        }
    }
    out
}

/// Returns the lines of a text, verbatim except that empty lines and trailing space are removed, and that control
/// characters become spaces. Of a longer text, only the first `start` and the last `end` bytes are read.
pub(crate) fn verbatim(text: &str, start: usize, end: usize) -> Vec<String> {
    let (start, end) = window(text, start, end);
    let line = |line: &str| {
        let line = line.trim_end();
        match line.contains(char::is_control) {
            true => line.chars().map(plain_char).collect(),
            false => line.to_owned(),
        }
    };
    let lines = |text: &str| -> Vec<String> {
        let full = text.lines().filter(|line| !line.trim().is_empty());
        full.map(line).collect()
    };
    let mut all = lines(start);
    if !end.is_empty() {
        all.push("…".to_owned());
        all.extend(lines(end));
    }
    all
}

fn plain_char(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// Returns the sentences of one line, unchanged. A note about a later message belongs to the sentence before it.
pub(crate) fn line_sentences(line: &str) -> Vec<String> {
    let sentences = sentence_model::sentences_with_notes(line, note);
    sentences.into_iter().map(str::to_owned).collect()
}

/// Returns the length in bytes of the note about a later message at the start of a text; `None` if there is no note.
fn note(text: &str) -> Option<usize> {
    let mut depth = 0;
    let opened = text.starts_with(BEGIN).then_some(text)?.char_indices();
    for (at, c) in opened {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns whether a line begins or ends a block of code.
pub(crate) fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

/// Returns whether a line looks like code, judged by its first and last characters. Extracts show lines of code without
/// fences.
pub(crate) fn reads_as_code(line: &str) -> bool {
    let line = line.trim();
    let imports = line.starts_with("import ") && line.contains(" from ");
    let is_tag = line.starts_with('<') && line.ends_with('>');
    let has_signs = || line.contains(['(', ')', '=', '{', '}', '[', ']', '"', '\'']);
    let ends = line.ends_with(['{', '}']) || (line.ends_with(';') && has_signs());
    let is_comment = ["//", "/*", "*/"].iter().any(|mark| line.starts_with(mark));
    let returns = line.starts_with("return ") && line.ends_with(['\'', '"', ')', ']']);
    imports || is_tag || ends || is_comment || returns
}

/// Returns whether a sentence states a wish or a rule.
pub(crate) fn is_directive(sentence: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| matcher(DIRECTIVES));
    holds(&WORDS, sentence)
}

/// Returns whether a sentence states a decision or a finding.
pub(crate) fn is_decision(sentence: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| matcher(DECISIONS));
    holds(&WORDS, sentence)
}

/// Returns whether a sentence of an assistant claims to have found a cause or fixed something.
pub(crate) fn is_claim(sentence: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| matcher(CLAIMS));
    holds(&WORDS, sentence)
}

/// Returns whether a sentence of a user reports that a problem still exists.
pub(crate) fn reports_failure(sentence: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| matcher(STILL));
    holds(&WORDS, sentence)
}

/// Returns whether a user's message declines the reply before: `No, the block should stay as is.` If the reply is a
/// question, the message answers it.
pub(crate) fn declines(message: &str) -> bool {
    let said = message.trim_start();
    let end = said
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(said.len());
    let (word, after) = said.split_at_checked(end).unwrap_or((said, ""));
    let is_no = NOS.iter().any(|no| word.to_lowercase() == *no);
    is_no
        && after.starts_with([
            ',', '.', '!', ';', ':', '、', '，', '。', '！', '-', '–', '—',
        ])
        && after.chars().any(char::is_alphanumeric)
        && !is_content(after)
}

/// Returns whether a user's message changes or takes back the request before: `You can undo that, it was the log.`
pub(crate) fn takes_back(message: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| matcher(UNDOES));
    let said = head(message.trim_start(), STEP_BEGINS).to_lowercase();
    let said = said.replace('’', "'");
    let begins = CHANGES_OF_MIND.iter().any(|cue| said.starts_with(cue));
    let mut undone = WORDS.iter().flat_map(|words| words.find_iter(message));
    let undoes = undone.any(|found| {
        let after = message.get(found.end()..).unwrap_or("");
        !after.starts_with(|c: char| c.is_ascii_alphanumeric())
    });
    (begins || undoes) && !message.trim_end().ends_with(['?', '？']) && !is_content(message)
}

/// Returns whether a user's message is content with the reply before.
fn is_content(message: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| matcher(CONTENT));
    holds(&WORDS, message)
}

/// Returns whether a sentence of an assistant corrects a cause that it named before.
pub(crate) fn corrects_cause(sentence: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| matcher(CORRECTIONS));
    holds(&WORDS, sentence)
}

/// Returns whether a sentence only announces the assistant's next step: `Now let me check the tests.`
pub(crate) fn is_step(sentence: &str) -> bool {
    let mut rest = sentence.trim_start_matches(|c: char| !c.is_alphanumeric());
    while let Some((word, after)) = rest.split_once(' ') {
        let word = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        if !LEADS.iter().any(|lead| word.eq_ignore_ascii_case(lead)) {
            break;
        }
        rest = after.trim_start();
    }
    if rest.len() >= STEP {
        return false;
    }
    let said = head(rest, STEP_BEGINS).to_lowercase().replace('’', "'");
    STEPS.iter().any(|step| {
        let after = said.strip_prefix(step).map(|after| after.chars().next());
        after.is_some_and(|after| !step.is_ascii() || !after.is_some_and(char::is_alphanumeric))
    })
}

/// Returns a matcher of words that ignores the case of ASCII letters. A few hundred words always fit into one matcher.
pub(crate) fn matcher(words: &[&str]) -> Option<AhoCorasick> {
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).build(words).ok()
}

fn holds(words: &Option<AhoCorasick>, text: &str) -> bool {
    words.as_ref().is_some_and(|words| words.is_match(text))
}

/// Returns a digest of sentences of at most `max` characters. All sentences are kept if they fit. Otherwise the first,
/// the last, directives and decisions come first, and then the others from the start. `…` marks gaps.
///
/// If `ends` is false, only directives and decisions come before the others.
pub(crate) fn digest(sentences: &[String], max: usize, ends: bool) -> String {
    let count = |text: &str| text.chars().count();
    let total: usize = sentences.iter().map(|s| count(s) + 1).sum();
    if total <= max + 1 {
        return sentences.join(" ");
    }
    let Some(last) = sentences.len().checked_sub(1) else {
        return String::new();
    };
    let cues = (0..=last).filter(|n| {
        sentences
            .get(*n)
            .is_some_and(|s| is_directive(s) || is_decision(s))
    });
    let mut order = Vec::new();
    if ends {
        order.extend([0, last]);
    }
    order.extend(cues);
    order.extend(0..=last);
    let lead = order.first().copied();

    let mut taken = std::collections::BTreeMap::new();
    let mut room = max;
    for n in order {
        if taken.contains_key(&n) {
            continue;
        }
        let Some(sentence) = sentences.get(n) else {
            continue;
        };
        // The sentence that is chosen first may take two thirds of the length, and every other sentence the rest.
        let share = if Some(n) == lead && last > 0 {
            max * 2 / 3
        } else {
            room
        };
        let share = share.min(room);
        let cost = count(sentence) + 3;
        if cost <= share {
            taken.insert(n, sentence.clone());
            room -= cost;
        } else if Some(n) == lead || (n == last && ends && share >= 40) {
            let clipped = clip(sentence, share.saturating_sub(3));
            room = room.saturating_sub(count(&clipped) + 3);
            taken.insert(n, clipped);
        }
        if room < 12 {
            break;
        }
    }
    let mut out = String::new();
    let mut next = 0;
    for (n, sentence) in taken {
        if n > next && !out.ends_with('…') && sentence != "…" {
            out.push_str(if out.is_empty() { "…" } else { " …" });
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&sentence);
        next = n + 1;
    }
    if next <= last && !out.ends_with('…') {
        out.push_str(" …");
    }
    out
}

/// Returns at most `max` characters of a line. The cut is after a word if one ends in the second half, and `…` is added
/// to mark it.
pub(crate) fn clip(line: &str, max: usize) -> String {
    let Some((end, _)) = line.char_indices().nth(max) else {
        return line.to_owned();
    };
    let kept = head(line, end);
    let kept = match kept.rfind(' ') {
        Some(at) if at > kept.len() / 2 => head(kept, at),
        _ => kept,
    };
    format!("{}…", kept.trim_end())
}

/// Number of letters below which an assistant's message may be a mere confirmation.
const NOD: usize = 40;

/// Returns whether an assistant's message is a mere confirmation.
pub(crate) fn is_nod(all: &[String]) -> bool {
    let length = |c: char| match is_unspaced(c) {
        true => 3,
        false => usize::from(c.is_alphanumeric()),
    };
    let letters: usize = all.iter().flat_map(|said| said.chars()).map(length).sum();
    letters < NOD
        && !all
            .iter()
            .any(|said| has_name(said) || is_decision(said) || said.ends_with(['?', '？']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_in_several_scripts() {
        let all = |text: &str| sentences(text);
        assert_eq!(
            all("Fix the bug. Then v1.2 ships, e.g. today! Really?"),
            ["Fix the bug.", "Then v1.2 ships, e.g. today!", "Really?"]
        );
        assert_eq!(
            all("直して。次に「はい。」と言う！"),
            ["直して。", "次に「はい。」と言う！"]
        );
        // A question stays with its answer.
        assert_eq!(
            all("パスが違う。どれにしますか？\"=\"両方\" 続けて。次へ"),
            [
                "パスが違う。",
                "どれにしますか？\"=\"両方\" 続けて。",
                "次へ"
            ]
        );
        assert_eq!(all("수정했습니다. 다음은?"), ["수정했습니다.", "다음은?"]);
        assert_eq!(all("# Title\n\n---\n- **one**\n"), ["Title", "one"]);
        assert_eq!(
            all("> ## Quoted\n>> - + four\n•five"),
            ["Quoted", "four", "five"]
        );
        for words in [
            "#play many",
            "#172 is open",
            "-5 is cold",
            "--all is needed",
            "+1 for it",
            "*.rs only",
            "##无空格",
        ] {
            assert_eq!(all(words), [words]);
            assert_eq!(all(&format!("- {words}")), [words]);
        }
        assert_eq!(all("| a | b |\n|---|:-:|\n| 1 | 2 |"), ["a, b", "1, 2"]);
        assert_eq!(
            all("See:\n```rust\nfn a() {\n  b\n}\n```\nend"),
            ["See:", "fn a() {", "b", "…", "end"]
        );
    }

    #[test]
    fn a_digest_keeps_both_ends_and_directives() {
        let text: Vec<String> = [
            "Start here.",
            "Filler one.",
            "You must keep it.",
            "Filler two.",
            "End.",
        ]
        .map(str::to_owned)
        .to_vec();
        assert_eq!(digest(&text, 200, true), text.join(" "));
        assert_eq!(
            digest(&text, 50, true),
            "Start here. … You must keep it. … End."
        );
        assert_eq!(digest(&text, 31, false), "… You must keep it. …");
        assert_eq!(digest(&["x".repeat(50)], 10, true), "xxxxxxx…");
        assert_eq!(digest(&[], 10, true), "");
    }

    #[test]
    fn wishes_and_findings_are_known_by_their_words() {
        assert!(is_directive("You MUST keep it.") && is_directive("必ず残す"));
        assert!(!is_directive("mus t") && !is_directive("") && !is_directive("…mus"));
        assert!(is_decision("That is Because of it") && is_decision("원인은 이것"));
        assert!(!is_decision("hello"));
    }
}
