//! Hooks of a handoff, and checks of the summaries that they supply.

use super::*;
use crate::support::Inspect as _;
use agent_memory::CompactRequest;
use agent_memory::compaction::{Background, RunnerPolicy, SkipReason, StopReason};
use agent_memory::model::Purpose;

/// Hooks that give the same answer for every job.
#[derive(Debug)]
struct Always(JobDecision);

#[async_trait::async_trait]
impl Hooks for Always {
    async fn before(&self, _: &PlannedJob<'_>) -> JobDecision {
        self.0.clone()
    }
}

#[tokio::test]
async fn the_first_kept_message_is_named_by_its_sources_id() {
    let session = open(writing("Earlier work.").handoff(keeping(4))).await;
    let named = |n: usize| {
        let mut message = said(n);
        message.external_id = (n != 12).then(|| format!("entry-{n}"));
        message
    };
    let _ = session
        .ingest_batch((1..=10).map(named).collect())
        .await
        .unwrap();
    let handoff = done(&session).await;
    assert_eq!(
        (handoff.kept_from, handoff.kept_from_id.as_deref()),
        (Seq(7), Some("entry-7"))
    );
    // A message that its source gave no id has its position alone.
    let _ = session
        .ingest_batch((11..=15).map(named).collect())
        .await
        .unwrap();
    let handoff = done(&session).await;
    assert_eq!((handoff.kept_from, handoff.kept_from_id), (Seq(12), None));
}

#[tokio::test]
async fn a_summary_by_a_hook_is_marked_and_a_hook_that_fails_stops_nothing() {
    let recorder = Recorder::new();
    let hooks = HookList::new()
        .with(Arc::new(Always(JobDecision::Fail("no file".to_owned()))))
        .with(Arc::new(Always(JobDecision::Supply(
            "Six steps.".to_owned(),
        ))))
        .with(Arc::new(recorder.clone()));
    let model = Scripted::fixed(Ok("by the model"));
    let builder = memory()
        .summarizer(Arc::new(model.clone()))
        .handoff(keeping(4));
    let session = open(builder.hooks(Arc::new(hooks))).await;
    talk(&session, 10).await;
    let handoff = done(&session).await;
    assert_eq!((handoff.summary.as_str(), model.calls()), ("Six steps.", 0));
    let stored = session
        .summaries(&handoff.summaries)
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert_eq!(
        (stored.tier.as_str(), stored.model.as_deref()),
        ("supplied", None)
    );
    assert!(stored.recipe.as_str().starts_with("supplied@1"));
    let failed =
        |event: &Event| matches!(event, Event::HookFailed { error, .. } if error == "no file");
    assert!(recorder.events().iter().any(failed));
}

#[tokio::test]
async fn details_that_somebody_else_wrote_are_kept_and_not_trusted() {
    let session = open(writing("All of it.").handoff(keeping(2))).await;
    talk(&session, 12).await;
    let details = r#"{"read_files":["a.rs"],"read":["b.rs"],"files":{"read":["c.rs"]}}"#;
    let appended = session
        .append_compaction(
            &CompactionResult::new("Steps one to eight.", Seq(9))
                .with_details(RawJson::parse(details).unwrap()),
        )
        .await
        .unwrap();
    assert!(appended.files.is_empty());
    let stored = session
        .summaries(&appended.summaries)
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert!(stored.meta.as_ref().unwrap().as_str().contains(details));
    assert_eq!(FileLedger::of(&stored), Some(FileLedger::default()));
    // The next handoff is made from that summary, and takes no file from it.
    talk_on(&session, 13, 8).await;
    let handoff = done(&session).await;
    assert!(handoff.files.is_empty(), "{:?}", handoff.files);
    assert_eq!(handoff.summary_with_files(), "All of it.");
}

#[tokio::test]
async fn a_recovery_tells_that_the_call_is_made_again() {
    let recorder = Recorder::new();
    let builder = writing("All of it.")
        .handoff(keeping(4))
        .hooks(Arc::new(recorder.clone()));
    let session = open(builder).await;
    talk(&session, 20).await;
    let window = Window::new(100_000);
    let session = session.in_window(window).await;
    session.recover_from_overflow().await.unwrap();
    let ended = || match recorder.events().pop() {
        Some(ref last @ Event::Ended { will_retry, .. }) => (last.is_aborted(), will_retry),
        other => panic!("{other:?}"),
    };
    assert_eq!(ended(), (false, true));
    talk_on(&session, 21, 10).await;
    done(&session).await;
    assert_eq!(ended(), (false, false));
    talk_on(&session, 31, 10).await;
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let request = HandOver {
        cancel: cancelled,
        ..HandOver::default()
    };
    assert_eq!(skipped(&session, &request).await, HandOverSkip::Cancelled);
    assert_eq!(ended(), (true, false));
}

