//! Transcripts of every format.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::Message;
use message_formats::{
    ErrorKind, Origin, ReadOptions, SessionLog, Transcript, own_compactions, read,
};

use crate::support::{export, read_bytes};

/// Formats whose sources are whole documents.
const DOCUMENTS: [&str; 6] = [
    "cline",
    "messages",
    "opencode",
    "openhands",
    "swe-agent",
    "tau-bench",
];

pub(super) fn check(source: &[u8]) -> (String, Vec<String>, Vec<(usize, bool)>) {
    let transcript = match read_bytes(source) {
        Ok(transcript) => transcript,
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Io, "{error}");
            return (format!("{:?}", error.kind()), Vec::new(), Vec::new());
        }
    };
    let sessions = &transcript.sessions;
    let ids: BTreeMap<&str, BTreeSet<&str>> = sessions
        .iter()
        .map(|log| (log.key.as_str(), ids(log)))
        .collect();
    for (at, log) in sessions.iter().enumerate() {
        assert!(!log.is_empty(), "{}: a session without an entry", log.key);
        assert_eq!(
            ids[log.key.as_str()].len(),
            log.len(),
            "{}: an id or a key comes twice",
            log.key
        );
        assert!(
            !ids[log.key.as_str()].contains(""),
            "{}: an empty id",
            log.key
        );
        let has_parent = |parent| sessions[..at].iter().any(|log| log.key == *parent);
        if let Origin::Fork { parent, .. } = &log.origin {
            assert!(
                has_parent(parent),
                "{}: its parent {parent} is missing",
                log.key
            );
        }
        reads_back(log);
        own_compactions(&log.messages, &log.summaries);
    }
    if !DOCUMENTS.contains(&transcript.format.as_str()) {
        every_line_is_kept(&transcript);
        // Another cut for each input.
        let ends: Vec<usize> = (1..=source.len())
            .filter(|end| source[end - 1] == b'\n')
            .collect();
        if !ends.is_empty() {
            begins_with(&transcript, &source[..ends[source.len() % ends.len()]]);
        }
    }
    let kinds = transcript.report.skipped.keys().cloned().collect();
    let sizes = sessions
        .iter()
        .take(4)
        .map(|log| (log.len().min(8), log.duplicates > 0));
    (transcript.format.clone(), kinds, sizes.collect())
}

fn ids(log: &SessionLog) -> BTreeSet<&str> {
    log.messages
        .iter()
        .filter_map(|message| message.external_id.as_deref())
        .collect()
}

/// Each line became an entry, repeats one, or is counted.
fn every_line_is_kept(transcript: &Transcript) {
    let kept: u64 = transcript
        .sessions
        .iter()
        .map(|log| log.len() as u64 + log.duplicates)
        .sum();
    let counted: u64 = transcript.report.skipped.values().sum();
    assert!(
        kept + counted >= transcript.report.lines,
        "of {} lines, {kept} were kept and {counted} counted",
        transcript.report.lines
    );
}

/// A source that grows keeps what it had, in order.
fn begins_with(whole: &Transcript, beginning: &[u8]) {
    let Ok(beginning) = read(beginning, &ReadOptions::default()) else {
        return;
    };
    if beginning.format != whole.format {
        return;
    }
    every_line_is_kept(&beginning);
    for log in &beginning.sessions {
        let grown = whole.sessions.iter().find(|other| other.key == log.key);
        let grown = grown.unwrap_or_else(|| panic!("{} is gone", log.key));
        assert_eq!(grown.origin, log.origin, "{}", log.key);
        assert!(
            grown.messages.starts_with(&log.messages),
            "{}: other messages",
            log.key
        );
    }
}

/// What is exported reads back the same.
fn reads_back(log: &SessionLog) {
    let options = ReadOptions::default().with_session(log.key.as_str());
    let export = export(log);
    let again =
        read(export.as_bytes(), &options).unwrap_or_else(|error| panic!("{error}: {export}"));
    let without_meta = |messages: &[Message]| messages.to_vec();
    assert_eq!(
        without_meta(&again.sessions[0].messages),
        without_meta(&log.messages),
        "{export}"
    );
}
