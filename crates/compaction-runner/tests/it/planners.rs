//! Planners of other crates: one keeps a single rolling summary, one makes blocks.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use compaction_plan::{
    BoxError, Job, JobSink, Label, LabelCounts, Mode, PassInput, Planner, Request, SpanReader,
    Tail, ViewSource, Work,
};
use compaction_runner::{Compaction, Event, Hooks, JobDecision, PlannedJob, Recorder, SkipReason};
use memory_model::{Child, ConversationId, Seq, SeqRange, Span, SpanBody, TrimPolicyId, ViewName};
use memory_store::{ErrorKind, FullStore, InMemoryStore, Store};
use store_sqlite::SqliteOptions;
use summarize_escalation::testing::Scripted;

use crate::world::{Lab, append, chat, open, small, sound};

/// Returns the spans up to a position.
async fn spans_to(view: &dyn ViewSource, last: Seq) -> Result<Vec<Span>, BoxError> {
    let mut reader = SpanReader::new(view, SeqRange::new(Seq::FIRST, last));
    let mut spans = Vec::new();
    while let Some(span) = reader.next().await? {
        spans.push(span);
    }
    Ok(spans)
}

/// Returns the spans over a range. The first and the last span are cut to the range, with their share of the cost.
fn cut(spans: &[Span], range: SeqRange) -> Vec<Span> {
    let cut = spans.iter().filter_map(|span| {
        let whole = span.range.up_to(Seq(u32::MAX - 1))?;
        let part = whole.intersect(&range)?;
        let messages = whole.len().min(1_000);
        let tokens = span.tokens * part.len() / messages.max(part.len());
        Some(Span::closed(part, span.body.clone(), tokens))
    });
    cut.collect()
}

const HANDOFF: Label = Label::from_static("handoff");

/// A planner that keeps one rolling summary of everything before the latest 600 tokens.
#[derive(Debug)]
struct Handoff;

#[async_trait]
impl Planner for Handoff {
    fn view(&self) -> ViewName {
        ViewName::new("handoff")
    }

    fn fingerprint(&self) -> String {
        "handoff@1".to_owned()
    }

    fn passes(&self) -> &[Label] {
        static PASSES: [Label; 1] = [HANDOFF];
        &PASSES
    }

    async fn plan(
        &self,
        _: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        let newest = view.newest(Tail::tokens(600)).await?;
        let kept = newest.first().map_or(Seq::FIRST, |entry| entry.seq);
        let spans = spans_to(view, kept.prev()).await?;
        jobs.extend(fold(&spans, kept.prev()));
        Ok(())
    }
}

/// Returns the job that makes one summary of the previous summary and the messages after it. The new summary unfolds to
/// all of these messages.
fn fold(spans: &[Span], last: Seq) -> Option<Job> {
    let range = SeqRange::new(Seq::FIRST, last)?;
    let expect = cut(spans, range);
    let source = |span: &Span| {
        let range = span.closed_range()?;
        Some(match span.body.summary().cloned() {
            Some(id) => Child::Summary { range, id },
            None => Child::Messages { range },
        })
    };
    let sources: Option<Vec<Child>> = expect.iter().map(source).collect();
    let (sources, new) = (sources?, expect.last()?);
    let request = Request {
        target_tokens: 150,
        ..Request::default()
    };
    (new.body == SpanBody::Raw && new.closed_range()?.len() >= 10).then(|| Job {
        kind: HANDOFF,
        range,
        source_tokens: expect.iter().map(|span| span.tokens).sum(),
        expect,
        work: Work::Summarize {
            sources,
            children: Some(vec![Child::Messages { range }]),
            depth: 0,
        },
        request: Some(request),
        why: "the conversation is handed over".to_owned(),
    })
}

const SUMMARIZE: Label = Label::from_static("summarize");
const TRIM: Label = Label::from_static("trim");