/// Returns a memory in which a failing model is an error.
fn failing(answers: impl IntoIterator<Item = Answer>) -> Builder {
    let ladder = Ladder {
        tiers: vec![Tier::Normal],
        ..Ladder::default()
    };
    memory()
        .summarizer(Arc::new(Scripted::new(answers)))
        .ladder(Ladder {
            on_error: OnError::Fail,
            ..ladder
        })
}

#[tokio::test]
async fn a_turn_that_failed_leaves_no_state_behind() {
    let builder = failing([
        Answer::fail("503"),
        Answer::fail("503"),
        Answer::text("All of it."),
    ]);
    let session = open(builder.handoff(keeping(4)).turns(TurnPolicy::manual())).await;
    let window = Window::new(100_000);
    let session = session.in_window(window).await;
    talk(&session, 20).await;
    session.before_turn().await.unwrap();
    session.request_compaction(None);
    // The compaction fails, and the turn is over all the same; nothing waits for the next one.
    let report = session.after_turn().await.unwrap();
    assert!(report.failure.unwrap().contains("503"));
    let between = CompactRequest {
        between_turns: true,
        ..CompactRequest::default()
    };
    session.compact(between).await.unwrap();
    let report = session.after_turn().await.unwrap();
    assert_eq!((report.failure, report.compactions.len()), (None, 0));
    // The host gave a turn up without ending it: the next one may recover again.
    session.before_turn().await.unwrap();
    session.recover_from_overflow().await.unwrap();
    assert_eq!(
        session.recover_from_overflow().await.unwrap(),
        Recovery::AlreadyTried
    );
    session.before_turn().await.unwrap();
    let again = session.recover_from_overflow().await.unwrap();
    assert_ne!(again, Recovery::AlreadyTried);
    assert!(session.verify().await.unwrap().is_ok());
}

#[tokio::test]
async fn an_error_names_the_summary_that_failed_and_neither_is_published() {
    for (answers, label) in [
        (
            [Answer::text("History."), Answer::fail("503")],
            "Turn prefix summarization failed: ",
        ),
        (
            [Answer::fail("503"), Answer::text("Beginning.")],
            "Summarization failed: ",
        ),
    ] {
        let builder = failing(answers).handoff(HandoffPolicy {
            split_turns: true,
            ..keeping(1)
        });
        let session = open(builder).await;
        talk(&session, 8).await;
        let mut turn = vec![said(9)];
        turn.extend((0..8).map(|n| Message::assistant(said(10 + n).text())));
        let _ = session.ingest_batch(turn).await.unwrap();
        let before = session.spans().await.unwrap();
        let error = session.hand_over(&HandOver::default()).await.unwrap_err();
        assert!(error.to_string().contains(label), "{error}");
        assert!(matches!(error.kind(), ErrorKind::Model(_)));
        assert_eq!(session.spans().await.unwrap(), before);
    }
}

/// Logs a turn that a handoff splits, after eight messages.
async fn split_turn(session: &Session) {
    talk(session, 8).await;
    let mut turn = vec![said(9)];
    turn.extend((0..8).map(|n| Message::assistant(said(10 + n).text())));
    let _ = session.ingest_batch(turn).await.unwrap();
}

/// Hooks that refuse the summary with this purpose.
#[derive(Debug)]
struct Refuse(Purpose);

#[async_trait::async_trait]
impl Hooks for Refuse {
    async fn before(&self, planned: &PlannedJob<'_>) -> JobDecision {
        let purpose = planned.job.request.as_ref().map(|request| request.purpose);
        match purpose == Some(self.0) {
            true => JobDecision::Cancel,
            false => JobDecision::Proceed,
        }
    }
}

