//! Tests that `verify` names each kind of damage to a store.
//!
//! A wrapper changes the answers of a sound store, as a damaged database would.

use memory_model::{
    Child, ConversationId, Hash, LogEntry, Part, RenderingId, Seq, SeqRange, Span, SpanBody,
    Summary, SummaryId, ViewName, ViewVersion,
};
use memory_store::*;
use store_conformance::{Answer, Chat, Layer, Layered, Source, message, range, verify_store};

/// A change that a wrapper makes to an answer of a store.
type Alter = fn(Answer<'_>) -> Result<()>;

#[derive(Debug)]
struct Corrupt {
    inner: InMemoryStore,
    alter: Alter,
}

impl Layer for Corrupt {
    fn inner(&self) -> &dyn FullStore {
        &self.inner
    }

    fn answer(&self, answer: Answer<'_>) -> Result<()> {
        (self.alter)(answer)
    }
}

/// Creates a conversation of 20 messages with three leaves, a condensed summary over two of them, and a summary made
/// from a summary and messages.
async fn sound() -> InMemoryStore {
    let store = InMemoryStore::new();
    let chat = Chat::filled(&store, 20).await;
    let mut leaves = Vec::new();
    for (first, text) in [(1, "one"), (5, "two"), (9, "three")] {
        leaves.push(chat.show_leaf("dag", range(first, first + 3), text).await);
    }
    let sources = [Source::Summary(&leaves[0]), Source::Summary(&leaves[1])];
    chat.show_summary("dag", &sources, "both").await;
    let sources = [Source::Summary(&leaves[2]), Source::Messages(range(13, 15))];
    chat.show_summary("dag", &sources, "more").await;
    store
}

/// Creates a conversation of 20 messages with two summaries. The second is made from the first and later messages, and
/// its children are messages only.
async fn rolling() -> InMemoryStore {
    let store = InMemoryStore::new();
    let chat = Chat::filled(&store, 20).await;
    let before = chat.show_leaf("handoff", range(1, 6), "before").await;
    let sources = [Source::Summary(&before), Source::Messages(range(7, 12))];
    let rolling = chat.flat_summary(&sources, "rolling").await;
    chat.show("handoff", &rolling).await;
    store
}

async fn violations(inner: InMemoryStore, alter: Alter) -> Vec<ViolationKind> {
    let reports = verify_store(&Layered(Corrupt { inner, alter })).await;
    let mut kinds: Vec<ViolationKind> = reports
        .iter()
        .flat_map(|report| &report.violations)
        .inspect(|violation| assert!(!violation.message.is_empty()))
        .map(|violation| violation.kind)
        .collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

fn entry(page: &mut Page<LogEntry>, seq: u32, change: impl FnOnce(&mut LogEntry)) {
    if let Some(entry) = page.items.iter_mut().find(|e| e.seq == Seq(seq)) {
        change(entry);
    }
}

fn rehash(entry: &mut LogEntry) {
    entry.hash = entry.message.hash(&entry.message.body().unwrap());
}

fn summary(page: &mut Page<Summary, SummaryId>, text: &str, change: impl FnOnce(&mut Summary)) {
    if let Some(summary) = page.items.iter_mut().find(|s| s.text() == text) {
        change(summary);
    }
}

/// Sets a summary's hash to the hash of its changed content. The id does not change.
fn reseal(summary: &mut Summary) {
    summary.hash = summary.expected_hash();
}

#[tokio::test]
async fn a_sound_store_has_no_violations() {
    for store in [sound().await, rolling().await] {
        assert_eq!(violations(store, |_| Ok(())).await, []);
    }
}

#[tokio::test]
async fn figures_of_another_rendering_are_not_recomputed() {
    let found = violations(sound().await, |answer| {
        if let Answer::SummaryLog(page) = answer {
            for summary in &mut page.items {
                summary.rendering = RenderingId::new("other@1");
            }
        }
        Ok(())
    });
    assert_eq!(found.await, []);
    // The spans still have the cost that was published.
    let found = violations(sound().await, |answer| {
        if let Answer::SummaryLog(page) = answer {
            summary(page, "more", |s| {
                s.rendering = RenderingId::new("other@1");
                s.tokens += 1;
            });
        }
        Ok(())
    });
    assert_eq!(found.await, [ViolationKind::SpanWrong]);
}

#[tokio::test]
async fn every_damage_is_named() {
    use ViolationKind::*;
    macro_rules! table {
        ($store:ident $($what:literal, $call:pat => $change:expr => [$($kind:ident),+];)*) => {
            $({
                let found = violations($store().await, |answer| {
                    if let $call = answer {
                        $change;
                    }
                    Ok(())
                });
                let found = found.await;
                for kind in [$($kind),+] {
                    assert!(found.contains(&kind), "{}: {kind:?} is not in {found:?}", $what);
                }
            })*
        };
    }
    table! { sound
        "row gone", Answer::Read(_, page) => {
            page.items.retain(|e| e.seq != Seq(7));
        } => [EntryMissing, ChainBroken];
        "last rows gone", Answer::Read(_, page) => {
            page.items.truncate(18);
        } => [EntryMissing, SumWrong, ChainBroken];
        "text changed", Answer::Read(_, page) => {
            entry(page, 7, |e| e.message.parts = vec![Part::text("something else")]);
        } => [EntryChanged];
        "text changed with its hash", Answer::Read(_, page) => {
            entry(page, 7, |e| {
                e.message.parts = vec![Part::text("something else")];
                rehash(e);
            });
        } => [ChainBroken, SourceChanged];
        "role changed", Answer::Read(_, page) => {
            entry(page, 7, |e| e.message.role = memory_model::Role::Assistant);
        } => [EntryChanged];
        "hole in seq", Answer::Read(_, page) => {
            for e in page.items.iter_mut().filter(|e| e.seq >= Seq(7)) {
                e.seq = e.seq.next();
            }
        } => [EntryMissing, EntryMisplaced];
        "row twice", Answer::Read(_, page) => {
            let again = page.items[6].clone();
            page.items.insert(7, again);
        } => [EntryMisplaced];
        "rows swapped", Answer::Read(_, page) => {
            page.items.swap(6, 7);
        } => [EntryMisplaced, EntryMissing];
        "far position", Answer::Read(_, page) => {
            entry(page, 20, |e| e.seq = Seq(u32::MAX));
        } => [EntryMisplaced, EntryMissing];
        "position zero", Answer::Read(_, page) => {
            entry(page, 1, |e| e.seq = Seq(0));
        } => [EntryMisplaced, EntryMissing];
        "reading does not advance", Answer::Read(read, page) => {
            page.next = Some(read.range);
        } => [Other];
        "reading goes back", Answer::Read(read, page) => {
            page.next = SeqRange::new(Seq(1), read.range.last);
        } => [Other];
        "a head far beyond the log", Answer::Conversation(found) => {
            found.as_mut().unwrap().head = Seq(u32::MAX);
        } => [EntryMissing];
        "a head of nothing", Answer::Conversation(found) => {
            found.as_mut().unwrap().head = Seq(0);
        } => [ChainBroken, SumWrong, ChildRangeWrong];
        "wrong running sum", Answer::Read(_, page) => {
            entry(page, 7, |e| e.running += 1);
        } => [SumWrong];
        "wrong sum of the log", Answer::Conversation(found) => {
            found.as_mut().unwrap().tokens += 1;
        } => [SumWrong];
        "estimator mixed", Answer::Read(_, page) => {
            entry(page, 7, |e| e.tokens += 1);
        } => [EstimatorMixed, SumWrong];
        "unknown estimator", Answer::Conversation(found) => {
            found.as_mut().unwrap().estimator = token_estimate::EstimatorId::new("x", 1).unwrap();
        } => [EstimatorMixed];
        "chain broken", Answer::Conversation(found) => {
            found.as_mut().unwrap().chain = Hash::ZERO;
        } => [ChainBroken];
        "index damaged", Answer::Find(found) => found[3] = None => [ExternalIdWrong];
        "index points elsewhere", Answer::Find(found) => found.swap(3, 4) => [ExternalIdWrong];
        "index answers short", Answer::Find(found) => found.clear() => [ExternalIdWrong];
        "foreign segment", Answer::Conversation(found) => {
            found.as_mut().unwrap().segments[0].source = ConversationId(9);
        } => [FamilyWrong];
        "missing parent", Answer::Conversation(found) => {
            if let Some(c) = found.as_mut().filter(|c| c.id == ConversationId(1)) {
                c.origin = Origin::Fork { parent: ConversationId(99), at: Seq(3) };
            }
        } => [FamilyWrong];
        "summary text changed", Answer::SummaryLog(page) => {
            summary(page, "one", |s| s.body = "another".into());
        } => [SummaryChanged];
        "summary text changed with its hash", Answer::SummaryLog(page) => {
            summary(page, "one", |s| {
                s.body = "another".into();
                reseal(s);
            });
        } => [SummaryChanged, SourceChanged];
        "summary gone", Answer::SummaryLog(page) => {
            page.items.retain(|s| s.text() != "more");
        } => [SpanWrong];
        "foreign lineage", Answer::SummaryLog(page) => {
            page.items.retain(|s| s.text() != "two");
        } => [ForeignLineage];
        "child range wrong", Answer::SummaryLog(page) => summary(page, "one", |s| {
            s.children = vec![Child::Messages { range: range(1, 3) }];
        }) => [ChildRangeWrong];
        "gap between children", Answer::SummaryLog(page) => summary(page, "one", |s| {
            s.children = vec![
                Child::Messages { range: range(1, 2) },
                Child::Messages { range: range(4, 4) },
            ];
        }) => [ChildRangeWrong];
        "children that overlap", Answer::SummaryLog(page) => summary(page, "one", |s| {
            s.children = vec![
                Child::Messages { range: range(1, 3) },
                Child::Messages { range: range(2, 4) },
            ];
        }) => [ChildRangeWrong];
        "child beyond the log", Answer::SummaryLog(page) => summary(page, "one", |s| {
            s.children = vec![Child::Messages { range: range(1, u32::MAX) }];
        }) => [ChildRangeWrong];
        "no children", Answer::SummaryLog(page) => {
            summary(page, "one", |s| s.children.clear());
        } => [ChildRangeWrong];
        "child covers something else", Answer::SummaryLog(page) => {
            let two = page.items.iter().find(|s| s.text() == "two").map(|s| s.id.clone()).unwrap();
            summary(page, "both", |s| {
                s.children[0] = Child::Summary { range: range(1, 4), id: two };
            });
        } => [ChildRangeWrong];
        "cycle", Answer::SummaryLog(page) => summary(page, "both", |s| {
            let id = s.id.clone();
            s.children = vec![Child::Summary { range: s.range, id }];
        }) => [Cycle];
        "depth that skips", Answer::SummaryLog(page) => {
            summary(page, "both", |s| s.depth = 5);
        } => [Cycle];
        "source changed", Answer::SummaryLog(page) => {
            summary(page, "one", |s| s.source_hash = Hash::ZERO);
        } => [SourceChanged];
        "source tokens wrong", Answer::SummaryLog(page) => {
            summary(page, "one", |s| s.source_tokens += 1);
        } => [SumWrong];
        "summary tokens wrong", Answer::SummaryLog(page) => {
            summary(page, "more", |s| s.tokens += 1);
        } => [EstimatorMixed, SpanWrong];
        "summary twice", Answer::SummaryLog(page) => {
            let again = page.items[0].clone();
            page.items.push(again);
        } => [Other];
        "summaries without end", Answer::SummaryLog(page) => {
            page.next = page.items.first().map(|s| s.id.clone());
        } => [Other];
        "overlapping spans", Answer::Spans(_, page) => {
            page.items[0].range.last = Some(Seq(10));
        } => [SpansOverlap];
        "spans out of order", Answer::Spans(_, page) => page.items.swap(0, 1) => [SpansOverlap];
        "a span gone", Answer::Spans(_, page) => {
            page.items.remove(0);
        } => [SpansOverlap, ViewDiffers];
        "no spans", Answer::Spans(_, page) => page.items.clear() => [SpansOverlap, ViewDiffers];
        "another body", Answer::Spans(_, page) => page.items[0].body = SpanBody::Omitted => [ViewDiffers];
        "an unknown summary shown", Answer::Spans(_, page) => {
            page.items[0].body = SpanBody::Summary { id: SummaryId::new("sum_x"), depth: 0 };
        } => [SpanWrong, ViewDiffers];
        "a span that begins at nothing", Answer::Spans(_, page) => {
            page.items[0].range.first = Seq(0);
        } => [SpansOverlap];
        "a span beyond the head", Answer::Spans(_, page) => {
            let last = page.items.last_mut().unwrap();
            let (mut open, beyond) = (last.clone(), range(16, 30));
            *last = Span::closed(beyond, SpanBody::Omitted, 0);
            open.range.first = Seq(31);
            page.items.push(open);
        } => [SpansOverlap, ViewDiffers];
        "spans without end", Answer::Spans(_, page) => page.next = Some(range(1, 5)) => [Other];
        "wrong saved", Answer::Views(views) => views[0].saved += 1 => [SumWrong];
        "wrong count of spans", Answer::Views(views) => views[0].spans += 1 => [ViewDiffers];
        "an unknown view", Answer::Views(views) => {
            let mut other = views[0].clone();
            other.name = ViewName::from("other");
            other.version = ViewVersion(0);
            views.push(other);
        } => [HistoryChanged];
        "history edited", Answer::Publications(page) => {
            page.items[1].at = range(5, 9);
        } => [HistoryChanged];
        "history rows edited", Answer::Publications(page) => {
            page.items[0].added[0].tokens += 1;
        } => [HistoryChanged, ViewDiffers];
        "history cut at the end", Answer::Publications(page) => {
            page.items.pop();
        } => [HistoryChanged, ViewDiffers];
        "history with a hole", Answer::Publications(page) => {
            page.items.remove(2);
        } => [HistoryChanged];
        "history twice", Answer::Publications(page) => {
            let again = page.items[0].clone();
            page.items.insert(1, again);
        } => [HistoryChanged];
        "history without end", Answer::Publications(page) => {
            page.items.clear();
            page.next = Some(ViewVersion(1));
        } => [HistoryChanged];
        "history chain broken", Answer::Views(views) => views[0].chain = Hash::ZERO => [HistoryChanged];
    }
    table! { rolling
        "source gone", Answer::SummaryLog(page) => {
            page.items.retain(|s| s.text() != "before");
        } => [ForeignLineage];
        "source too short", Answer::SummaryLog(page) => summary(page, "rolling", |s| {
            s.sources[1] = Child::Messages { range: range(7, 11) };
        }) => [SourceChanged, SumWrong];
        "source beyond the range", Answer::SummaryLog(page) => summary(page, "rolling", |s| {
            s.sources[1] = Child::Messages { range: range(7, 13) };
        }) => [SourceChanged];
        "source covers something else", Answer::SummaryLog(page) => summary(page, "rolling", |s| {
            let id = s.source_summaries().next().unwrap().clone();
            s.sources[0] = Child::Summary { range: range(1, 5), id };
        }) => [ChildRangeWrong];
        "no sources", Answer::SummaryLog(page) => {
            summary(page, "rolling", |s| s.sources.clear());
        } => [SourceChanged];
        "other children", Answer::SummaryLog(page) => summary(page, "rolling", |s| {
            s.children = vec![Child::Messages { range: s.range }];
        }) => [SummaryChanged];
    }
}

#[tokio::test]
async fn an_unreadable_row_is_named() {
    let found = violations(sound().await, |answer| match answer {
        Answer::Read(read, _) if read.range.contains(Seq(7)) => {
            Err(Error::new(ErrorKind::Corrupt, "entry 7 cannot be read"))
        }
        _ => Ok(()),
    });
    assert!(found.await.contains(&ViolationKind::EntryUnreadable));
}

#[tokio::test]
async fn damage_of_a_parent_shows_in_its_forks() {
    let store = sound().await;
    let child = Chat::new(&store, ConversationId(1)).fork("child", 10).await;
    child.append([message("c", "more")]).await;
    let alter: Alter = |answer| {
        if let Answer::Read(_, page) = answer {
            entry(page, 7, |e| e.message.parts.clear());
        }
        Ok(())
    };
    let inner = store;
    let reports = verify_store(&Layered(Corrupt { inner, alter })).await;
    assert_eq!(reports.len(), 2);
    for report in reports {
        let changed = |v: &Violation| v.kind == ViolationKind::EntryChanged;
        assert!(report.violations.iter().any(changed));
    }
}

#[tokio::test]
async fn a_missing_conversation_is_not_found() {
    let store = InMemoryStore::new();
    let error = verify(&store, ConversationId(1), &|_| None)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// Checks that a publication that changes more than its range is reported, even if the chain hash over the publications
/// was computed again.
#[tokio::test]
async fn publications_keep_to_their_range() {
    fn change(answer: Answer<'_>, change: fn(&mut [Publication])) -> Result<()> {
        if let Answer::Publications(page) = answer {
            change(&mut page.items);
        }
        Ok(())
    }
    let changes: [Alter; 4] = [
        // The range is smaller than the change.
        |answer| change(answer, |items| items[4].at = range(13, 14)),
        // A row after the range.
        |answer| {
            change(answer, |items| {
                let mut row = items[2].added[1].clone();
                row.first = Seq(18);
                row.body = SpanBody::Omitted;
                items[2].added.push(row);
            })
        },
        // The row right after the range.
        |answer| change(answer, |items| items[2].added[1].body = SpanBody::Omitted),
        // A row further to the left than the adjacent one.
        |answer| {
            change(answer, |items| {
                let mut row = items[0].added[0].clone();
                items[2].removed.push(row.clone());
                row.tokens += 1;
                items[2].added.push(row);
            })
        },
    ];
    for alter in changes {
        let inner = sound().await;
        let reports = verify_store(&Layered(Corrupt { inner, alter })).await;
        let named = |v: &Violation| v.message.contains("changes more than");
        assert!(reports[0].violations.iter().any(named), "{reports:?}");
    }
}