/// A planner with blocks of twenty messages: summaries before the latest 40 messages, then shortened messages, and the
/// latest 8 unchanged.
#[derive(Debug)]
struct Blocks {
    /// Whether every twentieth of the shortened messages is left out.
    omits: bool,
}

/// Blocks in which the last message is left out.
const BLOCKS: Blocks = Blocks { omits: true };

#[async_trait]
impl Planner for Blocks {
    fn view(&self) -> ViewName {
        ViewName::new("blocks")
    }

    fn fingerprint(&self) -> String {
        "blocks@1".to_owned()
    }

    fn passes(&self) -> &[Label] {
        static PASSES: [Label; 2] = [SUMMARIZE, TRIM];
        &PASSES
    }

    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        let (trims, head) = (*input.pass == TRIM, input.head.0);
        let blocks = head.saturating_sub(if trims { 8 } else { 40 }) / 20;
        let summarized = head.saturating_sub(40) / 20;
        let first = if trims { summarized } else { 0 };
        let spans = spans_to(view, Seq(blocks * 20)).await?;
        let block = |n: u32| SeqRange::new(Seq(n * 20 + 1), Seq(n * 20 + 20));
        for range in (first..blocks).filter_map(block) {
            jobs.extend(demote(cut(&spans, range), range, trims, self.omits));
        }
        Ok(())
    }
}

/// Returns the job that shortens a block: raw blocks are trimmed, trimmed blocks are summarized.
fn demote(expect: Vec<Span>, range: SeqRange, trims: bool, omits: bool) -> Option<Job> {
    let raw = expect.iter().all(|span| span.body == SpanBody::Raw);
    let summary = expect.iter().any(|span| span.body.summary().is_some());
    let source_tokens: u64 = expect.iter().map(|span| span.tokens).sum();
    let (kind, work) = match trims {
        true => {
            let last = if omits { range.last.prev() } else { range.last };
            let trimmed = SpanBody::Trimmed(TrimPolicyId::new("tool-output-lines/5@1"));
            let shown = SeqRange::new(range.first, last)?;
            let mut spans = vec![Span::closed(shown, trimmed, source_tokens / 2)];
            let omitted = SeqRange::new(last.next(), range.last);
            spans.extend(omitted.map(|omitted| Span::closed(omitted, SpanBody::Omitted, 0)));
            (TRIM, Work::Replace(spans))
        }
        false => {
            let sources = vec![Child::Messages { range }];
            (SUMMARIZE, Work::summarize(sources, 0))
        }
    };
    (!summary && (raw || !trims)).then(|| Job {
        kind,
        range,
        expect,
        work,
        request: None,
        source_tokens,
        why: "the block is old".to_owned(),
    })
}

fn counts<const N: usize>(pairs: [(&'static str, u64); N]) -> LabelCounts {
    let mut counts = LabelCounts::default();
    for (label, count) in pairs {
        counts.add(&Label::from_static(label), count);
    }
    counts
}

fn compaction<'a>(
    lab: &'a Lab,
    planner: &'a dyn Planner,
    store: &'a dyn Store,
    id: ConversationId,
    model: &'a Scripted,
) -> Compaction<'a> {
    let Lab {
        ladder,
        accounting,
        clock,
        ..
    } = lab;
    let mut compaction = Compaction::new(store, id, planner, model, ladder, accounting, clock);
    compaction.policy.prefetch_min_tokens = 1;
    compaction
}

/// Returns the content of the view, one word for each span.
async fn shown(store: &dyn Store, planner: &dyn Planner, id: ConversationId) -> String {
    let snapshot = store.snapshot(id, &planner.view()).await.unwrap();
    let all = SeqRange::new(Seq::FIRST, snapshot.head).unwrap();
    let order = memory_store::Order::OldestFirst;
    let spans = store
        .spans(&snapshot, all, order, 1_000)
        .await
        .unwrap()
        .items;
    let word = |span: &Span| match span.body {
        SpanBody::Raw => "raw".to_owned(),
        SpanBody::Summary { depth, .. } => format!("summary{depth}"),
        SpanBody::Trimmed(_) => "trimmed".to_owned(),
        SpanBody::Omitted => "omitted".to_owned(),
    };
    let words: Vec<String> = spans
        .iter()
        .map(|s| format!("{}:{}", s.range.first, word(s)))
        .collect();
    words.join(" ")
}