#[tokio::test]
async fn every_kind_of_run_publishes_both_summaries_of_a_split_turn_or_neither() {
    let policy = || HandoffPolicy {
        split_turns: true,
        ..keeping(1)
    };
    let turns = || TurnPolicy {
        hard: Trigger::Absolute { tokens: 100 },
        before_turn: Action::Compact,
        ..TurnPolicy::manual()
    };
    let prefetching = || TurnPolicy {
        soft: Trigger::Absolute { tokens: 100 },
        hard: Trigger::Absolute { tokens: 100 },
        before_turn: Action::Publish,
        after_turn: Action::Prefetch,
        ..TurnPolicy::manual()
    };
    for kind in [
        "manual",
        "full",
        "turn",
        "requested",
        "overflow",
        "prefetched",
        "fitted",
    ] {
        for refused in [None, Some(Purpose::Replace), Some(Purpose::TurnPrefix)] {
            let builder = match kind {
                // Extracts alone.
                "fitted" => memory(),
                _ => writing("What was done, in short."),
            };
            let builder = builder.handoff(policy()).turns(match kind {
                "turn" => turns(),
                "prefetched" => prefetching(),
                _ => TurnPolicy::manual(),
            });
            let builder = match refused {
                Some(purpose) => builder.hooks(Arc::new(Refuse(purpose))),
                None => builder,
            };
            let builder = builder.runner(RunnerPolicy {
                prefetch_min_tokens: 1,
                ..RunnerPolicy::default()
            });
            let builder = builder.background(Background::off());
            let session = open(builder).await;
            split_turn(&session).await;
            let window = Window::new(if kind == "fitted" { 900 } else { 100_000 });
            let session = session.in_window(window).await;
            match kind {
                "manual" => drop(session.hand_over(&HandOver::default()).await.unwrap()),
                "full" => drop(session.compact(Mode::Full).await.unwrap()),
                "turn" => drop(session.before_turn().await.unwrap()),
                "requested" => {
                    session.request_compaction(None);
                    session.after_turn().await.unwrap();
                }
                "prefetched" => {
                    session.after_turn().await.unwrap();
                    session.before_turn().await.unwrap();
                }
                _ => drop(session.recover_from_overflow().await.unwrap()),
            }
            let spans = session.spans().await.unwrap();
            let shown = spans.iter().filter(|span| span.body.summary().is_some());
            let expected = if refused.is_none() { 2 } else { 0 };
            assert_eq!(shown.count(), expected, "{kind}, {refused:?}");
            assert!(session.verify().await.unwrap().is_ok());
        }
    }
}

/// Hooks that decide about whole compactions, and record the jobs they saw and the summaries that were published.
#[derive(Debug)]
struct Whole {
    decision: CompactionDecision,
    seen: Mutex<Vec<String>>,
}

impl Whole {
    fn new(decision: CompactionDecision) -> Arc<Self> {
        let seen = Mutex::default();
        Arc::new(Self { decision, seen })
    }
}

#[async_trait::async_trait]
impl Hooks for Whole {
    async fn before_compaction(&self, first: &PlannedJob<'_>) -> CompactionDecision {
        let seen = format!("{} jobs, {:?}", first.jobs.len(), first.reason);
        self.seen.lock().unwrap().push(seen);
        self.decision.clone()
    }

    async fn after(&self, summary: &agent_memory::model::Summary) {
        let seen = format!("published {}", summary.text());
        self.seen.lock().unwrap().push(seen);
    }
}

/// Runs a manual and an automatic handoff of two sessions with these hooks, and a model that must not be called.
async fn whole(hooks: &Arc<Whole>) -> Vec<(Session, u64)> {
    let mut sessions = Vec::new();
    for automatic in [false, true] {
        let model = Scripted::fixed(Ok("by the model"));
        let policy = HandoffPolicy {
            split_turns: true,
            ..keeping(1)
        };
        let turns = TurnPolicy {
            hard: Trigger::Absolute { tokens: 100 },
            before_turn: Action::Compact,
            ..TurnPolicy::manual()
        };
        let builder = memory().summarizer(Arc::new(model.clone()));
        let builder = builder.handoff(policy).turns(turns).hooks(hooks.clone());
        let session = open(builder).await;
        split_turn(&session).await;
        let published = match automatic {
            true => {
                let session = session.in_window(Window::new(100_000)).await;
                session.before_turn().await.unwrap().published()
            }
            false => match session.hand_over(&HandOver::default()).await.unwrap() {
                HandOverOutcome::Done(handoff) => {
                    assert_eq!(handoff.tokens_before, 4_321);
                    1
                }
                HandOverOutcome::Skipped(skip) => {
                    assert_eq!(skip, HandOverSkip::Cancelled);
                    0
                }
            },
        };
        assert_eq!(model.calls(), 0);
        sessions.push((session, published));
    }
    sessions
}

#[tokio::test]
async fn a_hook_cancels_a_whole_handoff_before_anything_is_written() {
    let hooks = Whole::new(CompactionDecision::Cancel);
    for (session, published) in whole(&hooks).await {
        assert_eq!((published, shown(&session).await.1.len()), (0, 17));
    }
    let seen = hooks.seen.lock().unwrap().clone();
    assert_eq!(seen, ["2 jobs, Manual", "2 jobs, Threshold"]);
}

