//! Helpers of the tests: conversations, compactions and checks of the stored state.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use compaction_plan::Mode;
use compaction_runner::{Compaction, Outcome, RunnerPolicy};
use context_assembler::ContextAccounting;
use dag_compactor::{DagPlanner, DagPolicy, FreshTail};
use memory_model::{
    Accounting, Child, ConversationId, LogEntry, Message, Part, RawJson, Role, Seq, SeqRange, Span,
    SpanBody, StepClock, Summary, SummaryId, Timestamp, ViewName, ViewVersion,
};
use memory_store::{
    Append, AppendAt, ConversationRef, FullStore, InMemoryStore, LogRead, NewConversation,
    NewEntry, Order, Store, fill_raw_tokens, verify,
};
use store_sqlite::{SqliteOptions, SqliteStore};
use summarize_escalation::{Ladder, OnError, Summarizer, Tier};
use token_estimate::{EstimatorId, default_estimator};

pub(crate) fn accounting() -> ContextAccounting {
    ContextAccounting::new(default_estimator())
}

pub(crate) fn view() -> ViewName {
    ViewName::new("dag")
}

/// A duration longer than any lease.
pub(crate) const AN_AGE: Duration = Duration::from_secs(2_000);

/// Returns the clock of a store. Its leases end when a test advances the clock.
pub(crate) fn lease_clock() -> Arc<StepClock> {
    Arc::new(StepClock::new(Timestamp(1_000), 0))
}

/// Returns a store in memory. Its leases end by `clock`.
pub(crate) fn in_memory(clock: &Arc<StepClock>) -> InMemoryStore {
    InMemoryStore::new().with_clock(clock.clone())
}

/// Returns a store on SQLite. Its leases end by `clock`.
pub(crate) async fn on_sqlite(clock: &Arc<StepClock>) -> SqliteStore {
    let options = SqliteOptions::new().with_clock(clock.clone());
    options.in_memory().await.unwrap()
}

/// Everything that a compaction needs in addition to a store.
pub(crate) struct Lab {
    pub(crate) planner: DagPlanner,
    pub(crate) ladder: Ladder,
    pub(crate) accounting: ContextAccounting,
    pub(crate) clock: StepClock,
    pub(crate) policy: RunnerPolicy,
}

impl Lab {
    pub(crate) fn new(policy: DagPolicy) -> Self {
        Self {
            planner: DagPlanner::new(policy),
            ladder: Ladder::default(),
            accounting: accounting(),
            clock: StepClock::new(Timestamp(1_000), 1),
            policy: RunnerPolicy::default(),
        }
    }

    pub(crate) fn with_ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// Makes leases end as soon as they are granted.
    pub(crate) fn with_brief_leases(mut self) -> Self {
        self.policy.lease_micros = 0;
        self
    }

    pub(crate) fn compaction<'a>(
        &'a self,
        store: &'a dyn Store,
        id: ConversationId,
        summarizer: &'a dyn Summarizer,
    ) -> Compaction<'a> {
        let (planner, ladder, accounting) = (&self.planner, &self.ladder, &self.accounting);
        let clock = &self.clock;
        let mut compaction =
            Compaction::new(store, id, planner, summarizer, ladder, accounting, clock);
        compaction.policy = self.policy.clone();
        compaction
    }

    pub(crate) async fn full(
        &self,
        store: &dyn Store,
        id: ConversationId,
        summarizer: &dyn Summarizer,
    ) -> Outcome {
        self.compaction(store, id, summarizer)
            .run(Mode::Full)
            .await
            .unwrap()
    }
}

/// Returns a policy with small ranges and a short tail, so that short conversations have several passes.
pub(crate) fn small() -> DagPolicy {
    DagPolicy {
        fresh_tail: FreshTail::messages(6),
        leaf_min_messages: 4,
        max_source_tokens: Some(600),
        condensed_min: 2,
        condensed_max: Some(3),
        ..DagPolicy::default()
    }
}

/// Returns a policy that summarizes whole runs of messages, and merges all neighbours of equal depth, at any cost.
pub(crate) fn plain() -> DagPolicy {
    DagPolicy {
        fresh_tail: FreshTail::messages(20),
        keep_request: false,
        max_source_tokens: None,
        condensed_max: None,
        bridge: false,
        require_gain: false,
        max_iterations: Some(10),
        ..DagPolicy::default()
    }
}

