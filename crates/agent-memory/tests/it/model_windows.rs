//! Models with small windows under the default policies. A model writes every summary.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use agent_memory::summaries::{
    ChatModel, ChatPrompt, Completion, Failure, FailureKind, ModelWindow,
};
use agent_memory::testing::memory;
use agent_memory::{Message, Mode, models::GuardPolicy, summaries::LlmSummarizer};
use token_estimate::{Exact, TokenEstimator as _};

use crate::redo::reached;

/// Number of tokens that a server adds to a request of two messages.
const FRAMING: usize = 11;

/// A model that rejects a request larger than its window, by the exact count of the tokenizer. Its answers have the
/// length that the prompt requests.
#[derive(Debug, Clone)]
struct HardWindow {
    tokens: usize,
    calls: Arc<AtomicU64>,
    refused: Arc<Mutex<Vec<String>>>,
}

#[async_trait::async_trait]
impl ChatModel for HardWindow {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let count = |text: &str| Exact::O200k.text(text) as usize;
        let input = count(&prompt.system) + count(&prompt.user) + FRAMING;
        let output = usize::try_from(prompt.max_tokens).unwrap();
        let (_, rest) = prompt.system.split_once("- About ").unwrap();
        let asked: usize = rest.split(' ').next().unwrap().parse().unwrap();
        if input + output > self.tokens || asked > input {
            let what = format!("{input} + {output} tokens, {asked} asked for");
            self.refused.lock().unwrap().push(what.clone());
            return Err(Failure::new(FailureKind::TooLong, what));
        }
        let answer = prose(number as usize, asked * 3 / 4);
        Ok(Completion::new(format!("{answer}.")))
    }
}

fn prose(seed: usize, words: usize) -> String {
    const WORDS: [&str; 16] = [
        "harbour", "lantern", "morning", "captain", "wrote", "storm", "was", "over", "every",
        "sail", "could", "mended", "before", "evening", "with", "thread",
    ];
    let word = |n: usize| WORDS[(seed * 7 + n * (seed % 5 + 3) + n / 11) % WORDS.len()];
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn small_windows_end_in_summaries_by_the_model() {
    for tokens in [4_000, 8_000, 16_000] {
        let model = HardWindow {
            tokens,
            calls: Arc::default(),
            refused: Arc::default(),
        };
        let summarizer =
            LlmSummarizer::new("m", model.clone()).with_window(ModelWindow::tokens(tokens as u64));
        let memory = memory()
            .summarizer(Arc::new(summarizer))
            .guards(GuardPolicy::default());
        let memory = memory.open().await.unwrap();
        let session = memory.session("s").await.unwrap();
        let said = (0..300).map(|n| match n % 2 {
            0 => Message::user(prose(n, 40 + n % 90)),
            _ => Message::assistant(prose(n, 300 + n * 2)),
        });
        let _ = session.ingest_batch(said.collect()).await.unwrap();
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert_eq!(model.refused.lock().unwrap().as_slice(), &[] as &[String]);
        assert!(
            outcome.published.get("leaf") > 2 && outcome.published.get("condensed") > 0,
            "{outcome:?}"
        );
        let calls = model.calls.load(Ordering::SeqCst);
        assert_eq!(outcome.calls, calls);
        let summaries = reached(&session).await;
        assert!(calls > 2 * summaries.len() as u64, "{calls} calls");
        for summary in summaries.values() {
            let told = (
                summary.provisional,
                &*summary.tier,
                summary.model.as_deref(),
            );
            assert_eq!(told, (false, "normal", Some("m")), "{tokens} {summary:?}");
        }
        assert!(session.verify().await.unwrap().is_ok());
    }
}
