//! The other strategies of Operator-Use, and the costs of its sessions.

use agent_memory::compaction::StopReason;
use agent_memory::tokens::HeuristicEstimator;
use agent_memory::transcripts::{ReadOptions, read};

use super::*;

#[tokio::test]
async fn summaries_have_a_cost_of_their_own_in_an_estimate() {
    let text = "Modules were renamed, one after the other, and their tests ran.";
    let builder = writing(text).estimator(Arc::new(HeuristicEstimator::Chars4));
    let session = open(builder.handoff(keeping(4))).await;
    talk(&session, 12).await;
    let handoff = done(&session).await;
    let kept: u64 = session
        .entries()
        .await
        .unwrap()
        .iter()
        .skip(8)
        .map(|e| e.tokens)
        .sum();
    let size = session.usage().await.unwrap().context;
    assert_eq!(size.estimated, handoff.summary_tokens + kept);
    // What a session file says of branches and compactions is kept as notes, which cost nothing.
    let file = [
        r#"{"type":"session","version":3,"id":"p","timestamp":"2026-03-02T09:00:00Z","cwd":"/w"}"#,
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"Go."}}"#,
        r#"{"type":"branch_summary","id":"b","parentId":"a","fromId":"a","summary":"A branch that came to nothing, at some length."}"#,
        r#"{"type":"compaction","id":"c","parentId":"b","summary":"All that was done before, at some length.","firstKeptEntryId":"a","tokensBefore":9}"#,
    ];
    let transcript = read(file.join("\n").as_bytes(), &ReadOptions::default()).unwrap();
    let memory = memory().open().await.unwrap();
    memory.import(&transcript).await.unwrap();
    let session = memory.get_session("p").await.unwrap();
    let log = session.entries().await.unwrap();
    let costs: Vec<u64> = log.iter().rev().take(2).map(|entry| entry.tokens).collect();
    assert_eq!(costs, [0, 0]);
}

/// Returns a session file of pi. Each of its `turns` turns has a request, two calls with results, and an answer.
fn session_file(turns: usize) -> String {
    let mut lines = vec![
        r#"{"type":"session","version":3,"id":"large","timestamp":"2026-03-02T09:00:00Z","cwd":"/w"}"#.to_owned(),
    ];
    let mut parent = "null".to_owned();
    let mut add = |id: String, message: String| {
        lines.push(format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-03-02T09:00:00Z","message":{message}}}"#
        ));
        parent = format!("\"{id}\"");
    };
    for turn in 0..turns {
        let ask = format!(
            r#"{{"role":"user","content":"Mend part {turn} of the parser, and tell what was wrong."}}"#
        );
        add(format!("u{turn}"), ask);
        for step in 0..2 {
            let id = format!("c{turn}-{step}");
            add(
                format!("a{turn}-{step}"),
                format!(
                    r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"{id}","name":"read","arguments":{{"path":"src/part{turn}.rs"}}}}]}}"#
                ),
            );
            let output = format!("fn part{turn}() {{ step({step}) }} ").repeat(12);
            add(
                format!("r{turn}-{step}"),
                format!(
                    r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"read","content":[{{"type":"text","text":"{output}"}}],"isError":false}}"#
                ),
            );
        }
        let answer = format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"Part {turn} read one token too many; it is mended and its tests pass."}}]}}"#
        );
        add(format!("e{turn}"), answer);
    }
    lines.join("\n")
}

#[tokio::test]
async fn a_large_session_file_is_read_cut_and_shown() {
    const TURNS: usize = 400;
    let transcript = read(session_file(TURNS).as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(transcript.format, "pi");
    let memory = writing("Parts were mended.")
        // One sentence leaves out more than the gate lets pass.
        .ladder(Ladder {
            gate: None,
            ..Ladder::default()
        })
        .handoff(HandoffPolicy {
            max_source_tokens: None,
            min_tokens: 0,
            ..HandoffPolicy::default()
        })
        .open()
        .await
        .unwrap();
    memory.import(&transcript).await.unwrap();
    let session = memory.get_session("large").await.unwrap();
    let log = session.entries().await.unwrap();
    let messages = log
        .iter()
        .filter(|e| e.kind == agent_memory::model::EntryKind::Message)
        .count();
    assert_eq!(messages, TURNS * 6);
    let handoff = done(&session).await;
    let kept: Vec<_> = log.iter().filter(|e| e.seq >= handoff.kept_from).collect();
    let cost: u64 = kept.iter().map(|e| e.tokens).sum();
    // A cut falls at the next message where a result reaches the figure.
    let one = kept.iter().map(|e| e.tokens).max().unwrap();
    assert!((16_384 - one..16_384 + one).contains(&cost), "{cost}");
    assert_eq!(handoff.kept_from_id, kept[0].message.external_id);
    assert_eq!(handoff.archived as usize + kept.len(), log.len());
    let results =
        |e: &&agent_memory::model::LogEntry| e.seq < handoff.kept_from && e.role == Role::Tool;
    let read = log.iter().filter(results).count().div_ceil(2);
    assert_eq!(
        handoff.files.read().len(),
        read,
        "each turn reads its file twice"
    );
    let (summary, shown) = shown(&session).await;
    assert!(summary.contains("Parts were mended."));
    assert_eq!(shown.first(), Some(&handoff.kept_from.0));
    assert!(session.verify().await.unwrap().is_ok());
    // Nothing is old any more, and a second handoff has nothing to do.
    assert_eq!(
        skipped(&session, &HandOver::default()).await,
        HandOverSkip::NothingToDo
    );
    let outcome = session.compact(Mode::Full).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
}
