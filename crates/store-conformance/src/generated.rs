//! A generated conversation of any length. The same seed gives the same messages on every machine, for any number of
//! messages that are read.
//!
//! A quarter of the messages are tool results. A third of the responses with tool calls have two or three calls. One
//! message in twenty is Chinese. One message in a thousand is a tool result of half a megabyte. Words follow Zipf's
//! law, and lengths are spread evenly over orders of magnitude. Every 997th message contains a word that occurs only
//! there (see [`needle`]).
//!
//! ```
//! use store_conformance::Generated;
//!
//! let some: Vec<_> = Generated::new(1).take(10).collect();
//! assert_eq!(some, Generated::new(1).take(10).collect::<Vec<_>>());
//! ```

use std::collections::VecDeque;
use std::fmt::Write as _;

use memory_model::{Message, Part, RawJson, Role, Timestamp};

/// Number of messages in which one very long tool result occurs.
const THOUSAND: u64 = 1_000;
/// Length of the one long tool result in a thousand messages, in bytes.
const LONG: usize = 500_000;
/// Distance between two messages that contain a rare word, in messages.
const NEEDLE: u64 = 997;
/// Power that gives the number of words: two to this power, minus one.
const WORDS_POWER: u64 = 11;
/// Time of the first message, in microseconds since 1970: 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600_000_000;
/// Time between two messages, in microseconds.
const STEP: i64 = 7_000_000;

const COMMON: [&str; 48] = [
    "the", "of", "to", "and", "in", "is", "it", "that", "for", "with", "on", "this", "as", "are",
    "be", "we", "not", "file", "test", "error", "from", "line", "build", "when", "code", "value",
    "run", "change", "should", "can", "function", "module", "return", "config", "path", "server",
    "request", "data", "type", "check", "before", "after", "deploy", "branch", "memory", "token",
    "summary", "message",
];
const SYLLABLES: [&str; 32] = [
    "ba", "co", "de", "fi", "gu", "ha", "in", "jo", "ka", "le", "mi", "no", "or", "pe", "qua",
    "ri", "so", "ta", "un", "ve", "wi", "xe", "ya", "zo", "ster", "ment", "ing", "tion", "al",
    "er", "ly", "dor",
];
const TOOLS: [&str; 4] = ["read_file", "run_tests", "search", "edit"];

/// Endless iterator over the messages of a generated conversation.
#[derive(Debug, Clone)]
pub struct Generated {
    seed: u64,
    random: u64,
    words: Vec<String>,
    /// Messages that were generated and not returned yet.
    queue: VecDeque<Message>,
    /// Number of messages returned so far.
    given: u64,
    /// Whether the next message is the user's.
    user: bool,
    /// Position from which the next very long tool result is due.
    long_at: u64,
    needle_at: u64,
}

/// Returns the rare word with number `n`, from 1, for example `needle3x`. The word occurs once: in the first text at or
/// after message `997 * n`, counted from 0.
pub fn needle(n: u64) -> String {
    format!("needle{n}x")
}

impl Generated {
    /// Creates the iterator over the conversation for a seed. The same seed gives the same messages.
    pub fn new(seed: u64) -> Self {
        let mut made = Self {
            seed,
            random: seed,
            words: Vec::new(),
            queue: VecDeque::new(),
            given: 0,
            user: true,
            long_at: THOUSAND / 2,
            needle_at: NEEDLE,
        };
        made.words = (0..(1_usize << WORDS_POWER) - 1)
            .map(|n| match COMMON.get(n) {
                Some(word) => (*word).to_owned(),
                None => (0..2 + made.below(3))
                    .map(|_| made.pick(&SYLLABLES))
                    .collect(),
            })
            .collect();
        made
    }