async fn stores() -> [Box<dyn FullStore>; 2] {
    let sqlite = SqliteOptions::new().in_memory().await.unwrap();
    [Box::new(InMemoryStore::new()), Box::new(sqlite)]
}

#[tokio::test]
async fn a_rolling_summary_is_updated_by_the_runner_unchanged() {
    for store in stores().await {
        let store = &*store;
        let (lab, model) = (Lab::new(small()), Scripted::head_cut());
        let id = open(store, "chat").await;
        let handoff = compaction(&lab, &Handoff, store, id, &model);
        for round in 0..4 {
            append(store, id, chat(round * 30 + 1, 30)).await;
            let outcome = handoff.run(Mode::Incremental).await.unwrap();
            assert_eq!(outcome.published, counts([("handoff", 1)]), "round {round}");
            let shown = shown(store, &Handoff, id).await;
            assert!(shown.starts_with("1:summary0 "), "{shown}");
            assert_eq!(shown.split(' ').count(), 2, "{shown}");
            sound(store, id).await;
        }
        // The length that the planner requested is part of the recipe.
        let summaries = store.summary_log(id, None, 10).await.unwrap().items;
        assert!(
            summaries
                .iter()
                .all(|s| s.recipe.as_str().contains("target=150"))
        );
    }
}

#[tokio::test]
async fn rolling_summaries_are_prepared_several_steps_ahead() {
    for store in stores().await {
        let store = &*store;
        let (lab, model) = (Lab::new(small()), Scripted::head_cut());
        let id = open(store, "chat").await;
        let handoff = compaction(&lab, &Handoff, store, id, &model);
        for round in 0..3 {
            append(store, id, chat(round * 30 + 1, 30)).await;
            // Each step extends the draft of the step before, which is not published.
            let ahead = handoff.prefetch_summaries().await.unwrap();
            assert_eq!((ahead.prepared, ahead.ready), (1, u64::from(round) + 1));
            assert_eq!(store.views(id).await.unwrap(), []);
        }
        let called = model.calls();
        let outcome = handoff.publish_ready().await.unwrap();
        assert_eq!(outcome.published, counts([("handoff", 3)]));
        assert_eq!((outcome.calls, model.calls()), (0, called));
        assert!(shown(store, &Handoff, id).await.starts_with("1:summary0 "));
        sound(store, id).await;
        assert_eq!(handoff.prefetch_summaries().await.unwrap().ready, 0);
    }
}

#[tokio::test]
async fn an_old_block_is_demoted_without_its_neighbours() {
    for store in stores().await {
        let store = &*store;
        let (lab, model) = (Lab::new(small()), Scripted::head_cut());
        let id = open(store, "chat").await;
        append(store, id, chat(1, 90)).await;
        let planner = Blocks { omits: false };
        let blocks = compaction(&lab, &planner, store, id, &model);
        blocks.run(Mode::Incremental).await.unwrap();
        let view = "1:summary0 21:summary0 41:trimmed 61:trimmed 81:raw";
        assert_eq!(shown(store, &planner, id).await, view);
        let before = store.snapshot(id, &planner.view()).await.unwrap();
        append(store, id, chat(91, 10)).await;
        blocks.run(Mode::Incremental).await.unwrap();
        let view = "1:summary0 21:summary0 41:summary0 61:trimmed 81:raw";
        assert_eq!(shown(store, &planner, id).await, view);
        // The publication of the summary changes one row: the trimmed block that the summary replaces.
        let since = store
            .publications(id, &before.view, before.version, 10)
            .await
            .unwrap()
            .items;
        let old = SeqRange::new(Seq(41), Seq(60)).unwrap();
        let demoted = since.iter().find(|one| one.at == old).unwrap();
        let firsts = |rows: &[memory_model::SpanStart]| -> Vec<u32> {
            rows.iter().map(|row| row.first.0).collect()
        };
        assert_eq!(
            (firsts(&demoted.removed), firsts(&demoted.added)),
            (vec![41], vec![41])
        );
        sound(store, id).await;
    }
}