#[tokio::test]
async fn a_hook_supplies_a_whole_handoff_with_its_boundary_and_details() {
    let details = RawJson::parse(r#"{"read_files":["a.rs"]}"#).unwrap();
    let result = CompactionResult::new("Five steps.", Seq(6))
        .with_tokens_before(4_321)
        .with_details(details);
    let hooks = Whole::new(CompactionDecision::Supply(Box::new(result)));
    for (session, published) in whole(&hooks).await {
        let (summary, messages) = shown(&session).await;
        assert_eq!((published, messages), (1, (6..=17).collect()));
        assert!(summary.contains("Five steps."), "{summary}");
        let spans = session.spans().await.unwrap();
        let id = spans[0].body.summary().unwrap().clone();
        let stored = session.summaries(&[id]).await.unwrap().remove(0).unwrap();
        let meta = stored.meta.unwrap();
        assert!(meta.as_str().contains(r#"{"read_files":["a.rs"]}"#));
        assert!(session.verify().await.unwrap().is_ok());
    }
    let seen = hooks.seen.lock().unwrap().clone();
    let published = "published Five steps.";
    let expected = ["2 jobs, Manual", published, "2 jobs, Threshold", published];
    assert_eq!(seen, expected);
    // A result that names no entry is an error, and changes nothing.
    let result = CompactionResult::new("Five steps.", "nowhere");
    let hooks = Whole::new(CompactionDecision::Supply(Box::new(result)));
    let session = open(writing("x").handoff(keeping(1)).hooks(hooks)).await;
    talk(&session, 8).await;
    let error = session.hand_over(&HandOver::default()).await.unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(shown(&session).await.1.len(), 8);
}

/// Hooks whose answers a test changes between its runs.
#[derive(Debug, Default)]
struct Changing {
    whole: Mutex<CompactionDecision>,
    refused: Mutex<Option<Purpose>>,
    /// Token that is cancelled while the hooks decide about the beginning of a turn. They never answer.
    cancelled: Mutex<Option<CancellationToken>>,
    recorder: Recorder,
}

#[async_trait::async_trait]
impl Hooks for Changing {
    async fn before_compaction(&self, _: &PlannedJob<'_>) -> CompactionDecision {
        self.whole.lock().unwrap().clone()
    }

    async fn before(&self, planned: &PlannedJob<'_>) -> JobDecision {
        let purpose = planned.job.request.as_ref().map(|request| request.purpose);
        if purpose == Some(Purpose::TurnPrefix) {
            let token = self.cancelled.lock().unwrap().take();
            if let Some(token) = token {
                token.cancel();
                std::future::pending::<()>().await;
            }
        }
        match purpose.is_some() && purpose == *self.refused.lock().unwrap() {
            true => JobDecision::Cancel,
            false => JobDecision::Proceed,
        }
    }

    async fn event(&self, event: &Event) {
        self.recorder.event(event).await;
    }
}

/// Returns a session in this database with the two summaries of a split turn as drafts, and its model.
async fn prefetched(path: &std::path::Path, hooks: &Arc<Changing>) -> (Session, Scripted) {
    let model = Scripted::fixed(Ok("What was done, in short."));
    let policy = HandoffPolicy {
        split_turns: true,
        ..keeping(1)
    };
    let runner = RunnerPolicy {
        prefetch_min_tokens: 1,
        ..RunnerPolicy::default()
    };
    let builder = memory().sqlite(path).summarizer(Arc::new(model.clone()));
    let builder = builder.handoff(policy).runner(runner);
    let builder = builder.turns(TurnPolicy::manual()).hooks(hooks.clone());
    let session = open(builder.background(Background::off())).await;
    split_turn(&session).await;
    assert_eq!(session.prefetch_summaries().await.unwrap().ready, 2);
    (session, model)
}

fn ready_only(cancel: CancellationToken) -> CompactRequest {
    CompactRequest {
        ready_only: true,
        cancel,
        ..CompactRequest::default()
    }
}

#[tokio::test]
async fn the_end_of_a_run_says_why_ready_summaries_of_a_split_turn_were_not_published() {
    let folder = tempfile::tempdir().unwrap();
    for refused in [Purpose::Replace, Purpose::TurnPrefix] {
        let hooks = Arc::new(Changing::default());
        let path = folder.path().join(format!("{refused:?}.db"));
        let (session, model) = prefetched(&path, &hooks).await;
        *hooks.refused.lock().unwrap() = Some(refused);
        let request = ready_only(CancellationToken::new());
        let outcome = session.compact(request).await.unwrap();
        assert_eq!(
            (
                outcome.published.total(),
                outcome.stop_reason,
                model.calls()
            ),
            (0, StopReason::NoProgress, 2)
        );
        let vetoed = |event: &Event| {
            matches!(
                event,
                Event::Skipped {
                    reason: SkipReason::Vetoed,
                    ..
                }
            )
        };
        let events = hooks.recorder.events();
        assert_eq!(events.iter().filter(|event| vetoed(event)).count(), 1);
    }
    // A cancellation keeps both drafts for the next run.
    let hooks = Arc::new(Changing::default());
    let (session, model) = prefetched(&folder.path().join("cancelled.db"), &hooks).await;
    let cancel = CancellationToken::new();
    *hooks.cancelled.lock().unwrap() = Some(cancel.clone());
    let outcome = session.compact(ready_only(cancel)).await.unwrap();
    assert_eq!(
        (outcome.published.total(), outcome.stop_reason),
        (0, StopReason::Cancelled)
    );
    let request = ready_only(CancellationToken::new());
    let outcome = session.compact(request).await.unwrap();
    assert_eq!((outcome.published.total(), model.calls()), (2, 2));
    assert!(session.verify().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_hook_that_supplies_the_result_of_a_prefetched_handoff_loses_and_leaks_no_draft() {
    let folder = tempfile::tempdir().unwrap();
    let supply = |kept_from: agent_memory::model::EntryRef| {
        CompactionDecision::Supply(Box::new(CompactionResult::new("Five steps.", kept_from)))
    };
    // The drafts are still there after a result that cannot be published.
    let hooks = Arc::new(Changing::default());
    let (session, model) = prefetched(&folder.path().join("refused.db"), &hooks).await;
    *hooks.whole.lock().unwrap() = supply("nowhere".into());
    let request = || ready_only(CancellationToken::new());
    let error = session.compact(request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    *hooks.whole.lock().unwrap() = CompactionDecision::Proceed;
    let outcome = session.compact(request()).await.unwrap();
    assert_eq!((outcome.published.total(), model.calls()), (2, 2));
    // They are deleted after a result that was published.
    let hooks = Arc::new(Changing::default());
    let path = folder.path().join("supplied.db");
    let (session, _) = prefetched(&path, &hooks).await;
    *hooks.whole.lock().unwrap() = supply(Seq(6).into());
    let outcome = session.compact(request()).await.unwrap();
    assert_eq!(outcome.published.total(), 1);
    assert_eq!(shown(&session).await.1, (6..=17).collect::<Vec<u32>>());
    let ready = session.prefetch_summaries().await.unwrap().ready;
    session.memory().close().await.unwrap();
    let ready = i64::try_from(ready).unwrap();
    assert_eq!(crate::turns::jobs(&path).await, ready);
}

#[tokio::test]
async fn of_several_hooks_the_last_result_counts_and_the_first_that_cancels_ends_it() {
    use CompactionDecision::{Cancel, Proceed};
    let supply = |text: &str| {
        let result = CompactionResult::new(text, Seq(6));
        CompactionDecision::Supply(Box::new(result))
    };
    for (decisions, text, asked) in [
        (
            vec![Proceed, supply("First."), supply("Second."), Proceed],
            Some("Second."),
            4,
        ),
        (vec![supply("First."), Cancel, supply("Second.")], None, 2),
    ] {
        let hooks: Vec<Arc<Whole>> = decisions.into_iter().map(Whole::new).collect();
        let mut list = HookList::new();
        for hooks in &hooks {
            list = list.with(hooks.clone());
        }
        let model = Scripted::fixed(Ok("by the model"));
        let builder = memory().summarizer(Arc::new(model.clone()));
        let session = open(builder.handoff(keeping(4)).hooks(Arc::new(list))).await;
        talk(&session, 10).await;
        match text {
            Some(text) => assert_eq!(done(&session).await.summary, text),
            None => {
                let skip = skipped(&session, &HandOver::default()).await;
                assert_eq!(skip, HandOverSkip::Cancelled);
            }
        }
        let is_asked = |hooks: &&Arc<Whole>| {
            let seen = hooks.seen.lock().unwrap();
            seen.iter().any(|seen| seen == "1 jobs, Manual")
        };
        assert_eq!(hooks.iter().filter(is_asked).count(), asked);
        assert_eq!(model.calls(), 0);
    }
}
