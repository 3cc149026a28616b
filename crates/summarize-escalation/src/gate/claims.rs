//! Checks for refusals, echoes of the prompt, and wishes that no user uttered.

use std::sync::OnceLock;

use extractive_summarizer::Source;
use extractive_summarizer::text::{head, line_sentences};
use memory_model::{EntryKind, Part, Role};

use crate::prompt;
use crate::request::SummaryRequest;

/// Beginnings of refusals, in the languages of models.
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

/// Maximum length of a refusal, in characters.
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

/// Whether a text repeats the prompt: a tag that fences the source, or two of its lines. Tags and lines
/// that the source holds do not count.
pub(super) fn is_echo(text: &str, source: &[Source<'_>]) -> bool {
    if prompt::tags(text).any(|tag| !holds(source, tag)) {
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

/// Whether a source holds a text verbatim.
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

/// Words for the user in scripts without spaces between words, or with endings.
const USER: &[&str] = &["ユーザ", "利用者", "사용자", "用户", "使用者"];
/// Beginnings of words that make a sentence about the user a wish or a rule.
const WISHES: &[&str] = &[
    "always", "ask", "demand", "don't", "don’t", "forb", "insist", "instruct", "must", "need",
    "never", "order", "prefer", "request", "requir", "said", "should", "told", "want", "wish",
];
/// Words that make a wish in these scripts.
const WIDE_WISHES: &[&str] = &[
    "求め", "指示", "依頼", "希望", "要求", "禁止", "요청", "지시", "원", "요구", "必须", "不要",
    "希望",
];
/// Maximum number of words between the user and a wish.
const REACH: usize = 6;
/// Maximum length that is read of a claim, in bytes.
const CLAIM_BYTES: usize = 400;

/// Returns the sentences of a summary that say what the user wants and that nothing in the source
/// supports: enough of their words stand together in no passage of it.
pub(super) fn unsupported(text: &str, request: &SummaryRequest<'_>) -> Vec<String> {
    let claims = text
        .lines()
        .filter(|line| names_user(line))
        .flat_map(line_sentences)
        .filter_map(|sentence| Some(Claim::new(&sentence, claimed(&sentence)?)));
    let mut check = Check::new(claims.collect());
    for text in request.instructions.iter().chain(&request.previous) {
        check.read(text, Said::ByUser);
    }
    for piece in request.source {
        if check.open == 0 {
            break;
        }
        match piece {
            Source::Summary(summary) => check.read(summary.text, Said::ByUser),
            Source::Message(entry) if entry.kind == EntryKind::Message => {
                let said = match entry.role {
                    Role::User | Role::System => Said::ByUser,
                    _ => Said::ByOthers,
                };
                for part in &entry.parts {
                    match part {
                        Part::Text { text } => check.read(text, said),
                        Part::ToolResult { content, .. } => check.read(&content.text(), said),
                        Part::ToolCall { arguments, .. } => {
                            check.read(&arguments.decoded_strings(), said);
                        }
                        _ => {}
                    }
                }
            }
            Source::Message(_) => {}
        }
    }
    let left = check.claims.into_iter().filter(|claim| !claim.supported);
    left.map(|claim| claim.sentence).collect()
}

/// Whether a text may speak of the user: a quick check, because most texts do not.
fn names_user(text: &str) -> bool {
    let mut words = text.as_bytes().windows(4);
    let user =
        |word: &[u8]| matches!(word, [b'u' | b'U', ..]) && word.eq_ignore_ascii_case(b"user");
    words.any(user) || (!text.is_ascii() && USER.iter().any(|user| text.contains(user)))
}

/// Returns what a sentence says that the user wants: the clause behind the user if a wish is near, or the
/// whole sentence where the wish is `by the user`.
fn claimed(sentence: &str) -> Option<&str> {
    let wide = USER.iter().filter_map(|user| sentence.find(user)).min();
    if let Some(rest) = wide.and_then(|at| sentence.get(at..)) {
        let rest = head(rest, CLAIM_BYTES);
        if WIDE_WISHES.iter().any(|wish| rest.contains(wish)) {
            return Some(rest);
        }
    }
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '_' | '-');
    let mut at = 0;
    // The last words before, the newest first.
    let mut before: [&str; REACH] = Default::default();
    for word in sentence.split(|c| !in_word(c)) {
        let end = at + word.len();
        let rest = sentence.get(end..).unwrap_or_default();
        at = end + rest.chars().next().map_or(0, char::len_utf8);
        if word.is_empty() {
            continue;
        }
        if is_user(word) {
            let clause = clause(rest);
            let mut behind = clause
                .split(|c| !in_word(c))
                .filter(|word| !word.is_empty());
            if behind.by_ref().take(REACH).any(is_wish) {
                return Some(clause);
            }
            let by = before
                .iter()
                .take(2)
                .any(|word| matches!(*word, "by" | "from" | "per"));
            if by && before.iter().any(|word| is_wish(word)) {
                return Some(head(sentence, CLAIM_BYTES));
            }
        }
        before.rotate_right(1);
        before[0] = word;
    }
    None
}

/// The beginning of a text up to the end of its clause.
fn clause(text: &str) -> &str {
    let ends = [" - ", " – ", " — ", " -> ", " → ", "; "];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    head(text, end.unwrap_or(text.len()).min(CLAIM_BYTES))
}

fn is_user(word: &str) -> bool {
    let word = word
        .strip_suffix("'s")
        .or_else(|| word.strip_suffix("’s"))
        .unwrap_or(word);
    word.eq_ignore_ascii_case("user") || word.eq_ignore_ascii_case("users")
}

fn is_wish(word: &str) -> bool {
    let lower = word.to_lowercase();
    let plain = |c: char| c.is_lowercase() || matches!(c, '\'' | '’');
    WISHES.iter().any(|wish| lower.starts_with(wish)) && word.chars().skip(1).all(plain)
}

/// Words of four letters or more that stand in every text.
const COMMON: &[&str] = &[
    "about", "after", "again", "also", "another", "any", "anything", "because", "been", "before",
    "being", "both", "case", "could", "current", "done", "down", "each", "else", "even", "every",
    "first", "from", "have", "here", "into", "instead", "just", "kept", "know", "last", "like",
    "made", "make", "many", "more", "most", "much", "need", "next", "once", "only", "other",
    "over", "same", "some", "still", "such", "take", "than", "that", "their", "them", "then",
    "there", "these", "they", "thing", "this", "those", "through", "under", "until", "upon",
    "using", "very", "want", "well", "were", "what", "when", "where", "which", "while", "will",
    "with", "within", "without", "would", "your",
];

/// Whether a stem is that of a common word, or of one that attributes a wish to the user.
fn says_nothing(stem: &str) -> bool {
    static KNOWN: OnceLock<Vec<&str>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let stem = |word: &&'static str| word.get(..5).unwrap_or(word);
        let mut known: Vec<&str> = COMMON.iter().chain(&["user", "users"]).map(stem).collect();
        known.sort_unstable();
        known
    });
    let lower = stem.to_lowercase();
    known.binary_search(&lower.as_str()).is_ok()
        || WISHES
            .iter()
            .any(|wish| lower.starts_with(wish) || (lower.len() == 5 && wish.starts_with(&lower)))
        || USER
            .iter()
            .chain(WIDE_WISHES)
            .any(|known| known.contains(&lower))
}