/// Returns a ladder with the tiers normal, aggressive and cut. A failure is an error, and only the length is checked.
pub(crate) fn strict() -> Ladder {
    Ladder {
        tiers: vec![Tier::Normal, Tier::Aggressive, Tier::Cut],
        on_error: OnError::Fail,
        gate: None,
        ..Ladder::default()
    }
}

/// Returns the default ladder without its gate, so that every summary is accepted whatever names it contains.
pub(crate) fn ungated() -> Ladder {
    Ladder {
        gate: None,
        ..Ladder::default()
    }
}

pub(crate) async fn open(store: &dyn Store, key: &str) -> ConversationId {
    let new = NewConversation::root(key, accounting().estimator_id(), Timestamp(1));
    store.open(&new).await.unwrap().id
}

pub(crate) async fn append(store: &dyn Store, id: ConversationId, messages: Vec<Message>) {
    let accounting = accounting();
    let entries = messages
        .into_iter()
        .map(|message| NewEntry {
            tokens: accounting.message(&message),
            message,
            clocked: false,
        })
        .collect();
    let append = Append {
        at: AppendAt::Any,
        estimator: accounting.estimator_id(),
        entries,
        now: Timestamp(2),
    };
    store.append(id, &append).await.unwrap();
}

/// Returns a store with a conversation of this many messages.
pub(crate) async fn filled<S: Store>(store: S, messages: u32) -> (S, ConversationId) {
    let id = open(&store, "chat").await;
    append(&store, id, chat(1, messages)).await;
    (store, id)
}

