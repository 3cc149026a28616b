//! Handoffs by anna's rules, and by the agent's own runner.

use super::*;
use crate::support::Inspect as _;

#[tokio::test]
async fn ten_messages_become_a_summary_and_the_newest_four() {
    let session = open(writing("They renamed modules.").handoff(keeping(4))).await;
    talk(&session, 10).await;
    let before = export(&session).await;
    let handoff = done(&session).await;
    assert_eq!(handoff.summary, "They renamed modules.");
    assert_eq!((handoff.kept_from, handoff.archived), (Seq(7), 6));
    assert!(handoff.tokens_after < handoff.tokens_before);
    let (summary, messages) = shown(&session).await;
    assert!(summary.contains("They renamed modules."));
    assert_eq!(messages, [7, 8, 9, 10]);
    // What is said afterwards comes last.
    let _ = session.ingest(said(11)).await.unwrap();
    assert_eq!(shown(&session).await.1, [7, 8, 9, 10, 11]);
    assert_eq!(session.entries().await.unwrap().len(), 11);
    let after = export(&session).await;
    assert!(after.starts_with(&before), "every word is still there");
}

#[tokio::test]
async fn a_tail_of_all_messages_leaves_nothing_to_hand_over() {
    let session = open(writing("x").handoff(keeping(20))).await;
    talk(&session, 10).await;
    let skip = skipped(&session, &HandOver::default()).await;
    assert_eq!(skip, HandOverSkip::NothingToDo);
    assert_eq!(shown(&session).await.1.len(), 10);
}

#[tokio::test]
async fn a_tail_of_no_messages_can_be_said() {
    // It keeps what no cut may part from the head: nothing that is settled.
    let session = open(writing("All of it.").handoff(keeping(0))).await;
    talk(&session, 10).await;
    assert_eq!(done(&session).await.kept_from, Seq(11));
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_an_error_and_one_of_another_strategy_too() {
    let memory = writing("x").open().await.unwrap();
    let missing = memory.get_session("nobody").await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let dag = memory.session("chat").await.unwrap();
    let error = dag.hand_over(&HandOver::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("use_strategy"), "{error}");
}

/// A runner that records its calls.
#[derive(Debug)]
struct Logged {
    stateful: bool,
    answer: Result<&'static str, FailureKind>,
    model: Mutex<String>,
    log: Mutex<Vec<String>>,
    resets: AtomicU32,
    reset_fails: bool,
    set_model_fails: bool,
}

impl Logged {
    fn new(stateful: bool, answer: Result<&'static str, FailureKind>) -> Self {
        Self {
            stateful,
            answer,
            model: Mutex::new("large".to_owned()),
            log: Mutex::default(),
            resets: AtomicU32::new(0),
            reset_fails: false,
            set_model_fails: false,
        }
    }
}

#[async_trait::async_trait]
impl Runner for Logged {
    async fn generate(&self, _: &str, user: &str) -> Result<String, Failure> {
        assert!(user.contains("Step 1"), "the history is in the prompt");
        let model = self.model.lock().unwrap().clone();
        self.log.lock().unwrap().push(format!("asked {model}"));
        let answer = self.answer.map(str::to_owned);
        answer.map_err(|kind| Failure::new(kind, "no answer"))
    }

    fn stateful(&self) -> bool {
        self.stateful
    }

    async fn reset(&self) -> Result<(), Failure> {
        self.resets.fetch_add(1, Ordering::Relaxed);
        match self.reset_fails {
            true => Err(Failure::new(FailureKind::Unreachable, "it does not start")),
            false => Ok(()),
        }
    }

    fn model(&self) -> Option<String> {
        Some(self.model.lock().unwrap().clone())
    }

    async fn set_model(&self, model: &str) -> Result<(), Failure> {
        if self.set_model_fails {
            return Err(Failure::new(FailureKind::Unreachable, "no such model"));
        }
        *self.model.lock().unwrap() = model.to_owned();
        Ok(())
    }
}

async fn by_runner(
    runner: Logged,
) -> (Arc<Logged>, agent_memory::Result<HandOverOutcome>, Session) {
    let session = open(memory().handoff(keeping(4))).await;
    talk(&session, 10).await;
    let runner = Arc::new(runner);
    let as_runner: Arc<dyn Runner> = runner.clone();
    let outcome = session
        .hand_over(&HandOver {
            runner: Some(as_runner),
            runner_model: Some("fast".to_owned()),
            ..HandOver::default()
        })
        .await;
    (runner, outcome, session)
}

#[tokio::test]
async fn a_runner_summarizes_with_its_fast_model_and_is_reset_once_unless_it_is_stateful() {
    for (stateful, resets) in [(false, 1), (true, 0)] {
        let (runner, outcome, session) =
            by_runner(Logged::new(stateful, Ok("Modules were renamed."))).await;
        let HandOverOutcome::Done(handoff) = outcome.unwrap() else {
            panic!("nothing was done");
        };
        assert_eq!(handoff.summary, "Modules were renamed.");
        assert_eq!(runner.log.lock().unwrap().as_slice(), ["asked fast"]);
        assert_eq!(runner.model().as_deref(), Some("large"));
        assert_eq!(runner.resets.load(Ordering::Relaxed), resets);
        assert_eq!(shown(&session).await.1, [7, 8, 9, 10]);
    }
}

#[tokio::test]
async fn a_runner_that_fails_changes_nothing_and_is_not_reset() {
    for answer in [Err(FailureKind::Unreachable), Ok(""), Ok("  \n")] {
        let (runner, outcome, session) = by_runner(Logged::new(false, answer)).await;
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("Summarization failed: "), "{error}");
        if answer.is_ok() {
            assert!(error.contains("empty summary response"), "{error}");
        }
        assert_eq!(runner.resets.load(Ordering::Relaxed), 0);
        assert_eq!(runner.model().as_deref(), Some("large"));
        assert_eq!(shown(&session).await.1.len(), 10);
    }
}

