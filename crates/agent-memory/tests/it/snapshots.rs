//! Snapshots of compactions of invented conversations, and of the contexts after them.
//!
//! After an intended change, run `INSTA_UPDATE=always cargo test -p agent-memory --test it snapshots`, and read the
//! difference.

use std::fmt::Write as _;
use std::path::Path;

use agent_memory::testing::{memory, render_context, render_outcome};
use agent_memory::{Budget, Builder, DagPolicy, Memory, Mode, compaction::FreshTail};
use message_formats::ReadOptions;

use crate::support::Inspect as _;
use crate::support::both;

/// Returns a memory that compacts early, so that short conversations are compacted too.
fn early() -> Builder {
    let tail = FreshTail {
        messages: 4,
        max_tokens: Some(600),
        max_part: None,
    };
    let policy = DagPolicy {
        fresh_tail: tail,
        leaf_min_messages: 4,
        max_source_tokens: Some(1_500),
        condensed_min: 2,
        condensed_max: Some(4),
        ..DagPolicy::default()
    };
    memory().dag(policy)
}

/// Maximum number of characters of a line, and maximum number of lines of a message, in a snapshot.
const LINE: usize = 110;
const LINES: usize = 9;

/// Shortens long lines and long messages, and adds the omitted length. Lines of a message are indented.
fn clip(text: &str) -> String {
    let mut out = String::new();
    let mut inside = 0;
    let mut hidden = 0;
    let tell = |out: &mut String, hidden: &mut usize| {
        if *hidden > 0 {
            writeln!(out, "  … {hidden} more lines").unwrap();
            *hidden = 0;
        }
    };
    for line in text.lines() {
        if line.starts_with("  ") {
            inside += 1;
            if inside > LINES {
                hidden += 1;
                continue;
            }
        } else {
            tell(&mut out, &mut hidden);
            inside = 0;
        }
        let length = line.chars().count();
        if length > LINE {
            let begin: String = line.chars().take(LINE).collect();
            writeln!(out, "{begin} … {} more characters", length - LINE).unwrap();
        } else {
            writeln!(out, "{line}").unwrap();
        }
    }
    tell(&mut out, &mut hidden);
    out
}

/// Imports, compacts and assembles a fixture. Returns all results as text.
async fn story(memory: &Memory, fixture: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(fixture)
        .join("session.jsonl");
    let options = ReadOptions::default().with_session(fixture);
    let bytes = std::fs::read(path).unwrap();
    let transcript = message_formats::read(&*bytes, &options).unwrap();
    let imported = memory.import(&transcript).await.unwrap();
    let mut out = String::new();
    for session in imported.sessions {
        writeln!(
            out,
            "==== {} · {} messages, {} notes\n",
            session.session, session.messages, session.notes
        )
        .unwrap();
        let session = memory.get_session(session.session).await.unwrap();
        let outcome = session.compact(Mode::Full).await.unwrap();
        out.push_str(&render_outcome(&outcome));
        writeln!(out, "\n{}", session.tree(2).await.unwrap()).unwrap();
        for budget in [1_000, 8_000] {
            let context = session.assemble(Budget::tokens(budget)).await.unwrap();
            writeln!(out, "---- {}", clip(&render_context(&context))).unwrap();
        }
    }
    let verified = memory.verify().await.unwrap();
    assert!(verified.is_ok(), "{:?}", verified.violations);
    out
}

async fn snapshot(fixture: &str) {
    let [first, second] = both(early).await;
    let (first, second) = (
        story(&first.memory, fixture).await,
        story(&second.memory, fixture).await,
    );
    assert!(first == second, "{fixture}: the stores differ");
    // And again, in the same process.
    let again = early().open().await.unwrap();
    assert!(
        story(&again, fixture).await == first,
        "{fixture}: two runs differ"
    );
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(fixture.replace('/', "-"), first);
    });
}

#[tokio::test]
async fn claude_code() {
    snapshot("claude-code/bugfix").await;
    snapshot("claude-code/parallel-and-sidechain").await;
}

#[tokio::test]
async fn pi() {
    snapshot("pi/branched").await;
    snapshot("pi/unanswered-calls").await;
}

#[tokio::test]
async fn plain_lines() {
    snapshot("jsonl/tiny").await;
    snapshot("jsonl/support-chat").await;
    snapshot("jsonl/huge-results").await;
    snapshot("jsonl/hard-content").await;
}
