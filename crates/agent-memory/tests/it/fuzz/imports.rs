//! Imports of transcripts, also of growing ones.

use agent_memory::Memory;
use agent_memory::store::ConversationFilter;
use agent_memory::testing::memory;
use message_formats::{ReadOptions, Transcript, read};

use crate::support::exports;

pub(super) async fn check(source: &[u8]) -> Vec<(u64, u64, u64)> {
    let Ok(whole) = read(source, &ReadOptions::default()) else {
        return Vec::new();
    };
    let alone = memory().open().await.unwrap();
    let first = alone.import(&whole).await.unwrap();
    for (one, log) in first.sessions.iter().map(|one| (one, &one.session)) {
        assert_eq!(one.conflicts, 0, "{log}");
    }
    let stored: u64 = first
        .sessions
        .iter()
        .map(|one| one.inserted + one.duplicates)
        .sum();
    let logs = whole.sessions.iter();
    let told: u64 = logs.map(|log| log.len() as u64 + log.duplicates).sum();
    assert_eq!(
        stored, told,
        "entries that were stored, and that the source has"
    );
    let again = alone.import(&whole).await.unwrap();
    assert!(
        again.sessions.iter().all(|one| one.inserted == 0),
        "{again:?}"
    );
    assert_eq!(alone.verify().await.unwrap().violations, []);

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
    let reports = first.sessions.iter().take(4);
    reports
        .map(|one| (one.inserted.min(8), one.duplicates.min(2), one.notes.min(2)))
        .collect()
}

fn count(transcript: &Transcript) -> usize {
    transcript.sessions.iter().map(|log| log.len()).sum()
}

/// The conversations. A fork that is in use later has the key of its parent, so keys are left out.
async fn contents(memory: &Memory) -> Vec<String> {
    let mut filter = ConversationFilter::default();
    filter.archived = true;
    let sessions = memory.sessions(&filter).await.unwrap();
    let keys = sessions.into_iter().map(|one| one.conversation.key);
    let mut exports = exports(memory, &keys.collect::<Vec<_>>()).await;
    exports.sort();
    exports
}
