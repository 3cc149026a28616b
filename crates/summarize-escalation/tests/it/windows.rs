//! Models whose server refuses a request that does not fit into their window.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use memory_model::{LogEntry, Message, Seq, SeqRange, Summary};
use model_client::{ChatModel, ChatPrompt, Completion, Failure, FailureKind};
use summarize_escalation::{
    Ladder, LlmSummarizer, ModelWindow, Source, Summarizer as _, SummaryRequest, Tier, escalate,
    testing,
};
use token_estimate::{Exact, TokenEstimator, default_estimator};

/// What a server adds to a request of two messages, in tokens.
const FRAMING: u64 = 11;

const WORDS: [&str; 24] = [
    "harbour", "lantern", "morning", "the", "captain", "wrote", "that", "storm", "was", "over",
    "and", "every", "sail", "could", "be", "mended", "before", "evening", "with", "new", "thread",
    "from", "town", "market",
];

/// Prose of `words` words, which differs with `seed`.
fn prose(seed: usize, words: usize) -> String {
    let mut text = String::new();
    for n in 0..words {
        let word = WORDS[(seed * 7 + n * (seed % 5 + 3) + n / 11) % WORDS.len()];
        text.push_str(if n % 13 == 12 { ". " } else { " " });
        text.push_str(word);
    }
    text.push('.');
    text
}

/// One request, as the server saw it.
#[derive(Debug, Clone)]
struct Seen {
    /// Tokens of the prompt, by the real tokenizer.
    input: u64,
    /// Largest answer that was asked for, in tokens.
    output: u64,
    /// The length that the prompt names, in tokens.
    asked: u64,
    /// The maximum length that the prompt names, in tokens.
    most: u64,
    /// Tokens of the text between the prompt's tags.
    source: u64,
    /// Whether the source are summaries.
    merge: bool,
}

