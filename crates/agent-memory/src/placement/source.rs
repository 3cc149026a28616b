//! The conversations of a transcript: each conversation with its forks, and the records that a conversation shows.

use std::collections::HashMap;

use memory_model::{EntryKind, LogEntry, Message, SessionKey};
use message_formats::{EntryHead, Origin, SessionLog};

use super::by_place::{self, is_erased};
use crate::error::Result;
use crate::error::unreadable;

/// Returns whether an entry names its predecessor, or may have named one before its words were erased.
pub(super) fn is_linked(entry: &LogEntry) -> bool {
    let is_message = entry.kind == EntryKind::Message && entry.external_id.is_some();
    is_message && (message_formats::is_linked(&entry.message) || is_erased(entry))
}

/// Beginnings of the ids that opencode makes.
const ORDERED: [&str; 2] = ["msg_", "prt_"];

/// Returns whether an entry is a message with an id of opencode.
pub(super) fn is_ordered(entry: &LogEntry) -> bool {
    let id = entry.external_id.as_deref().unwrap_or_default();
    entry.kind == EntryKind::Message && ORDERED.iter().any(|begin| id.starts_with(begin))
}

/// Returns whether a record of a source without a session name is the same as an entry of a log. Equal generated ids
/// are not sufficient, because two sources may both number their records from 1.
pub(super) fn is_same(message: &Message, entry: &LogEntry) -> bool {
    if message.external_id != entry.external_id {
        return false;
    }
    let is_made = |id: &String| message_formats::is_made_id(id);
    message.external_id.as_ref().is_none_or(is_made)
        || is_erased(entry)
        || (message.role == entry.role && message.text() == entry.text())
}

/// Returns the external id of a record; `None` if the record has none or the id was generated.
pub(super) fn own_id<'a>(head: &EntryHead<'a>) -> Option<&'a str> {
    head.id.filter(|id| !message_formats::is_made_id(id))
}

/// Position of a record in a source: the index of its conversation in the family, and its index in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) log: usize,
    pub(super) at: usize,
}

impl Place {
    pub(super) fn head<'a>(&self, family: &[&'a SessionLog]) -> Option<EntryHead<'a>> {
        family.get(self.log)?.head(self.at)
    }

    pub(super) fn id<'a>(&self, family: &[&'a SessionLog]) -> Option<&'a str> {
        self.head(family)?.id
    }

    /// Returns whether the record is the same as an entry of a log.
    pub(super) fn is(&self, family: &[&SessionLog], entry: &LogEntry) -> Result<bool> {
        let Some(log) = family.get(self.log) else {
            return Ok(false);
        };
        if self.id(family) != entry.external_id.as_deref() {
            return by_place::is_same(log, self.at, entry);
        }
        let read = log
            .entry(self.at)
            .map_err(|error| unreadable(log, &error))?;
        Ok(read.is_some_and(|message| is_same(&message, entry)))
    }
}

/// Groups the conversations of a source into families, in the order of the source. A family is a root or a sub-agent's
/// conversation, followed by its forks.
pub(super) fn families(logs: &[SessionLog]) -> Vec<Vec<&SessionLog>> {
    let mut families: Vec<Vec<&SessionLog>> = Vec::new();
    let mut family_of: HashMap<&SessionKey, usize> = HashMap::new();
    for log in logs {
        let family = match &log.origin {
            Origin::Fork { parent, .. } => family_of.get(parent).copied(),
            _ => None,
        };
        let family = family.unwrap_or_else(|| {
            families.push(Vec::new());
            families.len() - 1
        });
        family_of.insert(&log.key, family);
        if let Some(family) = families.get_mut(family) {
            family.push(log);
        }
    }
    families
}

/// Returns the records that a conversation of a family shows, in order. They include the records that it shares with
/// its parent.
pub(super) fn course(family: &[&SessionLog], index: usize) -> Vec<Place> {
    let mut shown: Vec<Place> = Vec::new();
    let mut until: Option<&str> = None;
    let mut next = Some(index);
    while let Some(index) = next {
        let Some(log) = family.get(index) else {
            break;
        };
        let count = match until {
            None => log.len(),
            Some(id) => {
                let last = log.heads().position(|head| head.id == Some(id));
                last.map_or(0, |last| last + 1)
            }
        };
        shown.extend((0..count).rev().map(|at| Place { log: index, at }));
        next = match &log.origin {
            Origin::Fork {
                parent,
                after: Some(after),
            } => {
                until = Some(after);
                // A fork comes after its parent.
                let before = family.get(..index).unwrap_or_default();
                before.iter().position(|log| log.key == *parent)
            }
            _ => None,
        };
    }
    shown.reverse();
    shown
}

/// Returns a fork's key in which `root`, the root's key in the store, replaces the root's key in the source.
pub(super) fn renamed(key: &SessionKey, family: &[&SessionLog], root: &SessionKey) -> SessionKey {
    let tail = family
        .first()
        .and_then(|first| key.as_str().strip_prefix(first.key.as_str()));
    tail.map_or_else(
        || key.clone(),
        |tail| SessionKey::new(format!("{root}{tail}")),
    )
}
