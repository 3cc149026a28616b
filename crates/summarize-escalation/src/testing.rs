//! Summarizers for tests: scripted ones, and ones that misbehave on purpose.
//!
//! Each counts its calls. Clones share their counter and their script, so a test keeps one and
//! hands the other out.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use memory_model::{Hash, LogEntry, Message, Recipe, Seq, SeqRange, Summary, SummaryId, Timestamp};
use token_estimate::TokenEstimator;

use crate::prompt::{plain, render};
use crate::{
    Error, Failure, FailureKind, Stop, Style, Summarizer, SummaryRequest, SummaryText, Timer,
    cut_to_tokens,
};

/// What a scripted summarizer does when it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Returns this text.
    Text(String),
    /// Fails with this message.
    Fail(String),
    /// Fails in this way, as a provider's client does; the provider may ask for a wait.
    Failure(FailureKind, Option<Duration>),
    /// Returns an empty text.
    Empty,
    /// Returns white space.
    Blank,
    /// Returns its source twice.
    Longer,
    /// Returns its source as it is.
    Echo,
    /// Returns the beginning of its source, as long as its target: quick, and always accepted.
    HeadCut,
    /// Never returns.
    Hang,
    /// Declines, politely.
    Refuse,
    /// Returns half a sentence, its provider's limit reached.
    CutOff,
    /// Returns a text in a language that the source is not in.
    WrongLanguage,
    /// Returns its prompt.
    PromptEcho,
    /// Returns a wish of the user's that no user uttered.
    InventedDirective,
}

/// The ways in which a model fails its user: error, empty, white space, longer than the source,
/// hang, refusal, cut off, wrong language, echo of the prompt, invented directive.
pub fn misbehaviours() -> [Answer; 10] {
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
        Answer::InventedDirective,
    ]
}

const REFUSAL: &str = "I'm sorry, but I can't help with summarising this conversation.";
const RUSSIAN: &str = "Пользователь попросил исправить ошибку, и работа продолжается: часть проверок \
                       пройдена, остальное предстоит сделать позже.";
const JAPANESE: &str = "利用者は不具合の修正を依頼しました。作業は続いています。確認の一部は終わり、残りは後で行います。";
const INVENTED: &str = "The user insists that every invoice is mailed to the accounting office \
                        before the harvest festival.";

impl Answer {
    /// Returns this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Fails with this message.
    pub fn fail(message: impl Into<String>) -> Self {
        Self::Fail(message.into())
    }
}

/// A summarizer that does what it is told, call by call; its last answer is repeated.
#[derive(Debug, Clone)]
pub struct Scripted {
    id: String,
    script: Arc<Mutex<VecDeque<Answer>>>,
    last: Answer,
    calls: Arc<AtomicU32>,
    styles: Arc<Mutex<Vec<Style>>>,
}

impl Scripted {
    /// Gives these answers in order, and the last of them for ever; with none, it returns nothing.
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

    /// Always does the same.
    fn always(id: &str, answer: Answer) -> Self {
        Self {
            id: id.to_owned(),
            ..Self::new([answer])
        }
    }

    /// Always returns this text, or always fails with this message (anna's `StaticSummarizer`).
    pub fn fixed(answer: Result<&str, &str>) -> Self {
        match answer {
            Ok(text) => Self::always("static@1", Answer::text(text)),
            Err(message) => Self::always("static@1", Answer::fail(message)),
        }
    }

    /// Always fails.
    pub fn fails() -> Self {
        Self::always("fails@1", Answer::fail("503 service unavailable"))
    }

    /// Always returns nothing.
    pub fn empty() -> Self {
        Self::always("empty@1", Answer::Empty)
    }

    /// Always returns more than it got.
    pub fn longer() -> Self {
        Self::always("longer@1", Answer::Longer)
    }

    /// Never returns.
    pub fn hangs() -> Self {
        Self::always("hangs@1", Answer::Hang)
    }

    /// Always returns its source.
    pub fn echo() -> Self {
        Self::always("echo@1", Answer::Echo)
    }

    /// Always returns the beginning of its source, as long as its target.
    pub fn head_cut() -> Self {
        Self::always("head-cut@1", Answer::HeadCut)
    }

