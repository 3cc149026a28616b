//! Collects one conversation and gives its entries ids that stay the same while the source grows.

use std::collections::{BTreeMap, HashMap};

use memory_model::{EntryKind, Message, Part, RawJson, Role, SessionKey};
use sha2::{Digest, Sha256};

use crate::raw::RawObject;
use crate::{EarlierReading, Origin, SessionLog, SourceSummary};

/// Returns the first 16 hex digits of the SHA-256 of a line.
pub(crate) fn short_hash(text: &str) -> String {
    hex(&digest(text))
}

fn hex(digest: &[u8; 16]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(16);
    for byte in digest.iter().take(8) {
        let _infallible = write!(out, "{byte:02x}");
    }
    out
}

fn digest(text: &str) -> [u8; 16] {
    let full: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let mut out = [0; 16];
    out.copy_from_slice(full.get(..16).unwrap_or(&[0; 16]));
    out
}

/// Prefix of the ids of words from Claude Code's queue, because the queue's records have no ids.
pub(crate) const QUEUED: &str = "queued-";

/// Returns whether an external id was made from a record's text. [`SessionBuilder::push`] makes such ids for records
/// without an id.
pub fn is_made_id(id: &str) -> bool {
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    if let Some(hash) = id.strip_prefix(QUEUED) {
        return is_hash(hash);
    }
    let made = id.strip_prefix("h-").and_then(|rest| rest.split_once('-'));
    made.is_some_and(|(hash, ordinal)| {
        is_hash(hash) && ordinal.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Keys under which records name the record that they follow. The first record has `null` there.
const LINKS: [&str; 2] = ["parentUuid", "parentId"];

/// Returns whether a message names the entry that it follows in its source, as messages of [linked](SessionLog::linked)
/// conversations do.
pub fn is_linked(message: &Message) -> bool {
    message.meta.as_ref().is_some_and(|meta| {
        RawObject::parse(meta.as_str())
            .is_some_and(|meta| LINKS.iter().any(|key| meta.get(key).is_some()))
    })
}

/// Keeps a line whole as a note.
pub(crate) fn note(role: Role, text: &str) -> Message {
    Message::note(role, vec![unknown(text)])
}

/// Returns JSON text as an unknown part. The text was parsed before, so it is JSON.
pub(crate) fn unknown(json: &str) -> Part {
    match RawJson::parse(json) {
        Ok(raw) => Part::Unknown { raw },
        Err(_) => Part::text(json),
    }
}

/// Collects one conversation and gives its entries external ids that stay the same while the
/// source grows.
#[derive(Debug)]
pub struct SessionBuilder {
    pub(crate) origin: Origin,
    pub(crate) messages: Vec<Message>,
    /// Hashes of the lines with each id, in order.
    ids: HashMap<String, Vec<[u8; 16]>>,
    /// Number of times that each line without an id came.
    ordinals: HashMap<[u8; 16], u64>,
    duplicates: u64,
    summaries: Vec<SourceSummary>,
    earlier: BTreeMap<String, EarlierReading>,
    later_keys: Vec<(String, SessionKey)>,
}

impl SessionBuilder {
    /// Creates a conversation without entries.
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            messages: Vec::new(),
            ids: HashMap::new(),
            ordinals: HashMap::new(),
            duplicates: 0,
            summaries: Vec::new(),
            earlier: BTreeMap::new(),
            later_keys: Vec::new(),
        }
    }

    /// Creates an empty branch of this conversation. It continues the numbers of records without ids.
    pub(crate) fn branch(&self) -> Self {
        Self {
            ordinals: self.ordinals.clone(),
            ..Self::new(Origin::Root)
        }
    }

    /// Returns whether the conversation has only notes so far.
    ///
    /// A summary that comes next is then the only trace of older entries, because a program that rewrites its files put
    /// the summary in the place of all entries before it.
    pub(crate) fn is_without_messages(&self) -> bool {
        let is_note = |message: &Message| message.kind == EntryKind::Note;
        self.messages.iter().all(is_note)
    }

    /// Adds the message of a record and returns its external id, or `None` if an equal record with the same id came
    /// before. `own` is the record's id, and `line` its text as it came.
    ///
    /// If another record has the same id, the new one gets `#2`, `#3` … appended to its id. A record without an id gets
    /// `h-`, 16 hex digits of its hash, `-`, and its ordinal among equal records.
    pub fn push(
        &mut self,
        mut message: Message,
        own: Option<String>,
        line: &str,
    ) -> Option<String> {
        let digest = digest(line);
        let wanted = own.unwrap_or_else(|| {
            let ordinal = self.ordinals.entry(digest).or_default();
            *ordinal += 1;
            format!("h-{}-{ordinal}", hex(&digest))
        });
        let seen = self.ids.entry(wanted.clone()).or_default();
        if seen.contains(&digest) {
            self.duplicates += 1;
            return None;
        }
        seen.push(digest);
        let count = seen.len();
        let mut id = wanted.clone();
        let mut ordinal = count;
        while ordinal > 1 {
            id = format!("{wanted}#{ordinal}");
            if !self.ids.contains_key(&id) {
                self.ids.insert(id.clone(), vec![digest]);
                break;
            }
            ordinal += 1;
        }
        message.external_id = Some(id.clone());
        self.messages.push(message);
        Some(id)
    }

    /// Adds a message as [`push`](Self::push) does, and its reading by earlier versions of the format.
    pub fn push_revised(
        &mut self,
        message: Message,
        own: Option<String>,
        line: &str,
        earlier: Option<EarlierReading>,
    ) -> Option<String> {
        let id = self.push(message, own, line)?;
        if let Some(mut earlier) = earlier {
            if let EarlierReading::Entry(entry) = &mut earlier {
                entry.external_id = Some(id.clone());
            }
            self.earlier.insert(id.clone(), earlier);
        }
        Some(id)
    }

    /// Adds a summary from the source. A blank summary is passed over.
    pub fn push_summary(&mut self, summary: SourceSummary) {
        if !summary.text.trim().is_empty() {
            self.summaries.push(summary);
        }
    }

    /// Records that the source names another session from an entry on.
    pub(crate) fn push_key(&mut self, entry: String, key: SessionKey) {
        self.later_keys.push((entry, key));
    }

    /// Returns the conversation. It counts as named by the source, not linked and not in use.
    pub fn finish(self, key: SessionKey) -> SessionLog {
        SessionLog {
            key,
            origin: self.origin,
            messages: self.messages,
            duplicates: self.duplicates,
            summaries: self.summaries,
            earlier: self.earlier,
            named: true,
            linked: false,
            in_use: false,
            later_keys: self.later_keys,
            copied_from: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(lines: &[(Option<&str>, &str)]) -> Vec<Option<String>> {
        let mut session = SessionBuilder::new(Origin::Root);
        lines
            .iter()
            .map(|(own, line)| session.push(Message::user("x"), own.map(str::to_owned), line))
            .collect()
    }

    #[test]
    fn equal_lines_without_id_are_told_apart_by_ordinal() {
        let found = ids(&[(None, "a"), (None, "b"), (None, "a")]);
        let hash = short_hash("a");
        assert_eq!(found[0], Some(format!("h-{hash}-1")));
        assert_eq!(found[2], Some(format!("h-{hash}-2")));
    }

    #[test]
    fn a_repeated_id_is_a_duplicate_only_when_the_line_is_the_same() {
        let id = Some("u");
        let found = ids(&[
            (id, "a"),
            (id, "a"),
            (id, "b"),
            (id, "a"),
            (id, "b"),
            (id, "c"),
        ]);
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        assert_eq!(
            found,
            [Some("u"), None, Some("u#2"), None, None, Some("u#3")]
        );
        let taken = ids(&[(Some("u#2"), "x"), (id, "a"), (id, "b")]);
        assert_eq!(taken[2].as_deref(), Some("u#3"));
    }
}
