//! Handing sessions over as anna, pi and koda do, and what their handoffs lose.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use agent_memory::handoff::{CutPolicy, FileLedger, LiveHandoffPolicy};
use agent_memory::models::{Failure, FailureKind, is_context_overflow};
use agent_memory::retrieval::ExpandedChild;
use agent_memory::testing::{Answer, Scripted, memory};
use agent_memory::{
    Budget, Builder, CompactionReason, ErrorKind, Event, ExpandArgs, HandOver, HandOverOutcome,
    HandOverSkip, Handoff, HandoffPolicy, IdentityFiles, LiveTurnPolicy, Memory, Message,
    MessageOrigin, Mode, Part, RawJson, Recorder, Recovery, ResultContent, Role, Runner, Seq,
    Session, Strategy, SummaryForm, TurnPolicy, Window, WindowUse,
};

use crate::support::{export, said, talk};

/// A policy by which few messages are worth a handoff.
fn keeping(messages: usize) -> HandoffPolicy {
    HandoffPolicy::default()
        .with_keep(CutPolicy::LastMessages { messages })
        .with_min_tokens(0)
        .with_split_turns(false)
}

fn writing(answer: &str) -> Builder {
    memory().summarizer(Arc::new(Scripted::fixed(Ok(answer))))
}

async fn open(builder: Builder) -> Session {
    let memory: Memory = builder.open().await.unwrap();
    memory.session("chat").await.unwrap()
}

async fn done(session: &Session) -> Handoff {
    match session.hand_over(&HandOver::default()).await.unwrap() {
        HandOverOutcome::Done(handoff) => *handoff,
        HandOverOutcome::Skipped(skip) => panic!("{skip:?}"),
    }
}

async fn skipped(session: &Session, request: &HandOver) -> HandOverSkip {
    match session.hand_over(request).await.unwrap() {
        HandOverOutcome::Done(handoff) => panic!("{handoff:?}"),
        HandOverOutcome::Skipped(skip) => skip,
    }
}

/// What a large context shows: the positions of messages, and the text before them.
async fn shown(session: &Session) -> (String, Vec<u32>) {
    let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
    let (mut summary, mut messages) = (String::new(), Vec::new());
    for message in &context.messages {
        match (&message.source, message.parts.first()) {
            (MessageOrigin::Summary { .. }, Some(Part::Text { text })) => {
                assert!(messages.is_empty(), "a summary behind a message");
                summary.push_str(text);
            }
            (MessageOrigin::Message { first, .. }, _) => messages.push(first.0),
            other => panic!("{other:?}"),
        }
    }
    (summary, messages)
}

fn call(id: &str, tool: &str, arguments: &str) -> Message {
    let mut message = Message::assistant("");
    message.parts = vec![Part::ToolCall {
        id: id.to_owned(),
        name: tool.to_owned(),
        arguments: RawJson::parse(arguments).unwrap(),
    }];
    message
}

fn result(id: &str, text: &str) -> Message {
    let mut message = Message::assistant("");
    message.role = Role::Tool;
    message.parts = vec![Part::ToolResult {
        call_id: id.to_owned(),
        content: ResultContent::Text(text.to_owned()),
        is_error: None,
    }];
    message
}

// ---- anna ----

