//! The logs and summaries of a family that have been read, and the part of them that one conversation sees.

use std::collections::BTreeMap;

use memory_model::{ConversationId, Hash, Seq, SeqRange, Summary, SummaryId};

use crate::inherit::SummaryScope;

/// Facts about one entry of a log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) seq: Seq,
    /// Recorded hash of the entry. `None` if the entry cannot be read.
    pub(super) hash: Option<Hash>,
    /// Recorded running sum: the cost of all entries up to and including this entry, in tokens.
    pub(super) running: u64,
}

/// Facts about a summary that the checks of other summaries and of views need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) conversation: ConversationId,
    pub(super) range: SeqRange,
    pub(super) depth: u32,
    pub(super) tokens: u64,
    pub(super) hash: Hash,
}

/// Facts about the conversations of a family that were read so far.
#[derive(Debug, Default)]
pub(super) struct Family {
    members: BTreeMap<ConversationId, Member>,
    /// Facts about summaries, by id. Several conversations may have made the same summary.
    summaries: BTreeMap<SummaryId, Vec<Facts>>,
}

#[derive(Debug)]
struct Member {
    /// Parent and last shared position of a fork. `None` for other conversations.
    fork: Option<(ConversationId, Seq)>,
    /// Entries of the conversation's own log, by rising position.
    log: Vec<Known>,
}

impl Family {
    pub(super) fn contains(&self, conversation: ConversationId) -> bool {
        self.members.contains_key(&conversation)
    }

    /// Adds a conversation with an empty log. If it was added before, removes its earlier log and summaries.
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

    /// Returns the part of the family that a conversation sees, up to position `head`.
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
    /// Scopes of the summaries that the conversation can use: its own first, then the inherited summaries of its
    /// parent, and so on.
    scope: Vec<SummaryScope>,
    /// Ranges of which the log of the conversation consists, each with the conversation that owns it, by rising
    /// position.
    pieces: Vec<(SeqRange, ConversationId)>,
}

impl Scope<'_> {
    /// Returns the hashes of all entries in a range. Returns `None` if a hash is missing.
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

    /// Returns the recorded running sum at a position. If the entry is missing, returns the sum at the last entry
    /// before it.
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

    /// Returns the recorded cost of the messages of a range, in tokens.
    pub(super) fn cost(&self, range: SeqRange) -> u64 {
        self.running(range.last)
            .saturating_sub(self.running(range.first.prev()))
    }

    /// Returns the summary with this id, made by the conversation or inherited from an ancestor. If several of them
    /// made it, the nearest one's is returned.
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