#[tokio::test]
async fn blocks_are_trimmed_and_summarized_by_the_runner_unchanged() {
    for store in stores().await {
        let store = &*store;
        let (lab, model) = (Lab::new(small()), Scripted::head_cut());
        let id = open(store, "chat").await;
        append(store, id, chat(1, 90)).await;
        let recorder = Recorder::new();
        let mut blocks = compaction(&lab, &BLOCKS, store, id, &model);
        blocks.hooks = &recorder;
        let outcome = blocks.run(Mode::Incremental).await.unwrap();
        assert_eq!(outcome.published, counts([("summarize", 2), ("trim", 2)]));
        assert_eq!(outcome.calls, 2, "trimming calls no model");
        let view = "1:summary0 21:summary0 41:trimmed 60:omitted 61:trimmed 80:omitted 81:raw";
        assert_eq!(shown(store, &BLOCKS, id).await, view);
        let told = recorder
            .events()
            .into_iter()
            .filter_map(|event| match event {
                Event::Published {
                    kind,
                    summary,
                    range,
                    ..
                } => Some((kind.as_str().to_owned(), summary.is_some(), range.first.0)),
                _ => None,
            });
        let expected = [
            ("summarize", true, 1),
            ("summarize", true, 21),
            ("trim", false, 41),
            ("trim", false, 61),
        ];
        assert!(told.eq(expected.map(|(kind, summary, at)| (kind.to_owned(), summary, at))));
        sound(store, id).await;
        // Trimmed blocks become summaries when they are old enough. Only these blocks change.
        append(store, id, chat(91, 20)).await;
        let outcome = blocks.run(Mode::Incremental).await.unwrap();
        assert_eq!(outcome.published, counts([("summarize", 1), ("trim", 1)]));
        sound(store, id).await;
    }
}

#[tokio::test]
async fn blocks_are_prepared_ahead_and_published_in_one_go() {
    for store in stores().await {
        let store = &*store;
        let (lab, model) = (Lab::new(small()), Scripted::head_cut());
        let id = open(store, "chat").await;
        append(store, id, chat(1, 90)).await;
        let blocks = compaction(&lab, &BLOCKS, store, id, &model);
        let ahead = blocks.prefetch_summaries().await.unwrap();
        assert_eq!((ahead.prepared, ahead.ready, ahead.calls), (4, 4, 2));
        assert_eq!(store.views(id).await.unwrap(), []);
        let outcome = blocks.publish_ready().await.unwrap();
        assert_eq!(outcome.published, counts([("summarize", 2), ("trim", 2)]));
        assert_eq!(outcome.calls, 0);
        sound(store, id).await;
    }
}

/// Hooks that refuse to trim the block at position 41.
#[derive(Debug)]
struct NoTrim(Recorder);

#[async_trait]
impl Hooks for NoTrim {
    async fn before(&self, job: &PlannedJob<'_>) -> JobDecision {
        match job.job.kind == TRIM && job.job.range.first == Seq(41) {
            true => JobDecision::Cancel,
            false => JobDecision::Proceed,
        }
    }

    async fn event(&self, event: &Event) {
        self.0.event(event).await;
    }
}