#[tokio::test]
async fn ten_messages_become_a_summary_and_the_newest_four() {
    let session = open(writing("They renamed modules.").handoff(keeping(4))).await;
    talk(&session, 10).await;
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
    assert_eq!(
        session.entries().await.unwrap().len(),
        11,
        "nothing is lost"
    );
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
    // In anna 0 stands for 20; here it keeps what no cut may part from the head: nothing that is settled.
    let session = open(writing("All of it.").handoff(keeping(0))).await;
    talk(&session, 10).await;
    assert_eq!(done(&session).await.kept_from, Seq(11));
    assert_eq!(
        HandoffPolicy::anna().keep,
        CutPolicy::LastMessages { messages: 20 }
    );
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

/// A runner that writes down what is done to it.
#[derive(Debug)]
struct Logged {
    stateful: bool,
    answer: Result<&'static str, FailureKind>,
    model: Mutex<String>,
    log: Mutex<Vec<String>>,
    resets: AtomicU32,
    reset_fails: bool,
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
        .hand_over_by(&as_runner, Some("fast"), &HandOver::default())
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

#[tokio::test]
async fn a_tail_never_begins_with_a_result_whose_call_is_gone() {
    let session = open(writing("The file was read.").handoff(keeping(1))).await;
    let log = [
        Message::user(
            "What does the manifest say of the edition? Read it whole, please. ".repeat(20),
        ),
        call("a", "Read", r#"{"file_path":"/srv/crumb/Cargo.toml"}"#),
        result("a", "[package]\nname = \"crumb\"\nedition = \"2024\""),
    ];
    let _ = session.ingest_batch(log.to_vec()).await.unwrap();
    let _ = session
        .ingest(Message::assistant("It is 2024."))
        .await
        .unwrap();
    // One message is kept; two would begin with the result, so the call is kept too.
    for messages in [1, 2] {
        let planner = agent_memory::HandoffPlanner::new(keeping(messages));
        let view = session.clone().with_planner(Arc::new(planner));
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

// ---- pi and Operator-Use ----

#[tokio::test]
async fn results_larger_than_what_is_kept_do_not_stop_a_handoff() {
    let policy = HandoffPolicy::default()
        .with_keep(CutPolicy::RecentTokens { tokens: 200 })
        .with_min_tokens(0);
    let session = open(writing("Earlier work.").handoff(policy)).await;
    talk(&session, 12).await;
    let huge = "line of output\n".repeat(400);
    let tail = [
        Message::user("Show the log."),
        call("a", "Bash", r#"{"command":"cat log.txt"}"#),
        result("a", &huge),
    ];
    let _ = session.ingest_batch(tail.to_vec()).await.unwrap();
    let _ = session
        .ingest(Message::assistant("That is all of it."))
        .await
        .unwrap();
    let handoff = done(&session).await;
    assert!(handoff.kept_from > Seq(12), "{handoff:?}");
}

#[tokio::test]
async fn a_split_turn_gets_two_summaries_and_keeps_the_one_before() {
    let policy = HandoffPolicy::default()
        .with_keep(CutPolicy::LastMessages { messages: 2 })
        .with_min_tokens(0);
    let answers = [
        Answer::text("History."),
        Answer::text("The turn's beginning."),
    ];
    let session = open(
        memory()
            .summarizer(Arc::new(Scripted::new(answers)))
            .handoff(policy),
    )
    .await;
    talk(&session, 8).await;
    let mut turn = vec![Message::user(
        "Now rename everything that is left in the tree, one by one.",
    )];
    for n in 0..6 {
        turn.push(Message::assistant(format!(
            "Renamed the part number {n}, its callers in all of the modules that use it, and the tests that go with \
             it; the documentation of part {n} names the new one, and nothing else was touched by that."
        )));
    }
    let _ = session.ingest_batch(turn.clone()).await.unwrap();
    let handoff = done(&session).await;
    assert!(handoff.is_split_turn);
    assert_eq!(handoff.summaries.len(), 2);
    assert_eq!(
        handoff.summary,
        "History.\n\n---\n\n**Turn Context (split turn):**\n\nThe turn's beginning."
    );
    let (summary, messages) = shown(&session).await;
    assert_eq!(messages, [14, 15]);
    assert!(summary.find("History.") < summary.find("The turn's beginning."));
    // The next turn is split where nothing else is old: the summaries before it stay.
    let _ = session.ingest_batch(turn).await.unwrap();
    let again = done(&session).await;
    assert!(again.is_split_turn);
    let found = session.summaries(&again.summaries).await.unwrap();
    let first = found[0].as_ref().unwrap();
    assert_eq!(first.range.first, Seq::FIRST);
    assert_eq!(first.source_summaries().count(), 2, "both are folded");
}

#[tokio::test]
async fn the_files_of_all_handoffs_are_told() {
    let session = open(memory().handoff(keeping(1))).await;
    let wrote = |n: usize| {
        let path = format!("/srv/crumb/src/part{n}.rs");
        let write = format!(r#"{{"file_path":"{path}","content":"pub fn part{n}() {{}}"}}"#);
        let read = format!(r#"{{"file_path":"/srv/crumb/notes{n}.md"}}"#);
        [
            Message::user(format!(
                "Write part {n} after the notes, and run nothing else."
            )),
            call(&format!("r{n}"), "Read", &read),
            result(&format!("r{n}"), "Some notes about it, two lines of them."),
            call(&format!("w{n}"), "Write", &write),
            result(&format!("w{n}"), "File created successfully"),
            call(
                &format!("e{n}"),
                "Edit",
                &format!(
                    r#"{{"file_path":"/srv/crumb/lib.rs","old_string":"a","new_string":"b{n}"}}"#
                ),
            ),
            result(&format!("e{n}"), "updated"),
            call(
                &format!("x{n}"),
                "Bash",
                &format!(r#"{{"command":"rm /srv/crumb/old{n}.rs"}}"#),
            ),
            result(&format!("x{n}"), ""),
            call(&format!("t{n}"), "mcp__weather", r#"{"city":"Oslo"}"#),
            result(&format!("t{n}"), "rain"),
            Message::assistant(format!("Part {n} is written.")),
        ]
    };
    for n in 1..=3 {
        let _ = session.ingest_batch(wrote(n).to_vec()).await.unwrap();
        done(&session).await;
    }
    let last = session.spans().await.unwrap();
    let id = last[0].body.summary().unwrap().clone();
    let summary = session.summaries(&[id]).await.unwrap().remove(0).unwrap();
    let files = FileLedger::of(&summary).unwrap();
    let all = |name: &str| -> Vec<String> {
        (1..=3)
            .map(|n| format!("/srv/crumb/{name}").replace('#', &n.to_string()))
            .collect()
    };
    assert_eq!(files.created(), all("src/part#.rs"));
    assert_eq!(files.read(), all("notes#.md"));
    assert_eq!(files.deleted(), all("old#.rs"));
    assert_eq!(files.updated(), ["/srv/crumb/lib.rs"]);
    assert_eq!(files.unknown_tools().get("mcp__weather"), Some(&3));
    let footer = files.footer();
    assert!(
        footer.contains("<read-files>\n/srv/crumb/notes1.md"),
        "{footer}"
    );
    assert!(
        footer.contains("<modified-files>\n/srv/crumb/lib.rs"),
        "{footer}"
    );
}

#[tokio::test]
async fn a_summary_of_somebody_else_is_appended() {
    let session = open(memory().handoff(keeping(4))).await;
    talk(&session, 12).await;
    let details = RawJson::parse(r#"{"read_files":["a.rs"]}"#).unwrap();
    let handoff = session
        .append_compaction(
            "Twelve steps, so far without trouble.",
            Seq(5),
            Some(details),
        )
        .await
        .unwrap();
    assert_eq!(handoff.kept_from, Seq(5));
    let (summary, messages) = shown(&session).await;
    assert!(summary.contains("without trouble"));
    assert_eq!(messages, (5..=12).collect::<Vec<u32>>());
    let stored = session.summaries(&handoff.summaries).await.unwrap();
    let meta = stored[0]
        .as_ref()
        .unwrap()
        .meta
        .as_ref()
        .unwrap()
        .as_str()
        .to_owned();
    assert!(meta.contains(r#"{"read_files":["a.rs"]}"#), "{meta}");
    for (text, at) in [("", Seq(9)), (" ", Seq(9)), ("x", Seq(1))] {
        let error = session.append_compaction(text, at, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert!(session.verify().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_manual_run_fails_in_a_turn_and_a_request_waits_for_its_end() {
    let builder = writing("All of it.")
        .handoff(keeping(4))
        .turns(TurnPolicy::manual());
    let session = open(builder).await;
    let window = Window::new(100_000);
    talk(&session, 10).await;
    session.before_turn(&window).await.unwrap();
    let error = session
        .compact_between_turns(Mode::Full, None)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InTurn);
    session.request_compaction(Some("Keep the names."));
    assert_eq!(shown(&session).await.1.len(), 10, "not in the turn");
    let report = session.after_turn(&window).await.unwrap();
    assert_eq!(report.published(), 1);
    assert_eq!(shown(&session).await.1.len(), 4);
    let recipe = session.spans().await.unwrap();
    let id = recipe[0].body.summary().unwrap().clone();
    let summary = session.summaries(&[id]).await.unwrap().remove(0).unwrap();
    assert!(summary.recipe.as_str().contains("instructions="));
    // It was asked for once.
    assert_eq!(session.after_turn(&window).await.unwrap().published(), 0);
    session
        .compact_between_turns(Mode::Full, None)
        .await
        .unwrap();
}

#[tokio::test]
async fn events_say_why_a_compaction_ran() {
    let recorder = Recorder::new();
    let builder = writing("All of it.")
        .handoff(keeping(4))
        .hooks(Arc::new(recorder.clone()));
    let session = open(builder).await;
    talk(&session, 10).await;
    done(&session).await;
    talk_on(&session, 11, 10).await;
    session
        .recover_from_overflow(&Window::new(2_000))
        .await
        .unwrap();
    let reasons: Vec<CompactionReason> = recorder
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Triggered { reason } => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(
        reasons[..2],
        [CompactionReason::Manual, CompactionReason::Overflow]
    );
}

async fn talk_on(session: &Session, from: usize, count: usize) {
    let more: Vec<Message> = (from..from + count).map(said).collect();
    let _ = session.ingest_batch(more).await.unwrap();
}

#[tokio::test]
async fn an_overflow_is_recovered_from_once_a_turn() {
    let builder = writing("All of it.")
        .handoff(keeping(2))
        .turns(TurnPolicy::manual());
    let session = open(builder).await;
    let window = Window::new(100_000);
    talk(&session, 20).await;
    session.before_turn(&window).await.unwrap();
    let before = session.snapshot().await.unwrap().tokens();
    let recovered = session.recover_from_overflow(&window).await.unwrap();
    assert!(matches!(recovered, Recovery::Compacted(_)));
    assert!(session.snapshot().await.unwrap().tokens() <= before / 4 * 3);
    let again = session.recover_from_overflow(&window).await.unwrap();
    assert_eq!(again, Recovery::AlreadyTried);
    session.after_turn(&window).await.unwrap();
    // A new turn may recover; there is nothing to make smaller.
    session.before_turn(&window).await.unwrap();
    let again = session.recover_from_overflow(&window).await.unwrap();
    assert_eq!(again, Recovery::NothingToDo);
}

#[tokio::test]
async fn an_overflow_is_recovered_from_without_a_model() {
    let session = open(
        memory()
            .summarizer(Arc::new(Scripted::fails()))
            .handoff(keeping(2)),
    )
    .await;
    talk(&session, 20).await;
    let recovered = session
        .recover_from_overflow(&Window::new(100_000))
        .await
        .unwrap();
    assert!(matches!(recovered, Recovery::Compacted(_)));
    assert!(session.verify().await.unwrap().is_ok());
}

#[test]
fn overflows_are_known_by_what_providers_say() {
    for text in [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "This model's maximum context length is 128000 tokens",
        "error code context_length_exceeded",
        "Request too large for the model",
        "input exceeds the model's limit",
        "over the token limit",
    ] {
        assert!(is_context_overflow(400, text), "{text}");
    }
    assert!(is_context_overflow(413, "payload too large"));
    for (status, text) in [
        (413, "no"),
        (400, "bad request"),
        (429, "slow down"),
        (500, ""),
    ] {
        assert!(!is_context_overflow(status, text), "{text}");
    }
}

// ---- koda ----

#[tokio::test]
async fn a_short_session_and_one_that_waits_for_results_are_passed_over() {
    let session = open(writing("x").handoff(HandoffPolicy::koda())).await;
    let koda = HandOver::default().with_min_messages(4);
    talk(&session, 3).await;
    assert_eq!(
        skipped(&session, &koda).await,
        HandOverSkip::TooShort { messages: 3 }
    );
    talk_on(&session, 4, 9).await;
    let _ = session
        .ingest(call("a", "Bash", r#"{"command":"ls"}"#))
        .await
        .unwrap();
    assert_eq!(
        skipped(&session, &koda).await,
        HandOverSkip::PendingToolCalls
    );
    let _ = session.ingest(result("a", "src")).await.unwrap();
    // 14 messages: 7 stay.
    let handoff = done(&session).await;
    assert_eq!((handoff.archived, handoff.kept_from), (7, Seq(8)));
}

#[tokio::test]
async fn of_ten_messages_koda_archives_eight_when_two_are_kept() {
    let session = open(writing("Eight messages.").handoff(keeping(2))).await;
    talk(&session, 10).await;
    let handoff = done(&session).await;
    assert_eq!(handoff.archived, 8);
    let (summary, messages) = shown(&session).await;
    assert!(
        summary.contains("Eight messages."),
        "the summary stands before what is kept"
    );
    assert_eq!(messages, [9, 10]);
}

#[tokio::test]
async fn a_summary_that_is_no_shorter_is_refused_and_nothing_changes() {
    let long = "word ".repeat(4_000);
    let ladder = agent_memory::Ladder::anna();
    let session = open(writing(&long).ladder(ladder).handoff(keeping(4))).await;
    talk(&session, 10).await;
    let before = export(&session).await;
    let handed = session.hand_over(&HandOver::default()).await;
    // anna's ladder cuts what is too long; either way the view is not larger than before.
    if let Ok(HandOverOutcome::Done(handoff)) = handed {
        assert!(handoff.tokens_after < handoff.tokens_before);
    }
    assert_eq!(export(&session).await, before);
}

// ---- what no rival does ----

#[tokio::test]
async fn after_a_hundred_handoffs_every_message_is_three_calls_away() {
    let policy = keeping(4).with_summary_tokens(1_200, 600);
    let session = open(memory().handoff(policy)).await;
    for n in 0..100 {
        talk_on(&session, n * 12 + 1, 12).await;
        let handoff = done(&session).await;
        assert!(
            handoff.summary_tokens <= 1_300,
            "{}",
            handoff.summary_tokens
        );
        assert_eq!(handoff.summaries.len(), 1);
    }
    let unchanged = skipped(&session, &HandOver::default()).await;
    assert_eq!(unchanged, HandOverSkip::NothingToDo);
    let view = session.spans().await.unwrap();
    session.compact(Mode::Full).await.unwrap();
    assert_eq!(session.spans().await.unwrap(), view, "nothing erodes");
    let summary = view[0].body.summary().unwrap();
    let tools = session.retrieval();
    let (mut found, mut targets) = (BTreeSet::new(), vec![summary.to_string()]);
    for _ in 0..3 {
        let mut next = Vec::new();
        for target in targets {
            let answer = tools.expand(ExpandArgs::new(target)).await.unwrap();
            found.extend(answer.children.iter().filter_map(|child| match child {
                ExpandedChild::Message(message) => Some(message.seq.0),
                ExpandedChild::Summary(_) => None,
            }));
            next.extend(answer.pointers);
        }
        targets = next;
    }
    assert!(found.into_iter().eq(1..=1_196));
    assert!(session.verify().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_fork_has_the_strategy_of_its_parent() {
    let memory = writing("x").open().await.unwrap();
    let session = memory.session("chat").await.unwrap();
    assert_eq!(session.strategy(), Some(Strategy::Dag));
    let session = session.use_strategy(Strategy::Handoff).await.unwrap();
    talk(&session, 6).await;
    session.fork(Seq(4), "fork").await.unwrap();
    let fork = memory.get_session("fork").await.unwrap();
    assert_eq!(fork.strategy(), Some(Strategy::Handoff));
    assert_eq!(
        memory.session("other").await.unwrap().strategy(),
        Some(Strategy::Dag)
    );
    let named: Strategy = "handoff".parse().unwrap();
    assert_eq!(named, Strategy::Handoff);
    assert!("rolling".parse::<Strategy>().is_err());
}

#[tokio::test]
async fn tasks_that_are_still_to_be_done_survive_every_handoff() {
    let session = open(writing("They work on the release.").handoff(keeping(2))).await;
    let todo = r#"{"todos":[{"content":"Tag the release","status":"pending","activeForm":"Tagging"},
        {"content":"Write the notes","status":"completed","activeForm":"Writing"}]}"#;
    talk(&session, 6).await;
    let list = [call("t", "TodoWrite", todo), result("t", "ok")];
    let _ = session.ingest_batch(list.to_vec()).await.unwrap();
    for round in 0..3 {
        talk_on(&session, 7 + round * 8, 8).await;
        let handoff = done(&session).await;
        assert_eq!(
            handoff.summary,
            "They work on the release.\nTo do: Tag the release"
        );
    }
}

// ---- wire forms of a summary ----

/// What precedes the messages: roles, and the beginning of each text.
async fn beginning(session: &Session, form: SummaryForm) -> Vec<(Role, String)> {
    let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
    let before = context.tokens;
    let context = context
        .with_summary_form(form, session.accounting())
        .unwrap();
    assert!(
        form == SummaryForm::Xml || context.tokens <= before,
        "{form:?}"
    );
    let summary =
        |m: &&agent_memory::ContextMessage| matches!(m.source, MessageOrigin::Summary { .. });
    let text = |m: &agent_memory::ContextMessage| match &m.parts[0] {
        Part::Text { text } => text.clone(),
        other => panic!("{other:?}"),
    };
    context
        .messages
        .iter()
        .filter(summary)
        .map(|m| (m.role, text(m)))
        .collect()
}

#[tokio::test]
async fn a_summary_is_written_as_each_engine_writes_it() {
    let session = open(writing("Modules were renamed.").handoff(keeping(4))).await;
    talk(&session, 12).await;
    done(&session).await;
    let [mark, koda] = [
        "[Previous conversation summary]",
        "[Compacted conversation summary]",
    ];
    let text = "Modules were renamed.";
    let (user, assistant, system) = (Role::User, Role::Assistant, Role::System);
    let pair = beginning(&session, SummaryForm::UserAndReply).await;
    assert_eq!(pair[0], (user, format!("{mark}\n\n{text}")));
    assert_eq!((pair.len(), pair[1].0), (2, assistant));
    let code = beginning(&session, SummaryForm::MarkAndAssistant).await;
    assert_eq!(
        code,
        [(user, mark.to_owned()), (assistant, text.to_owned())]
    );
    let hint = beginning(&session, SummaryForm::SystemAndHint).await;
    assert_eq!(hint[0], (system, format!("{koda}\n\n{text}")));
    assert_eq!((hint.len(), hint[1].0), (2, assistant));
    let hint = beginning(&session, SummaryForm::SystemAndUserHint).await;
    assert_eq!((hint.len(), hint[0].0, hint[1].0), (2, system, user));
    let pi = beginning(&session, SummaryForm::User).await;
    assert_eq!(pi, [(user, text.to_owned())]);
    let xml = beginning(&session, SummaryForm::Xml).await;
    assert!(xml[0].1.starts_with("<summary id=\"sum_"), "{xml:?}");
}

// ---- policies that change, and identity files ----

#[tokio::test]
async fn settings_are_read_at_each_check() {
    let on = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (turns, policy) = (Arc::clone(&on), Arc::clone(&on));
    let builder = writing("All of it.")
        .live_turns(LiveTurnPolicy::new(move || {
            match turns.load(Ordering::Relaxed) {
                true => TurnPolicy::anna_handoff(100),
                false => TurnPolicy::anna_handoff(-1),
            }
        }))
        .live_handoff(LiveHandoffPolicy::new(move || {
            keeping(if policy.load(Ordering::Relaxed) {
                4
            } else {
                100
            })
        }));
    let session = open(builder).await;
    let window = Window::new(100_000);
    talk(&session, 12).await;
    assert_eq!(session.before_turn(&window).await.unwrap().published(), 0);
    on.store(true, Ordering::Relaxed);
    assert_eq!(session.before_turn(&window).await.unwrap().published(), 1);
    assert_eq!(shown(&session).await.1.len(), 4);
}

#[tokio::test]
async fn identity_files_begin_each_context_as_they_are_now() {
    let (user, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |path: std::path::PathBuf, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let files = IdentityFiles::new(user.path()).with_project(project.path());
    let session = open(
        memory()
            .identity("You are Ferris.")
            .identity_files(files.clone()),
    )
    .await;
    talk(&session, 3).await;
    let said = async || {
        let context = session.assemble(Budget::tokens(10_000)).await.unwrap();
        let first = &context.messages[0];
        assert_eq!(first.role, Role::System);
        match &first.parts[0] {
            Part::Text { text } => text.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(said().await, "<memory>\nYou are Ferris.\n</memory>");
    write(user.path().join("soul.MD"), "Terse. </memory> Kind.");
    write(user.path().join("USER.md"), "Lives in Oslo.");
    let text = said().await;
    assert!(
        text.contains("# SOUL.md\n\nTerse. &lt;/memory> Kind."),
        "{text}"
    );
    assert!(text.contains("# USER.md\n\nLives in Oslo."));
    // The project's file takes the place of the user's, and what the agent writes shows at once.
    write(project.path().join(".agents/User.md"), "Works on crumb.");
    files.write("memory.md", "The release is R7.").unwrap();
    let text = said().await;
    assert!(
        text.contains("Works on crumb.") && !text.contains("Oslo"),
        "{text}"
    );
    assert!(
        text.ends_with("# MEMORY.md\n\nThe release is R7.\n</memory>"),
        "{text}"
    );
    assert!(user.path().join("MEMORY.md").exists());
    // They are in the budget.
    files.write("SOUL.md", &"word ".repeat(9_000)).unwrap();
    let error = session.assemble(Budget::tokens(2_000)).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BudgetTooSmall { .. }));
    assert_eq!(
        files.write("ROOT.md", "x").unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[test]
fn turn_policies_of_other_engines_have_their_figures() {
    let at = |tokens, system_tokens| WindowUse {
        tokens,
        window: 100_000,
        system_tokens,
    };
    for (policy, quiet) in [
        (TurnPolicy::anna_handoff(0), at(80_000, 0)),
        (TurnPolicy::operator_use(), at(91_808, 0)),
        (TurnPolicy::koda(), at(79_999, 0)),
        (TurnPolicy::phi_core(), at(81_000, 4_000)),
    ] {
        assert!(!policy.hard.fires(&quiet), "{policy:?}");
        let one_more = at(quiet.tokens + 1, quiet.system_tokens);
        assert!(policy.hard.fires(&one_more), "{policy:?}");
    }
}
