//! A small store with valid hashes.

use std::sync::Arc;

use memory_model::{
    Accounting, Child, ConversationId, Message, Recipe, RenderingId, Seq, SeqRange, SourceHasher,
    Span, SpanBody, Summary, SummaryId, Timestamp, ViewName,
};
use memory_store::{
    Append, AppendAt, InMemoryStore, NewConversation, NewEntry, Origin, Publish, Published, Store,
    read_entries, verify,
};
use retrieval_tools::{
    ExpandAnswer, ExpandArgs, FilesAnswer, FilesArgs, GrepAnswer, GrepArgs, Retrieval,
};
use token_estimate::{EstimatorId, HeuristicEstimator, TokenEstimator};

#[derive(Debug)]
pub(crate) struct Counts(pub(crate) HeuristicEstimator);

impl Accounting for Counts {
    fn rendering(&self) -> RenderingId {
        RenderingId::new("text@1")
    }

    fn estimator(&self) -> &dyn TokenEstimator {
        &self.0
    }

    fn summary(&self, summary: &Summary) -> u64 {
        self.0.text(summary.text())
    }
}

pub(crate) struct World {
    pub(crate) store: Arc<InMemoryStore>,
    pub(crate) chat: ConversationId,
    preset: HeuristicEstimator,
}

pub(crate) fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(Seq(first), Seq(last)).unwrap()
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp(1_767_225_600_000_000 + seconds * 1_000_000)
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::counting(HeuristicEstimator::Bytes4).await
    }

    pub(crate) async fn counting(preset: HeuristicEstimator) -> Self {
        let store = Arc::new(InMemoryStore::new());
        let new = NewConversation::root("main", preset.id(), at(0));
        let chat = store.open(&new).await.unwrap().id;
        Self {
            store,
            chat,
            preset,
        }
    }

    /// Creates another conversation in the same store.
    pub(crate) async fn open(&self, key: &str, origin: Origin) -> World {
        let mut new = NewConversation::root(key, self.preset.id(), at(0));
        new.origin = origin;
        World {
            store: Arc::clone(&self.store),
            chat: self.store.open(&new).await.unwrap().id,
            preset: self.preset,
        }
    }

    pub(crate) async fn say(&self, messages: Vec<Message>) {
        let entries = messages
            .into_iter()
            .map(|message| NewEntry {
                tokens: self.preset.message(&message),
                message,
                clocked: false,
            })
            .collect();
        let append = Append {
            at: AppendAt::Any,
            estimator: self.preset.id(),
            entries,
            now: at(0),
        };
        self.store.append(self.chat, &append).await.unwrap();
    }

    /// Appends `count` short messages of alternating roles, numbered from `first`.
    pub(crate) async fn chatter(&self, first: u32, count: u32) {
        let messages = (first..first + count)
            .map(|n| {
                let text = format!("message number {n}");
                let message = match n % 2 {
                    1 => Message::user(text),
                    _ => Message::assistant(text),
                };
                message
                    .with_external_id(format!("m{n}"))
                    .with_created_at(at(i64::from(n)))
            })
            .collect();
        self.say(messages).await;
    }

    pub(crate) async fn message(&self, seq: u32) -> memory_model::LogEntry {
        let read = read_entries(&*self.store, self.chat, range(seq, seq));
        read.await.unwrap().remove(0)
    }

    pub(crate) async fn leaf(&self, over: SeqRange, text: &str) -> Summary {
        self.summarize(vec![Child::Messages { range: over }], text)
            .await
    }

    /// Creates and publishes a summary of children that the view currently shows.
    pub(crate) async fn summarize(&self, children: Vec<Child>, text: &str) -> Summary {
        let over = SeqRange::new(
            children.first().unwrap().range().first,
            children.last().unwrap().range().last,
        )
        .unwrap();
        let mut source = SourceHasher::new();
        let mut depth = 0;
        let mut source_tokens = 0;
        let mut expect = Vec::new();
        for child in &children {
            match child {
                Child::Messages { range } => {
                    let read = read_entries(&*self.store, self.chat, *range);
                    for entry in read.await.unwrap() {
                        source.message(entry.hash);
                        source_tokens += entry.tokens;
                    }
                    expect.push(Span::closed(*range, SpanBody::Raw, 0));
                }
                Child::Summary { range, id } => {
                    let found = self.get(id).await;
                    source.summary(found.hash);
                    source_tokens += found.tokens;
                    depth = depth.max(found.depth + 1);
                    let body = SpanBody::Summary {
                        id: id.clone(),
                        depth: found.depth,
                    };
                    expect.push(Span::closed(*range, body, found.tokens));
                }
            }
        }
        let source_hash = source.finish();
        let recipe = Recipe::new("test@1");
        let summary = Summary {
            tokens: self.preset.text(text),
            rendering: RenderingId::new("text@1"),
            source_tokens,
            provisional: true,
            tier: "extractive".to_owned(),
            earliest_at: at(i64::from(over.first.0)),
            latest_at: at(i64::from(over.last.0)),
            created_at: at(3600),
            ..Summary::new(over, depth, children, source_hash, recipe, text)
        };
        let body = SpanBody::Summary {
            id: summary.id.clone(),
            depth,
        };
        let publish = Publish {
            view: ViewName::new("dag"),
            at: over,
            expect,
            spans: vec![Span::closed(over, body, summary.tokens)],
            summaries: vec![summary.clone()],
            fence: None,
            erasures: 0,
            now: at(3600),
        };
        let done = self.store.publish(self.chat, &publish).await.unwrap();
        assert!(matches!(done, Published::Done(_)), "{done:?}");
        summary
    }

    async fn get(&self, id: &SummaryId) -> Summary {
        let ids = std::slice::from_ref(id);
        let mut found = self.store.summaries(self.chat, ids).await.unwrap();
        found.remove(0).unwrap()
    }

    pub(crate) fn tools(&self) -> Retrieval {
        let store = Arc::clone(&self.store);
        Retrieval::new(store, self.chat, Arc::new(Counts(self.preset)))
    }

    /// Checks that the store passes verification.
    pub(crate) async fn check(&self) {
        let preset = self.preset;
        let counts = move |_: &EstimatorId| Some(Arc::new(Counts(preset)) as Arc<dyn Accounting>);
        let report = verify(&*self.store, self.chat, &counts).await.unwrap();
        assert!(report.violations.is_empty(), "{:?}", report.violations);
    }
}

