//! Transcripts as requests of providers.

use message_formats::{ReadOptions, read};

use crate::lists::written_for_all;

pub(super) fn check(input: &[u8]) -> Vec<(usize, [usize; 4])> {
    let Ok(transcript) = read(input, &ReadOptions::default()) else {
        return Vec::new();
    };
    let logs = transcript.sessions.iter();
    logs.map(|log| (log.len(), written_for_all(&log.messages)))
        .collect()
}