/// A model with a window: it refuses what does not fit, and answers at the length asked for.
#[derive(Debug, Clone)]
struct HardWindow {
    tokens: u64,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl HardWindow {
    fn new(tokens: u64) -> Self {
        Self {
            tokens,
            seen: Arc::default(),
        }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// The length that a prompt names.
fn asked(prompt: &ChatPrompt) -> u64 {
    let (_, rest) = prompt.system.split_once("- About ").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// The maximum length that a prompt names.
fn most(prompt: &ChatPrompt) -> u64 {
    let (_, rest) = prompt.system.split_once("never more than ").unwrap();
    rest.split('.').next().unwrap().parse().unwrap()
}

#[async_trait]
impl ChatModel for HardWindow {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let count = |text: &str| Exact::O200k.text(text);
        let text: Vec<&str> = prompt
            .user
            .lines()
            .filter(|line| !line.starts_with('<'))
            .collect();
        let seen = Seen {
            input: count(&prompt.system) + count(&prompt.user) + FRAMING,
            output: prompt.max_tokens,
            asked: asked(prompt),
            most: most(prompt),
            source: default_estimator().text(&text.join("\n")),
            merge: prompt.user.contains("<summaries"),
        };
        self.seen.lock().unwrap().push(seen.clone());
        if seen.input + seen.output > self.tokens {
            let what = format!("{} + {} tokens", seen.input, seen.output);
            return Err(Failure::new(FailureKind::TooLong, what));
        }
        let number = self.seen.lock().unwrap().len();
        let mut text = prose(number, seen.asked as usize);
        while count(&text) > seen.asked && text.len() > 8 {
            text.truncate(text.len() * 9 / 10);
        }
        Ok(Completion::new(format!("{text}.")))
    }
}

fn messages(count: usize, words: usize) -> Vec<LogEntry> {
    let messages = (0..count).map(|n| match n % 2 {
        0 => Message::user(prose(n, words)),
        _ => Message::assistant(prose(n, words * 2)),
    });
    testing::log(messages.collect(), &default_estimator())
}

fn summaries(count: u32, words: usize) -> Vec<Summary> {
    let range = |n: u32| SeqRange::new(Seq(n * 10 + 1), Seq(n * 10 + 10)).unwrap();
    (0..count)
        .map(|n| testing::summary(range(n), 0, &prose(n as usize, words), &default_estimator()))
        .collect()
}

/// Climbs the default ladder with a model of this window, and checks every request.
async fn climb(window: u64, source: &[Source<'_>]) -> Vec<Seen> {
    let estimator = default_estimator();
    let request = SummaryRequest::new(source, &estimator);
    let model = HardWindow::new(window);
    let summarizer =
        LlmSummarizer::new("m", model.clone()).with_window(ModelWindow::tokens(window));
    let outcome = escalate(&summarizer, &Ladder::default(), &request)
        .await
        .unwrap();
    let seen = model.seen();
    let about = format!("{window} of {}: {seen:#?}", request.source_tokens());
    assert_eq!(outcome.tier, Tier::Normal, "{:?} {about}", outcome.refused);
    assert!(!outcome.provisional);
    assert_eq!(outcome.model.as_deref(), Some("m"));
    assert_eq!(outcome.left_out, None);
    assert_eq!(outcome.model_calls as usize, seen.len());
    assert!(outcome.tokens_out < outcome.tokens_in);
    for call in &seen {
        assert!(call.input + call.output <= window, "{call:?} {about}");
        assert!(call.asked <= call.source, "{call:?} {about}");
        assert!(
            call.asked <= call.most && call.most <= call.output,
            "{call:?} {about}"
        );
    }
    seen
}

#[tokio::test]
async fn small_windows_end_in_summaries_of_parts_and_a_merge() {
    for window in [4_000, 8_000, 16_000] {
        for (count, words) in [(10, 80), (40, 60), (40, 220), (12, 900), (400, 30)] {
            let log = messages(count, words);
            let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
            let seen = climb(window, &source).await;
            let tokens: u64 = log.iter().map(|entry| entry.tokens).sum();
            let merges = seen.iter().filter(|call| call.merge).count();
            assert_eq!(seen.last().unwrap().merge, seen.len() > 1, "{seen:#?}");
            if tokens > window {
                assert!(seen.len() - merges > 1 && merges > 0, "{seen:#?}");
            }
        }
    }
}

#[tokio::test]
async fn small_windows_merge_summaries() {
    for window in [4_000, 8_000, 16_000] {
        for (count, words) in [(2, 300), (8, 1_500), (3, 5_000)] {
            let summaries = summaries(count, words);
            let source: Vec<Source<'_>> = summaries.iter().map(Source::from).collect();
            climb(window, &source).await;
        }
    }
}

/// With a source of next to nothing, no more is asked for than there is.
#[tokio::test]
async fn no_more_is_asked_for_than_there_is() {
    for words in [5, 8, 12, 20, 30] {
        let log = messages(1, words);
        let source = [Source::from(&log[0])];
        let seen = climb(4_000, &source).await;
        assert!(
            seen[0].asked < log[0].tokens,
            "{seen:?} of {}",
            log[0].tokens
        );
    }
}

/// A server whose window nobody told the summarizer. It names the window when it rejects a prompt. Its tokens are
/// shorter than the estimator's.
#[derive(Debug, Clone)]
struct NamesWindow {
    window: u64,
    /// Tokens for a thousand estimated ones.
    per_thousand: u64,
    /// Tokens of each prompt, and whether it was rejected.
    seen: Arc<Mutex<Vec<(u64, bool)>>>,
}

#[async_trait]
impl ChatModel for NamesWindow {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let estimator = default_estimator();
        let estimated = estimator.text(&prompt.system) + estimator.text(&prompt.user);
        let tokens = estimated * self.per_thousand / 1_000 + FRAMING;
        let rejected = tokens > self.window;
        let mut seen = self.seen.lock().unwrap();
        seen.push((tokens, rejected));
        if rejected {
            let failure = Failure::new(FailureKind::TooLong, "the prompt is too long");
            return Err(failure.with_window(Some(self.window), Some(tokens)));
        }
        Ok(Completion::new(prose(seen.len(), 60)))
    }
}

#[tokio::test]
async fn a_window_that_a_server_names_is_kept_to_from_then_on() {
    let log = messages(40, 220);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let estimator = default_estimator();
    let request = SummaryRequest {
        target_tokens: 400,
        ..SummaryRequest::new(&source, &estimator)
    };
    for (per_thousand, configured) in [
        (1_000, None),
        (1_350, None),
        (1_350, Some(12_000)),
        (1_350, Some(64_000)),
        (2_500, None),
    ] {
        let model = NamesWindow {
            window: 8_000,
            per_thousand,
            seen: Arc::default(),
        };
        let mut summarizer = LlmSummarizer::new("m", model.clone());
        if let Some(tokens) = configured {
            summarizer = summarizer.with_window(ModelWindow::tokens(tokens));
        }
        let id = summarizer.id().to_owned();
        let answer = summarizer.summarize(&request).await.unwrap();
        let seen = std::mem::take(&mut *model.seen.lock().unwrap());
        let about = format!("{per_thousand} {configured:?} {seen:?}");
        assert_eq!(answer.calls as usize, seen.len(), "{about}");
        let rejected = seen.iter().filter(|(_, rejected)| *rejected).count();
        assert!((1..=2).contains(&rejected), "{about}");
        // The next source meets no rejection, and is asked for in parts at once.
        assert!(summarizer.calls_needed(&request) > 1);
        summarizer.clone().summarize(&request).await.unwrap();
        let again = model.seen.lock().unwrap();
        assert!(
            again.iter().all(|(_, rejected)| !rejected),
            "{about} {again:?}"
        );
        assert_eq!(summarizer.id(), id, "what is stored does not depend on it");
    }
    // Without a named window the failure is the caller's.
    let model = HardWindow::new(8_000);
    let failed = LlmSummarizer::new("m", model.clone())
        .summarize(&request)
        .await;
    assert_eq!(
        failed.unwrap_err().failure().unwrap().kind(),
        FailureKind::TooLong
    );
    assert_eq!(model.seen().len(), 1);
}
