//! Handoffs by koda's rules.

use agent_memory::compaction::COMPACT_PRESERVE_COUNT;
use agent_memory::model::SpanBody;
use agent_memory::models::{BreakerState, Guards, SessionGuard};
use agent_memory::summaries::strip_analysis_block;

use super::*;
use crate::support::{Inspect as _, both, dump, small};

#[tokio::test]
async fn a_short_session_and_one_that_waits_for_results_are_passed_over() {
    let session = open(writing("x").handoff(keeping(7))).await;
    let koda = HandOver {
        min_messages: 4,
        ..HandOver::default()
    };
    talk(&session, 3).await;
    assert_eq!(
        skipped(&session, &koda).await,
        HandOverSkip::TooShort { messages: 3 }
    );
    talk_on(&session, 4, 9).await;
    say(&session, call("a", "Bash", r#"{"command":"ls"}"#)).await;
    assert_eq!(
        skipped(&session, &koda).await,
        HandOverSkip::PendingToolCalls
    );
    say(&session, Message::tool_result("a", "src")).await;
    let handoff = done(&session).await;
    assert_eq!((handoff.archived, handoff.kept_from), (7, Seq(8)));
}

/// A summarizer that records the messages that it receives.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<u32>>);

#[async_trait::async_trait]
impl Summarizer for Seen {
    fn id(&self) -> &str {
        "seen@1"
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<SummarizerResponse, summarize_escalation::Error> {
        let seen = request.source.iter().map(|piece| piece.range().first.0);
        self.0.lock().unwrap().extend(seen);
        Ok(SummarizerResponse::new("What was seen."))
    }
}

#[tokio::test]
async fn what_is_archived_is_what_was_summarized_also_beside_results_without_a_call() {
    let seen = Arc::new(Seen::default());
    let summarizer: Arc<dyn Summarizer> = seen.clone();
    let session = open(memory().summarizer(summarizer).handoff(keeping(2))).await;
    talk(&session, 4).await;
    let orphans =
        [1, 2].map(|n| Message::tool_result(format!("gone{n}"), "Its call is nowhere in the log."));
    let _ = session.ingest_batch(orphans.to_vec()).await.unwrap();
    talk_on(&session, 5, 6).await;
    let handoff = done(&session).await;
    assert_eq!((handoff.archived, handoff.kept_from), (10, Seq(11)));
    let seen = seen.0.lock().unwrap().clone();
    assert!(seen.iter().copied().eq(1..=10), "{seen:?}");
    assert_eq!(shown(&session).await.1, [11, 12]);
}

#[tokio::test]
async fn a_summary_that_is_too_long_is_cut_or_refused() {
    let long = "word ".repeat(4_000);
    let cutting = crate::documents::ladder();
    let session = open(writing(&long).ladder(cutting.clone()).handoff(keeping(4))).await;
    talk(&session, 10).await;
    let handoff = done(&session).await;
    assert!(handoff.tokens_after < handoff.tokens_before);
    assert!(handoff.summary.starts_with("word word") && handoff.summary.len() < 1_000);
    assert_eq!(shown(&session).await.1, [7, 8, 9, 10]);
    // Without the tier that cuts, nothing changes.
    let refusing = Ladder {
        tiers: vec![Tier::Normal, Tier::Aggressive],
        ..cutting
    };
    let session = open(writing(&long).ladder(refusing).handoff(keeping(4))).await;
    talk(&session, 10).await;
    let before = session.spans().await.unwrap();
    let skip = skipped(&session, &HandOver::default()).await;
    assert_eq!(skip, HandOverSkip::CannotShrink);
    assert_eq!(session.spans().await.unwrap(), before);
    assert_eq!(shown(&session).await.1.len(), 10);
}

#[tokio::test]
async fn a_band_below_the_threshold_warns() {
    let policy = TurnPolicy {
        hard: Trigger::Percent { percent: 85 },
        warn: Trigger::Percent { percent: 50 },
        before_call: Action::Compact,
        ..TurnPolicy::manual()
    };
    let session = open(writing("All of it.").handoff(keeping(2)).turns(policy)).await;
    talk(&session, 60).await;
    let wide = session
        .in_window(Window::new(1_000_000))
        .await
        .context()
        .await
        .unwrap();
    let used = wide.report.usage.tokens;
    let full_to = |percent: u64| Window::new(used * 100 / percent);
    for (percent, warned) in [(40, false), (60, true)] {
        let call = session
            .in_window(full_to(percent))
            .await
            .context()
            .await
            .unwrap();
        assert_eq!(call.report.warned, warned, "{percent}");
        assert_eq!(call.report.published(), 0);
        // A step that does nothing warns too.
        let after = session
            .in_window(full_to(percent))
            .await
            .after_turn()
            .await
            .unwrap();
        assert_eq!(after.warned, warned, "{percent}");
    }
    // From the threshold on it compacts, and has nothing to warn of.
    let call = session
        .in_window(full_to(90))
        .await
        .context()
        .await
        .unwrap();
    assert_eq!((call.report.warned, call.report.published()), (false, 1));
}

fn strict(model: &Scripted, breaker: BreakerPolicy) -> Builder {
    let ladder = Ladder {
        tiers: vec![Tier::Normal],
        ..Ladder::default()
    };
    let policy = GuardPolicy {
        breaker: Some(breaker),
        ..GuardPolicy::none()
    };
    memory()
        .summarizer(Arc::new(model.clone()))
        .ladder(Ladder {
            on_error: OnError::Fail,
            ..ladder
        })
        .auto_handoff(above(100, 2))
        .guards(Guards::new(policy, Arc::new(FakeTimer::new())))
}

#[tokio::test]
async fn a_breaker_can_be_asked_and_told() {
    let model = Scripted::fixed(Ok("All of it."));
    let memory = strict(
        &model,
        BreakerPolicy {
            half_open_after_millis: None,
            ..BreakerPolicy::default()
        },
    )
    .open()
    .await
    .unwrap();
    let (session, other) = (
        memory.session("a").await.unwrap(),
        memory.session("b").await.unwrap(),
    );
    talk(&session, 12).await;
    assert!(!session.guard().is_open());
    // Of five failures the third opens the breaker, and only that one says so.
    let told: Vec<bool> = (0..5)
        .map(|_| session.guard().record_failure("no connection"))
        .collect();
    assert_eq!(told, [false, false, true, false, false]);
    assert!(session.guard().is_open() && !other.guard().is_open());
    let window = Window::new(100_000);
    let session = session.in_window(window).await;
    let report = session.before_turn().await.unwrap();
    assert!(report.failure.unwrap().contains("no connection"));
    assert_eq!(
        (report.compactions[0].published.total(), model.calls()),
        (0, 0)
    );
    session.guard().reset();
    assert!(!session.guard().is_open());
    assert_eq!(session.before_turn().await.unwrap().published(), 1);
    let told = [0, 1, 2, 3].map(|_| session.guard().record_failure("again"));
    assert_eq!(
        told,
        [false, false, true, false],
        "counted anew after a reset"
    );
    // Without guards there is no breaker to open.
    let free = open(writing("x").handoff(keeping(2))).await;
    assert!((0..5).all(|_| !free.guard().record_failure("x")));
}

#[test]
fn the_functions_and_the_constant_work_without_a_session() {
    let guards = Guards::new(
        GuardPolicy {
            breaker: Some(BreakerPolicy {
                half_open_after_millis: None,
                ..BreakerPolicy::default()
            }),
            ..GuardPolicy::none()
        },
        Arc::new(FakeTimer::new()),
    );
    let session = SessionGuard::new();
    let is_open = || guards.breaker(&session) == BreakerState::Open;
    let told = [0, 1, 2, 3].map(|_| (guards.record_failure(&session, "x"), is_open()));
    let (quiet, tripped, still) = ((false, false), (true, true), (false, true));
    assert_eq!(told, [quiet, quiet, tripped, still]);
    session.reset();
    assert!(!is_open() && !guards.record_failure(&session, "x"));
    let answer = "<analysis>\nfirst a, then b\n</analysis>\n<summary>\nAll is done.\n</summary>";
    assert_eq!(strip_analysis_block(answer), "All is done.");
    assert_eq!(strip_analysis_block("<analysis>open"), "<analysis>open");
    let fewest = CutPolicy::LastMessages {
        messages: COMPACT_PRESERVE_COUNT,
    };
    assert_eq!(fewest, CutPolicy::LastMessages { messages: 4 });
}

#[tokio::test]
async fn who_changed_a_file_last_survives_each_strategy_and_a_new_opening_of_the_database() {
    let write = |id: &str, agent: &str, path: &str| {
        let arguments = format!(r#"{{"file_path":"{path}","content":"x"}}"#);
        let mut call = call(id, "Write", &arguments);
        call.name = Some(agent.to_owned());
        [call, Message::tool_result(id, "written")]
    };
    let owners = |files: &FileLedger| -> Vec<(String, String, u32)> {
        let owners = files.owners().iter();
        owners
            .map(|(path, owner)| (path.clone(), owner.agent.clone(), owner.at.0))
            .collect()
    };
    let owner = |path: &str, agent: &str, at: u32| (path.to_owned(), agent.to_owned(), at);
    for strategy in Strategy::ALL {
        let build = || small().handoff(keeping(2)).strategy(strategy);
        for place in both(build).await {
            let name = format!("{strategy:?} {}", place.name);
            let session = place.memory.session("s").await.unwrap();
            talk(&session, 8).await;
            for (id, agent, path) in [
                ("1", "coder", "src/a.rs"),
                ("2", "coder", "src/b.rs"),
                ("3", "tester", "src/a.rs"),
            ] {
                for message in write(id, agent, path) {
                    say(&session, message).await;
                }
            }
            talk_on(&session, 9, 60).await;
            let outcome = session.compact(Mode::Full).await.unwrap();
            assert!(outcome.published.total() > 0, "{name}: {outcome:?}");
            let spans = session.spans().await.unwrap();
            let of_calls = spans.iter().rfind(|span| span.range.first <= Seq(13));
            assert_ne!(of_calls.unwrap().body, SpanBody::Raw, "{name}");

            let place = place.reopen(build()).await;
            let session = place.memory.get_session("s").await.unwrap();
            let files = session.current_view().await.unwrap().files().await.unwrap();
            let (a, b) = (
                owner("src/a.rs", "tester", 13),
                owner("src/b.rs", "coder", 11),
            );
            assert_eq!(owners(&files), [a.clone(), b], "{name}");
            assert_eq!(files.created(), ["src/a.rs", "src/b.rs"], "{name}");
            if strategy == Strategy::Handoff {
                // The summary itself holds them.
                let spans = session.spans().await.unwrap();
                let id = spans[0].body.summary().unwrap();
                let store = place.memory.store();
                let stored = store
                    .summaries(session.id(), std::slice::from_ref(id))
                    .await
                    .unwrap();
                let stored = FileLedger::of(stored[0].as_ref().unwrap()).unwrap();
                assert_eq!(owners(&stored), owners(&files), "{name}");
            }
            // A later change counts, and a call without a result does not.
            let [again, written] = write("4", "reviewer", "src/b.rs");
            let [unanswered, _] = write("5", "coder", "src/a.rs");
            for message in [again, written, unanswered] {
                say(&session, message).await;
            }
            let files = session.current_view().await.unwrap().files().await.unwrap();
            let b = owner("src/b.rs", "reviewer", 75);
            assert_eq!(owners(&files), [a, b], "{name}");
        }
    }
}

/// Archiving and summary are one transaction. A handoff writes to several tables, and here one of these writes fails.
#[tokio::test]
async fn a_write_that_fails_within_a_handoff_leaves_neither_the_summary_nor_the_archive() {
    for (table, write) in [
        ("span", "insert"),
        ("view", "insert"),
        ("publication", "insert"),
        ("summary", "insert"),
        ("summary_link", "insert"),
        ("conversation", "update"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.db");
        let build = || writing("All of it.").handoff(keeping(2)).sqlite(&path);
        let session = open(build()).await;
        talk(&session, 10).await;
        let before = dump(session.memory()).await;
        let change = |sql: &str| {
            let db = rusqlite::Connection::open(&path).unwrap();
            db.execute(sql, []).unwrap();
        };
        let fails = "begin select raise(abort, 'no room'); end";
        change(&format!(
            "create trigger failing before {write} on {table} {fails}"
        ));
        let handed = session.hand_over(&HandOver::default()).await;
        let failed = handed.expect_err(&format!("{write} {table}"));
        assert!(format!("{failed:?}").contains("no room"), "{failed:?}");
        change("drop trigger failing");
        session.memory().close().await.unwrap();
        let memory = build().open().await.unwrap();
        assert_eq!(dump(&memory).await, before, "{write} {table}");
        assert!(memory.verify().await.unwrap().is_ok());
        let session = memory.get_session("chat").await.unwrap();
        assert_eq!(done(&session).await.archived, 8);
    }
}