/// Speaker of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// The user, or a summary, which may tell of the user.
    ByUser,
    /// The assistant or a tool.
    ByOthers,
}

impl Said {
    /// Number of a claim's `of` words that must stand together, rounded: two fifths in a user's text,
    /// three fifths in others'. Measured on real transcripts.
    fn needed(self, of: usize) -> usize {
        match self {
            Self::ByUser => (of * 4 + 5) / 10,
            Self::ByOthers => (of * 6 + 5) / 10,
        }
    }
}

/// Minimum length of a passage, in stems; it is at least twice the length of the claim.
const PASSAGE: usize = 40;
/// Distance between two texts, in stems: more than any passage has.
const APART: usize = 2 * CLAIM_BYTES;

/// A sentence that says what the user wants.
#[derive(Debug)]
struct Claim {
    sentence: String,
    /// Stems of its telling words, sorted, without duplicates; each with its last position in the
    /// source, counted in stems.
    stems: Vec<(u64, Option<usize>)>,
    /// Length of a passage, in stems.
    passage: usize,
    supported: bool,
}

impl Claim {
    fn new(sentence: &str, claimed: &str) -> Self {
        let (mut found, mut all) = (Vec::new(), 0);
        stems(claimed, &mut |stem| {
            all += 1;
            if !says_nothing(stem) {
                found.push((id(stem), None));
            }
        });
        found.sort_unstable();
        found.dedup();
        Self {
            passage: PASSAGE.max(2 * all),
            supported: found.len() < 2,
            sentence: head(sentence, CLAIM_BYTES).to_owned(),
            stems: found,
        }
    }

    /// Records the position of one of its stems.
    fn record(&mut self, stem: usize, at: usize, said: Said) {
        if let Some((_, last)) = self.stems.get_mut(stem) {
            *last = Some(at);
        }
        let near = |last: &Option<usize>| last.is_some_and(|last| at - last < self.passage);
        let together = self.stems.iter().filter(|(_, last)| near(last)).count();
        self.supported = together >= said.needed(self.stems.len());
    }
}

/// A search for the words of claims in a source.
#[derive(Debug)]
struct Check {
    claims: Vec<Claim>,
    /// Number of claims that are not supported yet.
    open: usize,
    /// Stems of the open claims, sorted, each with the index of its claim and its index there.
    wanted: Vec<(u64, usize, usize)>,
    /// Bloom filter of the stems, which most words of a source do not pass.
    filter: [u64; 16],
    /// Number of stems read so far.
    at: usize,
}