#[tokio::test]
async fn a_runner_that_cannot_be_reset_is_an_error_after_the_handoff() {
    let runner = Logged {
        reset_fails: true,
        ..Logged::new(false, Ok("Modules were renamed."))
    };
    let (_, outcome, session) = by_runner(runner).await;
    assert!(matches!(outcome.unwrap_err().kind(), ErrorKind::Model(_)));
    assert_eq!(shown(&session).await.1, [7, 8, 9, 10]);
}

/// Returns a session above its threshold, whose automatic handoffs ask this runner.
async fn above_threshold(runner: &Arc<Logged>, builder: Builder) -> Session {
    let runner: Arc<dyn Runner> = runner.clone();
    let builder = builder
        .auto_handoff(above(100, 4))
        .handoff_options(HandOver {
            runner: Some(runner),
            runner_model: Some("fast".to_owned()),
            min_messages: 6,
            ..HandOver::default()
        });
    let session = open(builder).await.in_window(Window::new(100_000)).await;
    talk(&session, 5).await;
    let report = session.user(said(6)).await.unwrap();
    assert_eq!((report.published(), report.failure), (0, None), "too short");
    let too_short = HandOverSkip::TooShort { messages: 5 };
    assert_eq!(report.skipped, Some(too_short));
    talk_on(&session, 7, 4).await;
    session
}

#[tokio::test]
async fn an_automatic_handoff_asks_the_runner_and_restarts_it_unless_it_is_stateful() {
    for (stateful, resets) in [(false, 1), (true, 0)] {
        let runner = Arc::new(Logged::new(stateful, Ok("Modules were renamed.")));
        let session = above_threshold(&runner, writing("by the summarizer")).await;
        let report = session.user(said(11)).await.unwrap();
        assert_eq!((report.published(), report.failure), (1, None));
        assert_eq!(runner.log.lock().unwrap().as_slice(), ["asked fast"]);
        assert_eq!(runner.model().as_deref(), Some("large"));
        assert_eq!(runner.resets.load(Ordering::Relaxed), resets);
        let (summary, messages) = shown(&session).await;
        assert!(summary.contains("Modules were renamed."), "{summary}");
        assert_eq!(messages, [7, 8, 9, 10, 11]);
    }
}

#[tokio::test]
async fn a_failing_automatic_handoff_is_a_warning_and_the_turn_goes_on_with_the_whole_history() {
    for answer in [Err(FailureKind::Unreachable), Ok("  ")] {
        let runner = Arc::new(Logged::new(false, answer));
        let session = above_threshold(&runner, memory()).await;
        let log = Warnings::default();
        let report = {
            let _guard = tracing::subscriber::set_default(log.clone());
            session.user(said(11)).await.unwrap()
        };
        let failure = report.failure.unwrap();
        assert!(failure.starts_with("Summarization failed: "), "{failure}");
        let logged = log.0.lock().unwrap().join("\n");
        assert!(logged.contains(&failure), "{logged}");
        assert_eq!(runner.resets.load(Ordering::Relaxed), 0);
        let context = session.context().await.unwrap();
        let text = context.context.messages.len();
        assert_eq!((shown(&session).await.1.len(), text), (11, 11));
    }
    // The handoff stands if the runner cannot be restarted, and the report says so.
    let runner = Arc::new(Logged {
        reset_fails: true,
        ..Logged::new(false, Ok("Modules were renamed."))
    });
    let session = above_threshold(&runner, memory()).await;
    let report = session.user(said(11)).await.unwrap();
    assert_eq!(report.published(), 1);
    assert!(report.failure.unwrap().contains("it does not start"));
}

