//! Several hooks: their order, and the data that hooks and logs receive.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use compaction_plan::{Mode, StopReason};
use compaction_runner::{
    CancellationToken, CompactionReason, Event, HookList, Hooks, JobDecision, PlannedJob, Recorder,
};
use dag_compactor::DagPolicy;
use memory_model::{Seq, SeqRange, Summary};
use memory_store::InMemoryStore;
use summarize_escalation::testing::Scripted;

use crate::world::{Lab, filled, small, sound, summaries};

/// Hooks that give the same answer about every job, and record their name when called.
#[derive(Debug)]
struct Named {
    name: &'static str,
    answer: JobDecision,
    told: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Hooks for Named {
    async fn before(&self, _: &PlannedJob<'_>) -> JobDecision {
        self.told.lock().unwrap().push(format!("{}?", self.name));
        self.answer.clone()
    }

    async fn after(&self, _: &Summary) {
        self.told.lock().unwrap().push(self.name.to_owned());
    }
}

/// Runs a compaction with one summary and hooks with these answers. Returns the texts, the calls of the hooks and the
/// events, in order.
async fn run(answers: Vec<(&'static str, JobDecision)>) -> (Vec<String>, Vec<String>, Vec<Event>) {
    let (store, id) = filled(InMemoryStore::new(), 20).await;
    let lab = Lab::new(DagPolicy {
        max_source_tokens: None,
        ..small()
    });
    let (told, recorder) = (Arc::new(Mutex::new(Vec::new())), Recorder::new());
    let mut list = HookList::new();
    for (name, answer) in answers {
        let told = Arc::clone(&told);
        list = list.with(Arc::new(Named { name, answer, told }));
    }
    let list = list.with(Arc::new(recorder.clone()));
    let model = Scripted::head_cut();
    let mut run = lab.compaction(&store, id, &model);
    run.hooks = &list;
    run.run(Mode::Incremental).await.unwrap();
    sound(&store, id).await;
    let texts = summaries(&store, id).await;
    let texts = texts.iter().map(|summary| summary.text().to_owned());
    let told = told.lock().unwrap().clone();
    (texts.collect(), told, recorder.events())
}

fn failures(events: &[Event]) -> Vec<&str> {
    let failed = events.iter().filter_map(|event| match event {
        Event::HookFailed { error, .. } => Some(error.as_str()),
        _ => None,
    });
    failed.collect()
}

#[tokio::test]
async fn several_hooks_are_asked_in_order_and_one_that_fails_stops_nothing() {
    let supply = |text: &str| JobDecision::Supply(text.to_owned());
    let fail = |text: &str| JobDecision::Fail(text.to_owned());
    let (texts, told, events) = run(vec![
        ("a", fail("no file")),
        ("b", supply("first")),
        ("c", JobDecision::Proceed),
        ("d", supply("second")),
        ("e", fail("no net")),
    ])
    .await;
    assert_eq!(texts, ["second"], "the last text counts");
    assert_eq!(
        told,
        ["a?", "b?", "c?", "d?", "e?", "a", "b", "c", "d", "e"]
    );
    assert_eq!(failures(&events), ["no file", "no net"]);
    // Later hooks are not asked about a cancelled job.
    let (texts, told, _) = run(vec![
        ("a", supply("first")),
        ("b", JobDecision::Cancel),
        ("c", supply("second")),
    ])
    .await;
    assert!(texts.is_empty());
    assert_eq!(told, ["a?", "b?"]);
    // If all hooks fail, the model writes the summary as without hooks.
    let (texts, _, events) = run(vec![("a", fail("x")), ("b", fail("y"))]).await;
    let (alone, ..) = run(Vec::new()).await;
    assert_eq!((texts, failures(&events)), (alone, vec!["x", "y"]));
}

#[tokio::test]
async fn a_single_hook_that_fails_stops_nothing_either() {
    let (store, id) = filled(InMemoryStore::new(), 20).await;
    /// Hooks that fail, and record the events.
    #[derive(Debug)]
    struct Fails(Recorder);
    #[async_trait]
    impl Hooks for Fails {
        async fn before(&self, _: &PlannedJob<'_>) -> JobDecision {
            JobDecision::Fail("no file".to_owned())
        }
        async fn event(&self, event: &Event) {
            self.0.event(event).await;
        }
    }
    let lab = Lab::new(small());
    let (model, fails) = (Scripted::head_cut(), Fails(Recorder::new()));
    let mut run = lab.compaction(&store, id, &model);
    run.hooks = &fails;
    let outcome = run.run(Mode::Incremental).await.unwrap();
    assert!(outcome.published.total() > 0);
    assert!(!failures(&fails.0.events()).is_empty());
}

/// Hooks that read all sources of a job, and the whole conversation.
#[derive(Debug, Default)]
struct Reads(Mutex<Vec<String>>);

#[async_trait]
impl Hooks for Reads {
    async fn before(&self, planned: &PlannedJob<'_>) -> JobDecision {
        let all = SeqRange::new(Seq::FIRST, Seq(1_000)).unwrap();
        let entries = planned.entries(all).await.unwrap();
        let ids: Vec<_> = planned
            .job
            .sources()
            .iter()
            .filter_map(|c| c.summary().cloned())
            .collect();
        let summaries = planned.summaries(&ids).await.unwrap();
        assert!(summaries.iter().all(Option::is_some));
        assert!(
            planned
                .jobs
                .iter()
                .any(|job| job.range == planned.job.range)
        );
        self.0.lock().unwrap().push(format!(
            "{} {} {} of {}: {} entries, {} summaries, {:?}, {}",
            planned.view,
            planned.job.kind,
            planned.job.range,
            planned.jobs.len(),
            entries.len(),
            summaries.len(),
            planned.reason,
            planned.instructions.unwrap_or("-"),
        ));
        JobDecision::Proceed
    }
}

#[tokio::test]
async fn a_hook_sees_the_plan_and_the_whole_conversation() {
    let (store, id) = filled(InMemoryStore::new(), 40).await;
    let lab = Lab::new(small());
    let (model, reads) = (Scripted::head_cut(), Reads::default());
    let mut run = lab.compaction(&store, id, &model);
    run.hooks = &reads;
    run.reason = CompactionReason::Threshold;
    run.instructions = Some("Keep names.".to_owned());
    run.run(Mode::Incremental).await.unwrap();
    let seen = reads.0.lock().unwrap().clone();
    let leaves: Vec<&String> = seen
        .iter()
        .filter(|line| line.starts_with("dag leaf 1-"))
        .collect();
    assert_eq!(leaves.len(), 1, "{seen:?}");
    for line in &seen {
        assert!(line.contains(": 40 entries, "), "{line}");
        assert!(line.ends_with("Threshold, Keep names."), "{line}");
    }
    let condensed = seen
        .iter()
        .find(|line| line.starts_with("dag condensed"))
        .unwrap();
    assert!(!condensed.contains(" 0 summaries"), "{condensed}");
}

#[tokio::test]
async fn the_end_tells_whether_it_was_aborted_and_whether_the_call_is_made_again() {
    let ended = async |reason, messages, cancel: bool| {
        let (store, id) = filled(InMemoryStore::new(), messages).await;
        let token = CancellationToken::new();
        if cancel {
            token.cancel();
        }
        let (lab, model, recorder) = (Lab::new(small()), Scripted::head_cut(), Recorder::new());
        let mut run = lab.compaction(&store, id, &model);
        run.hooks = &recorder;
        run.cancel = token;
        run.reason = reason;
        run.run(Mode::Full).await.unwrap();
        match recorder.events().pop() {
            Some(ref last @ Event::Ended { will_retry, .. }) => (last.is_aborted(), will_retry),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        ended(CompactionReason::Overflow, 40, false).await,
        (false, true)
    );
    assert_eq!(
        ended(CompactionReason::Threshold, 40, false).await,
        (false, false)
    );
    assert_eq!(
        ended(CompactionReason::Manual, 40, false).await,
        (false, false)
    );
    // The view did not become smaller, or the run was cancelled, so the request is not repeated.
    assert_eq!(
        ended(CompactionReason::Overflow, 3, false).await,
        (false, false)
    );
    assert_eq!(
        ended(CompactionReason::Overflow, 40, true).await,
        (true, false)
    );
}

/// A log that records the events of this thread: level, target and fields.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!(" {}={value:?}", field.name()));
            }
        }
        let mut text = Text(format!(
            "{} {}",
            event.metadata().level(),
            event.metadata().target()
        ));
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_log_reads_what_the_hooks_are_told() {
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let (store, id) = filled(InMemoryStore::new(), 40).await;
    let (lab, model, recorder) = (Lab::new(small()), Scripted::head_cut(), Recorder::new());
    let mut run = lab.compaction(&store, id, &model);
    run.hooks = &recorder;
    let outcome = run.run(Mode::Full).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    let logged = log.0.lock().unwrap().clone();
    let logged: Vec<&String> = logged
        .iter()
        .filter(|line| line.contains(" compaction_runner"))
        .collect();
    let told = recorder.events();
    assert_eq!(logged.len(), told.len());
    for (line, event) in logged.iter().zip(&told) {
        assert!(line.starts_with("DEBUG compaction_runner"), "{line}");
        assert!(line.contains(&format!("event={event:?}")), "{line}");
    }
}
