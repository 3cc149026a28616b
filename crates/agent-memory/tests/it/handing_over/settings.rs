//! Policies that change, presets, and identity files.

use agent_memory::tokens::{HeuristicEstimator, ObservedUsage, Usage};

use super::*;
use crate::support::Inspect as _;

#[tokio::test]
async fn settings_are_read_at_each_check() {
    let on = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (turns, policy) = (Arc::clone(&on), Arc::clone(&on));
    let builder = writing("All of it.")
        .turns(LiveTurnPolicy::new(move || {
            match turns.load(Ordering::Relaxed) {
                true => TurnPolicy {
                    hard: Trigger::Absolute { tokens: 100 },
                    before_turn: Action::Compact,
                    ..TurnPolicy::manual()
                },
                false => TurnPolicy::manual(),
            }
        }))
        .handoff(LiveHandoffPolicy::new(move || {
            keeping(if policy.load(Ordering::Relaxed) {
                4
            } else {
                100
            })
        }));
    let session = open(builder).await;
    let window = Window::new(100_000);
    let session = session.in_window(window).await;
    talk(&session, 12).await;
    assert_eq!(session.before_turn().await.unwrap().published(), 0);
    on.store(true, Ordering::Relaxed);
    assert_eq!(session.before_turn().await.unwrap().published(), 1);
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
    let session = open(memory().identity(
        agent_memory::context::Identity::from("You are Ferris.").with_files(files.clone()),
    ))
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
    write(project.path().join(".agents/SOUL.md"), "Calm.");
    files.write("memory.md", "The release is R7.").unwrap();
    let text = said().await;
    assert!(
        text.contains("Works on crumb.") && !text.contains("Oslo"),
        "{text}"
    );
    assert!(
        text.contains("# SOUL.md\n\nCalm.") && !text.contains("Terse"),
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
        agent_memory::retrieval::ErrorKind::Invalid
    );
}

