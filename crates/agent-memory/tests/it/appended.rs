//! The end of a growing transcript is imported alone, with the same result as the whole transcript.

use agent_memory::SessionKey;
use agent_memory::store::{ConversationFilter, SessionInfo};
use agent_memory::testing::memory;
use message_formats::{Formats, ReadOptions, read};

use crate::overflowed::sources;
use crate::support::exports;

/// Number of parts in which a transcript is written.
const CUTS: usize = 10;

#[tokio::test]
async fn a_growing_transcript_is_stored_the_same_if_its_ends_are_read_alone() {
    let (mut alone, mut all) = (0, 0);
    for source in sources() {
        let Ok(whole) = read(source.as_slice(), &ReadOptions::default()) else {
            continue;
        };
        if whole.format != "claude-code" {
            continue;
        }
        let lines: Vec<&[u8]> = source.split_inclusive(|byte| *byte == b'\n').collect();
        let cuts = (1..=CUTS).map(|cut| lines.split_at(lines.len() * cut / CUTS).0.concat());
        alone += read_alone(cuts).await;
        all += CUTS;
    }
    assert!(alone * 4 > all, "{alone} of {all}");
    println!("{alone} of {all} ends were read alone");
}

/// Imports the states of a growing transcript, whole and by their ends. The result must be the same. Returns the number
/// of ends that were read alone.
async fn read_alone(states: impl Iterator<Item = Vec<u8>>) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing.jsonl");
    let (formats, options) = (Formats::default(), ReadOptions::default());
    let mut alone = 0;
    let wanted = memory().open().await.unwrap();
    let grown = memory().open().await.unwrap();
    let mut known: Option<(u64, String)> = None;
    for part in states {
        let Ok(transcript) = read(part.as_slice(), &options) else {
            continue;
        };
        wanted.import(&transcript).await.unwrap();
        std::fs::write(&path, &part).unwrap();
        let end = match &known {
            Some((from, last)) => formats.read_appended(&path, *from, last, &options).unwrap(),
            None => None,
        };
        let imported = match &end {
            Some(end) => grown.import_appended(end.clone()).await.unwrap(),
            None => None,
        };
        alone += usize::from(imported.is_some());
        let read = match end.filter(|_| imported.is_some()) {
            Some(end) => end,
            None => {
                grown.import(&transcript).await.unwrap();
                transcript
            }
        };
        let log = read.sessions.iter().find(|log| log.in_use);
        let last = log.and_then(|log| log.last.clone());
        known = last.map(|last| (part.len() as u64, last));
    }
    let keys = |sessions: Vec<SessionInfo>| -> Vec<SessionKey> {
        sessions
            .into_iter()
            .map(|one| one.conversation.key)
            .collect()
    };
    let filter = ConversationFilter::default();
    let all_keys = keys(wanted.sessions(&filter).await.unwrap());
    assert_eq!(keys(grown.sessions(&filter).await.unwrap()), all_keys);
    let (grown, wanted) = (
        exports(&grown, &all_keys).await,
        exports(&wanted, &all_keys).await,
    );
    for (key, (one, other)) in all_keys.iter().zip(grown.iter().zip(&wanted)) {
        let mut lines = one.lines().zip(other.lines());
        let differ = lines.find(|(one, other)| one != other);
        let short = differ.map(|(one, other)| {
            (
                one.chars().take(300).collect::<String>(),
                other.chars().take(300).collect::<String>(),
            )
        });
        assert_eq!(short, None, "{key}");
        let rest = |one: &String, other: &String| -> Vec<String> {
            one.lines()
                .skip(other.lines().count())
                .map(|line| line.chars().take(300).collect())
                .collect()
        };
        assert_eq!(rest(one, other), rest(other, one), "{key}");
    }
    alone
}

/// Returns a line of a transcript.
fn line(uuid: &str, parent: &str) -> String {
    let role = match uuid.starts_with('u') {
        true => "user",
        false => "assistant",
    };
    let parent = Some(parent).filter(|parent| !parent.is_empty());
    let line = serde_json::json!({
        "type": role, "sessionId": "growing", "uuid": uuid, "parentUuid": parent, "cwd": "/work",
        "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": role, "content": format!("Said in {uuid}.")},
    });
    format!("{line}\n")
}