impl Check {
    fn new(claims: Vec<Claim>) -> Self {
        let mut wanted = Vec::new();
        let mut filter = [0_u64; 16];
        let open = || claims.iter().enumerate().filter(|(_, c)| !c.supported);
        for (n, claim) in open() {
            for (place, (stem, _)) in claim.stems.iter().enumerate() {
                wanted.push((*stem, n, place));
                if let Some(bits) = filter.get_mut(*stem as usize >> 6 & 15) {
                    *bits |= 1 << (stem & 63);
                }
            }
        }
        wanted.sort_unstable();
        Self {
            open: open().count(),
            claims,
            wanted,
            filter,
            at: 0,
        }
    }

    /// Searches a text. Passages do not reach from one text into the next.
    fn read(&mut self, text: &str, said: Said) {
        if self.open == 0 {
            return;
        }
        self.at += APART;
        stems(text, &mut |stem| {
            self.at += 1;
            let stem = id(stem);
            let bits = self.filter.get(stem as usize >> 6 & 15);
            if bits.is_none_or(|bits| bits >> (stem & 63) & 1 == 0) {
                return;
            }
            let from = self.wanted.partition_point(|(wanted, ..)| *wanted < stem);
            let same = self.wanted.iter().skip(from);
            for (_, claim, place) in same.take_while(|(wanted, ..)| *wanted == stem) {
                if let Some(claim) = self.claims.get_mut(*claim)
                    && !claim.supported
                {
                    claim.record(*place, self.at, said);
                    self.open -= usize::from(claim.supported);
                }
            }
        });
    }
}

/// Case-insensitive hash of a stem: 64-bit FNV-1a over its letters.
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

/// Calls `f` with the stems of a text's words, so that inflections count as one: their first letters, or
/// pairs of characters where words are not spaced.
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
            // Of `tests` the stem of `test`.
            let end = if word.len() == 5 && word.ends_with('s') {
                4
            } else {
                5
            };
            f(word.get(..end).unwrap_or(word));
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
    use token_estimate::HeuristicEstimator;

    use super::*;
    use crate::testing;

    fn claims(text: &str) -> Vec<String> {
        let log = testing::log(
            vec![
                Message::user("Fix the lexer in src/lexer.rs. Never change the public API!"),
                Message::assistant("Done: comments are skipped now, all tests pass."),
                Message::user("パーサーも直してください。公開APIは変えないでください。"),
            ],
            &HeuristicEstimator::Bytes4,
        );
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        unsupported(
            text,
            &SummaryRequest::new(&source, &HeuristicEstimator::Bytes4),
        )
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
        let is_echo = |text: &str| is_echo(text, &[]);
        assert!(is_echo(&format!("Well:\n  {other}\nand\n{one}\n")));
        assert!(!is_echo(&format!("{one}\n{one}\nand no other")));
        assert!(is_echo("x <summaries depth=1> y") && is_echo("</previous_context>"));
        assert!(!is_echo("summaries of <b> and /c, docs/summaries, a </b>"));
        let said = [Message::user(format!("Why <summaries>?\n{one}"))];
        let log = testing::log(said.into(), &HeuristicEstimator::Bytes4);
        let source = [Source::from(&log[0])];
        assert!(!super::is_echo(
            &format!("Asked for <summaries>.\n{one}\n{other}"),
            &source
        ));
    }

    #[test]
    fn a_claim_is_what_the_user_is_said_to_want() {
        for (sentence, wish) in [
            (
                "The user wants comments kept.",
                Some(" wants comments kept."),
            ),
            (
                "The user's one request was speed - done.",
                Some(" one request was speed"),
            ),
            (
                "As requested by the user, it logs.",
                Some("As requested by the user, it logs."),
            ),
            ("User: never push to main", Some(": never push to main")),
            ("用户要求保留注释。", Some("用户要求保留注释。")),
            ("The user left; all tasks wait.", None),
            ("Go on without asking the user any questions.", None),
            (
                "AskUserQuestion wants user_id and userName, as asked.",
                None,
            ),
            ("The user refused AskUserQuestion.", None),
        ] {
            assert_eq!(claimed(sentence), wish, "{sentence}");
            assert!(names_user(sentence) || wish.is_none(), "{sentence}");
        }
    }

    #[test]
    fn a_wish_of_common_words_needs_them_together() {
        let invented = "The user asked to always run the tests before each change and to never \
                        touch the parser module.";
        let words = [
            "Always green.",
            "Run it.",
            "Some tests.",
            "Each change.",
            "A parser.",
            "The module.",
        ];
        let filler = "Something quite different follows here, about weather, trains, coffee \
                      machines, garden furniture. "
            .repeat(8);
        let apart: Vec<Message> = words
            .iter()
            .map(|word| Message::user(format!("{word} {filler}")))
            .collect();
        let together = vec![Message::user(
            "Run all tests before a change; leave the parser module!",
        )];
        for (messages, refused) in [(apart, 1), (together, 0)] {
            let log = testing::log(messages, &HeuristicEstimator::Bytes4);
            let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
            let found = unsupported(
                invented,
                &SummaryRequest::new(&source, &HeuristicEstimator::Bytes4),
            );
            assert_eq!(found.len(), refused, "{found:?}");
        }
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