pub(crate) fn child(summary: &Summary) -> Child {
    Child::Summary {
        range: summary.range,
        id: summary.id.clone(),
    }
}

/// Creates twenty messages under two leaf summaries, under a condensed summary that also contains two messages
/// directly.
pub(crate) async fn tree() -> (World, [Summary; 3]) {
    let world = World::new().await;
    world.chatter(1, 30).await;
    let a = world
        .leaf(
            range(1, 8),
            "The first eight: deploys wait for green tests.",
        )
        .await;
    let b = world
        .leaf(range(11, 20), "Ten more: the cache is warm.")
        .await;
    let top = world
        .summarize(
            vec![
                child(&a),
                Child::Messages {
                    range: range(9, 10),
                },
                child(&b),
            ],
            "All of the start: green tests, warm cache.",
        )
        .await;
    (world, [a, b, top])
}

/// Returns all answers of a tool, page by page. `rest` returns whether an answer is complete, and its cursor.
async fn all<T>(
    ask: impl AsyncFn(Option<String>) -> T,
    rest: impl Fn(&T) -> (bool, Option<String>),
) -> Vec<T> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let answer = ask(cursor).await;
        let (complete, next) = rest(&answer);
        assert_eq!(complete, next.is_none());
        pages.push(answer);
        assert!(pages.len() < 20_000, "paging does not end");
        if next.is_none() {
            return pages;
        }
        cursor = next;
    }
}

/// Returns all answers of `grep`, page by page.
pub(crate) async fn pages(tools: &Retrieval, args: GrepArgs) -> Vec<GrepAnswer> {
    let ask = async |cursor: Option<String>| {
        let mut args = args.clone();
        args.cursor = cursor.or(args.cursor);
        tools.grep(args).await.unwrap()
    };
    all(ask, |answer| (answer.complete, answer.cursor.clone())).await
}

/// Returns all answers of `expand`, page by page.
pub(crate) async fn expanded(tools: &Retrieval, args: ExpandArgs) -> Vec<ExpandAnswer> {
    let ask = async |cursor: Option<String>| {
        let mut args = args.clone();
        args.cursor = cursor.or(args.cursor);
        tools.expand(args).await.unwrap()
    };
    all(ask, |answer| (answer.complete, answer.cursor.clone())).await
}

/// Returns all answers of `files`, page by page.
pub(crate) async fn used(tools: &Retrieval, args: FilesArgs) -> Vec<FilesAnswer> {
    let ask = async |cursor: Option<String>| {
        let mut args = args.clone();
        args.cursor = cursor.or(args.cursor);
        tools.files(args).await.unwrap()
    };
    all(ask, |answer| (answer.complete, answer.cursor.clone())).await
}

/// A trait for setting fields of a value.
pub(crate) trait Set: Sized {
    fn set(mut self, set: impl FnOnce(&mut Self)) -> Self {
        set(&mut self);
        self
    }
}

impl<T> Set for T {}