/// A line without an id, as the program writes it again and again.
const MODE: &str = "{\"type\":\"mode\",\"mode\":\"normal\",\"sessionId\":\"growing\"}\n";

/// Returns the states of a transcript that grows by these parts.
fn states(parts: &[&[String]]) -> impl Iterator<Item = Vec<u8>> {
    let ends = 1..=parts.len();
    ends.map(|end| parts[..end].concat().concat().into_bytes())
}

#[tokio::test]
async fn a_turn_that_is_taken_back_before_the_next_reading_is_a_fork() {
    let note =
        |uuid: &str, parent: &str| line(uuid, parent).replace("\"assistant\"", "\"attachment\"");
    let begin = [line("u1", ""), line("a1", "u1")];
    let turns = [
        line("u2", "a1"),
        line("a2", "u2"),
        line("u3", "a1"),
        line("a3", "u3"),
    ];
    assert_eq!(read_alone(states(&[&begin, &turns])).await, 0);
    // Notes between the turns do not hide it.
    let turns = [
        note("n2", "a1"),
        line("u2", "n2"),
        line("a2", "u2"),
        note("n3", "a1"),
        line("u3", "n3"),
        line("a3", "u3"),
    ];
    assert_eq!(read_alone(states(&[&begin, &turns])).await, 0);
    let turns = [
        line("u2", "a1"),
        line("a2", "u2"),
        line("u3", "a2"),
        line("a3", "u3"),
    ];
    assert_eq!(read_alone(states(&[&begin, &turns])).await, 1);
}

#[tokio::test]
async fn equal_lines_without_ids_are_numbered_through_all_branches() {
    let mode = || MODE.to_owned();
    let begin = [
        line("u1", ""),
        line("a1", "u1"),
        line("u2", "a1"),
        mode(),
        line("a2", "u2"),
        line("u3", "a1"),
        mode(),
        line("a3", "u3"),
    ];
    let end = [mode(), line("u4", "a3"), line("a4", "u4")];
    assert_eq!(read_alone(states(&[&begin, &end, &end[..1]])).await, 0);
    let plain = [line("u1", ""), mode(), line("a1", "u1")];
    let end = [mode(), mode(), line("u2", "a1"), line("a2", "u2")];
    assert_eq!(read_alone(states(&[&plain, &end])).await, 1);
}

#[tokio::test]
async fn an_end_with_messages_in_an_overflow_is_not_imported_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing.jsonl");
    let user = |uuid: &str, parent: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","timestamp":"2026-03-02T09:00:00Z","message":{{"role":"user","content":"{uuid}"}}}}"#
        ) + "\n"
    };
    // The mode has no id, so equal lines are numbered.
    let mode = r#"{"type":"mode","mode":"normal","sessionId":"s"}"#.to_owned() + "\n";
    let begin = user("u1", "null") + &mode;
    let end = user("u2", "\"u1\"") + &mode + &mode;
    let grown = memory().open().await.unwrap();
    let first = read(begin.as_bytes(), &ReadOptions::default()).unwrap();
    grown.import(&first).await.unwrap();
    std::fs::write(&path, begin.clone() + &end).unwrap();
    let options = ReadOptions::default()
        .with_overflow(user("u2", "\"u1\"").len() + mode.len(), folder.path());
    let last = first.sessions[0].last.clone().unwrap();
    let from = begin.len() as u64;
    let formats = Formats::default();
    let end = formats
        .read_appended(&path, from, &last, &options)
        .unwrap()
        .unwrap();
    assert!(end.sessions[0].messages.len() < end.sessions[0].len());
    assert!(grown.import_appended(end).await.unwrap().is_none());
    let end = formats.read_appended(&path, from, &last, &ReadOptions::default());
    let end = end.unwrap().unwrap();
    assert!(grown.import_appended(end).await.unwrap().is_some());
    let session = grown.get_session("s").await.unwrap();
    assert_eq!(session.entries().await.unwrap().len(), 5);
}
