//! Messages that are erased while a compaction runs are neither published nor sent to a model afterwards.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use compaction_plan::{Mode, StopReason};
use memory_model::{ConversationId, Seq, SeqRange, Summary, Timestamp};
use memory_store::{ConversationRef, Erase, Store, erase};
use summarize_escalation::{
    Error, ExtractiveSummarizer, Source, Summarizer, SummarizerResponse, SummaryRequest,
};

use crate::world::{
    Lab, append, chat, filled, in_memory, lease_clock, on_sqlite, open, small, sound, spans,
    summaries, ungated,
};

/// Positions of the erased messages: some of the first summarized range, and some of later ones.
const ERASED: std::ops::RangeInclusive<u32> = 3..=52;

/// Returns a text that only message number `n` of [`chat`] contains.
fn mark(n: u32) -> String {
    format!("port {} ", 8000 + n)
}

/// A summarizer that repeats marks of its source. During its first call, messages are erased.
#[derive(Debug)]
struct Repeats<'s> {
    store: &'s dyn Store,
    id: ConversationId,
    /// Number of begun calls. The first four wait for each other, so that they end together.
    begun: AtomicU32,
    erased: AtomicBool,
    /// Whether the erasure is complete.
    gone: AtomicBool,
    sent_afterwards: Mutex<String>,
    /// Whether the summarizer needs no model.
    provisional: bool,
}

impl<'s> Repeats<'s> {
    fn new(store: &'s dyn Store, id: ConversationId) -> Self {
        Self {
            store,
            id,
            begun: AtomicU32::new(0),
            erased: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            sent_afterwards: Mutex::default(),
            provisional: false,
        }
    }
}

fn said(source: &[Source<'_>]) -> String {
    format!("{source:?}")
}

#[async_trait]
impl Summarizer for Repeats<'_> {
    fn id(&self) -> &str {
        "repeats@1"
    }

    fn model(&self) -> Option<&str> {
        Some("repeats")
    }

    fn provisional(&self) -> bool {
        self.provisional
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let said = said(request.source);
        if self.gone.load(Ordering::SeqCst) {
            self.sent_afterwards.lock().unwrap().push_str(&said);
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        // The call waits like a call of a model.
        while self.begun.load(Ordering::SeqCst) < 4 {
            tokio::task::yield_now().await;
        }
        if !self.erased.swap(true, Ordering::SeqCst) {
            let range = SeqRange::new(Seq(*ERASED.start()), Seq(*ERASED.end())).unwrap();
            let request = Erase::range(range, "asked for", Timestamp(5));
            let which = ConversationRef::Id(self.id);
            erase(self.store, &which, &request).await.unwrap();
            self.gone.store(true, Ordering::SeqCst);
        }
        // No other call begins before the erasure is complete.
        while !self.gone.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        let marks = (1..=64)
            .map(mark)
            .filter(|mark| said.contains(mark.as_str()));
        let marks: Vec<String> = marks.take(3).collect();
        Ok(SummarizerResponse::new(format!(
            "It was about {}.",
            marks.join("and ")
        )))
    }
}

/// Asserts that no summary contains text of an erased message.
fn says_nothing(summaries: &[Summary]) {
    for summary in summaries {
        let mut said = ERASED.filter(|n| summary.text().contains(&mark(*n)));
        assert_eq!(said.next(), None, "in {}", summary.id);
    }
}

async fn nothing_comes_back(store: &dyn memory_store::FullStore, provisional: bool) {
    let id = open(store, "chat").await;
    append(store, id, chat(1, 64)).await;
    let mut model = Repeats::new(store, id);
    model.provisional = provisional;
    let lab = Lab::new(small()).with_ladder(ungated());
    let outcome = lab.full(store, id, &model).await;
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    assert!(outcome.after.tokens < outcome.before.tokens);
    let sent = model.sent_afterwards.lock().unwrap().clone();
    let made = summaries(store, id).await;
    assert!(!made.is_empty());
    for n in ERASED {
        assert!(
            provisional || !sent.contains(&mark(n)),
            "message {n} was sent afterwards"
        );
    }
    says_nothing(&made);
    sound(store, id).await;
}

#[tokio::test]
async fn what_is_erased_while_a_model_is_asked_does_not_come_back() {
    for provisional in [false, true] {
        nothing_comes_back(&in_memory(&lease_clock()), provisional).await;
        nothing_comes_back(&on_sqlite(&lease_clock()).await, provisional).await;
    }
}

/// Prefetched summaries are drafts. An erasure deletes them, including drafts of a running prefetch.
#[tokio::test]
async fn what_is_erased_during_a_prefetch_is_not_kept_as_a_draft() {
    let (store, id) = filled(on_sqlite(&lease_clock()).await, 64).await;
    let model = Repeats::new(&store, id);
    let lab = Lab::new(small()).with_ladder(ungated());
    lab.compaction(&store, id, &model)
        .prefetch_summaries()
        .await
        .unwrap();
    let extracts = ExtractiveSummarizer::default();
    lab.compaction(&store, id, &model)
        .publish_ready()
        .await
        .unwrap();
    says_nothing(&summaries(&store, id).await);
    let outcome = lab.compaction(&store, id, &extracts).run(Mode::Full).await;
    assert_eq!(outcome.unwrap().stop_reason, StopReason::NothingEligible);
    sound(&store, id).await;
}

/// A new summary may have the same text as an erased one, but has another id.
#[tokio::test]
async fn what_is_made_anew_is_not_taken_for_what_was_erased() {
    let (store, id) = filled(in_memory(&lease_clock()), 64).await;
    let lab = Lab::new(small()).with_ladder(ungated());
    let model = summarize_escalation::testing::Scripted::fixed(Ok("They checked ports."));
    lab.full(&store, id, &model).await;
    let range = SeqRange::new(Seq(3), Seq(3)).unwrap();
    let request = Erase::range(range, "asked for", Timestamp(5));
    erase(&store, &ConversationRef::Id(id), &request)
        .await
        .unwrap();
    lab.full(&store, id, &model).await;
    let gone = store.erasures(id).await.unwrap().summaries;
    assert!(!gone.is_empty());
    for span in spans(&store, id).await {
        let shown = span.body.summary();
        assert!(shown.is_none_or(|shown| !gone.contains(shown)), "{span:?}");
    }
    sound(&store, id).await;
}
