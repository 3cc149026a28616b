//! The stores under test with their models, and the effect of each step on all of them.

use std::fmt::Debug;
use std::time::Duration;

use memory_model::{
    Child, ConversationId, Message, Part, RawJson, Role, Seq, SeqRange, Span, SpanBody, Summary,
    Timestamp, TrimPolicyId,
};
use memory_store::{
    Append, AppendAt, Claim, Draft, Erase, ErrorKind, Fence, InMemoryStore, JobKey, LeaseUpdate,
    NewConversation, Origin, Owner, Publish, Published, Result, Store,
};

use super::op::{Op, Shown};
use super::simple::Simple;
use crate::Fixture;
use crate::builders::{batch, entry, new_conversation, range, raw, replace, shown};
use crate::chat::{Chat, Source};

/// Returns the time-to-live of a lease: longer than the test, or zero.
fn ttl(lasting: bool) -> Duration {
    match lasting {
        true => Duration::from_secs(3_600),
        false => Duration::ZERO,
    }
}

pub(super) struct World<'a, F: Fixture> {
    fixture: &'a F,
    store: Option<F::Store>,
    /// A second store on the same data, if the fixture can open one.
    other: Option<F::Store>,
    pub(super) reference: InMemoryStore,
    pub(super) simple: Simple,
    pub(super) chats: Vec<ConversationId>,
    /// Fences of the same grants: the fence in the tested store, and the fence in the reference.
    fences: Vec<(Fence, Fence)>,
    clock: i64,
}

pub(super) type Checked<T> = std::result::Result<T, String>;

/// Returns both answers as one if they agree. Two errors agree if they have the same kind.
pub(super) fn same<T: PartialEq + Debug>(
    what: &str,
    store: Result<T>,
    reference: Result<T>,
) -> Checked<Result<T>> {
    match (store, reference) {
        (Ok(a), Ok(b)) if a == b => Ok(Ok(a)),
        (Err(a), Err(b)) if a.kind() == b.kind() => Ok(Err(a)),
        (a, b) => Err(format!(
            "{what}: the store says\n{a:?}\nthe reference says\n{b:?}"
        )),
    }
}

/// Makes a call on both stores and compares the answers.
macro_rules! both {
    ($world:expr, $call:ident($($arg:expr),*)) => {
        same(
            stringify!($call),
            $world.store().$call($($arg),*).await,
            $world.reference.$call($($arg),*).await,
        )
    };
}

pub(super) use both;

pub(super) const VIEWS: [&str; 2] = ["dag", "blocks"];

impl<'a, F: Fixture> World<'a, F> {
    /// Creates an empty store with the fixture, together with its reference and its model.
    pub(super) async fn new(fixture: &'a F) -> Self {
        let store = fixture.fresh().await;
        Self {
            fixture,
            other: fixture.second_store(&store).await,
            store: Some(store),
            reference: InMemoryStore::new(),
            simple: Simple::default(),
            chats: Vec::new(),
            fences: Vec::new(),
            clock: 0,
        }
    }

    pub(super) fn store(&self) -> &F::Store {
        self.store.as_ref().expect("the store is open")
    }

