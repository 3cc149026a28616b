//! Blocks of 64 neighbouring documents (messages or summaries), with bounds for their properties. A search skips a
//! block if the bounds exclude a high score.

use std::ops::Range;

use memory_model::Timestamp;

/// Number of documents (messages or summaries) in a block. A search computes an upper bound of the scores in a block,
/// and skips the block if the bound is low.
pub(super) const BLOCK: usize = 64;

/// The properties of a document that a corpus keeps.
#[derive(Debug)]
pub(super) struct Entry {
    /// Number of the participant who wrote the message. `None` for a message without a name, and for a summary.
    pub(super) participant: Option<u32>,
    /// Whether the message has the role `user`.
    pub(super) is_users: bool,
    pub(super) created_at: Timestamp,
    /// Number of the document's episode: messages without a long pause between them.
    pub(super) episode: u32,
    pub(super) question_share: f64,
    pub(super) asks: bool,
    pub(super) first_person: bool,
    pub(super) names_time: bool,
}

/// Properties of a block of 64 neighbouring documents, which give upper bounds for their scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Smallest number of terms in a document.
    pub(super) least_length: u32,
    /// Numbers of the first and the last episode.
    pub(super) episodes: (u32, u32),
    /// Participants as bits. Several participants may share a bit.
    participants: u64,
    pub(super) has_users: bool,
    pub(super) has_first_person: bool,
    pub(super) has_time: bool,
    pub(super) has_question: bool,
}

impl Block {
    /// Returns whether a document of the block may be by this participant.
    pub(super) fn may_be_by(&self, participant: u32) -> bool {
        self.participants & bit(participant) != 0
    }

    /// Adds document `number`, which has `length` terms, to its block. Begins a new block if needed.
    pub(super) fn add(blocks: &mut Vec<Block>, number: usize, entry: &Entry, length: u32) {
        if number / BLOCK == blocks.len() {
            blocks.push(Block {
                least_length: u32::MAX,
                episodes: (entry.episode, entry.episode),
                participants: 0,
                has_users: false,
                has_first_person: false,
                has_time: false,
                has_question: false,
            });
        }
        if let Some(block) = blocks.last_mut() {
            block.least_length = block.least_length.min(length);
            block.episodes.1 = entry.episode;
            block.participants |= entry.participant.map_or(0, bit);
            block.has_users |= entry.is_users;
            block.has_first_person |= entry.first_person;
            block.has_time |= entry.names_time;
            block.has_question |= entry.asks;
        }
    }
}

/// Returns the bit of a participant.
fn bit(participant: u32) -> u64 {
    1 << (participant % 64)
}

/// Returns the numbers of the documents in the block with the number `block`, in a corpus of `all` documents. Each
/// block has 64 neighbouring documents, except the last one.
pub(super) fn documents(block: usize, all: usize) -> Range<usize> {
    let start = block * BLOCK;
    start.min(all)..(start + BLOCK).min(all)
}
