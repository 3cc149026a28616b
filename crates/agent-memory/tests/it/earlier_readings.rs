//! Files that an earlier version imported and read differently.

use agent_memory::{Memory, store::ConversationFilter};
use message_formats::{EarlierReading, ReadOptions, Transcript, read};

use crate::support::plain;

/// Claude Code lines: queued words, attachments, a client's error, half a surrogate pair, and a time in another form.
const CLAUDE_CODE: &[&str] = &[
    r#"{"type":"user","uuid":"u0","sessionId":"s","timestamp":"2026-05-04T10:00:00Z","isCompactSummary":true,"message":{"role":"user","content":"what was"}}"#,
    r#"{"type":"user","uuid":"u1","sessionId":"s","timestamp":1780000000,"message":{"role":"user","content":"start \ud83d"}}"#,
    r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"use gas"}"#,
    r#"{"type":"queue-operation","operation":"remove","sessionId":"s"}"#,
    r#"{"type":"attachment","uuid":"q1","sessionId":"s","attachment":{"type":"queued_command","prompt":"and oil"}}"#,
    r#"{"type":"attachment","uuid":"q2","sessionId":"s","attachment":{"type":"hook_additional_context","content":["be brief"],"hookName":"x"}}"#,
    r#"{"type":"assistant","uuid":"e1","sessionId":"s","isApiErrorMessage":true,"message":{"id":"e","role":"assistant","content":[{"type":"text","text":"API Error"}]}}"#,
    r#"{"type":"assistant","uuid":"a1","sessionId":"s","message":{"id":"a","role":"assistant","content":[{"type":"text","text":"done"}]}}"#,
    r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"and coal"}"#,
    r#"{"type":"queue-operation","operation":"remove","sessionId":"s"}"#,
];

const PI: &[&str] = &[
    r#"{"type":"session","version":3,"id":"p","timestamp":"2026-05-04T10:00:00Z"}"#,
    r#"{"type":"message","id":"a","parentId":null,"timestamp":1780000000,"message":{"role":"user","content":"hi"}}"#,
    r#"{"type":"custom_message","id":"b","parentId":"a","customType":"x","content":"by an extension"}"#,
    r#"{"type":"message","id":"c","parentId":"b","message":{"role":"custom","content":"by a role"}}"#,
    r#"{"type":"message","id":"d","parentId":"c","message":{"role":"bashExecution","command":"cat","output":"TOKEN","excludeFromContext":true}}"#,
    r#"{"type":"message","id":"e","parentId":"d","message":{"role":"toolResult","toolCallId":"t","content":[{"type":"text","text":"x \udc00","more":1}]}}"#,
];

const PLAIN: &[&str] = &[
    r#"{"role":"system","content":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}]}"#,
    r#"{"role":"user","content":"one","created_at":1780000000}"#,
    r#"{"role":"user","content":"two","created_at":"2026-05-28 20:26:40"}"#,
    r#"{"role":"user","content":"three","timestamp":1780000000.5}"#,
    r#"{"role":"user","content":"four","created_at":12}"#,
    r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#,
    r#"{"role":"function","name":"f","content":"five"}"#,
    r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}"#,
];

fn transcript(lines: &[&str]) -> Transcript {
    read(lines.join("\n").as_bytes(), &ReadOptions::default()).unwrap()
}

/// Returns the transcript in the reading of the first version.
pub(crate) fn first(transcript: &Transcript) -> Transcript {
    let mut transcript = transcript.clone();
    for log in &mut transcript.sessions {
        let earlier = std::mem::take(&mut log.earlier);
        let id = |message: &agent_memory::Message| message.external_id.clone().unwrap();
        log.messages
            .retain(|message| earlier.get(&id(message)) != Some(&EarlierReading::PassedOver));
        for message in &mut log.messages {
            if let Some(EarlierReading::Entry(entry)) = earlier.get(&id(message)) {
                assert_ne!(message, &**entry);
                *message = (**entry).clone();
            }
        }
    }
    transcript
}

async fn counts(memory: &Memory, transcript: &Transcript) -> (u64, u64) {
    let report = memory.import(transcript).await.unwrap();
    let sum = |of: fn(&agent_memory::transcripts::SessionImport) -> u64| {
        report.sessions.iter().map(of).sum()
    };
    (
        sum(|session| session.inserted),
        sum(|session| session.conflicts),
    )
}

#[tokio::test]
async fn what_a_store_has_stays_and_is_no_conflict() {
    for lines in [CLAUDE_CODE, PI, PLAIN] {
        let now = transcript(lines);
        assert!(now.sessions.iter().any(|log| log.earlier.len() > 3));
        for place in plain().await {
            let memory = &place.memory;
            let before = counts(memory, &first(&now)).await;
            assert!(before.0 > 0 && before.1 == 0);
            assert_eq!(
                counts(memory, &now).await,
                (0, 0),
                "{} {}",
                place.name,
                lines[0]
            );
            assert!(memory.verify().await.unwrap().violations.is_empty());
        }
        // The other way round an earlier version finds its reading no more; and again by this one.
        for place in plain().await {
            assert!(counts(&place.memory, &now).await.0 > 0);
            assert_eq!(counts(&place.memory, &now).await, (0, 0));
        }
    }
}