/// A log that keeps its warnings.
#[derive(Debug, Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl tracing::field::Visit for Warnings {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let mut said = self.0.lock().unwrap();
        said.push(format!("{field}={value:?}"));
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn where_a_model_is_asked_no_extract_takes_the_place_of_a_failed_or_empty_summary() {
    for (answer, why) in [
        (Answer::fail("503"), "503"),
        (Answer::Empty, "empty summary response"),
        (Answer::Blank, "empty summary response"),
    ] {
        let model = Arc::new(Scripted::new([answer]));
        let session = open(memory().summarizer(model).auto_handoff(above(100, 4))).await;
        talk(&session, 10).await;
        let error = session.hand_over(&HandOver::default()).await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains("Summarization failed: "), "{said}");
        assert!(said.contains(why), "{said}");
        let session = session.in_window(Window::new(100_000)).await;
        let report = session.user(crate::support::said(11)).await.unwrap();
        assert!(report.failure.unwrap().contains(why));
        assert_eq!(shown(&session).await.1.len(), 11);
    }
    // Without a model, extracts are the summaries.
    let session = open(memory().auto_handoff(above(100, 4))).await;
    talk(&session, 10).await;
    assert_eq!(done(&session).await.kept_from, Seq(7));
}

#[tokio::test]
async fn one_handoff_takes_a_summarizer_of_its_own() {
    let usual = Scripted::fixed(Ok("by the usual model"));
    let builder = memory().summarizer(Arc::new(usual.clone()));
    let session = open(builder.handoff(keeping(4))).await;
    talk(&session, 10).await;
    let by = |model: Scripted| HandOver {
        summarizer: Some(Arc::new(model)),
        ..HandOver::default()
    };
    for answer in [Answer::fail("503"), Answer::Empty] {
        let error = session.hand_over(&by(Scripted::new([answer]))).await;
        assert!(matches!(error.unwrap_err().kind(), ErrorKind::Model(_)));
        assert_eq!(shown(&session).await.1.len(), 10);
    }
    let request = by(Scripted::fixed(Ok("By the cheap model.")));
    let HandOverOutcome::Done(handoff) = session.hand_over(&request).await.unwrap() else {
        panic!("nothing was done");
    };
    assert_eq!(
        (handoff.summary.as_str(), usual.calls()),
        ("By the cheap model.", 0)
    );
}

