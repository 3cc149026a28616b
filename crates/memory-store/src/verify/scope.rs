//! The part of its family that a conversation sees: ranges of logs, and summaries.

use std::collections::BTreeMap;

use memory_model::{ConversationId, Hash, Seq, SeqRange, Summary, SummaryId};

use crate::inherit::SummaryScope;

/// One entry of a log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) seq: Seq,
    /// As recorded; `None` if the entry cannot be read.
    pub(super) hash: Option<Hash>,
    /// Running sum of tokens, as recorded.
    pub(super) running: u64,
}

/// Facts about a summary that the other checks need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) conversation: ConversationId,
    pub(super) range: SeqRange,
    pub(super) depth: u32,
    pub(super) tokens: u64,
    pub(super) hash: Hash,
}

/// Facts read about a family so far.
#[derive(Debug, Default)]
pub(super) struct Family {
    members: BTreeMap<ConversationId, Member>,
    /// Facts about summaries by id. Several conversations may have made the same summary.
    summaries: BTreeMap<SummaryId, Vec<Facts>>,
}

#[derive(Debug)]
struct Member {
    /// The parent and the last shared position, for a fork.
    fork: Option<(ConversationId, Seq)>,
    /// Entries of its own log by rising position.
    log: Vec<Known>,
}

impl Family {
    pub(super) fn contains(&self, conversation: ConversationId) -> bool {
        self.members.contains_key(&conversation)
    }

    /// Adds a conversation with an empty log, and forgets earlier facts about it.
    pub(super) fn put(
        &mut self,
        conversation: ConversationId,
        fork: Option<(ConversationId, Seq)>,
    ) {
        let log = Vec::new();
        let member = Member { fork, log };
        if self.members.insert(conversation, member).is_some() {
            self.summaries.retain(|_, owners| {
                owners.retain(|facts| facts.conversation != conversation);
                !owners.is_empty()
            });
        }
    }

    pub(super) fn put_log(&mut self, conversation: ConversationId, log: Vec<Known>) {
        if let Some(member) = self.members.get_mut(&conversation) {
            member.log = log;
        }
    }

    pub(super) fn put_summary(&mut self, conversation: ConversationId, summary: &Summary) {
        let facts = Facts {
            conversation,
            range: summary.range,
            depth: summary.depth,
            tokens: summary.tokens,
            hash: summary.hash,
        };
        let owners = self.summaries.entry(summary.id.clone()).or_default();
        owners.push(facts);
    }

    /// The part that a conversation sees, up to `head`.
    pub(super) fn scope(&self, conversation: ConversationId, head: Seq) -> Scope<'_> {
        let mut scope = vec![SummaryScope::own(conversation)];
        let mut pieces = Vec::new();
        let mut last = head;
        while let Some(nearest) = scope.last().copied() {
            let Some(member) = self.members.get(&nearest.conversation) else {
                break;
            };
            let first = member.fork.map_or(Seq::FIRST, |(_, at)| at.next());
            if let Some(range) = SeqRange::new(first, last) {
                pieces.push((range, nearest.conversation));
            }
            let Some((parent, at)) = member.fork.filter(|(p, _)| *p < nearest.conversation) else {
                break;
            };
            scope.push(nearest.parent(parent, at));
            last = last.min(at);
        }
        pieces.reverse();
        Scope {
            family: self,
            scope,
            pieces,
        }
    }

    fn log(&self, conversation: ConversationId) -> &[Known] {
        let member = self.members.get(&conversation);
        member.map_or(&[], |member| &member.log)
    }
}

/// The part of a family that one conversation sees.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    family: &'a Family,
    /// Itself first; numbers fall.
    scope: Vec<SummaryScope>,
    /// Ranges with the conversations that own their logs, by rising position.
    pieces: Vec<(SeqRange, ConversationId)>,
}

impl Scope<'_> {
    /// The hashes of all entries in a range; `None` if one is missing.
    pub(super) fn hashes(&self, range: SeqRange) -> Option<Vec<Hash>> {
        let mut hashes = Vec::new();
        let from = self.pieces.partition_point(|(p, _)| p.last < range.first);
        for (piece, source) in self.pieces.get(from..)? {
            let Some(part) = piece.intersect(&range) else {
                break;
            };
            let log = self.family.log(*source);
            let from = log.partition_point(|known| known.seq < part.first);
            let to = log.partition_point(|known| known.seq <= part.last);
            hashes.extend(log.get(from..to)?.iter().filter_map(|known| known.hash));
        }
        (hashes.len() as u64 == range.len()).then_some(hashes)
    }

    /// The recorded running sum at a position, or at the last entry before it that is there.
    pub(super) fn running(&self, seq: Seq) -> u64 {
        let to = self.pieces.partition_point(|(piece, _)| piece.first <= seq);
        let pieces = self.pieces.get(..to).unwrap_or_default();
        let found = pieces.iter().rev().find_map(|(piece, source)| {
            let log = self.family.log(*source);
            let after = log.partition_point(|known| known.seq <= seq.min(piece.last));
            log.get(after.checked_sub(1)?)
        });
        found.map_or(0, |known| known.running)
    }

    /// The cost of the messages of a range, in tokens.
    pub(super) fn cost(&self, range: SeqRange) -> u64 {
        self.running(range.last)
            .saturating_sub(self.running(range.first.prev()))
    }

    /// The visible summary with this id: if there are several, the nearest.
    pub(super) fn summary(&self, id: &SummaryId) -> Option<&Facts> {
        let owners = self.family.summaries.get(id)?;
        let seen = owners.iter().filter(|facts| {
            let place = self
                .scope
                .binary_search_by(|scope| facts.conversation.cmp(&scope.conversation));
            place
                .ok()
                .and_then(|place| self.scope.get(place))
                .is_some_and(|scope| scope.sees(facts.range))
        });
        seen.max_by_key(|facts| facts.conversation)
    }
}