/// An import line by line, as by a hook for a growing file, stores all entries in the order of the file.
#[tokio::test]
async fn a_file_that_grows_is_stored_as_a_whole_one() {
    for place in plain().await {
        let lines = [CLAUDE_CODE, &[r#"{"type":"user","uuid":"u9","sessionId":"s","message":{"role":"user","content":"end"}}"#]].concat();
        for count in 1..=lines.len() {
            let (_, conflicts) = counts(&place.memory, &transcript(&lines[..count])).await;
            assert_eq!(conflicts, 0);
        }
        let session = place.memory.get_session("s").await.unwrap();
        let stored = session.entries().await.unwrap();
        let stored: Vec<_> = stored.iter().map(|entry| entry.message.clone()).collect();
        assert_eq!(stored, transcript(&lines).sessions[0].messages);
    }
}

/// A message with different content under the same id is still a conflict.
#[tokio::test]
async fn another_message_is_a_conflict_still() {
    let now = transcript(CLAUDE_CODE);
    let mut other = CLAUDE_CODE.to_vec();
    other[4] = r#"{"type":"attachment","uuid":"q1","sessionId":"s","attachment":{"type":"queued_command","prompt":"and no oil"}}"#;
    for place in plain().await {
        let _ = counts(&place.memory, &first(&now)).await;
        assert_eq!(counts(&place.memory, &transcript(&other)).await, (0, 1));
    }
}

/// Claude Code lines of a turn that the user took back. The abandoned branch and its replacement both have queued
/// words.
const REWOUND: &[&str] = &[
    r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"r","message":{"role":"user","content":"hello"}}"#,
    r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"r","message":{"id":"a","role":"assistant","content":[{"type":"text","text":"hi"}]}}"#,
    r#"{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"r","message":{"role":"user","content":"paint it red"}}"#,
    r#"{"type":"queue-operation","operation":"enqueue","sessionId":"r","content":"darker"}"#,
    r#"{"type":"queue-operation","operation":"remove","sessionId":"r"}"#,
    r#"{"type":"attachment","uuid":"t2","parentUuid":"u2","sessionId":"r","attachment":{"type":"directory","path":"/w","content":"tax.rs"}}"#,
    r#"{"type":"assistant","uuid":"a2","parentUuid":"t2","sessionId":"r","message":{"id":"b","role":"assistant","content":[{"type":"text","text":"red"}]}}"#,
    r#"{"type":"queue-operation","operation":"enqueue","sessionId":"r","content":"and a frame"}"#,
    r#"{"type":"queue-operation","operation":"remove","sessionId":"r"}"#,
    r#"{"type":"user","uuid":"u3","parentUuid":"a1","sessionId":"r","message":{"role":"user","content":"paint it blue"}}"#,
    r#"{"type":"queue-operation","operation":"enqueue","sessionId":"r","content":"lighter"}"#,
    r#"{"type":"queue-operation","operation":"remove","sessionId":"r"}"#,
    r#"{"type":"assistant","uuid":"a3","parentUuid":"u3","sessionId":"r","message":{"id":"c","role":"assistant","content":[{"type":"text","text":"blue"}]}}"#,
];

/// An earlier version stored the abandoned branch and its replacement in one log. Neither this order nor the records
/// that it did not read lead to a new session, and an import finds nothing new to store.
#[tokio::test]
async fn a_course_that_an_earlier_version_stored_in_line_is_known() {
    let unnamed: Vec<String> = REWOUND
        .iter()
        .map(|line| line.replace(r#","sessionId":"r""#, ""))
        .collect();
    let unnamed: Vec<&str> = unnamed.iter().map(String::as_str).collect();
    for lines in [REWOUND, &unnamed[..]] {
        let now = transcript(lines);
        assert_eq!(now.sessions.len(), 2);
        let mut in_line = first(&now);
        let fork = in_line.sessions.pop().unwrap();
        in_line.sessions[0].messages.extend(fork.messages);
        in_line.sessions[0].in_use = true;
        for place in plain().await {
            let memory = &place.memory;
            assert_eq!(counts(memory, &in_line).await, (7, 0));
            for _ in 0..2 {
                let stored = memory.session_of(&now).await.unwrap().unwrap();
                let (session, new) = (stored.session, stored.new_entries);
                assert_eq!((session.key(), new), (&now.sessions[0].key, 0));
                assert_eq!(counts(memory, &now).await, (0, 0), "{}", place.name);
            }
            let known = memory
                .sessions(&ConversationFilter::default())
                .await
                .unwrap();
            assert_eq!(known.len(), 1, "{}", place.name);
        }
    }
}
