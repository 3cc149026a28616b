//! What a summary must not be or claim: a refusal, a prompt, a wish that nobody uttered.

use std::sync::OnceLock;

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
    if text.chars().nth(REFUSAL_CHARS).is_some() {
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
    let asked = prompt::fixed_lines();
    let mut told: Option<usize> = None;
    text.lines().any(|line| {
        let line = line.trim();
        let found = asked
            .binary_search_by(|asked| prompt::by_length(asked, line))
            .ok();
        let second = found.is_some() && told.is_some() && found != told;
        told = told.or(found);
        second
    })
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
    let mut claims: Vec<Claim> = text
        .lines()
        .filter(|line| is_claim(line))
        .flat_map(line_sentences)
        .filter(|sentence| is_claim(sentence))
        .map(Claim::new)
        .collect();
    let mut check = Check::new(&mut claims);
    for text in request.instructions.iter().chain(&request.previous) {
        check.read(text, true);
    }
    for piece in request.source {
        if check.done() {
            break;
        }
        match piece {
            Source::Summary(summary) => check.read(summary.text, true),
            Source::Message(entry) if entry.kind == EntryKind::Message => {
                let asked = matches!(entry.role, Role::User | Role::System);
                for part in &entry.parts {
                    match part {
                        Part::Text { text } => check.read(text, asked),
                        Part::ToolResult { content, .. } => check.read(&content.text(), asked),
                        Part::ToolCall { arguments, .. } => {
                            check.read(&arguments.decoded_strings(), asked);
                        }
                        _ => {}
                    }
                }
            }
            Source::Message(_) => {}
        }
    }
    let left = claims.into_iter().filter(|claim| !claim.is_supported());
    left.map(|claim| claim.sentence).collect()
}

/// Most sentences do not speak of the user, which is seen at little cost.
fn is_claim(sentence: &str) -> bool {
    let mut words = sentence.as_bytes().windows(4);
    let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    let of_user = words
        .any(|word| matches!(word, [b'u' | b'U', ..]) && word.eq_ignore_ascii_case(b"user"))
        || (!sentence.is_ascii() && has(sentence, USER));
    of_user && has(&sentence.to_lowercase(), WISHES)
}

/// Whether a word's stem belongs to an attribution: it says nothing of what is asked for.
fn attributes(stem: &str) -> bool {
    static KNOWN: OnceLock<Vec<&str>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let mut known = [USER, WISHES].concat();
        known.sort_unstable();
        known
    });
    let lower = stem.to_lowercase();
    let first = lower.as_bytes().first();
    let from = known.partition_point(|known| known.as_bytes().first() < first);
    let mut same = known.iter().skip(from);
    let mut same = same
        .by_ref()
        .take_while(|known| known.as_bytes().first() == first);
    same.any(|known| lower.starts_with(known) || known.starts_with(&lower))
}

/// A sentence that says what the user wants.
#[derive(Debug)]
struct Claim {
    sentence: String,
    /// Its words' stems, in order, none twice, without those of the attribution itself, which say
    /// nothing.
    stems: Vec<u64>,
    /// How many of them the user said, and how many anybody.
    by_user: usize,
    anywhere: usize,
}

impl Claim {
    fn new(sentence: String) -> Self {
        let mut found = Vec::new();
        stems(&sentence, &mut |stem| {
            if !attributes(stem) {
                found.push(id(stem));
            }
        });
        found.sort_unstable();
        found.dedup();
        Self {
            sentence,
            stems: found,
            by_user: 0,
            anywhere: 0,
        }
    }

    fn is_supported(&self) -> bool {
        let of = self.stems.len();
        of < 2 || self.by_user * 5 >= of * 2 || self.anywhere * 2 >= of
    }
}

/// Claims whose words are looked for in a source.
#[derive(Debug)]
struct Check<'a> {
    claims: &'a mut [Claim],
    /// Every stem of a claim that is not supported yet, in order: the claim's place, and whether
    /// the stem was found in what the user said, or anywhere.
    wanted: Vec<(u64, usize, Found)>,
    /// The lowest bits of those stems: most words of a source are told by them.
    filter: [u64; 16],
}

/// Where a stem was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nowhere,
    Anywhere,
    ByUser,
}

