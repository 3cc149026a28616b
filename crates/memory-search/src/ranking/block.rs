//! Blocks of neighbouring documents, with the properties that they have in common.

use std::ops::Range;

use memory_model::Timestamp;

/// Documents in a block.
pub(super) const BLOCK: usize = 64;

/// The properties of a document that are kept.
#[derive(Debug)]
pub(super) struct Entry {
    /// Number of the participant.
    pub(super) participant: Option<u32>,
    /// Whether a user wrote it.
    pub(super) is_users: bool,
    pub(super) created_at: Timestamp,
    /// Number of the episode.
    pub(super) episode: u32,
    pub(super) question_share: f64,
    pub(super) asks: bool,
    pub(super) first_person: bool,
    pub(super) names_time: bool,
}

/// The properties that some neighbouring documents have in common. They bound the documents' scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// The least number of terms of one.
    pub(super) least_length: u32,
    /// The first and the last of the episodes.
    pub(super) episodes: (u32, u32),
    /// A bit for each participant; several may share one.
    participants: u64,
    pub(super) has_users: bool,
    pub(super) has_first_person: bool,
    pub(super) has_time: bool,
    pub(super) has_question: bool,
}

impl Block {
    /// Whether a document of the block may be this participant's.
    pub(super) fn may_be_by(&self, participant: u32) -> bool {
        self.participants & bit(participant) != 0
    }

    /// Adds a document of `length` terms to the block that it belongs to.
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

/// The bit of a participant.
fn bit(participant: u32) -> u64 {
    1 << (participant % 64)
}

/// The documents of a block, out of `all`.
pub(super) fn documents(block: usize, all: usize) -> Range<usize> {
    let start = block * BLOCK;
    start.min(all)..(start + BLOCK).min(all)
}
