//! Checks whether a text is a refusal or repeats the prompt.

use std::collections::HashSet;
use std::sync::LazyLock;

use extractive_summarizer::Source;

use super::words;
use crate::prompt;

/// Number of consecutive words that are compared with those of the prompts.
const PROMPT_WORDS: usize = 5;
/// Minimum number of such runs in a text that is compared.
const LEAST_RUNS: usize = 3;

/// Minimum length of a line of a text that is looked up in the source, in bytes.
const SAID_BYTES: usize = 30;

/// Runs of words in the lines of the prompts.
static PROMPT_RUNS: LazyLock<HashSet<u64>> = LazyLock::new(|| {
    let lines = prompt::fixed_lines().iter();
    let runs = lines.flat_map(|line| {
        let words = words::words(line);
        words::runs(&words, PROMPT_WORDS).collect::<Vec<_>>()
    });
    runs.collect()
});

/// First words of refusals, in several languages.
const REFUSALS: &[&str] = &[
    "i can't",
    "i can’t",
    "i cannot",
    "i can not",
    "i'm sorry",
    "i’m sorry",
    "i am sorry",
    "sorry, ",
    "i'm unable",
    "i’m unable",
    "i am unable",
    "i won't",
    "i'm not able",
    "i am not able",
    "as an ai",
    "unable to comply",
    "i must decline",
    "申し訳",
    "お手伝いできません",
    "対応できません",
    "죄송",
    "도와드릴 수 없",
    "抱歉",
    "对不起",
    "我无法",
    "es tut mir leid",
    "ich kann nicht",
    "je suis désolé",
    "je ne peux pas",
    "lo siento",
    "no puedo",
    "desculpe",
    "mi dispiace",
    "к сожалению, я не",
];

/// Words of refusals in languages that say them at the end of a sentence.
const LATE_REFUSALS: &[&str] = &[
    "対応できません",
    "お手伝いできません",
    "要約できません",
    "要約することはできません",
    "お答えできません",
    "도와드릴 수 없",
    "요약할 수 없",
    "요약해 드릴 수 없",
    "답변할 수 없",
    "无法协助",
    "无法总结",
    "不能协助",
];

/// Maximum length of a text that can count as a refusal, in characters, and of one that ends with it.
const REFUSAL_CHARS: (usize, usize) = (800, 120);

/// Returns whether a text declines to write a summary.
pub(super) fn is_refusal(text: &str) -> bool {
    let text = text.trim().trim_start_matches(['"', '*', '#', '-', ' ']);
    let (most, short) = REFUSAL_CHARS;
    if text.chars().nth(most).is_some() {
        return false;
    }
    if text.chars().nth(short).is_none() && LATE_REFUSALS.iter().any(|words| text.contains(words)) {
        return true;
    }
    let start: String = text.chars().take(80).collect::<String>().to_lowercase();
    REFUSALS.iter().any(|words| start.starts_with(words))
}

/// Returns whether a text repeats the prompt: a tag around the source, two of the prompt's lines, or half of the text in
/// words of the prompt. Tags and lines that also occur in the source do not count.
pub(super) fn is_echo(text: &str, source: &[Source<'_>]) -> bool {
    if prompt::tags(text).any(|tag| !holds(source, tag)) {
        return true;
    }
    let is_said = |line: &str| line.len() >= SAID_BYTES && holds(source, line);
    if is_of_prompt(text) && !text.lines().any(|line| is_said(line.trim())) {
        return true;
    }
    let asked = prompt::fixed_lines();
    let mut told: Option<usize> = None;
    text.lines().any(|line| {
        let line = line.trim();
        let found = asked.binary_search_by(|asked| prompt::by_length(asked, line));
        let Some(found) = found.ok().filter(|_| !holds(source, line)) else {
            return false;
        };
        told.replace(found).is_some_and(|told| told != found)
    })
}

/// Returns whether half of the runs of words of a text are those of a prompt.
fn is_of_prompt(text: &str) -> bool {
    let words = words::words(text);
    let (mut all, mut known) = (0, 0);
    for run in words::runs(&words, PROMPT_WORDS) {
        all += 1;
        known += usize::from(PROMPT_RUNS.contains(&run));
    }
    all >= LEAST_RUNS && known * 2 >= all
}

/// Returns whether a source contains a text verbatim.
fn holds(source: &[Source<'_>], text: &str) -> bool {
    source.iter().any(|piece| match piece {
        Source::Summary(summary) => summary.text.contains(text),
        Source::Message(entry) => {
            let mut found = false;
            for part in &entry.parts {
                part.visit_texts(&mut |said| found |= said.contains(text));
            }
            found
        }
    })
}

#[cfg(test)]
mod tests {
    use memory_model::Message;
    use token_estimate::HeuristicEstimator;

    use super::*;
    use crate::testing;

    #[test]
    fn refusals_are_distinguished_from_summaries() {
        assert!(is_refusal("I'm sorry, but I can't help with that."));
        assert!(is_refusal("申し訳ありませんが、この内容は要約できません。"));
        assert!(is_refusal("この依頼には対応できません。"));
        assert!(!is_refusal(
            "The user said: I can't log in. The cause was a stale token."
        ));
        assert!(!is_refusal(&format!(
            "I cannot say. {}",
            "word ".repeat(200)
        )));
    }

    #[test]
    fn two_lines_of_a_prompt_are_an_echo() {
        let lines = prompt::fixed_lines();
        let (one, other) = (&lines[0], &lines[lines.len() / 2]);
        let is_echo = |text: &str| is_echo(text, &[]);
        assert!(is_echo(&format!("Well:\n  {other}\nand\n{one}\n")));
        assert!(!is_echo(&format!("{one}\n{one}\nand no other")));
        assert!(is_echo("x <summaries depth=1> y") && is_echo("</previous_context>"));
        assert!(!is_echo("summaries of <b> and /c, docs/summaries, a </b>"));
        assert!(is_echo(
            "Assistant: the assistant goes on working with nothing else of it in view."
        ));
        assert!(!is_echo(
            "The assistant goes on with the parser, which has no test of its own."
        ));
        let said = [Message::user(format!("Why <summaries>?\n{one}"))];
        let log = testing::log(said.into(), &HeuristicEstimator::Bytes4);
        let source = [Source::from(&log[0])];
        assert!(!super::is_echo(
            &format!("Asked for <summaries>.\n{one}\n{other}"),
            &source
        ));
    }
}