    /// How often it was called, clones included.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    /// The style of each call.
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

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error> {
        let text = match self.next(request.style) {
            Answer::Text(text) => text,
            Answer::Fail(message) => return Err(Error::provider(&self.id, message)),
            Answer::Failure(kind, wait) => {
                let failure = Failure::new(kind, "as the script says").with_retry_after(wait);
                return Err(Error::provider(&self.id, failure));
            }
            Answer::Empty => String::new(),
            Answer::Blank => " \n\t ".to_owned(),
            Answer::Longer => plain(request.source).repeat(2),
            Answer::Echo => plain(request.source),
            Answer::HeadCut => head_cut(request),
            Answer::Hang => std::future::pending().await,
            Answer::Refuse => REFUSAL.to_owned(),
            Answer::CutOff => {
                let text = head_cut(request);
                let half = crate::cut::floor(&text, text.len() / 2).to_owned();
                return Ok(SummaryText::new(half).with_stop(Stop::CutOff));
            }
            Answer::WrongLanguage => {
                let source = plain(request.source);
                let russian = source.chars().any(|c| ('\u{400}'..='\u{4ff}').contains(&c));
                if russian { JAPANESE } else { RUSSIAN }.to_owned()
            }
            Answer::PromptEcho => {
                let prompt = render(request);
                format!("{}\n{}", prompt.system, prompt.user)
            }
            Answer::InventedDirective => INVENTED.to_owned(),
        };
        Ok(SummaryText::new(text))
    }
}

/// Reads no more of the source than it needs.
fn head_cut(request: &SummaryRequest<'_>) -> String {
    let bytes = usize::try_from(request.target_tokens)
        .unwrap_or(usize::MAX)
        .saturating_mul(8);
    let mut text = String::new();
    for piece in request.source {
        let piece = plain(std::slice::from_ref(piece));
        text.push_str(crate::cut::floor(&piece, bytes));
        if text.len() >= bytes {
            break;
        }
    }
    cut_to_tokens(&text, request.target_tokens, request.estimator).unwrap_or_default()
}

/// Time that passes only when a test says so, and then at once.
///
/// Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct FakeTimer {
    state: Arc<Mutex<Times>>,
}

#[derive(Debug, Default)]
struct Times {
    now: Duration,
    next: u64,
    /// When each wait that was begun ends, and who waits.
    until: BTreeMap<u64, (Duration, Waker)>,
    waited: Vec<Duration>,
}

/// A wait that is under way.
#[derive(Debug)]
struct Wait {
    timer: FakeTimer,
    number: u64,
    until: Duration,
}

/// Whether a future wants to be polled again.
#[derive(Debug)]
struct Woken(AtomicBool);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.timer.lock().until.remove(&self.number);
    }
}

impl FakeTimer {
    /// A timer at zero.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets so much time pass.
    pub fn advance(&self, time: Duration) {
        let mut state = self.lock();
        state.now = state.now.saturating_add(time);
        for (until, waker) in state.until.values() {
            if *until <= state.now {
                waker.wake_by_ref();
            }
        }
    }

    /// How long each wait was to be, in the order of their beginning.
    pub fn waits(&self) -> Vec<Duration> {
        self.lock().waited.clone()
    }

    /// Runs a future to its end. Whenever it gets no further, time jumps to the end of the wait
    /// that ends first; `None` when it waits for something else than time.
    pub fn drive<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        loop {
            while woken.0.swap(false, Ordering::SeqCst) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return Some(output);
                }
            }
            let until = self.lock().until.values().map(|wait| wait.0).min()?;
            let now = self.now();
            self.advance(until.saturating_sub(now));
        }
    }
}

#[async_trait]
impl Timer for FakeTimer {
    fn now(&self) -> Duration {
        self.lock().now
    }

    async fn sleep(&self, duration: Duration) {
        let wait = {
            let mut state = self.lock();
            let until = state.now.saturating_add(duration);
            let number = state.next;
            state.next += 1;
            state.waited.push(duration);
            Wait {
                timer: self.clone(),
                number,
                until,
            }
        };
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            if state.now >= wait.until {
                return Poll::Ready(());
            }
            let waiting = (wait.until, context.waker().clone());
            state.until.insert(wait.number, waiting);
            Poll::Pending
        })
        .await;
        drop(wait);
    }
}

/// Log entries of these messages, from `seq` 1, counted by the text of each.
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

/// A summary of a range that says `text`.
pub fn summary(range: SeqRange, depth: u32, text: &str, estimator: &dyn TokenEstimator) -> Summary {
    Summary {
        id: SummaryId::new(format!("sum_{:08x}{:08x}", range.first.0, range.last.0)),
        range,
        depth,
        children: Vec::new(),
        text: text.to_owned(),
        messages: None,
        tokens: estimator.text(text),
        source_tokens: 0,
        provisional: false,
        recipe: Recipe::new("test"),
        tier: "normal".to_owned(),
        model: None,
        meta: None,
        earliest_at: Timestamp::default(),
        latest_at: Timestamp::default(),
        created_at: Timestamp::default(),
        source_hash: Hash::ZERO,
        hash: Hash::ZERO,
    }
}