    /// Returns the next random number, by SplitMix64 (Steele, Lea and Flood, 2014).
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next_random() % end.max(1)
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let at = self.below(of.len() as u64) as usize;
        of.get(at).copied().unwrap_or_default()
    }

    /// Returns a number below 2^power − 1. Each power of two is equally likely, so that number n has a frequency of
    /// 1/n, as words have.
    fn zipf(&mut self, power: u64) -> u64 {
        let bits = self.below(power);
        (1 << bits) - 1 + (self.next_random() & ((1 << bits) - 1))
    }

    /// Appends words until `text` has at least this many bytes.
    fn fill(&mut self, text: &mut String, bytes: usize) {
        while text.len() < bytes {
            let at = self.zipf(WORDS_POWER) as usize;
            text.push_str(self.words.get(at).map_or("", String::as_str));
            text.push(match self.random & 15 {
                0 => '\n',
                _ => ' ',
            });
        }
    }

    fn text(&mut self) -> String {
        // Gives lengths of 32 to 4,095 bytes.
        let power = 5 + self.below(7);
        let bytes = (1 << power) + self.below(1 << power) as usize;
        let mut text = String::with_capacity(bytes + 32);
        if self.below(17) == 0 {
            while text.len() < bytes {
                let sign = 0x4e00 + self.zipf(12) as u32;
                text.extend(char::from_u32(sign));
                if self.random & 15 == 0 {
                    text.push('，');
                }
            }
        } else {
            self.fill(&mut text, bytes);
        }
        if self.given >= self.needle_at {
            text.push_str(&needle(self.needle_at / NEEDLE));
            self.needle_at += NEEDLE;
        }
        text
    }

    /// Returns the output of a tool.
    fn output(&mut self) -> String {
        if self.given < self.long_at {
            return self.text();
        }
        self.long_at += THOUSAND;
        let mut text = String::with_capacity(LONG + 64);
        let mut line = 0;
        while text.len() < LONG {
            line += 1;
            // Writing to a string cannot fail.
            let _ = write!(text, "{line}\t");
            let end = (text.len() + 60).min(LONG);
            self.fill(&mut text, end);
            text.push('\n');
        }
        text.truncate(LONG);
        text
    }

    fn begin(&mut self) {
        if self.given > 0 && !self.user && self.below(11) < 4 {
            return self.tools();
        }
        let text = self.text();
        let message = match self.user {
            true => Message::user(text),
            false => Message::assistant(text),
        };
        self.user = !self.user;
        self.queue.push_back(message);
    }

    /// Adds a response with tool calls to the queue, and their results.
    fn tools(&mut self) {
        // One of 1, 1, 1, 1, 2 and 3: one and a half calls on average.
        let calls = self.below(6).saturating_sub(2).max(1);
        let ids: Vec<String> = (0..calls)
            .map(|_| format!("call_{:016x}", self.next_random()))
            .collect();
        let parts = ids
            .iter()
            .map(|id| {
                let tool = self.pick(&TOOLS);
                let at = self.zipf(WORDS_POWER) as usize;
                let word = self.words.get(at).cloned().unwrap_or_default();
                let arguments = [("path", format!("src/{word}.rs")), ("pattern", word)];
                let arguments: std::collections::BTreeMap<_, _> = arguments.into();
                Some(Part::ToolCall {
                    id: id.clone(),
                    name: tool.to_owned(),
                    arguments: RawJson::from_value(&arguments).ok()?,
                })
            })
            .collect::<Option<Vec<Part>>>();
        self.queue
            .push_back(Message::new(Role::Assistant, parts.unwrap_or_default()));
        for id in ids {
            let output = self.output();
            self.queue.push_back(Message::tool_result(id, output));
        }
    }
}

impl Iterator for Generated {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        if self.queue.is_empty() {
            self.begin();
        }
        let mut message = self.queue.pop_front()?;
        let random = self.next_random();
        message.external_id = Some(format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            random >> 32,
            random >> 16 & 0xffff,
            random >> 4 & 0xfff,
            self.seed & 0xfff,
            self.given
        ));
        if message.role == Role::Assistant {
            message.response = Some(format!("msg_{:016x}", self.next_random()));
        }
        let steps = i64::try_from(self.given).unwrap_or(i64::MAX);
        message.created_at = Timestamp(START.saturating_add(steps.saturating_mul(STEP)));
        self.given += 1;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(message: &Message) -> usize {
        message.body().unwrap().len()
    }

    #[test]
    fn it_has_the_stated_proportions() {
        let all: Vec<Message> = Generated::new(7).take(20_000).collect();
        let share = |is: &dyn Fn(&Message) -> bool| {
            all.iter().filter(|message| is(message)).count() as f64 / all.len() as f64
        };
        let results = share(&|message| message.role == Role::Tool);
        assert!((0.23..0.27).contains(&results), "{results}");
        let parallel = share(&|message| message.role == Role::Assistant && message.parts.len() > 1);
        assert!((0.04..0.07).contains(&parallel), "{parallel}");
        let chinese = share(&|message| {
            message
                .text()
                .chars()
                .any(|sign| sign >= '\u{4e00}' && sign != '，')
        });
        assert!((0.03..0.06).contains(&chinese), "{chinese}");
        assert_eq!(all.iter().filter(|m| size(m) > LONG).count(), 20);
        assert_eq!(all.iter().take(1_000).filter(|m| size(m) > LONG).count(), 1);
        for n in 1..=20 {
            let found = all.iter().filter(|message| {
                String::from_utf8_lossy(&message.body().unwrap()).contains(&needle(n))
            });
            assert_eq!(found.count(), 1, "{n}");
        }
    }

    #[test]
    fn its_calls_and_results_are_pairs_and_its_ids_differ() {
        let all: Vec<Message> = Generated::new(8).take(5_000).collect();
        let (mut open, mut ids) = (VecDeque::new(), std::collections::BTreeSet::new());
        for message in &all {
            assert!(ids.insert(message.external_id.clone()));
            for part in &message.parts {
                match part {
                    Part::ToolCall { id, .. } => open.push_back(id.clone()),
                    Part::ToolResult { call_id, .. } => {
                        assert_eq!(open.pop_front().as_ref(), Some(call_id));
                    }
                    _ => assert!(open.is_empty()),
                }
            }
        }
    }

    #[test]
    fn a_seed_always_gives_the_same_messages() {
        // Databases that benchmarks keep are named by this hash.
        let mut hasher = memory_model::FieldHasher::new("generated");
        for message in Generated::new(1).take(1_200) {
            hasher.hash(message.hash(&message.body().unwrap()));
        }
        assert_eq!(
            hasher.finish().to_string(),
            "2b3fbc6744a18481b4373a72d5c37b39b825fd5030251dd0436e0bab7a1d3259"
        );
        let other: Vec<Message> = Generated::new(2).take(3).collect();
        assert_ne!(other, Generated::new(1).take(3).collect::<Vec<_>>());
    }
}
