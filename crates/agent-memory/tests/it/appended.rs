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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing.jsonl");
    let (formats, options) = (Formats::default(), ReadOptions::default());
    let (mut alone, mut all) = (0, 0);
    for source in sources() {
        let Ok(whole) = read(source.as_slice(), &options) else {
            continue;
        };
        if whole.format != "claude-code" {
            continue;
        }
        let wanted = memory().open().await.unwrap();
        let lines: Vec<&[u8]> = source.split_inclusive(|byte| *byte == b'\n').collect();
        let grown = memory().open().await.unwrap();
        let mut known: Option<(u64, String)> = None;
        for cut in 1..=CUTS {
            let part = lines.split_at(lines.len() * cut / CUTS).0.concat();
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
            all += 1;
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
    }
    assert!(alone * 4 > all, "{alone} of {all}");
    println!("{alone} of {all} ends were read alone");
}
