//! Messages of any JSON, stored in SQLite.

use std::cell::Cell;

use agent_memory::store::EntryOutcome;
use agent_memory::testing::memory;
use agent_memory::{Message, model::Timestamp};

use super::{block_on, target};

pub(super) fn messages() {
    let folder = tempfile::tempdir().unwrap();
    let memory = block_on(memory().sqlite(folder.path().join("memory.db")).open()).unwrap();
    let sessions = Cell::new(0);
    target("messages", 150).run(|lines| {
        let lines = lines.split(|&byte| byte == b'\n');
        let messages: Vec<Message> = lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        sessions.set(sessions.get() + 1);
        let key = format!("session {}", sessions.get());
        block_on(async {
            let session = memory.session(key).await.unwrap();
            let report = session.ingest_batch(messages.clone()).await.unwrap();
            let entries = session.entries().await.unwrap();
            let mut shape = Vec::new();
            for (message, outcome) in messages.iter().zip(&report.outcomes) {
                shape.push((message.parts.len().min(4), message.kind, message.role));
                let EntryOutcome::Inserted(seq) = outcome else {
                    continue;
                };
                let mut stored = entries[seq.0 as usize - 1].message.clone();
                if message.created_at == Timestamp::default() {
                    stored.created_at = message.created_at;
                }
                assert_eq!(stored, *message);
                let (stored, message) = (
                    serde_json::to_string(&stored),
                    serde_json::to_string(message),
                );
                assert_eq!(stored.unwrap(), message.unwrap());
            }
            assert_eq!(entries.len(), report.inserted());
            let verified = session.verify().await.unwrap();
            assert_eq!(verified.violations, []);
            (shape, report.duplicates().min(2), report.conflicts().min(2))
        })
    });
}