/// Returns questions and answers, some with a tool: `count` messages from number `from` on.
pub(crate) fn chat(from: u32, count: u32) -> Vec<Message> {
    (from..from + count)
        .map(|n| {
            let at = Timestamp(i64::from(n) * 60_000_000);
            let detail = format!("service {n} listens on port {} and logs to disk", 8000 + n);
            match n % 4 {
                1 => Message::user(format!("Step {n}: check that {detail}. ").repeat(3)),
                2 => Message::tool_call(
                    format!("c{n}"),
                    "probe",
                    RawJson::parse(format!(r#"{{"port": {}}}"#, 8000 + n)).unwrap(),
                ),
                3 => Message::tool_result(
                    format!("c{}", n - 1),
                    format!("<ok> {detail} & more\n").repeat(4),
                ),
                _ => Message::assistant(format!("Done with step {n}: {detail}. ").repeat(2)),
            }
            .with_created_at(at)
        })
        .collect()
}

/// Parses a conversation from words, one for each message: `s`ystem, `u`ser, `a`ssistant, `t`ool or `n`ote, then any of
/// `/response`, `+call` and `-result`.
pub(crate) fn script(words: &str) -> Vec<Message> {
    words
        .split_whitespace()
        .enumerate()
        .map(|(index, word)| {
            let role = match word.as_bytes()[0] {
                b's' => Role::System,
                b'u' => Role::User,
                b'a' => Role::Assistant,
                b't' => Role::Tool,
                _ => {
                    return Message::note(Role::System, vec![Part::text("a note")]);
                }
            };
            let mut message = Message::new(role, Vec::new());
            let mut rest = &word[1..];
            while !rest.is_empty() {
                let end = rest[1..]
                    .find(['/', '+', '-'])
                    .map_or(rest.len(), |n| n + 1);
                let id = &rest[1..end];
                match rest.as_bytes()[0] {
                    b'/' => message.response = Some(id.to_owned()),
                    b'+' => message.parts.push(Part::ToolCall {
                        id: id.to_owned(),
                        name: "run".to_owned(),
                        arguments: RawJson::parse("{}").unwrap(),
                    }),
                    _ => message
                        .parts
                        .extend(Message::tool_result(id, "found it").parts),
                }
                rest = &rest[end..];
            }
            message.parts.push(Part::text(
                format!("message {index} says & repeats ").repeat(index % 7),
            ));
            message.with_created_at(Timestamp(index as i64 * 1_000_000))
        })
        .collect()
}

pub(crate) async fn entries(store: &dyn Store, id: ConversationId) -> Vec<LogEntry> {
    let found = store.conversation(&ConversationRef::Id(id)).await.unwrap();
    let mut rest = found.unwrap().range();
    let mut entries = Vec::new();
    while let Some(range) = rest {
        let page = store.read(id, &LogRead::new(range)).await.unwrap();
        entries.extend(page.items);
        rest = page.next;
    }
    entries
}

pub(crate) async fn spans(store: &dyn Store, id: ConversationId) -> Vec<Span> {
    let version = store.snapshot(id, &view()).await.unwrap().version;
    spans_at(store, id, version).await
}

/// Returns the spans up to the head at a version, with the costs of raw ones.
pub(crate) async fn spans_at(
    store: &dyn Store,
    id: ConversationId,
    version: ViewVersion,
) -> Vec<Span> {
    let mut snapshot = store.snapshot(id, &view()).await.unwrap();
    snapshot.version = version;
    let mut spans = Vec::new();
    let mut rest = SeqRange::new(Seq::FIRST, snapshot.head);
    while let Some(range) = rest {
        let page = store
            .spans(&snapshot, range, Order::OldestFirst, 100)
            .await
            .unwrap();
        spans.extend(page.items);
        rest = page.next;
    }
    fill_raw_tokens(store, &snapshot, &mut spans).await.unwrap();
    spans
}

pub(crate) async fn summaries(store: &dyn Store, id: ConversationId) -> Vec<Summary> {
    let page = store.summary_log(id, None, 100_000).await.unwrap();
    assert_eq!(page.next, None);
    page.items
}

/// Returns everything that the store's traits show of a conversation.
pub(crate) async fn dump(store: &dyn Store, id: ConversationId) -> String {
    let mut out = String::new();
    let mut write = |what: &dyn std::fmt::Debug| writeln!(out, "{what:?}").unwrap();
    write(&store.conversation(&ConversationRef::Id(id)).await.unwrap());
    write(&entries(store, id).await);
    write(&store.views(id).await.unwrap());
    write(&spans(store, id).await);
    write(&summaries(store, id).await);
    let publications = store
        .publications(id, &view(), ViewVersion(0), 100_000)
        .await
        .unwrap();
    write(&publications);
    write(&store.state(id, "exhausted/dag").await.unwrap());
    out
}

/// Asserts that the stored state of a conversation is consistent.
pub(crate) async fn sound(store: &dyn FullStore, id: ConversationId) {
    let rules = |found: &EstimatorId| {
        let accounting = Arc::new(accounting());
        (*found == accounting.estimator_id()).then_some(accounting as Arc<dyn Accounting>)
    };
    let report = verify(store, id, &rules).await.unwrap();
    assert_eq!(report.violations, []);
    assert_eq!(store.check().await.unwrap(), []);
}

/// Returns the positions that the view reaches, in order, and the summaries on the way.
pub(crate) async fn reach(store: &dyn Store, id: ConversationId) -> (Vec<u32>, Vec<SummaryId>) {
    let head = store.snapshot(id, &view()).await.unwrap().head;
    let mut left: Vec<Child> = Vec::new();
    for span in spans(store, id).await.into_iter().rev() {
        let range = span.range.up_to(head).unwrap();
        left.push(match span.body {
            SpanBody::Raw => Child::Messages { range },
            SpanBody::Summary { id, .. } => Child::Summary { range, id },
            body => panic!("{body:?}"),
        });
    }
    let (mut positions, mut on_the_way) = (Vec::new(), Vec::new());
    while let Some(child) = left.pop() {
        match child {
            Child::Messages { range } => positions.extend(range.first.0..=range.last.0),
            Child::Summary { id: summary, .. } => {
                let found = store
                    .summaries(id, std::slice::from_ref(&summary))
                    .await
                    .unwrap();
                left.extend(found[0].clone().unwrap().children.into_iter().rev());
                on_the_way.push(summary);
            }
        }
    }
    (positions, on_the_way)
}

/// Asserts that the view reaches every message once and in order, and every summary except `others` of them.
pub(crate) async fn whole(store: &dyn Store, id: ConversationId, others: usize) {
    let head = store.snapshot(id, &view()).await.unwrap().head;
    let (positions, mut on_the_way) = reach(store, id).await;
    assert!(positions.into_iter().eq(1..=head.0), "each message once");
    let mut all: Vec<SummaryId> = summaries(store, id)
        .await
        .into_iter()
        .map(|s| s.id)
        .collect();
    assert_eq!(all.len(), on_the_way.len() + others);
    if others == 0 {
        all.sort();
        on_the_way.sort();
        assert_eq!(all, on_the_way);
    }
}
