//! `verify` is able to fail: it names each way in which a store can go wrong.
//!
//! A wrapper alters what a sound store returns, as a damaged database would.

use memory_model::{
    Child, ConversationId, Hash, LogEntry, Part, RenderingId, Seq, SeqRange, Span, SpanBody,
    Summary, SummaryId, ViewName, ViewVersion,
};
use memory_store::*;
use store_conformance::{Answer, Chat, Layer, Layered, Source, message, range, verify_store};

/// What a wrapper does to the answers of some calls.
struct Hooks {
    conversation: fn(&mut Option<Conversation>),
    read: fn(&LogRead, &mut Page<LogEntry>) -> Result<()>,
    find: fn(&mut Vec<Option<Seq>>),
    spans: fn(&mut Page<Span>),
    views: fn(&mut Vec<ViewInfo>),
    publications: fn(&mut Page<Publication, ViewVersion>),
    summaries: fn(&mut Page<Summary, SummaryId>),
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            conversation: |_| {},
            read: |_, _| Ok(()),
            find: |_| {},
            spans: |_| {},
            views: |_| {},
            publications: |_| {},
            summaries: |_| {},
        }
    }
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooks")
    }
}

#[derive(Debug)]
struct Corrupt {
    inner: InMemoryStore,
    hooks: Hooks,
}

impl Layer for Corrupt {
    fn inner(&self) -> &dyn FullStore {
        &self.inner
    }

    fn answer(&self, answer: Answer<'_>) -> Result<()> {
        match answer {
            Answer::Conversation(found) => (self.hooks.conversation)(found),
            Answer::Read(read, page) => (self.hooks.read)(read, page)?,
            Answer::Find(found) => (self.hooks.find)(found),
            Answer::Spans(_, page) => (self.hooks.spans)(page),
            Answer::Views(views) => (self.hooks.views)(views),
            Answer::Publications(page) => (self.hooks.publications)(page),
            Answer::SummaryLog(page) => (self.hooks.summaries)(page),
            _ => {}
        }
        Ok(())
    }
}

/// One conversation of 20 messages; three leaves, a condensed summary over two of them, and a
/// summary made from a summary and messages.
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

/// One conversation of 20 messages with a summary, and one that was made from it and later messages
/// and unfolds to messages alone.
async fn rolling() -> InMemoryStore {
    let store = InMemoryStore::new();
    let chat = Chat::filled(&store, 20).await;
    let before = chat.show_leaf("handoff", range(1, 6), "before").await;
    let sources = [Source::Summary(&before), Source::Messages(range(7, 12))];
    let rolling = chat.flat_summary(&sources, "rolling").await;
    chat.show("handoff", &rolling).await;
    store
}

async fn violations(hooks: Hooks) -> Vec<ViolationKind> {
    violations_of(sound().await, hooks).await
}

