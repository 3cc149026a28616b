//! Transcripts of every format.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{Discriminant, discriminant};

use memory_model::{EntryKind, Part, Role, SessionKey};
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

/// Format, numbers of sessions and of kinds of skipped lines, and the first parts.
type Shape = (
    String,
    [usize; 2],
    Vec<(EntryKind, Role, Discriminant<Part>)>,
);

pub(super) fn check(source: &[u8]) -> Shape {
    let transcript = match read_bytes(source) {
        Ok(transcript) => transcript,
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Io, "{error}");
            return (format!("{:?}", error.kind()), [0; 2], Vec::new());
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
        let has_parent = |parent: &SessionKey| sessions[..at].iter().any(|log| log.key == *parent);
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
    let messages = sessions.iter().flat_map(|log| &log.messages);
    let parts = messages.flat_map(|one| {
        one.parts
            .iter()
            .map(|part| (one.kind, one.role, discriminant(part)))
    });
    (
        transcript.format.clone(),
        [
            sessions.len().min(4),
            transcript.report.skipped.len().min(4),
        ],
        parts.take(16).collect(),
    )
}

fn ids(log: &SessionLog) -> BTreeSet<&str> {
    log.messages
        .iter()
        .filter_map(|message| message.external_id.as_deref())
        .collect()
}

/// Each line became an entry, repeats one, or is counted. Lines that repeat one of a source without a session are not.
fn every_line_is_kept(transcript: &Transcript) {
    let report = &transcript.report;
    let logs = transcript.sessions.iter();
    let kept: u64 = logs.map(|log| log.len() as u64 + log.duplicates).sum();
    let counted: u64 = report.skipped.values().sum();
    assert!(
        kept + counted >= report.lines || report.skipped.contains_key("no_session"),
        "of {} lines, {kept} were kept and {counted} counted",
        report.lines
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
    assert_eq!(again.sessions[0].messages, log.messages, "{export}");
}