    /// Returns a conversation of the reference store.
    pub(super) fn expected(&self, chat: ConversationId) -> Chat<'_, InMemoryStore> {
        Chat::new(&self.reference, chat)
    }

    fn chat(&self, n: u8) -> ConversationId {
        self.chats[usize::from(n) % self.chats.len()]
    }

    fn now(&mut self) -> Timestamp {
        self.clock += 10;
        Timestamp(self.clock)
    }

    async fn open(&mut self, origin: Origin) -> Checked<()> {
        let key = format!("chat {}", self.chats.len());
        let new = NewConversation {
            now: self.now(),
            ..new_conversation(&key, origin.clone())
        };
        let Ok(made) = both!(self, open(&new))? else {
            return Ok(());
        };
        let shared = match origin {
            Origin::Fork { parent, at } => self.simple.logs[&parent][..at.0 as usize].to_vec(),
            _ => Vec::new(),
        };
        self.simple.logs.insert(made.id, shared);
        if let Origin::Fork { parent, at } = origin {
            for view in VIEWS {
                let bodies = self.inherited(parent, view, at).await;
                let key = (made.id, view.to_owned());
                self.simple.views.insert(key, bodies);
            }
        }
        self.chats.push(made.id);
        Ok(())
    }

    /// Returns the expected span body of each position of a new fork. A position has the largest summary that covers no
    /// position after the last shared one, among the summaries that the parent shows there and their children.
    async fn inherited(&self, parent: ConversationId, view: &str, at: Seq) -> Vec<SpanBody> {
        let key = (parent, view.to_owned());
        let mut shown = self.simple.views.get(&key).cloned().unwrap_or_default();
        shown.resize(shown.len().max(at.0 as usize + 1), SpanBody::Raw);
        let spans = self.expected(parent).spans(view).await;
        let mut bodies = Vec::new();
        for position in (1..=at.0).map(Seq) {
            let mut body = shown[position.0 as usize - 1].clone();
            while let SpanBody::Summary { id, .. } = &body {
                let summary = self.expected(parent).summary_by_id(id).await;
                let summary = summary.expect("what is shown exists");
                if summary.range.last <= at {
                    break;
                }
                let covers = |child: &&Child| child.range().contains(position);
                let child = summary.children.iter().find(covers);
                body = match child.and_then(|child| child.summary()) {
                    None => SpanBody::Raw,
                    Some(id) => {
                        let child = self.expected(parent).summary_by_id(id).await;
                        crate::shown(&child.expect("a child exists")).body
                    }
                };
            }
            // Trimmed messages become raw if their span continues after the last shared position.
            let holds = |span: &&Span| {
                span.range.first <= position && span.range.last.is_none_or(|l| l >= position)
            };
            let crosses = |span: &Span| span.range.last.is_none_or(|last| last > at);
            if matches!(body, SpanBody::Trimmed(_)) && spans.iter().find(holds).is_some_and(crosses)
            {
                body = SpanBody::Raw;
            }
            bodies.push(body);
        }
        bodies
    }

    pub(super) async fn step(&mut self, op: &Op) -> Checked<()> {
        match op {
            Op::Root => self.open(Origin::Root).await?,
            Op::Fork { parent, at } => {
                let parent = self.chat(*parent);
                let head = self.expected(parent).info().await.head.0;
                // Some of the positions are beyond the end of the log.
                let at = Seq(u32::from(*at) % (head + 2));
                self.open(Origin::Fork { parent, at }).await?;
            }
            Op::Spawn { parent, at } => {
                let parent = self.chat(*parent);
                let (at, call) = (Seq(u32::from(*at)), (at % 2 == 0).then(|| at.to_string()));
                self.open(Origin::Spawn { parent, at, call }).await?;
            }
            Op::Append {
                chat,
                texts,
                demand_head,
            } => {
                self.append(self.chat(*chat), texts, *demand_head).await?;
            }
            Op::Summarize {
                chat,
                view,
                first,
                len,
                text,
                stale,
                fenced,
            } => {
                let chat = self.chat(*chat);
                let view = VIEWS[usize::from(*view) % VIEWS.len()];
                let Some(at) = self.whole_spans(chat, view, *first, *len).await else {
                    return Ok(());
                };
                let said = format!("summary {} of {at}", text % 3);
                let summary = self.summary(chat, view, at, &said, text / 3 % 2 == 1).await;
                let mut expect = self.expected(chat).clipped(view, at).await;
                if *stale {
                    expect.truncate(expect.len() / 2);
                }
                let spans = vec![shown(&summary)];
                let mut publish = replace(view, at, expect, spans, vec![summary]);
                publish.now = self.now();
                if *text < 200 {
                    publish.erasures = self.expected(chat).info().await.erasures;
                }
                let fences = self.fences.last().filter(|_| *fenced).cloned();
                self.publish(chat, view, publish, fences).await?;
            }
            Op::Show {
                chat,
                view,
                first,
                len,
                body,
            } => {
                let chat = self.chat(*chat);
                let view = VIEWS[usize::from(*view) % VIEWS.len()];
                let head = self.expected(chat).info().await.head.0;
                if head == 0 {
                    return Ok(());
                }
                // The range may cut a span that cannot be divided. Both stores must then refuse.
                let first = u32::from(*first) % head + 1;
                let last = (first + u32::from(len % 6)).min(head);
                let at = range(first, last);
                let (body, tokens) = match body {
                    Shown::Raw => (SpanBody::Raw, 0),
                    Shown::Omitted => (SpanBody::Omitted, 0),
                    Shown::Trimmed(n) => (
                        SpanBody::Trimmed(TrimPolicyId::new(format!("t@{n}"))),
                        u64::from(*n) + 3,
                    ),
                };
                let expect = self.expected(chat).clipped(view, at).await;
                let spans = vec![Span::closed(at, body, tokens)];
                let mut publish = replace(view, at, expect, spans, vec![]);
                publish.erasures = self.expected(chat).info().await.erasures;
                publish.now = self.now();
                self.publish(chat, view, publish, None).await?;
            }
            Op::Odd {
                chat,
                first,
                len,
                expect_first,
                span_len,
            } => {
                let odd = |first: u8, len: u8| {
                    let first = 1 + u32::from(first % 40);
                    range(first, first + u32::from(len % 10))
                };
                let at = odd(*first, *len);
                let expect = vec![raw(odd(*expect_first, *len))];
                let spans = vec![Span::closed(odd(*first, *span_len), SpanBody::Omitted, 0)];
                let mut publish = replace("dag", at, expect, spans, vec![]);
                publish.now = self.now();
                self.publish(self.chat(*chat), "dag", publish, None).await?;
            }
            Op::Claim {
                chat,
                job,
                owner,
                lasting,
            } => {
                let (chat, ttl) = (self.chat(*chat), ttl(*lasting));
                let job = JobKey(format!("job {}", job % 3));
                let owner = Owner(format!("owner {}", owner % 3));
                // Each store chooses the numbers of its fences. They only have to rise.
                let erasures = match lasting {
                    true => self.expected(chat).info().await.erasures,
                    false => 0,
                };
                let store = self.store().claim(chat, &job, &owner, ttl, erasures);
                let store = store.await.map_err(|e| e.to_string())?;
                let reference = self.reference.claim(chat, &job, &owner, ttl, erasures);
                let reference = reference.await.map_err(|e| e.to_string())?;
                self.claimed(store, reference)?;
            }
            Op::Settle { fence, outcome } => {
                if self.fences.is_empty() {
                    return Ok(());
                }
                let fence = self.fences[usize::from(*fence) % self.fences.len()].clone();
                let outcome = match outcome % 4 {
                    0 => LeaseUpdate::Renew {
                        ttl: ttl(outcome & 4 == 0),
                    },
                    1 => LeaseUpdate::Prepared(Draft(RawJson::parse("[1]").expect("this is JSON"))),
                    2 => LeaseUpdate::Failed,
                    _ => LeaseUpdate::Release,
                };
                same(
                    "settle",
                    self.store().settle(&fence.0, &outcome).await,
                    self.reference.settle(&fence.1, &outcome).await,
                )?
                .ok();
            }
            Op::PutState {
                chat,
                revision,
                remove,
            } => {
                let value = RawJson::parse(revision.to_string()).expect("a number is JSON");
                let value = (!remove).then_some(&value);
                let (chat, revision) = (self.chat(*chat), u64::from(revision % 3));
                both!(self, put_state(chat, "key", revision, value))?.ok();
                both!(self, state(chat, "key"))?.ok();
            }
            Op::Erase { chat, first, len } => {
                let chat = self.chat(*chat);
                let head = self.expected(chat).info().await.head.0;
                let first = u32::from(*first) % (head + 1) + 1;
                let gone = range(first, first + u32::from(len % 4));
                let erase = Erase::range(gone, "asked for", self.now());
                if let Ok(erased) = both!(self, erase(chat, &erase))? {
                    self.simple.erased(&erased);
                }
                both!(self, erasures(chat))?.ok();
            }
            Op::Switch => {
                if self.other.is_some() {
                    std::mem::swap(&mut self.store, &mut self.other);
                }
            }
            Op::Reopen => {
                let store = self.store.take().expect("the store is open");
                self.store = Some(self.fixture.reopen(store).await);
            }
        }
        Ok(())
    }

    async fn append(&mut self, chat: ConversationId, texts: &[u8], demand: bool) -> Checked<()> {
        let messages: Vec<Message> = texts
            .iter()
            .map(|n| {
                // There are few ids, so that duplicates and conflicts occur.
                let id = n % 64;
                let text = format!("message {id} {}", "word ".repeat(usize::from(n / 32)));
                let mut message = match n % 16 {
                    7 => Message::note(Role::System, vec![Part::text(text)]),
                    _ => Message::user(text),
                };
                // A store may keep shared metadata once. An erasure must remove it with the last entry that has it.
                let branch = id % 5;
                let meta = format!(
                    r#"{{"folder":"/home/somebody/project","branch":"branch-number-{branch}","note":"only {id} says this"}}"#
                );
                message.meta = Some(RawJson::parse(meta).expect("this is JSON"));
                match n % 4 {
                    0 => message,
                    _ => message.with_external_id(format!("id {id}")),
                }
            })
            .collect();
        let at = match demand {
            true => AppendAt::Head(Seq(u32::try_from(texts.len()).unwrap_or_default())),
            false => AppendAt::Any,
        };
        let append = Append {
            now: self.now(),
            ..batch(at, messages.iter().cloned().map(entry))
        };
        match both!(self, append(chat, &append))? {
            Ok(_) => self.simple.appended(chat, &messages),
            Err(error) if error.kind() == ErrorKind::HeadMoved => {}
            Err(error) => return Err(format!("an append failed: {error}")),
        }
        Ok(())
    }

    fn claimed(&mut self, store: Claim, reference: Claim) -> Checked<()> {
        let newest = |fence: &Fence| {
            let earlier =
                |old: &&Fence| old.conversation == fence.conversation && old.key == fence.key;
            let fences = self.fences.iter().map(|(fence, _)| fence);
            fences.filter(earlier).all(|old| old.token < fence.token)
        };
        match (store, reference) {
            (Claim::Granted(a), Claim::Granted(b)) if newest(&a) => self.fences.push((a, b)),
            (Claim::Ready(a, x), Claim::Ready(b, y)) if newest(&a) && x == y => {
                self.fences.push((a, b))
            }
            // Each store has its own clock, so the ends of leases differ.
            (Claim::Held { owner: a, .. }, Claim::Held { owner: b, .. }) if a == b => {}
            (Claim::Outdated, Claim::Outdated) => {}
            (a, b) => return Err(format!("claim: the store says {a:?}, the reference {b:?}")),
        }
        Ok(())
    }

    /// Returns a range of whole spans that ends within the log.
    async fn whole_spans(
        &self,
        chat: ConversationId,
        view: &str,
        first: u8,
        len: u8,
    ) -> Option<SeqRange> {
        let head = self.expected(chat).info().await.head;
        let spans = self.expected(chat).spans(view).await;
        let ranges: Vec<SeqRange> = spans
            .iter()
            .filter_map(|span| span.range.up_to(head))
            .collect();
        let from = usize::from(first) % ranges.len().max(1);
        let to = (from + usize::from(len % 4)).min(ranges.len().max(1) - 1);
        let mut at = SeqRange::new(ranges.get(from)?.first, ranges.get(to)?.last)?;
        // A raw span may also be taken in part.
        if from == to && spans[from].body == SpanBody::Raw {
            let skip = u32::from(len / 4) % u32::try_from(at.len()).ok()?;
            let (first, last) = (at.first.0 + skip / 2, at.last.0 - (skip - skip / 2));
            at = SeqRange::new(Seq(first), Seq(last))?;
        }
        Some(at)
    }

    /// Makes a summary of the view's content over a range: of its summaries, and of messages elsewhere. The children of
    /// a flat summary are messages only.
    async fn summary(
        &self,
        chat: ConversationId,
        view: &str,
        at: SeqRange,
        text: &str,
        flat: bool,
    ) -> Summary {
        let spans = self.expected(chat).clipped(view, at).await;
        let mut found = Vec::new();
        for span in &spans {
            found.push(match span.body.summary() {
                Some(id) => self.expected(chat).summary_by_id(id).await,
                None => None,
            });
        }
        let sources: Vec<Source<'_>> = spans
            .iter()
            .zip(&found)
            .filter_map(|(span, summary)| match summary {
                Some(summary) => Some(Source::Summary(summary)),
                None => span.closed_range().map(Source::Messages),
            })
            .collect();
        match flat {
            true => self.expected(chat).flat_summary(&sources, text).await,
            false => self.expected(chat).summary(&sources, text).await,
        }
    }

    async fn publish(
        &mut self,
        chat: ConversationId,
        view: &str,
        mut publish: Publish,
        fences: Option<(Fence, Fence)>,
    ) -> Checked<()> {
        let (ours, theirs) = fences.unzip();
        publish.fence = ours;
        let store = self.store().publish(chat, &publish).await;
        publish.fence = theirs;
        let reference = self.reference.publish(chat, &publish).await;
        if let Ok(Published::Done(_)) = same("publish", store, reference)? {
            self.simple.published(chat, view, &publish.spans);
        }
        Ok(())
    }
}