async fn violations_of(inner: InMemoryStore, hooks: Hooks) -> Vec<ViolationKind> {
    let store = Layered(Corrupt { inner, hooks });
    let reports = verify_store(&store).await;
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

/// Gives a summary the hash that its altered content asks for, but not the id: that is its name.
fn reseal(summary: &mut Summary) {
    summary.hash = summary.expected_hash();
}

#[tokio::test]
async fn a_sound_store_has_no_violations() {
    assert_eq!(violations(Hooks::default()).await, []);
}

#[tokio::test]
async fn figures_of_another_rendering_are_not_recomputed() {
    let other = |page: &mut Page<Summary, SummaryId>| {
        for summary in &mut page.items {
            summary.rendering = RenderingId::new("other@1");
        }
    };
    let hooks = Hooks {
        summaries: other,
        ..Hooks::default()
    };
    assert_eq!(violations(hooks).await, []);
    // The spans still show the figure that was published.
    let hooks = Hooks {
        summaries: |page| {
            summary(page, "more", |s| {
                s.rendering = RenderingId::new("other@1");
                s.tokens += 1;
            })
        },
        ..Hooks::default()
    };
    assert_eq!(violations(hooks).await, [ViolationKind::SpanWrong]);
}

#[tokio::test]
async fn every_damage_is_named() {
    use ViolationKind::*;
    macro_rules! table {
        ($($what:literal, $call:ident: $change:expr => [$($kind:ident),+];)*) => {
            $({
                let hooks = Hooks {
                    $call: $change,
                    ..Hooks::default()
                };
                let found = violations(hooks).await;
                for kind in [$($kind),+] {
                    assert!(found.contains(&kind), "{}: {kind:?} is not in {found:?}", $what);
                }
            })*
        };
    }
    table! {
        "row gone", read: |_, page| {
            page.items.retain(|e| e.seq != Seq(7));
            Ok(())
        } => [EntryMissing, ChainBroken];
        "last rows gone", read: |_, page| {
            page.items.truncate(18);
            Ok(())
        } => [EntryMissing, SumWrong, ChainBroken];
        "text changed", read: |_, page| {
            entry(page, 7, |e| e.message.parts = vec![Part::text("something else")]);
            Ok(())
        } => [EntryChanged];
        "text changed with its hash", read: |_, page| {
            entry(page, 7, |e| {
                e.message.parts = vec![Part::text("something else")];
                rehash(e);
            });
            Ok(())
        } => [ChainBroken, SourceChanged];
        "role changed", read: |_, page| {
            entry(page, 7, |e| e.message.role = memory_model::Role::Assistant);
            Ok(())
        } => [EntryChanged];
        "hole in seq", read: |_, page| {
            for e in page.items.iter_mut().filter(|e| e.seq >= Seq(7)) {
                e.seq = e.seq.next();
            }
            Ok(())
        } => [EntryMissing, EntryMisplaced];
        "row twice", read: |_, page| {
            let again = page.items[6].clone();
            page.items.insert(7, again);
            Ok(())
        } => [EntryMisplaced];
        "rows swapped", read: |_, page| {
            page.items.swap(6, 7);
            Ok(())
        } => [EntryMisplaced, EntryMissing];
        "far position", read: |_, page| {
            entry(page, 20, |e| e.seq = Seq(u32::MAX));
            Ok(())
        } => [EntryMisplaced, EntryMissing];
        "position zero", read: |_, page| {
            entry(page, 1, |e| e.seq = Seq(0));
            Ok(())
        } => [EntryMisplaced, EntryMissing];
        "unreadable row", read: |read, _| match read.range.contains(Seq(7)) {
            true => Err(Error::new(ErrorKind::Corrupt, "entry 7 cannot be read")),
            false => Ok(()),
        } => [EntryUnreadable];
        "reading does not advance", read: |read, page| {
            page.next = Some(read.range);
            Ok(())
        } => [Other];
        "reading goes back", read: |read, page| {
            page.next = SeqRange::new(Seq(1), read.range.last);
            Ok(())
        } => [Other];
        "a head far beyond the log", conversation: |found| {
            found.as_mut().unwrap().head = Seq(u32::MAX);
        } => [EntryMissing];
        "a head of nothing", conversation: |found| {
            found.as_mut().unwrap().head = Seq(0);
        } => [ChainBroken, SumWrong, ChildRangeWrong];
        "wrong running sum", read: |_, page| {
            entry(page, 7, |e| e.running += 1);
            Ok(())
        } => [SumWrong];
        "wrong sum of the log", conversation: |found| {
            found.as_mut().unwrap().tokens += 1;
        } => [SumWrong];
        "estimator mixed", read: |_, page| {
            entry(page, 7, |e| e.tokens += 1);
            Ok(())
        } => [EstimatorMixed, SumWrong];
        "unknown estimator", conversation: |found| {
            found.as_mut().unwrap().estimator = token_estimate::EstimatorId::new("x", 1).unwrap();
        } => [EstimatorMixed];
        "chain broken", conversation: |found| {
            found.as_mut().unwrap().chain = Hash::ZERO;
        } => [ChainBroken];
        "index damaged", find: |found| found[3] = None => [ExternalIdWrong];
        "index points elsewhere", find: |found| found.swap(3, 4) => [ExternalIdWrong];
        "index answers short", find: |found| found.clear() => [ExternalIdWrong];
        "foreign segment", conversation: |found| {
            found.as_mut().unwrap().segments[0].source = ConversationId(9);
        } => [FamilyWrong];
        "missing parent", conversation: |found| {
            if let Some(c) = found.as_mut().filter(|c| c.id == ConversationId(1)) {
                c.origin = Origin::Fork { parent: ConversationId(99), at: Seq(3) };
            }
        } => [FamilyWrong];
        "summary text changed", summaries: |page| {
            summary(page, "one", |s| s.body = "another".into());
        } => [SummaryChanged];
        "summary text changed with its hash", summaries: |page| {
            summary(page, "one", |s| {
                s.body = "another".into();
                reseal(s);
            });
        } => [SummaryChanged, SourceChanged];
        "summary gone", summaries: |page| {
            page.items.retain(|s| s.text() != "more");
        } => [SpanWrong];
        "foreign lineage", summaries: |page| {
            page.items.retain(|s| s.text() != "two");
        } => [ForeignLineage];
        "child range wrong", summaries: |page| summary(page, "one", |s| {
            s.children = vec![Child::Messages { range: range(1, 3) }];
        }) => [ChildRangeWrong];
        "child beyond the log", summaries: |page| summary(page, "one", |s| {
            s.children = vec![Child::Messages { range: range(1, u32::MAX) }];
        }) => [ChildRangeWrong];
        "no children", summaries: |page| {
            summary(page, "one", |s| s.children.clear());
        } => [ChildRangeWrong];
        "child covers something else", summaries: |page| {
            let two = page.items.iter().find(|s| s.text() == "two").map(|s| s.id.clone()).unwrap();
            summary(page, "both", |s| {
                s.children[0] = Child::Summary { range: range(1, 4), id: two };
            });
        } => [ChildRangeWrong];
        "cycle", summaries: |page| summary(page, "both", |s| {
            let id = s.id.clone();
            s.children = vec![Child::Summary { range: s.range, id }];
        }) => [Cycle];
        "depth that skips", summaries: |page| {
            summary(page, "both", |s| s.depth = 5);
        } => [Cycle];
        "source changed", summaries: |page| {
            summary(page, "one", |s| s.source_hash = Hash::ZERO);
        } => [SourceChanged];
        "source tokens wrong", summaries: |page| {
            summary(page, "one", |s| s.source_tokens += 1);
        } => [SumWrong];
        "summary tokens wrong", summaries: |page| {
            summary(page, "more", |s| s.tokens += 1);
        } => [EstimatorMixed, SpanWrong];
        "summary twice", summaries: |page| {
            let again = page.items[0].clone();
            page.items.push(again);
        } => [Other];
        "summaries without end", summaries: |page| {
            page.next = page.items.first().map(|s| s.id.clone());
        } => [Other];
        "overlapping spans", spans: |page| {
            page.items[0].range.last = Some(Seq(10));
        } => [SpansOverlap];
        "spans out of order", spans: |page| page.items.swap(0, 1) => [SpansOverlap];
        "a span gone", spans: |page| {
            page.items.remove(0);
        } => [SpansOverlap, ViewDiffers];
        "no spans", spans: |page| page.items.clear() => [SpansOverlap, ViewDiffers];
        "another body", spans: |page| page.items[0].body = SpanBody::Omitted => [ViewDiffers];
        "an unknown summary shown", spans: |page| {
            page.items[0].body = SpanBody::Summary { id: SummaryId::new("sum_x"), depth: 0 };
        } => [SpanWrong, ViewDiffers];
        "a span that begins at nothing", spans: |page| {
            page.items[0].range.first = Seq(0);
        } => [SpansOverlap];
        "a span beyond the head", spans: |page| {
            let last = page.items.last_mut().unwrap();
            let (mut open, beyond) = (last.clone(), range(16, 30));
            *last = Span::closed(beyond, SpanBody::Omitted, 0);
            open.range.first = Seq(31);
            page.items.push(open);
        } => [SpansOverlap, ViewDiffers];
        "spans without end", spans: |page| page.next = Some(range(1, 5)) => [Other];
        "wrong saved", views: |views| views[0].saved += 1 => [SumWrong];
        "wrong count of spans", views: |views| views[0].spans += 1 => [ViewDiffers];
        "an unknown view", views: |views| {
            let mut other = views[0].clone();
            other.name = ViewName::from("other");
            other.version = ViewVersion(0);
            views.push(other);
        } => [HistoryChanged];
        "history edited", publications: |page| {
            page.items[1].at = range(5, 9);
        } => [HistoryChanged];
        "history rows edited", publications: |page| {
            page.items[0].added[0].tokens += 1;
        } => [HistoryChanged, ViewDiffers];
        "history cut at the end", publications: |page| {
            page.items.pop();
        } => [HistoryChanged, ViewDiffers];
        "history with a hole", publications: |page| {
            page.items.remove(2);
        } => [HistoryChanged];
        "history twice", publications: |page| {
            let again = page.items[0].clone();
            page.items.insert(1, again);
        } => [HistoryChanged];
        "history without end", publications: |page| {
            page.items.clear();
            page.next = Some(ViewVersion(1));
        } => [HistoryChanged];
        "history chain broken", views: |views| views[0].chain = Hash::ZERO => [HistoryChanged];
    }
}

#[tokio::test]
async fn damage_of_sources_is_named() {
    use ViolationKind::*;
    type Change = fn(&mut Page<Summary, SummaryId>);
    let cases: [(&str, Change, &[ViolationKind]); 6] = [
        (
            "source gone",
            |page| {
                page.items.retain(|s| s.text() != "before");
            },
            &[ForeignLineage],
        ),
        (
            "source too short",
            |page| {
                summary(page, "rolling", |s| {
                    s.sources[1] = Child::Messages {
                        range: range(7, 11),
                    };
                });
            },
            &[SourceChanged, SumWrong],
        ),
        (
            "source beyond the range",
            |page| {
                summary(page, "rolling", |s| {
                    s.sources[1] = Child::Messages {
                        range: range(7, 13),
                    };
                });
            },
            &[SourceChanged],
        ),
        (
            "source covers something else",
            |page| {
                summary(page, "rolling", |s| {
                    let id = s.source_summaries().next().unwrap().clone();
                    s.sources[0] = Child::Summary {
                        range: range(1, 5),
                        id,
                    };
                });
            },
            &[ChildRangeWrong],
        ),
        (
            "no sources",
            |page| {
                summary(page, "rolling", |s| s.sources.clear());
            },
            &[SourceChanged],
        ),
        (
            "other children",
            |page| {
                summary(page, "rolling", |s| {
                    s.children = vec![Child::Messages { range: s.range }];
                });
            },
            &[SummaryChanged],
        ),
    ];
    assert_eq!(violations_of(rolling().await, Hooks::default()).await, []);
    for (what, summaries, expected) in cases {
        let hooks = Hooks {
            summaries,
            ..Hooks::default()
        };
        let found = violations_of(rolling().await, hooks).await;
        for kind in expected {
            assert!(found.contains(kind), "{what}: {kind:?} is not in {found:?}");
        }
    }
}

#[tokio::test]
async fn damage_of_a_parent_shows_in_its_forks() {
    let store = sound().await;
    let child = Chat::new(&store, ConversationId(1)).fork("child", 10).await;
    child.append([message("c", "more")]).await;
    let hooks = Hooks {
        read: |_, page| {
            entry(page, 7, |e| e.message.parts.clear());
            Ok(())
        },
        ..Hooks::default()
    };
    let inner = store;
    let reports = verify_store(&Layered(Corrupt { inner, hooks })).await;
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

/// Publications that change more than their range are named even if the chain over them was made
/// anew.
#[tokio::test]
async fn publications_keep_to_their_range() {
    let hooks: [fn(&mut Page<Publication, ViewVersion>); 4] = [
        // The range is smaller than what changes.
        |page| page.items[4].at = range(13, 14),
        // A row after the range.
        |page| {
            let mut row = page.items[2].added[1].clone();
            row.first = Seq(18);
            row.body = SpanBody::Omitted;
            page.items[2].added.push(row);
        },
        // What stands right after the range.
        |page| page.items[2].added[1].body = SpanBody::Omitted,
        // A row further to the left than the neighbour.
        |page| {
            let mut row = page.items[0].added[0].clone();
            page.items[2].removed.push(row.clone());
            row.tokens += 1;
            page.items[2].added.push(row);
        },
    ];
    for publications in hooks {
        let hooks = Hooks {
            publications,
            ..Hooks::default()
        };
        let inner = sound().await;
        let reports = verify_store(&Layered(Corrupt { inner, hooks })).await;
        let named = |v: &Violation| v.message.contains("changes more than");
        assert!(reports[0].violations.iter().any(named), "{reports:?}");
    }
}
