//! A conversation of a session: the root, one of its forks, or a side chain.

use memory_model::Timestamp;

use crate::claude::contents::Contents;
use crate::claude::tree::Step;
use crate::session::SessionBuilder;

#[derive(Debug)]
pub(super) struct Chain {
    pub(super) log: SessionBuilder,
    /// Suffix of the session's key for a side chain or fork, or `None` for the root.
    pub(super) name: Option<String>,
    /// Index of the parent of the side chain or fork.
    pub(super) parent: usize,
    pub(super) start: Start,
    /// Lines of the root or a fork, one for each message.
    pub(super) steps: Vec<Step>,
    /// Lines of the tree that were written again, each with the number of lines that the chain showed by then.
    pub(super) again: Vec<(u32, Step)>,
    /// Contents of the messages in the overflow, for what a compaction writes again.
    pub(super) contents: Contents,
    /// Time of the newest message.
    pub(super) newest: Timestamp,
}

/// How a chain begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// At the start of the file, or with the call that started a side chain, as an index.
    Alone { call: Option<usize> },
    /// As a fork that shares this number of lines with its parent.
    Fork { shared: usize },
}

impl Chain {
    pub(super) fn new(
        log: SessionBuilder,
        parent: usize,
        name: Option<String>,
        start: Start,
    ) -> Self {
        Self {
            log,
            name,
            parent,
            start,
            steps: Vec::new(),
            again: Vec::new(),
            contents: Contents::default(),
            newest: Timestamp::default(),
        }
    }

    /// Returns the number of lines that the chain shows.
    pub(super) fn end(&self) -> usize {
        self.shared() + self.steps.len()
    }

    /// Returns the number of lines that the chain shares with its parent.
    pub(super) fn shared(&self) -> usize {
        match self.start {
            Start::Alone { .. } => 0,
            Start::Fork { shared } => shared,
        }
    }
}