#[tokio::test]
async fn a_tail_never_begins_with_a_result_whose_call_is_gone() {
    let session = open(writing("The file was read.").handoff(keeping(1))).await;
    let log = [
        Message::user(
            "What does the manifest say of the edition? Read it whole, please. ".repeat(20),
        ),
        call("a", "Read", r#"{"file_path":"/srv/crumb/Cargo.toml"}"#),
        Message::tool_result("a", "[package]\nname = \"crumb\"\nedition = \"2024\""),
    ];
    let _ = session.ingest_batch(log.to_vec()).await.unwrap();
    say(&session, Message::assistant("It is 2024.")).await;
    // One message is kept; two would begin with the result, so the call is kept too.
    for messages in [1, 2] {
        let planner = agent_memory::compaction::HandoffPlanner::new(keeping(messages));
        let view = session
            .memory()
            .session(session.key().clone())
            .planner(planner)
            .await
            .unwrap();
        let jobs = view.plan().await.unwrap().jobs;
        let cut = jobs.first().map(|job| job.range.last);
        assert_eq!(
            cut,
            (messages == 1)
                .then_some(Seq(3))
                .or(cut.filter(|l| *l == Seq(1)))
        );
    }
}

#[tokio::test]
async fn a_later_summary_is_made_from_the_one_before_and_from_what_was_kept() {
    let model = Scripted::head_cut();
    let session = open(
        memory()
            .summarizer(Arc::new(model.clone()))
            .handoff(keeping(4)),
    )
    .await;
    talk(&session, 10).await;
    let first = done(&session).await;
    let more: Vec<Message> = (11..=20).map(said).collect();
    let _ = session.ingest_batch(more).await.unwrap();
    let second = done(&session).await;
    assert_eq!(second.kept_from, Seq(17));
    let summaries = session.summaries(&second.summaries).await.unwrap();
    let summary = summaries[0].as_ref().unwrap();
    // The messages 7 to 10, which the first handoff kept, are among the sources of the second.
    let sources: Vec<_> = summary
        .sources
        .iter()
        .map(|s| (s.range().first, s.range().last))
        .collect();
    assert_eq!(sources, [(Seq(1), Seq(6)), (Seq(7), Seq(16))]);
    assert_eq!(summary.source_summaries().next(), first.summaries.first());
    assert_eq!(summary.children.len(), 1);
    assert_eq!(summary.range.last, Seq(16));
}

#[tokio::test]
async fn the_cost_before_a_handoff_is_that_of_what_the_view_shows() {
    let session = open(writing("They renamed modules.").handoff(keeping(4))).await;
    talk(&session, 10).await;
    let first = done(&session).await;
    talk_on(&session, 11, 10).await;
    let log = session.entries().await.unwrap();
    let since: u64 = log.iter().skip(10).map(|entry| entry.tokens).sum();
    // What the first summary stands for does not count again.
    let second = done(&session).await;
    assert_eq!(second.tokens_before, first.tokens_after + since);
}

#[tokio::test]
async fn an_overflow_is_recovered_from_whatever_the_runner_does() {
    let answering = || Logged::new(false, Ok("Modules were renamed."));
    let without_its_model = Logged {
        set_model_fails: true,
        ..answering()
    };
    let not_reset = Logged {
        reset_fails: true,
        ..answering()
    };
    for (runner, min_messages) in [
        (without_its_model, 0),
        (not_reset, 0),
        (Logged::new(false, Err(FailureKind::Unreachable)), 0),
        (answering(), 1_000),
    ] {
        let what = format!("{runner:?}, {min_messages}");
        let runner: Arc<dyn Runner> = Arc::new(runner);
        let builder = memory().handoff(keeping(4)).handoff_options(HandOver {
            runner: Some(runner),
            runner_model: Some("fast".to_owned()),
            min_messages,
            ..HandOver::default()
        });
        let session = open(builder).await.in_window(Window::new(100_000)).await;
        talk(&session, 20).await;
        let before = session.snapshot().await.unwrap().tokens();
        let recovered = session.recover_from_overflow().await.unwrap();
        assert!(matches!(recovered, Recovery::Compacted(_)), "{what}");
        let after = session.snapshot().await.unwrap().tokens();
        assert!(after <= before / 4 * 3, "{what}");
        assert!(session.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn no_extract_follows_an_automatic_handoff_by_a_runner_that_fits_the_budget() {
    let runner: Arc<dyn Runner> = Arc::new(Logged::new(true, Ok("Modules were renamed.")));
    let turns = TurnPolicy {
        before_call: Action::Compact,
        ..TurnPolicy::manual()
    };
    // A handoff of a few messages, after which the view takes more than nine tenths of the room.
    let policy = HandoffPolicy {
        max_source_tokens: Some(320),
        ..keeping(4)
    };
    let builder = memory().handoff(policy).turns(turns);
    let session = open(builder.handoff_options(HandOver {
        runner: Some(runner),
        ..HandOver::default()
    }))
    .await;
    talk(&session, 120).await;
    let tokens = session.snapshot().await.unwrap().tokens();
    let factor = session.usage().await.unwrap().safety_factor;
    let limit = |window: &Window| window.budget().with_safety_factor(factor).limit();
    let largest = (tokens..)
        .map(Window::new)
        .take_while(|window| limit(window) < tokens);
    let windows: Vec<Window> = largest.collect();
    let window = *windows.last().unwrap();
    let session = session.in_window(window).await;
    let report = session.context().await.unwrap().report;
    let after = report.compactions[0].after.tokens;
    assert!(
        (limit(&window) / 10 * 9..limit(&window)).contains(&after),
        "{after}"
    );
    assert_eq!((report.published(), report.extracted), (1, 0));
}

#[tokio::test]
async fn a_requested_handoff_runs_at_any_length_or_the_report_says_why_not() {
    let options = HandOver {
        min_messages: 100,
        ..HandOver::default()
    };
    let builder = writing("All of it.").handoff(keeping(4));
    let builder = builder.handoff_options(options).turns(TurnPolicy::manual());
    let session = open(builder).await.in_window(Window::new(100_000)).await;
    talk(&session, 10).await;
    session.request_compaction(None);
    let report = session.after_turn().await.unwrap();
    assert_eq!((report.published(), report.skipped), (1, None));
    let open_call = call("a", "Read", r#"{"file_path":"/srv/notes.md"}"#);
    let _ = session.ingest(open_call).await.unwrap();
    session.request_compaction(None);
    let report = session.after_turn().await.unwrap();
    assert_eq!(
        (report.published(), report.skipped),
        (0, Some(HandOverSkip::PendingToolCalls))
    );
}

#[tokio::test]
async fn what_is_kept_is_kept_word_for_word() {
    let session = open(writing("They renamed modules.").handoff(keeping(4))).await;
    talk(&session, 10).await;
    done(&session).await;
    let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
    let kept = context.messages.into_iter().filter(|message| {
        let source = &message.source;
        matches!(source, MessageOrigin::Message { .. })
    });
    let kept = kept.map(|message| (message.role, message.parts));
    let said = (7..=10).map(said).map(|said| (said.role, said.parts));
    assert!(kept.eq(said));
}

/// A runner that only has the methods that a runner must have.
#[derive(Debug, Default)]
struct Bare {
    system: Mutex<String>,
    resets: AtomicU32,
}

#[async_trait::async_trait]
impl Runner for Bare {
    async fn generate(&self, system: &str, _: &str) -> Result<String, Failure> {
        *self.system.lock().unwrap() = system.to_owned();
        Ok("Modules were renamed.".to_owned())
    }

    async fn reset(&self) -> Result<(), Failure> {
        self.resets.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test]
async fn a_runner_is_asked_for_seven_sections_and_is_reset_unless_it_says_otherwise() {
    let session = open(memory().handoff(keeping(4))).await;
    talk(&session, 10).await;
    let bare = Arc::new(Bare::default());
    let runner: Arc<dyn Runner> = bare.clone();
    let request = HandOver {
        runner: Some(runner),
        ..HandOver::default()
    };
    let outcome = session.hand_over(&request).await.unwrap();
    assert!(matches!(outcome, HandOverOutcome::Done(_)), "{outcome:?}");
    let system = bare.system.lock().unwrap().clone();
    for asked in [
        "# Goal",
        "# Progress",
        "# Key Decisions",
        "# Files Changed",
        "# Current State",
        "# Blockers and Gotchas",
        "# Next Steps",
        "a reader who has nothing else",
    ] {
        assert!(system.contains(asked), "{asked} in {system}");
    }
    assert_eq!(bare.resets.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_handoff_whose_model_fails_is_an_error_whoever_asks_for_it() {
    for (answer, why) in [
        (Answer::fail("503"), "503"),
        (Answer::Empty, "empty summary response"),
        (Answer::Blank, "empty summary response"),
    ] {
        let model = Arc::new(Scripted::new([answer]));
        let session = open(memory().summarizer(model).handoff(keeping(4))).await;
        talk(&session, 10).await;
        let before = session.spans().await.unwrap();
        let error = session.hand_over(&HandOver::default()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Model(_)));
        assert!(error.to_string().contains(why), "{error}");
        let outcome = session.compact(Mode::Full).await.unwrap();
        let stop = agent_memory::compaction::StopReason::SummarizerFailed;
        assert_eq!((outcome.stop_reason, outcome.published.total()), (stop, 0));
        let failure = outcome.failure.unwrap();
        assert!(failure.starts_with("Summarization failed: "), "{failure}");
        assert!(failure.contains(why), "{failure}");
        assert_eq!(session.spans().await.unwrap(), before);
    }
    // A stricter gate for summaries is no other rule for failures.
    let gated = Ladder {
        gate: Some(Gate {
            min_retained: Share::new(0.5),
            ..Gate::default()
        }),
        ..Ladder::default()
    };
    let model = Arc::new(Scripted::fails());
    let session = open(memory().summarizer(model).ladder(gated).handoff(keeping(4))).await;
    talk(&session, 10).await;
    let error = session.hand_over(&HandOver::default()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Model(_)));
    // Another ladder is another rule, and sessions of another strategy have extracts.
    let failing = || memory().summarizer(Arc::new(Scripted::fails()));
    let session = open(failing().ladder(Ladder::default()).handoff(keeping(4))).await;
    talk(&session, 10).await;
    assert_eq!(done(&session).await.kept_from, Seq(7));
    let session = open(failing().handoff(keeping(4))).await;
    let session = session.use_strategy(Strategy::Dag).await.unwrap();
    talk(&session, 60).await;
    let outcome = session.compact(Mode::Full).await.unwrap();
    let made = session.summaries(&outcome.summaries).await.unwrap();
    assert!(!made.is_empty() && made.iter().flatten().all(|s| s.provisional));
}
