//! What the tests share.

use std::path::PathBuf;

use memory_model::{Hash, LogEntry, Seq};
use message_formats::{Error, ReadOptions, SessionLog, Transcript, read};

/// Reads a source, with all messages in memory and with none.
pub(crate) fn read_str(source: &str) -> Transcript {
    read_bytes(source.as_bytes()).unwrap()
}

/// The same for any bytes.
pub(crate) fn read_bytes(source: &[u8]) -> Result<Transcript, Error> {
    let all = read(source, &ReadOptions::default())?;
    let options = ReadOptions::default().with_overflow(0, std::env::temp_dir());
    let none = read(source, &options).unwrap();
    assert_eq!(none.report, all.report);
    let wholes = none.sessions.iter().map(|log| whole(log).0);
    for (whole, log) in wholes.zip(&all.sessions) {
        assert_eq!(whole.messages, log.messages);
    }
    Ok(all)
}

/// The whole conversation in memory, and the number of bytes that memory had of it.
pub(crate) fn whole(log: &SessionLog) -> (SessionLog, usize) {
    let kept = log.messages.iter();
    let kept = kept.map(|message| message.text().len()).sum();
    let mut whole = log.clone();
    whole.messages.clear();
    let entries = (0..log.len()).map(|at| log.entry(at).unwrap().unwrap());
    for (entry, head) in entries.zip(log.heads()) {
        assert!(entry.external_id.is_some(), "{entry:?}");
        assert_eq!(head.id, entry.external_id.as_deref());
        assert_eq!(head.kind, entry.kind);
        whole.messages.push(entry.into_owned());
    }
    (whole, kept)
}

/// A conversation as the export format writes it.
pub(crate) fn export(session: &SessionLog) -> String {
    let mut out = String::new();
    for (at, message) in session.messages.iter().enumerate() {
        let entry = LogEntry {
            seq: Seq(u32::try_from(at).unwrap() + 1),
            message: message.clone(),
            tokens: 7,
            running: 0,
            hash: Hash::ZERO,
        };
        out.push_str(&serde_json::to_string(&entry.to_export()).unwrap());
        out.push('\n');
    }
    out
}

/// The corpus' transcripts of a folder, or nothing when the corpus is not at hand.
pub(crate) fn corpus(folder: &str) -> Vec<PathBuf> {
    let Some(root) = std::env::var_os("AGENT_MEMORY_CORPUS") else {
        let required = std::env::var_os("AGENT_MEMORY_REQUIRE_CORPUS");
        assert!(
            required.is_none_or(|value| value != "1"),
            "AGENT_MEMORY_CORPUS is not set"
        );
        println!("left out: AGENT_MEMORY_CORPUS is not set");
        return Vec::new();
    };
    let folder = PathBuf::from(root).join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// The transcripts in the fixtures that agents wrote, by their paths.
pub(crate) fn agents() -> Vec<(String, Vec<u8>)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            match () {
                () if path.is_dir() => folders.push(path),
                () if name.ends_with(".md") || name.ends_with(".meta.json") => {}
                () => files.push((name, std::fs::read(&path).unwrap())),
            }
        }
    }
    files.sort();
    assert!(files.len() > 8);
    files
}
