//! A conversation of a store under test.

use memory_model::{
    Accounting as _, Child, ConversationId, Hash, LogEntry, Message, RawJson, Recipe, Seq,
    SeqRange, SourceHasher, Span, SpanBody, Summary, SummaryId, Timestamp, ViewName, ViewVersion,
};
use memory_store::{
    AppendAt, Appended, Conversation, ConversationRef, Erasures, NewConversation, Origin,
    Publication, Publish, Published, Snapshot, Store, ViewInfo, read_entries, read_spans,
};

use crate::builders::{
    PlainCounts, batch, entry, message, new_conversation, range, replace, shown,
};

/// A conversation of a store, with short methods for tests. Each method panics if its call to the store fails.
#[derive(Debug)]
pub struct Chat<'a, S: ?Sized> {
    /// Store that contains the conversation.
    pub store: &'a S,
    /// Number of the conversation in the store.
    pub id: ConversationId,
}

impl<S: ?Sized> Clone for Chat<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ?Sized> Copy for Chat<'_, S> {}

/// A source from which a test summary is made.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A range of messages of the log.
    Messages(SeqRange),
    /// Another summary, which may be stored or not.
    Summary(&'a Summary),
}

#[allow(missing_docs, reason = "they are named as what they give")]
impl<'a, S: Store + ?Sized> Chat<'a, S> {
    /// Wraps a conversation that exists in the store.
    pub fn new(store: &'a S, id: ConversationId) -> Self {
        Self { store, id }
    }

    /// Opens a conversation in the store, and creates it if it does not exist.
    pub async fn open(store: &'a S, new: &NewConversation) -> Self {
        let made = store.open(new).await.expect("a conversation opens");
        Self::new(store, made.id)
    }

    /// Opens a root conversation with this key. Its costs are counted by [`PlainCounts`].
    pub async fn root(store: &'a S, key: &str) -> Self {
        Self::open(store, &new_conversation(key, Origin::Root)).await
    }

    /// Opens the root conversation with the key `chat`, and appends this number of messages with [`Self::fill`].
    pub async fn filled(store: &'a S, messages: u32) -> Self {
        let chat = Self::root(store, "chat").await;
        chat.fill(messages).await;
        chat
    }

    /// Opens a fork of the conversation with the key `key`. The last shared position is `at`.
    pub async fn fork(&self, key: &str, at: u32) -> Self {
        let (parent, at) = (self.id, Seq(at));
        Self::open(
            self.store,
            &new_conversation(key, Origin::Fork { parent, at }),
        )
        .await
    }

    /// Appends messages to the end of the log.
    pub async fn append(&self, messages: impl IntoIterator<Item = Message>) -> Appended {
        let append = batch(AppendAt::Any, messages.into_iter().map(entry));
        let appended = self.store.append(self.id, &append).await;
        appended.expect("an append at the head succeeds")
    }

    /// Appends `count` messages of similar length. Their external ids are `m1`, `m2` …, by position.
    pub async fn fill(&self, count: u32) {
        let head = self.info().await.head.0;
        let text = |seq| format!("message {seq} {}", "x ".repeat(20));
        let messages = head + 1..=head + count;
        self.append(messages.map(|seq| message(&format!("m{seq}"), &text(seq))))
            .await;
    }

    pub async fn info(&self) -> Conversation {
        let found = self.store.conversation(&ConversationRef::Id(self.id)).await;
        let found = found.expect("a conversation is looked up");
        found.expect("the conversation exists")
    }

    pub async fn entries(&self) -> Vec<LogEntry> {
        let range = self.info().await.range();
        let entries = read_entries(self.store, self.id, range).await;
        entries.expect("the log is read")
    }

    pub async fn texts(&self) -> Vec<String> {
        let entries = self.entries().await;
        entries.iter().map(|entry| entry.text()).collect()
    }

    pub async fn find(&self, ids: &[String]) -> Vec<Option<Seq>> {
        let found = self.store.find(self.id, ids).await;
        found.expect("entries are looked up")
    }

