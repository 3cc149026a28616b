//! Summarizers for tests: scripted ones, and ones that misbehave on purpose.
//!
//! Each summarizer counts its calls. Clones share the counter and the script, so a test can pass a clone and read the
//! count from the original.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use extractive_summarizer::cut_to_tokens;
use extractive_summarizer::text::head;
use memory_model::{Hash, LogEntry, Message, Recipe, Seq, SeqRange, Summary, SummaryId};
pub use model_client::testing::FakeTimer;
use model_client::{ChatPrompt, Failure, FailureKind, Stop};
use token_estimate::TokenEstimator;

use crate::error::Error;
use crate::prompt::{PromptSet, plain, render};
use crate::request::{Style, SummaryRequest};
use crate::summarizer::{Summarizer, SummarizerResponse};

/// Result of a call of a [`Scripted`] summarizer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Returns the given text.
    Text(String),
    /// Fails with the given message.
    Fail(String),
    /// Fails with the given kind of failure, as the client of a provider does. The duration is the wait that the
    /// provider asks for, if any.
    Failure(FailureKind, Option<Duration>),
    /// Returns an empty text.
    Empty,
    /// Returns a text of white space only.
    Blank,
    /// Returns the source twice.
    Longer,
    /// Returns the source unchanged.
    Echo,
    /// Returns words of the beginning of the source, cut to the target length. This is fast, and a ladder always accepts
    /// it.
    HeadCut,
    /// Never returns.
    Hang,
    /// Returns a polite refusal.
    Refuse,
    /// Returns half a sentence, as if the provider's output limit had been reached.
    CutOff,
    /// Returns a text in another language than the source.
    WrongLanguage,
    /// Returns the prompt.
    PromptEcho,
}

/// Returns nine ways in which a model can fail: error, empty text, white space, a text longer than the source, no
/// return, refusal, cut off, wrong language, echo of the prompt.
pub fn misbehaviours() -> [Answer; 9] {
    [
        Answer::fail("503 service unavailable"),
        Answer::Empty,
        Answer::Blank,
        Answer::Longer,
        Answer::Hang,
        Answer::Refuse,
        Answer::CutOff,
        Answer::WrongLanguage,
        Answer::PromptEcho,
    ]
}

const REFUSAL: &str = "I'm sorry, but I can't help with summarising this conversation.";
const RUSSIAN: &str = "Пользователь попросил исправить ошибку, и работа продолжается: часть проверок \
                       пройдена, остальное предстоит сделать позже.";
const JAPANESE: &str = "利用者は不具合の修正を依頼しました。作業は続いています。確認の一部は終わり、残りは後で行います。";

impl Answer {
    /// Creates an answer that returns this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Creates an answer that fails with this message.
    pub fn fail(message: impl Into<String>) -> Self {
        Self::Fail(message.into())
    }
}

/// A summarizer that gives prepared answers in order and then repeats the last one.
#[derive(Debug, Clone)]
pub struct Scripted {
    id: String,
    script: Arc<Mutex<VecDeque<Answer>>>,
    last: Answer,
    calls: Arc<AtomicU32>,
    styles: Arc<Mutex<Vec<Style>>>,
}

impl Scripted {
    /// Creates a summarizer that gives these answers in order and then repeats the last one. Without answers it returns
    /// an empty text.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let script: VecDeque<Answer> = answers.into_iter().collect();
        Self {
            id: "scripted@1".to_owned(),
            last: script.back().cloned().unwrap_or(Answer::Empty),
            script: Arc::new(Mutex::new(script)),
            calls: Arc::default(),
            styles: Arc::default(),
        }
    }

    /// Creates a summarizer with the id `id` that always gives this answer.
    fn always(id: &str, answer: Answer) -> Self {
        Self {
            id: id.to_owned(),
            ..Self::new([answer])
        }
    }

    /// Creates a summarizer that always returns the given text, or always fails with the given message.
    pub fn fixed(answer: Result<&str, &str>) -> Self {
        match answer {
            Ok(text) => Self::always("static@1", Answer::text(text)),
            Err(message) => Self::always("static@1", Answer::fail(message)),
        }
    }

    /// Creates a summarizer that always fails.
    pub fn fails() -> Self {
        Self::always("fails@1", Answer::fail("503 service unavailable"))
    }

    /// Creates a summarizer that always returns an empty text.
    pub fn empty() -> Self {
        Self::always("empty@1", Answer::Empty)
    }

    /// Creates a summarizer that always returns a text longer than its source.
    pub fn longer() -> Self {
        Self::always("longer@1", Answer::Longer)
    }

    /// Creates a summarizer that never returns.
    pub fn hangs() -> Self {
        Self::always("hangs@1", Answer::Hang)
    }

    /// Creates a summarizer that always returns its source.
    pub fn echo() -> Self {
        Self::always("echo@1", Answer::Echo)
    }

    /// Creates a summarizer that always returns the beginning of its source, cut to the target length.
    pub fn head_cut() -> Self {
        Self::always("head-cut@1", Answer::HeadCut)
    }

    /// Returns the number of calls so far, including calls of clones.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Returns the style of each call so far, in order.
    pub fn styles(&self) -> Vec<Style> {
        self.styles
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn next(&self, style: Style) -> Answer {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.styles
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(style);
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.pop_front().unwrap_or_else(|| self.last.clone())
    }
}

