//! Handoffs by the rules of pi and Operator-Use.

use super::*;
use crate::support::Inspect as _;

#[tokio::test]
async fn results_larger_than_what_is_kept_do_not_stop_a_handoff() {
    let policy = HandoffPolicy {
        keep: CutPolicy::RecentTokens { tokens: 200 },
        min_tokens: 0,
        ..HandoffPolicy::default()
    };
    let session = open(writing("Earlier work.").handoff(policy)).await;
    talk(&session, 12).await;
    let huge = "line of output\n".repeat(400);
    let tail = [
        Message::user("Show the log."),
        call("a", "Bash", r#"{"command":"cat log.txt"}"#),
        Message::tool_result("a", &huge),
    ];
    let _ = session.ingest_batch(tail.to_vec()).await.unwrap();
    // The results are the newest of all: the model has not answered yet.
    let handoff = done(&session).await;
    assert!(handoff.kept_from > Seq(12), "{handoff:?}");
    let answer = Message::assistant("That is all of it.");
    let _ = session.ingest(answer).await.unwrap();
    assert_eq!(shown(&session).await.1.last(), Some(&16));
}

#[tokio::test]
async fn a_split_turn_gets_two_summaries_and_keeps_the_one_before() {
    let policy = HandoffPolicy {
        keep: CutPolicy::LastMessages { messages: 2 },
        min_tokens: 0,
        ..HandoffPolicy::default()
    };
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
            Message::tool_result(format!("r{n}"), "Some notes about it, two lines of them."),
            call(&format!("w{n}"), "Write", &write),
            Message::tool_result(format!("w{n}"), "File created successfully"),
            call(
                &format!("e{n}"),
                "Edit",
                &format!(
                    r#"{{"file_path":"/srv/crumb/lib.rs","old_string":"a","new_string":"b{n}"}}"#
                ),
            ),
            Message::tool_result(format!("e{n}"), "updated"),
            call(
                &format!("x{n}"),
                "Bash",
                &format!(r#"{{"command":"rm /srv/crumb/old{n}.rs"}}"#),
            ),
            Message::tool_result(format!("x{n}"), ""),
            call(&format!("t{n}"), "mcp__weather", r#"{"city":"Oslo"}"#),
            Message::tool_result(format!("t{n}"), "rain"),
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
    // Every context that shows the summary shows both lists, once.
    let in_window = session.in_window(Window::new(20_000)).await;
    let live = in_window.context().await.unwrap();
    for context in [
        live.context,
        session.assemble(Budget::tokens(8_000)).await.unwrap(),
        session.assemble(Budget::tokens(100_000)).await.unwrap(),
    ] {
        let text = summary_text(&context);
        assert_eq!(text.matches(footer.trim_start()).count(), 1, "{text}");
        assert!(!text.contains("Files: created"), "{text}");
    }
}

fn summary_text(context: &Context) -> String {
    let is_summary = |source: &MessageOrigin| matches!(source, MessageOrigin::Summary { .. });
    let shown = context.messages.iter().filter(|m| is_summary(&m.source));
    let texts = shown.flat_map(|m| &m.parts).filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_list_of_files_takes_a_sixteenth_of_the_context_and_counts_the_others() {
    let read = |n: usize| {
        let path = format!(r#"{{"file_path":"/srv/crumb/a/long/way/down/notes{n}.md"}}"#);
        [
            call(&format!("r{n}"), "Read", &path),
            Message::tool_result(format!("r{n}"), "Some notes about it, two lines of them."),
        ]
    };
    let many = async |policy: HandoffPolicy| {
        let session = open(writing("Notes were read.").handoff(policy)).await;
        let mut log = vec![Message::user("Read all notes.")];
        log.extend((100..300).flat_map(read));
        log.push(Message::assistant("All notes are read."));
        let _ = session.ingest_batch(log).await.unwrap();
        done(&session).await;
        let context = session.assemble(Budget::tokens(8_000)).await.unwrap();
        summary_text(&context)
    };
    let text = many(keeping(1)).await;
    let (_, list) = text.split_once("<read-files>\n").unwrap();
    let (list, _) = list.split_once("\n</read-files>").unwrap();
    let lines: Vec<&str> = list.lines().collect();
    let shown = lines.len() - 1;
    assert_eq!(lines[0], "/srv/crumb/a/long/way/down/notes100.md");
    assert_eq!(lines[shown], format!("and {} more", 200 - shown));
    assert!((10..60).contains(&shown), "{shown} paths");
    // A policy that lists no files shows none.
    let text = many(HandoffPolicy {
        list_files: false,
        ..keeping(1)
    })
    .await;
    assert!(!text.contains("read-files"), "{text}");
}

#[tokio::test]
async fn a_summary_of_somebody_else_is_appended() {
    let session = open(memory().handoff(keeping(4))).await;
    talk(&session, 12).await;
    let details = RawJson::parse(r#"{"read_files":["a.rs"]}"#).unwrap();
    let result = CompactionResult::new("Twelve steps, so far without trouble.", Seq(5))
        .with_details(details);
    let handoff = session.append_compaction(&result).await.unwrap();
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
    for (text, at) in [
        ("", Seq(9)),
        (" ", Seq(9)),
        ("x", Seq(1)),
        ("x", Seq(14)),
        ("x", Seq(9_999)),
    ] {
        let result = CompactionResult::new(text, at);
        let error = session.append_compaction(&result).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(shown(&session).await.1.len(), 8, "{at}");
    }
    // The position after the last message keeps none, as a policy may.
    let result = CompactionResult::new("Twelve steps.", Seq(13));
    let handoff = session.append_compaction(&result).await.unwrap();
    assert_eq!((handoff.kept_from, handoff.kept_from_id), (Seq(13), None));
    assert!(session.verify().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_summary_is_appended_by_an_external_id_with_the_callers_cost_and_at_any_length() {
    let session = open(memory().handoff(keeping(4))).await;
    let named = (1..=12).map(|n| said(n).with_external_id(format!("entry-{n}")));
    let _ = session.ingest_batch(named.collect()).await.unwrap();
    // The summary costs much more than the four messages that it replaces.
    let long = "Every step is described here at length, for good measure. ".repeat(200);
    let result = CompactionResult::new(&*long, "entry-5").with_tokens_before(190_000);
    let before = session.snapshot().await.unwrap().tokens();
    let handoff = session.append_compaction(&result).await.unwrap();
    assert_eq!(
        (handoff.kept_from, handoff.kept_from_id.as_deref()),
        (Seq(5), Some("entry-5"))
    );
    assert_eq!((handoff.summary, handoff.tokens_before), (long, 190_000));
    assert!(handoff.tokens_after > before);
    let stored = session
        .summaries(&handoff.summaries)
        .await
        .unwrap()
        .remove(0);
    let meta = stored.unwrap().meta.unwrap();
    assert!(
        meta.as_str().contains(r#""tokens_before":190000"#),
        "{meta:?}"
    );
    for kept_from in ["entry-13", "entry-1", "entry-3"] {
        let result = CompactionResult::new("x", kept_from);
        let error = session.append_compaction(&result).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{kept_from}");
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
    let session = session.in_window(window).await;
    talk(&session, 10).await;
    session.before_turn().await.unwrap();
    let error = session
        .compact(agent_memory::CompactRequest {
            mode: Mode::Full,
            between_turns: true,
            ..Default::default()
        })
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InTurn);
    session.request_compaction(Some("Keep the names."));
    assert_eq!(shown(&session).await.1.len(), 10, "not in the turn");
    let report = session.after_turn().await.unwrap();
    assert_eq!(report.published(), 1);
    assert_eq!(shown(&session).await.1.len(), 4);
    let recipe = session.spans().await.unwrap();
    let id = recipe[0].body.summary().unwrap().clone();
    let summary = session.summaries(&[id]).await.unwrap().remove(0).unwrap();
    assert!(summary.recipe.as_str().contains("instructions="));
    // It was asked for once.
    assert_eq!(session.after_turn().await.unwrap().published(), 0);
    session
        .compact(agent_memory::CompactRequest {
            mode: Mode::Full,
            between_turns: true,
            ..Default::default()
        })
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
        .in_window(Window::new(2_000))
        .await
        .recover_from_overflow()
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

#[tokio::test]
async fn an_overflow_is_recovered_from_once_a_turn() {
    let builder = writing("All of it.")
        .handoff(keeping(2))
        .turns(TurnPolicy::manual());
    let session = open(builder).await;
    let window = Window::new(100_000);
    let session = session.in_window(window).await;
    talk(&session, 20).await;
    session.before_turn().await.unwrap();
    let before = session.snapshot().await.unwrap().tokens();
    let recovered = session.recover_from_overflow().await.unwrap();
    assert!(matches!(recovered, Recovery::Compacted(_)));
    assert!(session.snapshot().await.unwrap().tokens() <= before / 4 * 3);
    let again = session.recover_from_overflow().await.unwrap();
    assert_eq!(again, Recovery::AlreadyTried);
    session.after_turn().await.unwrap();
    // A new turn may recover; there is nothing to make smaller.
    session.before_turn().await.unwrap();
    let again = session.recover_from_overflow().await.unwrap();
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
        .in_window(Window::new(100_000))
        .await
        .recover_from_overflow()
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

#[tokio::test]
async fn a_handoff_reports_its_own_summaries_and_its_own_cost() {
    let policy = HandoffPolicy {
        split_turns: true,
        ..keeping(2)
    };
    let session = open(writing("The turn so far.").handoff(policy)).await;
    talk(&session, 8).await;
    let mut turn = vec![said(9)];
    turn.extend((0..8).map(|n| Message::assistant(said(10 + n).text())));
    let _ = session.ingest_batch(turn).await.unwrap();
    let result = CompactionResult::new("Eight steps.", Seq(9)).with_tokens_before(190_000);
    let appended = session.append_compaction(&result).await.unwrap();
    assert_eq!(
        (appended.tokens_before, appended.summaries.len()),
        (190_000, 1)
    );
    // The appended summary stays, and the beginning of the turn gets one of its own.
    let before = session.snapshot().await.unwrap().tokens();
    let handoff = done(&session).await;
    assert_eq!(handoff.summary.matches("Eight steps.").count(), 1);
    assert!(handoff.is_split_turn && handoff.summary.ends_with("The turn so far."));
    assert_eq!(
        (handoff.tokens_before, handoff.summaries.len()),
        (before, 1)
    );
    assert!(!appended.summaries.contains(&handoff.summaries[0]));
}

/// Hooks that append another summary before the summary is published, or refuse it.
#[derive(Debug, Default)]
struct First {
    session: Mutex<Option<Session>>,
}

#[async_trait::async_trait]
impl Hooks for First {
    async fn before(&self, _: &PlannedJob<'_>) -> JobDecision {
        let session = self.session.lock().unwrap().take();
        if let Some(session) = session {
            let result = CompactionResult::new("Four steps.", Seq(5));
            session.append_compaction(&result).await.unwrap();
        }
        JobDecision::Proceed
    }
}

/// Hooks that refuse every job.
#[derive(Debug)]
struct Refuse;

#[async_trait::async_trait]
impl Hooks for Refuse {
    async fn before(&self, _: &PlannedJob<'_>) -> JobDecision {
        JobDecision::Cancel
    }
}

#[tokio::test]
async fn a_summary_that_is_not_appended_is_an_error_with_its_reason() {
    let result = CompactionResult::new("Eight steps.", Seq(9));
    let hooks = Arc::new(First::default());
    let session = open(memory().handoff(keeping(4)).hooks(hooks.clone())).await;
    talk(&session, 12).await;
    *hooks.session.lock().unwrap() = Some(session.clone());
    let error = session.append_compaction(&result).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains("another"), "{error}");
    assert_eq!(
        session.append_compaction(&result).await.unwrap().kept_from,
        Seq(9)
    );
    let error = session.append_compaction(&result).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Invalid, false)
    );
    assert!(error.to_string().contains("must come after"), "{error}");

    let session = open(memory().handoff(keeping(4)).hooks(Arc::new(Refuse))).await;
    talk(&session, 12).await;
    let error = session.append_compaction(&result).await.unwrap_err();
    assert!(error.to_string().contains("hook"), "{error}");
    assert!(!error.to_string().contains("must come after"), "{error}");
}

#[tokio::test]
async fn in_a_turn_no_summary_is_written_whoever_asks_for_it() {
    let model = Scripted::fixed(Ok("All of it."));
    let turns = TurnPolicy {
        hard: Trigger::Absolute { tokens: 1_000_000 },
        before_call: Action::Compact,
        ..TurnPolicy::manual()
    };
    let builder = memory().summarizer(Arc::new(model.clone()));
    let session = open(builder.handoff(keeping(4)).turns(turns)).await;
    let session = session.in_window(Window::new(100_000)).await;
    talk(&session, 10).await;
    session.before_turn().await.unwrap();
    let at_once = || agent_memory::CompactRequest {
        between_turns: true,
        ..Default::default()
    };
    let error = session.compact(at_once()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InTurn);
    session.request_compaction(None);
    let call = session.context().await.unwrap();
    assert_eq!((call.report.published(), call.messages.len()), (0, 10));
    assert_eq!(model.calls(), 0);
    assert_eq!(session.after_turn().await.unwrap().published(), 1);
    assert_eq!(model.calls(), 1);
    talk_on(&session, 11, 10).await;
    let outcome = session.compact(at_once()).await.unwrap();
    assert_eq!((outcome.published.total(), model.calls()), (1, 2));
}

#[tokio::test]
async fn after_a_compaction_a_policy_that_keeps_as_much_has_nothing_to_do() {
    // Eight messages follow the summary.
    for (keep, goes_on) in [(8, false), (4, true)] {
        let session = open(writing("All of it.").handoff(keeping(keep))).await;
        talk(&session, 12).await;
        let first = CompactionResult::new("The first four.", Seq(5));
        session.append_compaction(&first).await.unwrap();
        match goes_on {
            true => assert_eq!(done(&session).await.kept_from, Seq(9)),
            false => {
                let skip = skipped(&session, &HandOver::default()).await;
                assert_eq!(skip, HandOverSkip::NothingToDo);
            }
        }
    }
}