    pub async fn running(&self, at: &[Seq]) -> Vec<u64> {
        let sums = self.store.running(self.id, at).await;
        sums.expect("sums are read")
    }

    /// Makes a summary with valid hashes, depth, times and costs. Counts costs with [`PlainCounts`]. Does not store it.
    /// The recipe is `test@1`.
    ///
    /// # Panics
    /// If there are no sources, or if their messages are not in the log.
    pub async fn summary(&self, sources: &[Source<'_>], text: &str) -> Summary {
        let mut hasher = SourceHasher::new();
        let mut children = Vec::new();
        let mut source_tokens = 0;
        let mut depth = 0;
        let mut times: Vec<Timestamp> = Vec::new();
        for source in sources {
            match source {
                Source::Messages(range) => {
                    let entries = read_entries(self.store, self.id, *range).await;
                    for entry in entries.expect("the sources are read") {
                        hasher.message(entry.hash);
                        source_tokens += entry.tokens;
                        times.push(entry.created_at);
                    }
                    children.push(Child::Messages { range: *range });
                }
                Source::Summary(summary) => {
                    hasher.summary(summary.hash);
                    source_tokens += summary.tokens;
                    depth = depth.max(summary.depth + 1);
                    times.extend([summary.earliest_at, summary.latest_at]);
                    children.push(Child::Summary {
                        range: summary.range,
                        id: summary.id.clone(),
                    });
                }
            }
        }
        let first = children.iter().map(|child| child.range().first).min();
        let last = children.iter().map(|child| child.range().last).max();
        let (first, last) = first.zip(last).expect("a summary has sources");
        let range = range(first.0, last.0);
        let recipe = Recipe::new("test@1");
        Summary {
            tokens: PlainCounts.text(text),
            rendering: PlainCounts.rendering(),
            source_tokens,
            meta: RawJson::parse(r#"{"scores": 1.00}"#).ok(),
            earliest_at: times.iter().min().copied().unwrap_or_default(),
            latest_at: times.iter().max().copied().unwrap_or_default(),
            created_at: Timestamp(3),
            ..Summary::new(range, depth, children, hasher.finish(), recipe, text)
        }
    }

    /// Makes a summary of a range of messages, as [`Self::summary`] does.
    pub async fn leaf(&self, at: SeqRange, text: &str) -> Summary {
        self.summary(&[Source::Messages(at)], text).await
    }

    /// Makes a summary as [`Self::summary`] does, but for any sources, and with ranges of at most 5 messages as its
    /// children.
    pub async fn flat_summary(&self, sources: &[Source<'_>], text: &str) -> Summary {
        let mut summary = self.summary(sources, text).await;
        let (first, last) = (summary.range.first.0, summary.range.last.0);
        let pieces = (first..=last).step_by(5);
        let pieces = pieces.map(|first| range(first, last.min(first + 4)));
        summary.children = pieces.map(|range| Child::Messages { range }).collect();
        summary.depth = 0;
        summary.set_hash_and_id();
        summary
    }

    /// Publishes a summary in a view, in place of the current spans of its range.
    pub async fn show(&self, view: &str, summary: &Summary) -> Published {
        let summaries = vec![summary.clone()];
        self.put(view, summary.range, vec![shown(summary)], summaries)
            .await
    }

    /// Makes a summary of a range of messages, and publishes it in a view.
    pub async fn show_leaf(&self, view: &str, at: SeqRange, text: &str) -> Summary {
        let leaf = self.leaf(at, text).await;
        self.show(view, &leaf).await;
        leaf
    }

    /// Makes a summary of the given sources, and publishes it in a view.
    pub async fn show_summary(&self, view: &str, sources: &[Source<'_>], text: &str) -> Summary {
        let summary = self.summary(sources, text).await;
        self.show(view, &summary).await;
        summary
    }

    /// Publishes spans in a view, in place of the current spans of a range.
    pub async fn put(
        &self,
        view: &str,
        at: SeqRange,
        spans: Vec<Span>,
        summaries: Vec<Summary>,
    ) -> Published {
        let expect = self.clipped(view, at).await;
        self.publish(&replace(view, at, expect, spans, summaries))
            .await
    }

    pub async fn publish(&self, publish: &Publish) -> Published {
        let published = self.store.publish(self.id, publish).await;
        published.expect("a right publish is accepted")
    }

    pub async fn snapshot(&self, view: &str) -> Snapshot {
        let snapshot = self.store.snapshot(self.id, &ViewName::from(view)).await;
        snapshot.expect("a view is looked at")
    }

    /// Returns all current spans of a view. The last one has no end, because it grows with the log.
    pub async fn spans(&self, view: &str) -> Vec<Span> {
        let snapshot = self.snapshot(view).await;
        let all = range(1, u32::MAX);
        let spans = read_spans(self.store, &snapshot, all).await;
        spans.expect("spans are read")
    }

    /// Returns the current spans of a view that overlap a range, as a publish expects them. Raw and omitted spans are
    /// clipped to the range.
    pub async fn clipped(&self, view: &str, at: SeqRange) -> Vec<Span> {
        let mut spans = self.spans(view).await;
        spans.retain(|span| {
            span.range.first <= at.last && span.range.last.is_none_or(|last| at.first <= last)
        });
        for span in &mut spans {
            if matches!(span.body, SpanBody::Raw | SpanBody::Omitted) {
                span.range.first = span.range.first.max(at.first);
                span.range.last = Some(span.range.last.map_or(at.last, |last| last.min(at.last)));
            }
        }
        spans
    }

    pub async fn views(&self) -> Vec<ViewInfo> {
        self.store.views(self.id).await.expect("views are listed")
    }

    pub async fn publications(&self, view: &str) -> Vec<Publication> {
        let (view, first) = (ViewName::from(view), ViewVersion(0));
        let all = self.store.publications(self.id, &view, first, 1_000).await;
        all.expect("publications are listed").items
    }

    pub async fn summaries(&self, ids: &[SummaryId]) -> Vec<Option<Summary>> {
        let found = self.store.summaries(self.id, ids).await;
        found.expect("summaries are looked up")
    }

    pub async fn summary_by_id(&self, id: &SummaryId) -> Option<Summary> {
        self.summaries(std::slice::from_ref(id)).await.remove(0)
    }

    pub async fn summary_log(&self) -> Vec<Summary> {
        let all = self.store.summary_log(self.id, None, 1_000).await;
        all.expect("summaries are listed").items
    }

    pub async fn summary_by_source(&self, source: Hash, recipe: &Recipe) -> Option<Summary> {
        let sources = [(source, recipe.clone())];
        let found = self.store.summaries_by_source(self.id, &sources).await;
        found.expect("summaries are looked up").remove(0)
    }

    pub async fn parents(&self, summary: &SummaryId) -> Vec<SummaryId> {
        let parents = self.store.parents(self.id, summary).await;
        parents.expect("parents are listed")
    }

    pub async fn erasures(&self) -> Erasures {
        let erasures = self.store.erasures(self.id).await;
        erasures.expect("erasures are listed")
    }

    /// Returns the positions of all messages that a summary covers. Follows its children down to the messages.
    pub async fn expand(&self, summary: &SummaryId) -> Vec<Seq> {
        let mut positions = Vec::new();
        // A stack of the children to follow. The next child is on top.
        let mut left = vec![Child::Summary {
            range: SeqRange::single(Seq::FIRST),
            id: summary.clone(),
        }];
        while let Some(child) = left.pop() {
            match child {
                Child::Messages { range } => {
                    positions.extend((range.first.0..=range.last.0).map(Seq))
                }
                Child::Summary { id, .. } => {
                    let found = self.summary_by_id(&id).await;
                    let found = found.unwrap_or_else(|| panic!("{id} exists"));
                    left.extend(found.children.into_iter().rev());
                }
            }
        }
        positions
    }
}
