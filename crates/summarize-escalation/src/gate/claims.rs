//! What a summary must not be or claim: a refusal, a prompt, a wish that nobody uttered.

use std::collections::BTreeSet;

use memory_model::{EntryKind, Part, Role};

use crate::extract::line_sentences;
use crate::{Source, SummaryRequest, prompt};

/// How a refusal begins, in the languages that models refuse in.
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

/// A refusal is not longer than this, in characters.
const REFUSAL_CHARS: usize = 800;

/// Whether a text declines to summarise.
pub(super) fn is_refusal(text: &str) -> bool {
    let text = text.trim().trim_start_matches(['"', '*', '#', '-', ' ']);
    if text.chars().count() > REFUSAL_CHARS {
        return false;
    }
    let start: String = text.chars().take(80).collect::<String>().to_lowercase();
    REFUSALS.iter().any(|words| start.starts_with(words))
}

/// Whether a text repeats the prompt: a tag that fences the source, or two of its lines.
pub(super) fn is_echo(text: &str) -> bool {
    if prompt::has_tag(text) {
        return true;
    }
    let told: BTreeSet<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| line.chars().count() >= 30)
        .collect();
    if told.is_empty() {
        return false;
    }
    let asked = prompt::fixed_lines();
    asked
        .iter()
        .filter(|line| told.contains(line.as_str()))
        .count()
        >= 2
}

/// Words that attribute something to the user.
const USER: &[&str] = &["user", "ユーザ", "사용자", "用户", "使用者"];
/// Words that make a wish or a rule of it.
const WISHES: &[&str] = &[
    "want", "ask", "request", "insist", "demand", "requires", "instruct", "prefer", "said", "told",
    "order", "must", "never", "always", "should", "do not", "don't", "forb", "求め", "指示",
    "依頼", "希望", "要求", "禁止", "요청", "지시", "원", "요구", "必须", "不要", "希望",
];

/// The sentences of a summary that say what the user wants, and that nothing in the source
/// supports: few of their words are in what the user said, and few in the source at all.
pub(super) fn unsupported(text: &str, request: &SummaryRequest<'_>) -> Vec<String> {
    let claims: Vec<String> = text
        .lines()
        .flat_map(line_sentences)
        .filter(|sentence| is_claim(sentence))
        .collect();
    if claims.is_empty() {
        return claims;
    }
    let (mut users, mut all) = (BTreeSet::new(), BTreeSet::new());
    for text in request.instructions.iter().chain(&request.previous) {
        stems(text, &mut |stem| {
            users.insert(stem);
        });
    }
    for piece in request.source {
        match piece {
            Source::Summary(summary) => stems(summary.text, &mut |stem| {
                users.insert(stem);
            }),
            Source::Message(entry) if entry.kind == EntryKind::Message => {
                for part in &entry.parts {
                    let text = match part {
                        Part::Text { text } => std::borrow::Cow::Borrowed(text.as_str()),
                        Part::ToolResult { content, .. } => content.text(),
                        Part::ToolCall { arguments, .. } => arguments.decoded_strings().into(),
                        _ => continue,
                    };
                    let asked = matches!(entry.role, Role::User | Role::System);
                    let to = if asked { &mut users } else { &mut all };
                    stems(&text, &mut |stem| {
                        to.insert(stem);
                    });
                }
            }
            Source::Message(_) => {}
        }
    }
    let supported = |claim: &String| {
        let mut words = BTreeSet::new();
        stems(claim, &mut |stem| {
            words.insert(stem);
        });
        // The words of the attribution itself say nothing.
        words.retain(|word| {
            !USER
                .iter()
                .chain(WISHES)
                .any(|known| word.starts_with(known) || known.starts_with(word.as_str()))
        });
        let by_user = words.iter().filter(|word| users.contains(*word)).count();
        let anywhere = words
            .iter()
            .filter(|word| users.contains(*word) || all.contains(*word))
            .count();
        words.len() < 2 || by_user * 5 >= words.len() * 2 || anywhere * 2 >= words.len()
    };
    claims
        .into_iter()
        .filter(|claim| !supported(claim))
        .collect()
}

fn is_claim(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    has(USER) && has(WISHES)
}

/// Calls `f` with the beginnings of a text's words, so that inflections count as one; with pairs
/// of characters where words are not spaced.
fn stems(text: &str, f: &mut dyn FnMut(String)) {
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let spaced = word.chars().all(|c| u32::from(c) < 0x2e80);
        if spaced {
            if word.chars().count() >= 4 {
                f(word.to_lowercase().chars().take(5).collect());
            }
            continue;
        }
        let chars: Vec<char> = word.chars().collect();
        for pair in chars.windows(2) {
            // Endings and particles are everywhere.
            if !pair.iter().all(|c| ('\u{3040}'..='\u{309f}').contains(c)) {
                f(pair.iter().collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use memory_model::Message;
    use token_estimate::Preset;

    use super::*;
    use crate::testing;

    fn claims(text: &str) -> Vec<String> {
        let log = testing::log(
            vec![
                Message::user("Fix the lexer in src/lexer.rs. Never change the public API!"),
                Message::assistant("Done: comments are skipped now, all tests pass."),
                Message::user("パーサーも直してください。公開APIは変えないでください。"),
            ],
            &Preset::Anna,
        );
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        unsupported(text, &SummaryRequest::new(&source, &Preset::Anna))
    }

    #[test]
    fn refusals_are_told_from_summaries() {
        assert!(is_refusal("I'm sorry, but I can't help with that."));
        assert!(is_refusal("申し訳ありませんが、この内容は要約できません。"));
        assert!(!is_refusal(
            "The user said: I can't log in. The cause was a stale token."
        ));
        assert!(!is_refusal(&format!(
            "I cannot say. {}",
            "word ".repeat(200)
        )));
    }

    #[test]
    fn wishes_need_support() {
        let none: [&str; 0] = [];
        assert_eq!(
            claims("The user asked to fix the lexer and never to change the public API."),
            none
        );
        assert_eq!(claims("ユーザーは公開APIを変えないよう求めた。"), none);
        assert_eq!(claims("All tests pass; comments are skipped."), none);
        assert_eq!(
            claims("The user insists that every invoice is emailed to accounting before Friday."),
            ["The user insists that every invoice is emailed to accounting before Friday."]
        );
        assert_eq!(
            claims("ユーザーは請求書を毎週金曜日に経理部へ送付するよう指示した。").len(),
            1
        );
    }
}
