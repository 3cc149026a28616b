//! Transcripts that name sessions which only the memory writes to.

use memory_model::SessionKey;
use message_formats::{Origin, SessionLog, Transcript};

use crate::error::{Error, ErrorKind, Result};

/// Returns the session that only the memory writes to, if a conversation names one in any place.
fn reserved(log: &SessionLog) -> Option<&SessionKey> {
    let parent = match &log.origin {
        Origin::Fork { parent, .. } | Origin::Spawn { parent, .. } => Some(parent),
        _ => None,
    };
    let later = log.later_keys.iter().map(|(_, key)| key);
    let others = parent.into_iter().chain(&log.copied_from).chain(later);
    { std::iter::once(&log.key).chain(others) }.find(|key| key.is_reserved())
}

/// Takes the conversations that name a [reserved](SessionKey::RESERVED) session out of a transcript, and returns the keys
/// that they name. With them [`Memory::import`](crate::Memory::import) refuses the whole transcript.
pub fn take_reserved(transcript: &mut Transcript) -> Vec<SessionKey> {
    let mut taken = Vec::new();
    transcript.sessions.retain(|log| {
        taken.extend(reserved(log).cloned());
        reserved(log).is_none()
    });
    taken
}

/// Fails if a transcript names a session that only the memory writes to, in any place of a conversation.
pub(super) fn refuse_reserved(logs: &[SessionLog]) -> Result<()> {
    match logs.iter().find_map(reserved) {
        None => Ok(()),
        Some(key) => Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "the transcript names the session {key}: keys that begin with {} are the memory's own, so give it \
                 another name",
                SessionKey::RESERVED
            ),
        )),
    }
}