#[tokio::test]
async fn a_hook_vetoes_a_replacement() {
    let (store, lab, model) = (
        InMemoryStore::new(),
        Lab::new(small()),
        Scripted::head_cut(),
    );
    let id = open(&store, "chat").await;
    append(&store, id, chat(1, 90)).await;
    let hooks = NoTrim(Recorder::new());
    let mut blocks = compaction(&lab, &BLOCKS, &store, id, &model);
    blocks.hooks = &hooks;
    let outcome = blocks.run(Mode::Incremental).await.unwrap();
    assert_eq!(outcome.published, counts([("summarize", 2), ("trim", 1)]));
    let skipped = Event::Skipped {
        range: SeqRange::new(Seq(41), Seq(60)).unwrap(),
        reason: SkipReason::Vetoed,
    };
    assert!(hooks.0.events().contains(&skipped));
    let view = "1:summary0 21:summary0 41:raw 61:trimmed 80:omitted 81:raw";
    assert_eq!(shown(&store, &BLOCKS, id).await, view);
    sound(&store, id).await;
}

type Failure = fn() -> BoxError;

/// A planner that summarizes the first ten messages, then reads the next ones, and fails if asked to.
#[derive(Debug, Default)]
struct ReadsOn {
    recorder: Recorder,
    /// Number of published jobs after the second read.
    published: AtomicUsize,
    failure: Option<Failure>,
}

#[async_trait]
impl Planner for ReadsOn {
    fn view(&self) -> ViewName {
        ViewName::new("reads-on")
    }

    fn fingerprint(&self) -> String {
        "reads-on@1".to_owned()
    }

    fn passes(&self) -> &[Label] {
        static PASSES: [Label; 1] = [SUMMARIZE];
        &PASSES
    }

    async fn plan(
        &self,
        _: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        let block = |first, last| SeqRange::new(Seq(first), Seq(last)).unwrap();
        let spans = view.spans(block(1, 10)).await?;
        let range = block(1, 10);
        jobs.extend(demote(cut(&spans, range), range, false, false));
        view.entries(block(11, 20)).await?;
        let events = self.recorder.events().into_iter();
        let published = events.filter(|event| matches!(event, Event::Published { .. }));
        self.published.store(published.count(), Ordering::Relaxed);
        match self.failure {
            Some(failure) => Err(failure()),
            None => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_job_is_carried_out_while_its_planner_reads_on() {
    let (store, lab, model) = (
        InMemoryStore::new(),
        Lab::new(small()),
        Scripted::head_cut(),
    );
    let id = open(&store, "chat").await;
    append(&store, id, chat(1, 90)).await;
    let planner = ReadsOn::default();
    let mut run = compaction(&lab, &planner, &store, id, &model);
    run.hooks = &planner.recorder;
    let outcome = run.run(Mode::Incremental).await.unwrap();
    assert_eq!(outcome.published, counts([("summarize", 1)]));
    assert_eq!(planner.published.load(Ordering::Relaxed), 1);
    sound(&store, id).await;
}

#[tokio::test]
async fn the_error_of_a_planner_ends_a_run_with_its_kind() {
    let busy = || memory_store::Error::new(ErrorKind::Busy, "locked").into();
    let broken = || "no rule applies".into();
    let cases: [(Failure, ErrorKind, &str); 2] = [
        (busy, ErrorKind::Busy, "the store failed: locked"),
        (
            broken,
            ErrorKind::Invalid,
            "the planner failed: no rule applies",
        ),
    ];
    for (failure, kind, text) in cases {
        let (store, lab, model) = (
            InMemoryStore::new(),
            Lab::new(small()),
            Scripted::head_cut(),
        );
        let id = open(&store, "chat").await;
        append(&store, id, chat(1, 90)).await;
        let planner = ReadsOn {
            failure: Some(failure),
            ..ReadsOn::default()
        };
        let run = compaction(&lab, &planner, &store, id, &model);
        for error in [
            run.plan().await.unwrap_err(),
            run.run(Mode::Incremental).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().ends_with(text), "{error}");
        }
        // Jobs published before the failure stay.
        let shown = shown(&store, &planner, id).await;
        assert_eq!(shown, "1:summary0 11:raw");
        sound(&store, id).await;
    }
}