#[async_trait]
impl Summarizer for Scripted {
    fn id(&self) -> &str {
        &self.id
    }

    fn model(&self) -> Option<&str> {
        Some("scripted-model")
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let text = match self.next(request.style) {
            Answer::Text(text) => text,
            Answer::Fail(message) => return Err(Error::provider(&self.id, message)),
            Answer::Failure(kind, wait) => {
                let failure = Failure::new(kind, "as the script says").with_retry_after(wait);
                return Err(Error::provider(&self.id, failure));
            }
            Answer::Empty => String::new(),
            Answer::Blank => " \n\t ".to_owned(),
            Answer::Longer => plain(request.source, request.conventions).repeat(2),
            Answer::Echo => plain(request.source, request.conventions),
            Answer::HeadCut => head_cut(request),
            Answer::Hang => std::future::pending().await,
            Answer::Refuse => REFUSAL.to_owned(),
            Answer::CutOff => {
                let text = head_cut(request);
                let half = head(&text, text.len() / 2).to_owned();
                return Ok(SummarizerResponse {
                    stop: Stop::CutOff,
                    ..SummarizerResponse::new(half)
                });
            }
            Answer::WrongLanguage => {
                let source = plain(request.source, request.conventions);
                let russian = source.chars().any(|c| ('\u{400}'..='\u{4ff}').contains(&c));
                if russian { JAPANESE } else { RUSSIAN }.to_owned()
            }
            Answer::PromptEcho => {
                let prompt = render(request);
                format!("{}\n{}", prompt.system, prompt.user)
            }
        };
        Ok(SummarizerResponse::new(text))
    }
}

/// Returns five of six words of the beginning of the source, cut to the target length, with a mark at the end: a summary is no
/// copy, and not cut. Reads no more of the source than necessary.
fn head_cut(request: &SummaryRequest<'_>) -> String {
    let bytes = usize::try_from(request.target_tokens)
        .unwrap_or(usize::MAX)
        .saturating_mul(8);
    let mut text = String::new();
    for piece in request.source {
        let piece = plain(std::slice::from_ref(piece), request.conventions);
        text.push_str(head(&piece, bytes));
        if text.len() >= bytes {
            break;
        }
    }
    let mut words = 0;
    let mut kept = |word: &&str| {
        words += usize::from(!word.trim().is_empty());
        words % 6 != 0
    };
    let text: String = text
        .split_inclusive(char::is_whitespace)
        .filter(|word| kept(word))
        .collect();
    let room = request.target_tokens.saturating_sub(1);
    let cut = cut_to_tokens(text.trim_end(), room, request.estimator);
    cut.map_or_else(String::new, |text| {
        format!("{}.", text.trim_end_matches('.'))
    })
}

/// Creates log entries from messages, at positions from 1 on. The cost of each entry is the cost of its texts.
pub fn log(messages: Vec<Message>, estimator: &dyn TokenEstimator) -> Vec<LogEntry> {
    let mut running = 0_u64;
    let mut entries = Vec::with_capacity(messages.len());
    for (message, seq) in messages.into_iter().zip(1..) {
        let mut tokens = 0_u64;
        for part in &message.parts {
            part.visit_texts(&mut |text| tokens = tokens.saturating_add(estimator.text(&text)));
        }
        running = running.saturating_add(tokens);
        entries.push(LogEntry {
            seq: Seq(seq),
            message,
            tokens,
            running,
            hash: Hash::ZERO,
        });
    }
    entries
}

/// Returns the prompt of a set for a request, with as much of the source as fits in `tokens` tokens together with the
/// answer.
pub fn prompt_within(prompts: &PromptSet, request: &SummaryRequest<'_>, tokens: u64) -> ChatPrompt {
    prompts.render_within(request, tokens).prompt
}

/// Creates a summary of a range with this depth and text.
pub fn summary(range: SeqRange, depth: u32, text: &str, estimator: &dyn TokenEstimator) -> Summary {
    let recipe = Recipe::new("test");
    Summary {
        id: SummaryId::new(format!("sum_{:08x}{:08x}", range.first.0, range.last.0)),
        tokens: estimator.text(text),
        ..Summary::new(range, depth, Vec::new(), Hash::ZERO, recipe, text)
    }
}
