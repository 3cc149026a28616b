//! Collects one conversation and gives its entries ids that stay the same while the source grows.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use memory_model::{EntryKind, Message, Part, RawJson, Role, SessionKey, short_hash};
use sha2::{Digest, Sha256};

use crate::made_id::{MadeId, is_by_place};
use crate::overflow::{Overflow, Overflowed};
use crate::raw::RawObject;
use crate::writings;
use crate::{EntryHead, Origin, ReadOptions, SessionLog, SourceSummary};

fn hex(digest: &Digest16) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(16);
    for byte in digest.iter().take(8) {
        let _infallible = write!(out, "{byte:02x}");
    }
    out
}

/// The first 16 bytes of a SHA-256. Maps of ids have digests as their keys, because these need less memory.
pub(crate) type Digest16 = [u8; 16];

pub(crate) fn digest(text: &str) -> Digest16 {
    let full: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let mut out = [0; 16];
    out.copy_from_slice(full.get(..16).unwrap_or(&[0; 16]));
    out
}

/// Returns the keys that a source without a name has if its first record is written in another way.
pub(crate) fn other_keys(format: &str, record: &str) -> Vec<SessionKey> {
    let others = writings::others(record);
    let key = |text: &String| SessionKey::new(format!("{format}-{}", short_hash(text)));
    others.iter().map(key).collect()
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

/// Markers around text that agent-memory gave to an agent.
const OWN: (&str, &str) = ("<agent-memory>", "</agent-memory>");

/// Returns whether a message is only text that agent-memory gave to the agent, perhaps below a heading of the agent. Such
/// text repeats what the log has, so it is neither searched nor counted.
pub(crate) fn is_own(message: &Message) -> bool {
    let mut text = String::new();
    for part in &message.parts {
        let Part::Text { text: one } = part else {
            return false;
        };
        text.push_str(one);
        text.push('\n');
    }
    let (mut rest, mut found) = (text.as_str(), false);
    let mut around = String::new();
    while let Some((before, behind)) = rest.split_once(OWN.0) {
        let Some((_, behind)) = behind.split_once(OWN.1) else {
            break;
        };
        around.push_str(before);
        (rest, found) = (behind, true);
    }
    around.push_str(rest);
    let around = around.trim();
    let is_heading = message.role == Role::Tool && !around.contains('\n');
    // A model that repeats such text says it itself.
    let is_given = message.kind == EntryKind::Message && message.role != Role::Assistant;
    found && is_given && (around.is_empty() || is_heading)
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
    /// The first messages. The others are in the overflow.
    pub(crate) messages: Vec<Message>,
    overflowed: Overflowed,
    /// Whether a message came that is no note.
    has_message: bool,
    /// Hash of the first line with each id, by the id's hash.
    ids: HashMap<Digest16, [u8; 8]>,
    /// Hashes of the other lines with each id, in order.
    repeated: HashMap<Digest16, Vec<[u8; 8]>>,
    /// Number of times that each line without an id came.
    ordinals: HashMap<Digest16, u64>,
    duplicates: u64,
    summaries: Vec<SourceSummary>,
    given: BTreeSet<String>,
    later_keys: Vec<(String, SessionKey)>,
}

impl SessionBuilder {
    /// Creates a conversation without entries.
    pub fn new(origin: Origin) -> Self {
        Self::within(origin, Overflow::default())
    }

    /// Creates a conversation of a source that is read with these options. It keeps messages in memory within
    /// [`ReadOptions::with_overflow`].
    pub fn with_options(origin: Origin, options: &ReadOptions) -> Self {
        Self::within(origin, options.overflow.clone())
    }

    fn within(origin: Origin, overflow: Overflow) -> Self {
        Self {
            origin,
            messages: Vec::new(),
            overflowed: Overflowed::new(overflow),
            has_message: false,
            ids: HashMap::new(),
            repeated: HashMap::new(),
            ordinals: HashMap::new(),
            duplicates: 0,
            summaries: Vec::new(),
            given: BTreeSet::new(),
            later_keys: Vec::new(),
        }
    }

    /// Creates another empty conversation of the same source.
    pub(crate) fn sibling(&self) -> Self {
        Self::within(Origin::Root, self.overflowed.overflow().clone())
    }

    /// Creates an empty branch of this conversation. It continues the numbers of records without ids.
    pub(crate) fn branch(&self) -> Self {
        Self {
            ordinals: self.ordinals.clone(),
            ..self.sibling()
        }
    }

    /// Returns whether the conversation has only notes so far.
    ///
    /// A summary that comes next is then the only trace of older entries, because a program that rewrites its files put
    /// the summary in the place of all entries before it.
    pub(crate) fn is_without_messages(&self) -> bool {
        !self.has_message
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.messages.len() + self.overflowed.len()
    }

    /// Returns what is known of an entry without reading its message.
    pub(crate) fn head(&self, at: usize) -> Option<EntryHead<'_>> {
        match self.messages.get(at) {
            Some(message) => Some(EntryHead {
                id: message.external_id.as_deref(),
                kind: message.kind,
                by_place: is_by_place(message, &self.given),
            }),
            None => self.overflowed.head(at - self.messages.len()),
        }
    }

    /// Returns the external id of the last of the first `count` entries.
    pub(crate) fn id_before(&self, count: usize) -> Option<String> {
        let last = self.head(count.checked_sub(1)?)?;
        last.id.map(str::to_owned)
    }

    /// Returns a message. One that cannot be read from the overflow is passed over here, because the reading of the
    /// finished conversation fails then.
    pub(crate) fn message(&self, at: usize) -> Option<Cow<'_, Message>> {
        match self.messages.get(at) {
            Some(message) => Some(Cow::Borrowed(message)),
            None => {
                let found = self.overflowed.read(at - self.messages.len());
                found.ok()?.map(Cow::Owned)
            }
        }
    }

    /// Adds the message of a record and returns its external id, or `None` if an equal record with the same id came
    /// before. `own` is the record's id, and `line` its text as it came.
    ///
    /// If another record has the same id, the new one gets `#2`, `#3` … appended to its id. A record without an id gets
    /// `h-`, 16 hex digits of its hash, `-`, and its ordinal among equal records.
    pub fn push(&mut self, message: Message, own: Option<String>, line: &str) -> Option<String> {
        let id = self.new_id(own, line)?;
        let keeps = self.keeps(line);
        self.add(message, id.clone(), keeps);
        Some(id)
    }

    /// Returns the external id of a record, or `None` if an equal record with the same id came before.
    pub(crate) fn new_id(&mut self, own: Option<String>, line: &str) -> Option<String> {
        let digest_of_line = digest(line);
        let is_made = |own: &&String| MadeId::parse(own).is_some();
        if let Some(own) = own.as_ref().filter(is_made) {
            self.given.insert(own.clone());
        }
        let wanted = own.unwrap_or_else(|| {
            let ordinal = self.ordinals.entry(digest_of_line).or_default();
            *ordinal += 1;
            format!("h-{}-{ordinal}", hex(&digest_of_line))
        });
        let [a, b, c, d, e, f, g, h, ..] = digest_of_line;
        let hash = [a, b, c, d, e, f, g, h];
        let key = digest(&wanted);
        let first = match self.ids.entry(key) {
            Entry::Vacant(new) => {
                new.insert(hash);
                return Some(wanted);
            }
            Entry::Occupied(known) => *known.get(),
        };
        let others = self.repeated.entry(key).or_default();
        if first == hash || others.contains(&hash) {
            self.duplicates += 1;
            return None;
        }
        others.push(hash);
        let numbered = (others.len() + 1..).map(|ordinal| format!("{wanted}#{ordinal}"));
        for id in numbered {
            if let Entry::Vacant(new) = self.ids.entry(digest(&id)) {
                new.insert(hash);
                return Some(id);
            }
        }
        None
    }

    /// Returns whether memory keeps the next message, of this record. The overflow takes it otherwise.
    pub(crate) fn keeps(&self, line: &str) -> bool {
        self.overflowed.overflow().keeps(line.len())
    }

    /// Adds a message with a [new id](Self::new_id).
    pub(crate) fn add(&mut self, mut message: Message, id: String, keeps: bool) {
        if is_own(&message) {
            message.kind = EntryKind::Note;
        }
        self.has_message |= message.kind == EntryKind::Message;
        message.external_id = Some(id);
        if !keeps {
            let by_place = is_by_place(&message, &self.given);
            return self.overflowed.push(&message, by_place);
        }
        self.messages.push(message);
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
            overflowed: self.overflowed,
            duplicates: self.duplicates,
            summaries: self.summaries,
            given: self.given,
            named: true,
            other_keys: Vec::new(),
            linked: false,
            in_use: false,
            last: None,
            later_keys: self.later_keys,
            copied_from: None,
            stands_for: None,
            since: None,
            whole: false,
            is_separate: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_made_id;

    fn ids(lines: &[(Option<&str>, &str)]) -> Vec<Option<String>> {
        let mut session = SessionBuilder::new(Origin::Root);
        lines
            .iter()
            .map(|(own, line)| session.push(Message::user("x"), own.map(str::to_owned), line))
            .collect()
    }

    #[test]
    fn text_of_agent_memory_is_a_note() {
        let card = "<agent-memory>\nThe state.\n</agent-memory>";
        let heading = Part::text("Context from the hook SessionStart:compact:");
        for (message, is_note) in [
            (Message::user(card), true),
            (Message::user(format!("{card}\n{card}\n")), true),
            (
                Message::new(Role::Tool, vec![heading, Part::text(card)]),
                true,
            ),
            (Message::user(format!("Why does it say {card}?")), false),
            (Message::user("<agent-memory> is a tag"), false),
            (Message::assistant(card), false),
            (Message::user("plain"), false),
        ] {
            let mut session = SessionBuilder::new(Origin::Root);
            session.push(message.clone(), None, "line");
            let log = session.finish(SessionKey::new("s"));
            let is_message = log.messages[0].kind == EntryKind::Message;
            assert_eq!(!is_message, is_note, "{message:?}");
        }
    }

    #[test]
    fn equal_lines_without_id_are_told_apart_by_ordinal() {
        let found = ids(&[(None, "a"), (None, "b"), (None, "a")]);
        let hash = short_hash("a");
        assert_eq!(found[0], Some(format!("h-{hash}-1")));
        assert_eq!(found[2], Some(format!("h-{hash}-2")));
    }

    #[test]
    fn made_ids_are_read_as_they_are_written() {
        let hash = "0123456789abcdef";
        for id in [format!("h-{hash}-7"), format!("h-{hash}-7+{hash}")] {
            let made = MadeId::parse(&id).unwrap();
            assert_eq!((made.hash, made.number), (hash, 7));
            assert_eq!(made.source.is_some(), id.contains('+'));
            assert_eq!(made.to_string(), id);
            assert!(is_made_id(&id));
        }
        for id in [
            "h-0123-7",
            "h-0123456789abcdef-",
            "h-0123456789abcdef-7+2",
            "h-0123456789abcdef-+7",
        ] {
            assert!(!is_made_id(id), "{id}");
        }
    }

    #[test]
    fn only_records_without_an_id_and_a_time_are_told_by_their_place() {
        let timed = || Message::user("x").with_created_at(memory_model::Timestamp(1));
        let given = "h-0123456789abcdef-1".to_owned();
        let mut session = SessionBuilder::new(Origin::Root);
        session.push(Message::user("x"), None, "a");
        session.push(timed(), None, "b");
        session.push(Message::user("x"), Some("own".to_owned()), "c");
        session.push(Message::user("x"), Some(given), "d");
        let log = session.finish(SessionKey::new("s"));
        let by_place: Vec<bool> = log.heads().map(|head| head.by_place).collect();
        assert_eq!(by_place, [true, false, false, false]);
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
