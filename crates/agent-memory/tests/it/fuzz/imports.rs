//! Imports of transcripts, also of growing ones.

use std::collections::BTreeSet;

use agent_memory::Memory;
use agent_memory::store::ConversationFilter;
use agent_memory::testing::memory;
use memory_model::EntryKind;
use message_formats::{ReadOptions, Transcript, read};

pub(super) async fn check(source: &[u8]) -> Vec<[u64; 3]> {
    let Ok(whole) = read(source, &ReadOptions::default()) else {
        return Vec::new();
    };
    let alone = memory().open().await.unwrap();
    let first = alone.import(&whole).await.unwrap();
    assert_eq!(alone.verify().await.unwrap().violations, []);
    let sessions = first.sessions.iter().take(4);
    let shape =
        sessions.map(|one| [one.inserted, one.duplicates, one.notes].map(|count| count.min(4)));
    // Of two different entries with one id, the one that comes first is stored.
    let heads = || whole.sessions.iter().flat_map(|log| log.heads());
    let ids: BTreeSet<&str> = heads().filter_map(|head| head.id).collect();
    if ids.len() < heads().count() {
        return shape.collect();
    }
    let inserted: u64 = first.sessions.iter().map(|one| one.inserted).sum();
    assert_eq!(inserted, ids.len() as u64, "entries that were stored");
    let again = alone.import(&whole).await.unwrap();
    assert!(
        again.sessions.iter().all(|one| one.inserted == 0),
        "{again:?}"
    );

    // Another cut for each input.
    let ends: Vec<usize> = (1..source.len())
        .filter(|end| source[end - 1] == b'\n')
        .collect();
    if !ends.is_empty()
        && let Ok(beginning) = read(
            &source[..ends[source.len() % ends.len()]],
            &ReadOptions::default(),
        )
        && beginning.format == whole.format
    {
        let grown = memory().open().await.unwrap();
        grown.import(&beginning).await.unwrap();
        grown.import(&whole).await.unwrap();
        assert_eq!(
            contents(&grown).await,
            contents(&alone).await,
            "after {} entries",
            count(&beginning)
        );
    }
    shape.collect()
}

fn count(transcript: &Transcript) -> usize {
    transcript.sessions.iter().map(|log| log.len()).sum()
}

/// The messages of each conversation, without keys and notes: a branch that is in use only later is another session, and
/// notes at the end of a session do not keep it from going on.
async fn contents(memory: &Memory) -> Vec<Vec<String>> {
    let mut filter = ConversationFilter::default();
    filter.archived = true;
    let mut contents = Vec::new();
    for info in memory.sessions(&filter).await.unwrap() {
        let session = memory.get_session(info.conversation.key).await.unwrap();
        let entries = session.entries().await.unwrap().into_iter();
        let messages = entries.filter(|entry| entry.message.kind == EntryKind::Message);
        contents.push(
            messages
                .map(|entry| format!("{:?}", entry.message.parts))
                .collect(),
        );
    }
    contents.retain(|messages: &Vec<String>| !messages.is_empty());
    contents.sort();
    // A fork may have notes alone.
    contents.dedup();
    contents
}