#[tokio::test]
async fn one_setting_says_when_sessions_are_handed_over_and_what_stays() {
    /// Returns a session of thirty messages. The lines of its file have so many bytes, together with `filler`.
    async fn filled(setting: AutoHandoff, filler: usize) -> (Session, usize) {
        let builder = writing("All of it.").estimator(Arc::new(HeuristicEstimator::Bytes4));
        let session = open(builder.auto_handoff(setting)).await;
        for bytes in [3_000; 29].into_iter().chain([filler]) {
            let message = Message::user("x".repeat(bytes));
            let _ = session.ingest(message).await.unwrap();
        }
        let file = session.session_file().await.unwrap();
        let bytes = file.lines().map(str::len).sum();
        (session, bytes)
    }
    let handed_over = async |max_tokens, keep_tail, tokens: usize| {
        let setting = above(max_tokens, keep_tail);
        let filler = tokens * 4 - filled(setting, 1).await.1 + 1;
        let (session, bytes) = filled(setting, filler).await;
        assert_eq!(bytes, tokens * 4);
        let session = session.in_window(Window::new(1_000_000)).await;
        let report = session.before_turn().await.unwrap();
        // What the view costs is less.
        assert!(report.usage.tokens < tokens as u64);
        (report.published(), shown(&session).await.1.len())
    };
    // A file may leave out both fields, or one of them.
    let read = |json| serde_json::from_str::<AutoHandoff>(json);
    assert_eq!(read("{}").unwrap(), above(80_000, 20));
    assert_eq!(read(r#"{"keep_tail": 7}"#).unwrap(), above(80_000, 7));
    assert!(read(r#"{"keep_tall": 7}"#).is_err() && read(r#"{"keep_tail": -1}"#).is_err());
    // 0 stands for 80,000 tokens and 20 messages, -1 for never.
    for (max_tokens, keep_tail, tokens, expected) in [
        (-1, 0, 80_001, (0, 30)),
        (0, 0, 80_000, (0, 30)),
        (0, 0, 80_001, (1, 20)),
        (0, 7, 80_001, (1, 7)),
        (30_000, 0, 30_000, (0, 30)),
        (30_000, 0, 30_001, (1, 20)),
    ] {
        let found = handed_over(max_tokens, keep_tail, tokens).await;
        assert_eq!(found, expected, "{max_tokens} {keep_tail} {tokens}");
    }
}

#[tokio::test]
async fn with_the_threshold_off_a_request_still_hands_over() {
    let session = open(writing("All of it.").auto_handoff(above(-1, 4))).await;
    talk(&session, 12).await;
    assert_eq!(done(&session).await.summary, "All of it.");
    assert_eq!(shown(&session).await.1.len(), 4);
    assert_eq!(
        session
            .current_view()
            .await
            .unwrap()
            .handoff_summary()
            .await
            .unwrap()
            .unwrap(),
        "All of it."
    );
}

#[tokio::test]
async fn the_estimate_over_stored_lines_triggers() {
    let builder = |tokens| {
        let turns = TurnPolicy {
            hard: Trigger::StoredLines { tokens },
            before_turn: Action::Compact,
            ..TurnPolicy::manual()
        };
        writing("All of it.").handoff(keeping(4)).turns(turns)
    };
    let session = open(builder(0)).await;
    talk(&session, 12).await;
    let file = session.session_file().await.unwrap();
    let bytes: usize = file.lines().map(str::len).sum();
    let estimate = bytes as u64 / 4;
    let usage = session.usage().await.unwrap().context.tokens();
    assert!(
        usage < estimate,
        "names and marks count: {usage} {estimate}"
    );
    for (tokens, fires) in [(estimate - 1, true), (estimate, false)] {
        let trigger = Trigger::StoredLines { tokens };
        assert_eq!(session.needs_compaction(trigger).await.unwrap(), fires);
        let session = open(builder(tokens)).await;
        talk(&session, 12).await;
        let session = session.in_window(Window::new(100_000)).await;
        let report = session.before_turn().await.unwrap();
        assert_eq!(report.usage.stored_tokens, estimate);
        assert_eq!(report.published(), u64::from(fires));
        if fires {
            // The summary takes the place of eight messages, and the lines are fewer.
            assert_eq!(session.before_turn().await.unwrap().published(), 0);
            let trigger = Trigger::StoredLines { tokens };
            assert!(!session.needs_compaction(trigger).await.unwrap());
        }
    }
}

#[tokio::test]
async fn the_check_comes_before_the_users_message_and_waits_for_the_summary() {
    let session = open(writing("All of it.").auto_handoff(above(100, 4))).await;
    talk(&session, 12).await;
    let session = session.in_window(Window::new(100_000)).await;
    let report = session.user("Go on.").await.unwrap();
    assert_eq!((report.published(), report.prefetching), (1, false));
    // Four of the earlier messages stay, and the new one follows them.
    let (summary, messages) = shown(&session).await;
    assert!(summary.contains("All of it."), "{summary}");
    assert_eq!(messages, [9, 10, 11, 12, 13]);
}

#[tokio::test]
async fn stored_lines_are_read_only_for_the_thresholds_of_the_action() {
    for (action, is_read) in [(Action::Publish, false), (Action::Prefetch, true)] {
        let turns = TurnPolicy {
            soft: Trigger::StoredLines { tokens: 1_000_000 },
            before_turn: action,
            ..TurnPolicy::manual()
        };
        let session = open(writing("All of it.").handoff(keeping(4)).turns(turns)).await;
        talk(&session, 12).await;
        let session = session.in_window(Window::new(100_000)).await;
        let report = session.before_turn().await.unwrap();
        assert_eq!(report.usage.stored_tokens > 0, is_read, "{action:?}");
    }
}

#[tokio::test]
async fn identity_files_begin_a_context_after_a_handoff_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let files = IdentityFiles::new(folder.path());
    files.write("MEMORY.md", "The release is R7.").unwrap();
    let identity = agent_memory::context::Identity::default().with_files(files);
    let builder = writing("All of it.").handoff(keeping(4));
    let session = open(builder.identity(identity)).await;
    talk(&session, 12).await;
    let first = async || {
        let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
        let mut messages = context.messages.into_iter();
        (messages.next().unwrap(), messages.next().unwrap())
    };
    let (before, _) = first().await;
    let Some(Part::Text { text }) = before.parts.first() else {
        panic!("{before:?}");
    };
    assert!(text.contains("# MEMORY.md\n\nThe release is R7."), "{text}");
    done(&session).await;
    let (after, summary) = first().await;
    assert_eq!((after.role, after.parts), (Role::System, before.parts));
    assert!(matches!(summary.source, MessageOrigin::Summary { .. }));
    let log = session.entries().await.unwrap();
    assert!(log.iter().all(|entry| !entry.text().contains("R7")));
}

/// Operator-Use compacts if less than 8,192 tokens are left, and koda at 80 % of the window.
#[tokio::test]
async fn a_reserve_and_a_percentage_are_one_setting_each() {
    for (hard, most) in [
        (Trigger::Reserve { tokens: 8_192 }, 91_808),
        (Trigger::Percent { percent: 80 }, 79_999),
    ] {
        for (input, published) in [(most, 0), (most + 1, 1)] {
            let turns = TurnPolicy {
                hard: hard.clone(),
                after_turn: Action::Compact,
                ..TurnPolicy::manual()
            };
            let builder = writing("All of it.").handoff(keeping(4)).turns(turns);
            let session = open(builder).await.in_window(Window::new(100_000)).await;
            talk(&session, 10).await;
            let usage = Usage {
                input,
                ..Usage::default()
            };
            let observed = ObservedUsage::new("m", usage);
            assert!(session.observe_usage(&observed).await.unwrap());
            let report = session.after_turn().await.unwrap();
            assert_eq!(
                (report.usage.tokens, report.published()),
                (input, published)
            );
        }
    }
}
