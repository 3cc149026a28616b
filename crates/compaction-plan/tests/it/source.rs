//! The data that planners read from a view in memory.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use compaction_plan::{
    AtomReader, BoxError, EntryReader, InMemoryView, JobSink, Label, PassInput, Planner,
    SpanReader, Tail, ViewSource,
};
use memory_model::{
    Child, EntryKind, Hash, LogEntry, Recipe, Seq, SeqRange, Span, SpanBody, Summary, ViewName,
};
use proptest::prelude::*;
use turn_map::atoms;

use crate::clear::laws::{script, steps};
use crate::clear::world::{World, accounting};

const PROBE: Label = Label::from_static("probe");

/// A planner that reads a range and a tail, and plans no jobs.
#[derive(Debug)]
struct Probe {
    range: SeqRange,
    tail: Tail,
    read: Mutex<Read>,
}

/// The data that was read. Entries are recorded as their positions.
#[derive(Debug, Clone, Default, PartialEq)]
struct Read {
    spans: Vec<Span>,
    entries: Vec<u32>,
    atoms: Vec<Vec<u32>>,
    newest: Vec<u32>,
    summaries: Vec<SeqRange>,
}

fn seqs(entries: &[Arc<LogEntry>]) -> Vec<u32> {
    entries.iter().map(|entry| entry.seq.0).collect()
}

#[async_trait]
impl Planner for Probe {
    fn view(&self) -> ViewName {
        ViewName::new("probe")
    }

    fn fingerprint(&self) -> String {
        "probe@1".to_owned()
    }

    fn passes(&self) -> &[Label] {
        static PASSES: [Label; 1] = [PROBE];
        &PASSES
    }

    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        _: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        let mut read = Read::default();
        let mut spans = SpanReader::new(view, self.range);
        while let Some(next) = spans.peek().await?.cloned() {
            assert_eq!(spans.next().await?, Some(next.clone()));
            read.spans.push(next);
        }
        let mut entries = EntryReader::new(view, self.range);
        while let Some(entry) = entries.next().await? {
            read.entries.push(entry.seq.0);
        }
        let mut atoms = AtomReader::new(view, SeqRange::new(Seq::FIRST, input.head));
        while let Some(atom) = atoms.next().await? {
            read.atoms.push(seqs(atom));
        }
        read.newest = seqs(&view.newest(self.tail).await?);
        let summaries = view.summaries(self.range).await?.into_iter();
        read.summaries = summaries.map(|summary| summary.range).collect();
        *self.read.lock().unwrap() = read;
        Ok(())
    }
}

fn summary(range: SeqRange) -> Summary {
    let sources = vec![Child::Messages { range }];
    Summary::new(range, 0, sources, Hash::ZERO, Recipe::new("leaf@1"), "text")
}

fn read(world: &World, page: usize, range: SeqRange, tail: Tail) -> Read {
    let stored = |last| SeqRange::new(Seq::FIRST, Seq(last)).map(summary);
    let view = InMemoryView::new(world.entries.clone()).with_view(&world.view);
    let view = view.with_summaries((1..=world.head().0).filter_map(stored).collect());
    let view = view.with_page_size(page);
    let probe = Probe {
        range,
        tail,
        read: Mutex::default(),
    };
    let planned = view.plan(&probe, view.input(&PROBE, &accounting()));
    assert!(planned.unwrap().is_empty());
    probe.read.into_inner().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Pages of any size give the same results: all spans that overlap with a range, the entries, the atoms of the log,
    /// a long enough tail that begins with an atom, and the stored summary that is shown.
    #[test]
    fn pages_are_read_to_the_end(
        steps in steps(),
        ends in (1_u32..40, 0_u32..40),
        replaced in (1_u32..40, 0_u32..40),
        is_summarized: bool,
        page in 1_usize..9,
        tail in (0_usize..12, 0_u64..900),
    ) {
        let mut world = World::new(&script(&steps, &mut 0));
        let head = world.head().0;
        let within = |(first, more): (u32, u32)| {
            let first = first.min(head);
            SeqRange::new(Seq(first), Seq((first + more).min(head))).unwrap()
        };
        let (range, replaced) = (within(ends), within(replaced));
        let id = summary(replaced).id;
        let body = match is_summarized {
            true => SpanBody::Summary { id, depth: 0 },
            false => SpanBody::Omitted,
        };
        let expect = [Span::closed(replaced, SpanBody::Raw, 0)];
        let new = [Span::closed(replaced, body, 0)];
        world.view = world.view.splice(replaced, &expect, &new).unwrap();
        let tail = Tail { messages: tail.0, tokens: tail.1 };

        let whole = read(&world, usize::MAX, range, tail);
        prop_assert_eq!(&read(&world, page, range, tail), &whole);
        let touches = |span: &Span| {
            let span = span.range.up_to(world.head());
            span.is_some_and(|span| span.intersect(&range).is_some())
        };
        let spans = world.spans().into_iter().filter(touches);
        prop_assert_eq!(&whole.spans, &spans.collect::<Vec<_>>());
        prop_assert_eq!(&whole.entries, &(range.first.0..=range.last.0).collect::<Vec<_>>());
        // The stored summaries begin with the log.
        let is_shown = is_summarized && replaced.first == Seq::FIRST && replaced.intersect(&range).is_some();
        prop_assert_eq!(&whole.summaries, &is_shown.then_some(replaced).into_iter().collect::<Vec<_>>());
        let groups = atoms(&world.entries);
        let positions = |atom: &turn_map::Atom| atom.range().map(|at| at as u32 + 1).collect();
        let expected: Vec<Vec<u32>> = groups.iter().map(positions).collect();
        prop_assert_eq!(&whole.atoms, &expected);
        let newest = &world.entries[whole.newest[0] as usize - 1..];
        prop_assert_eq!(newest.len(), whole.newest.len());
        prop_assert!(expected.iter().any(|atom| atom[0] == whole.newest[0]));
        let messages = newest.iter().filter(|entry| entry.kind == EntryKind::Message).count();
        let tokens: u64 = newest.iter().map(|entry| entry.tokens).sum();
        let is_enough = messages >= tail.messages.max(1) && tokens >= tail.tokens;
        prop_assert!(is_enough || newest.len() == world.entries.len());
    }
}
