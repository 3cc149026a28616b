//! What the tests share.

use memory_model::{
    Child, ConversationId, Hash, Message, Recipe, Seq, SeqRange, SourceHasher, Span, SpanBody,
    Summary, Timestamp, ViewName,
};
use memory_store::{
    Append, AppendAt, Appended, LogRead, NewConversation, NewEntry, Publish, Published, Store,
};
use store_sqlite::SqliteStore;
use tempfile::TempDir;
use token_estimate::EstimatorId;

pub(crate) fn estimator() -> EstimatorId {
    "anna@1".parse().unwrap()
}

pub(crate) fn dag() -> ViewName {
    ViewName::new("dag")
}

pub(crate) fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(Seq(first), Seq(last)).unwrap()
}

/// A store in a file of its own.
pub(crate) async fn store() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("memory.db"))
        .await
        .unwrap();
    (folder, store)
}

pub(crate) async fn root<S: Store + ?Sized>(store: &S, key: &str) -> ConversationId {
    let new = NewConversation::root(key, estimator(), Timestamp(1));
    store.open(&new).await.unwrap().id
}

pub(crate) fn batch(messages: Vec<Message>) -> Append {
    let entries = messages
        .into_iter()
        .map(|message| NewEntry {
            message,
            tokens: 3,
            clocked: false,
        })
        .collect();
    Append {
        at: AppendAt::Any,
        estimator: estimator(),
        entries,
        now: Timestamp(2),
    }
}

pub(crate) fn texts(from: u32, count: u32) -> Vec<Message> {
    (from..from + count)
        .map(|n| Message::user(format!("message {n}")).with_external_id(format!("e{n}")))
        .collect()
}

pub(crate) async fn append<S: Store + ?Sized>(
    store: &S,
    id: ConversationId,
    messages: Vec<Message>,
) -> Appended {
    store.append(id, &batch(messages)).await.unwrap()
}

/// The hashes of a range, read from the log.
async fn hashes<S: Store + ?Sized>(store: &S, id: ConversationId, at: SeqRange) -> Vec<Hash> {
    let mut rest = Some(at);
    let mut hashes = Vec::new();
    while let Some(range) = rest {
        let page = store.read(id, &LogRead::new(range)).await.unwrap();
        hashes.extend(page.items.iter().map(|entry| entry.hash));
        rest = page.next;
    }
    hashes
}

/// A summary of what is there, made from messages or from the summaries given.
pub(crate) async fn summary<S: Store + ?Sized>(
    store: &S,
    id: ConversationId,
    at: SeqRange,
    of: &[Summary],
    recipe: &str,
) -> Summary {
    let mut source = SourceHasher::new();
    let children: Vec<Child> = if of.is_empty() {
        hashes(store, id, at)
            .await
            .into_iter()
            .for_each(|hash| source.message(hash));
        vec![Child::Messages { range: at }]
    } else {
        of.iter().for_each(|summary| source.summary(summary.hash));
        of.iter()
            .map(|s| Child::Summary {
                range: s.range,
                id: s.id.clone(),
            })
            .collect()
    };
    let depth = of.iter().map(|s| s.depth + 1).max().unwrap_or(0);
    let (source_hash, recipe) = (source.finish(), Recipe::new(recipe));
    let text = format!("what happened in {at}");
    Summary {
        tokens: 5,
        source_tokens: at.len() * 3,
        created_at: Timestamp(3),
        ..Summary::new(at, depth, children, source_hash, recipe, text)
    }
}

/// What replaces `expect` by one summary.
pub(crate) fn replace(expect: Vec<Span>, summary: Summary) -> Publish {
    let body = SpanBody::Summary {
        id: summary.id.clone(),
        depth: summary.depth,
    };
    Publish {
        view: dag(),
        at: summary.range,
        expect,
        spans: vec![Span::closed(summary.range, body, summary.tokens)],
        summaries: vec![summary],
        fence: None,
        erasures: 0,
        now: Timestamp(4),
    }
}

/// Publishes a leaf over raw messages.
pub(crate) async fn leaf<S: Store + ?Sized>(
    store: &S,
    id: ConversationId,
    at: SeqRange,
) -> Summary {
    let summary = summary(store, id, at, &[], "leaf@1").await;
    let publish = replace(vec![Span::closed(at, SpanBody::Raw, 0)], summary.clone());
    let done = store.publish(id, &publish).await.unwrap();
    assert!(matches!(done, Published::Done(_)), "{done:?}");
    summary
}