impl<'a> Check<'a> {
    fn new(claims: &'a mut [Claim]) -> Self {
        let mut check = Self {
            claims,
            wanted: Vec::new(),
            filter: [0; 16],
        };
        let claims = check.claims.iter().enumerate();
        for (n, claim) in claims.filter(|(_, claim)| !claim.is_supported()) {
            let stems = claim.stems.iter();
            check
                .wanted
                .extend(stems.map(|stem| (*stem, n, Found::Nowhere)));
        }
        check.wanted.sort_unstable();
        for (stem, ..) in &check.wanted {
            if let Some(bits) = check.filter.get_mut(*stem as usize >> 6 & 15) {
                *bits |= 1 << (stem & 63);
            }
        }
        check
    }

    /// Whether nothing is looked for any more.
    fn done(&self) -> bool {
        self.claims.iter().all(Claim::is_supported)
    }

    fn read(&mut self, text: &str, by_user: bool) {
        let Self {
            claims,
            wanted,
            filter,
        } = self;
        stems(text, &mut |stem| {
            let stem = id(stem);
            let bits = filter.get(stem as usize >> 6 & 15).copied().unwrap_or(0);
            if bits >> (stem & 63) & 1 == 0 {
                return;
            }
            let from = wanted.partition_point(|(wanted, ..)| *wanted < stem);
            let same = wanted.iter_mut().skip(from);
            for (_, claim, found) in same.take_while(|(wanted, ..)| *wanted == stem) {
                let Some(claim) = claims.get_mut(*claim) else {
                    continue;
                };
                if *found == Found::Nowhere {
                    *found = Found::Anywhere;
                    claim.anywhere += 1;
                }
                if by_user && *found == Found::Anywhere {
                    *found = Found::ByUser;
                    claim.by_user += 1;
                }
            }
        });
    }
}

/// A stem as a number, whatever its case: FNV-1a's 64 bits over its letters.
fn id(stem: &str) -> u64 {
    let mut id = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |c: char| id = (id ^ u64::from(c)).wrapping_mul(0x0100_0000_01b3);
    for c in stem.chars() {
        match c.is_ascii() {
            true => add(c.to_ascii_lowercase()),
            false => c.to_lowercase().for_each(&mut add),
        }
    }
    // The lowest bits alone know little of the last letters.
    id ^ id >> 32
}

/// Calls `f` with the beginnings of a text's words, so that inflections count as one; with pairs
/// of characters where words are not spaced.
fn stems<'a>(text: &'a str, f: &mut impl FnMut(&'a str)) {
    for word in text.split(|c: char| match c.is_ascii() {
        true => !c.is_ascii_alphanumeric(),
        false => !c.is_alphanumeric(),
    }) {
        if word.len() < 4 {
            // Neither four letters nor two characters of a script that is not spaced.
            continue;
        }
        let wide = |c: char| u32::from(c) >= 0x2e80;
        if word.is_ascii() {
            f(word.get(..5).unwrap_or(word));
        } else if !word.contains(wide) {
            if word.chars().nth(3).is_some() {
                let end = word.char_indices().nth(5).map_or(word.len(), |(at, _)| at);
                f(word.get(..end).unwrap_or(word));
            }
        } else {
            let hiragana = |c: char| ('\u{3040}'..='\u{309f}').contains(&c);
            let mut last: Option<(usize, char)> = None;
            for (at, c) in word.char_indices() {
                // Endings and particles are everywhere.
                if let Some((from, before)) = last
                    && !(hiragana(before) && hiragana(c))
                {
                    f(word.get(from..at + c.len_utf8()).unwrap_or_default());
                }
                last = Some((at, c));
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
    fn two_lines_of_a_prompt_are_an_echo() {
        let lines = prompt::fixed_lines();
        let (one, other) = (&lines[0], &lines[lines.len() / 2]);
        assert!(is_echo(&format!("Well:\n  {other}\nand\n{one}\n")));
        assert!(!is_echo(&format!("{one}\n{one}\nand no other")));
        assert!(is_echo("x <summaries depth=1> y") && is_echo("</previous_context>"));
        assert!(!is_echo("summaries of <b> and /c"));
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
