//! The figures of a summary about its messages, in logs with notes.

use std::collections::BTreeMap;

use agent_memory::testing::memory;
use agent_memory::{
    Budget, DagPolicy, Message, Mode, Part, Role, Session,
    compaction::FreshTail,
    model::{Child, EntryKind, LogEntry, Summary, SummaryId},
};

use crate::redo::reached;
use crate::support::{both, json, said};

/// Returns the number of rows that the older engine has for a message.
fn rows(entry: &LogEntry) -> u64 {
    let id = entry.message.external_id.as_deref().unwrap();
    match id.split_once('-').unwrap().0 {
        "said" | "told" => 1,
        // A thought and a text.
        "thought" => 2,
        // A text and two calls.
        "calls" => 3,
        "note" => 0,
        other => panic!("{other}"),
    }
}

/// Appends 200 messages, some of which are several rows, and 200 notes.
async fn mixed(session: &Session) {
    let mut messages = Vec::new();
    for n in 1..=200_usize {
        let call = |id: &str| Part::ToolCall {
            id: format!("{id}{n}"),
            name: "read".to_owned(),
            arguments: json("{}"),
        };
        let message = match n % 5 {
            1 => {
                let parts = vec![Part::text(format!("Looking at {n}.")), call("a"), call("b")];
                Message::new(Role::Assistant, parts).with_external_id(format!("calls-{n}"))
            }
            2 => Message::tool_result(format!("a{}", n - 1), "one")
                .with_external_id(format!("told-{n}")),
            3 => Message::tool_result(format!("b{}", n - 2), "two")
                .with_external_id(format!("told-{n}")),
            4 => said(n).with_external_id(format!("said-{n}")),
            _ => {
                let thought = Part::Reasoning {
                    text: "it is done".to_owned(),
                    signature: None,
                };
                let parts = vec![thought, Part::text(format!("Done with {n}."))];
                Message::new(Role::Assistant, parts).with_external_id(format!("thought-{n}"))
            }
        };
        messages.push(message);
        let note = Message::note(Role::System, vec![Part::text("a label")]);
        messages.push(note.with_external_id(format!("note-{n}")));
    }
    let ingested = session.ingest_batch(messages).await.unwrap();
    assert_eq!(ingested.inserted(), 400);
}

/// Returns the numbers of messages, their tokens, descendants, their tokens, and tokens of rows, counted independently.
fn expected(summary: &Summary, nodes: &BTreeMap<SummaryId, Summary>, log: &[LogEntry]) -> [u64; 5] {
    let mut sum = [0; 5];
    for child in &summary.children {
        match child {
            Child::Messages { range } => {
                let covered = log.iter().filter(|entry| range.contains(entry.seq));
                for entry in covered.filter(|entry| entry.kind == EntryKind::Message) {
                    let add = [1, entry.tokens, rows(entry), entry.tokens, entry.tokens];
                    sum.iter_mut().zip(add).for_each(|(sum, add)| *sum += add);
                }
            }
            Child::Summary { id, .. } => {
                let below = &nodes[id];
                let [messages, tokens, count, cost, source] = expected(below, nodes, log);
                let add = [messages, tokens, count + 1, cost + below.tokens, source];
                sum.iter_mut().zip(add).for_each(|(sum, add)| *sum += add);
            }
        }
    }
    sum
}

#[tokio::test]
async fn figures_count_messages_and_rows_and_never_notes() {
    let tail = FreshTail::messages(20);
    let policy = DagPolicy {
        fresh_tail: tail,
        leaf_min_messages: 4,
        max_source_tokens: Some(400),
        condensed_min: 2,
        condensed_max: Some(3),
        ..DagPolicy::default()
    };
    for place in both(|| memory().dag(policy.clone())).await {
        let session = place.memory.session("s").await.unwrap();
        mixed(&session).await;
        session.compact(Mode::Full).await.unwrap();
        let (nodes, log) = (reached(&session).await, session.entries().await.unwrap());
        assert!(nodes.values().any(|node| node.depth >= 2));
        for node in nodes.values() {
            let answer = session.retrieval().describe(&node.id).await.unwrap();
            let figures = answer.figures.unwrap();
            let found = [
                figures.messages,
                figures.message_tokens,
                figures.descendant_count,
                figures.descendant_token_count,
                figures.source_message_token_count,
            ];
            assert_eq!(
                found,
                expected(node, &nodes, &log),
                "{}: {answer:?}",
                place.name
            );
            // Half of the positions are notes.
            assert!(
                figures.messages <= node.range.len().div_ceil(2),
                "{answer:?}"
            );
            // How it was made is told, too.
            assert_eq!(answer.recipe, node.recipe.as_str());
            let text = answer.to_text();
            for name in [
                "recipe: ",
                "target_tokens: ",
                "descendant_count ",
                "scores: ",
            ] {
                assert!(text.contains(name), "{name} in {text}");
            }
        }
        let context = session.assemble(Budget::tokens(60_000)).await.unwrap();
        let mut condensed = 0;
        for message in &context.messages {
            let agent_memory::context::MessageOrigin::Summary { summary_id, .. } = &message.source
            else {
                continue;
            };
            let node = &nodes[summary_id];
            let [Part::Text { text }] = message.parts.as_slice() else {
                panic!("{message:?}");
            };
            let count = expected(node, &nodes, &log)[2];
            let told = text.contains(&format!(" descendant_count=\"{count}\""));
            assert_eq!(told, node.depth > 0, "{text}");
            condensed += u64::from(node.depth > 0);
        }
        assert!(condensed > 0);
        assert!(session.verify().await.unwrap().is_ok());
    }
}
