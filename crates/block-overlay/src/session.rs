//! Agent loops, and the session that holds them.

use memory_model::Message;
use serde::{Deserialize, Serialize};
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};

use crate::block::{CompactedSection, CompactionBlock, Omission, TurnRange};
use crate::error::{Error, Result};
use crate::turns::TurnMap;

/// One run of an agent loop: its original messages, which compaction never changes, and its compacted form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopRecord {
    /// Id of the loop.
    pub loop_id: String,
    /// Id of the loop that precedes this one; `None` for a first loop.
    #[serde(default)]
    pub parent_loop_id: Option<String>,
    /// Messages of the loop, in order.
    #[serde(default)]
    pub messages: Vec<Message>,
    /// Compacted form of the loop, which contexts show; `None` to show the messages.
    #[serde(
        default,
        alias = "compactionBlock",
        skip_serializing_if = "Option::is_none"
    )]
    pub compaction_block: Option<CompactionBlock>,
}

impl LoopRecord {
    /// Counts turns as left out.
    pub(crate) fn omission(
        &self,
        turn_map: &TurnMap,
        turns: TurnRange,
        estimator: &dyn TokenEstimator,
    ) -> Omission {
        let messages = turn_map.messages_for_range(turns, &self.messages);
        Omission {
            loop_id: self.loop_id.clone(),
            turns,
            messages: messages.len(),
            tokens: estimator.messages(messages),
        }
    }

    /// Returns the summary of the whole loop if the loop has the block of an older loop: one section, over all of its
    /// turns and messages.
    pub(crate) fn whole_summary(&self) -> Option<&CompactedSection> {
        let block = self.compaction_block.as_ref()?;
        let is_covered = |covered| covered == self.messages.len();
        let is_alone = block.keep_first.is_none()
            && block.keep_recent.is_none()
            && block.covered_messages.is_none_or(is_covered);
        let turns = || 0..TurnMap::of_loop(&self.messages).turn_count();
        let summary = block.keep_compacted.as_ref();
        summary.filter(|summary| is_alone && summary.range.indices() == turns())
    }
}

/// The loops of one session.
///
/// Each loop gives the id of its parent, so branches and reruns form a tree. The loops from a first loop to a given one
/// are the [chain](Self::chain) of the given loop. A parent comes before its children.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopSession {
    /// Id of the session.
    pub session_id: String,
    /// Loops of the session, in the order in which they began.
    #[serde(default)]
    pub loops: Vec<LoopRecord>,
}

impl LoopSession {
    /// Returns the loop with the id `loop_id`; `None` if the session has none.
    pub fn get(&self, loop_id: &str) -> Option<&LoopRecord> {
        self.loops.iter().rfind(|record| record.loop_id == loop_id)
    }

    /// Returns the loop with the id `loop_id`, to be changed; `None` if the session has none.
    pub fn get_mut(&mut self, loop_id: &str) -> Option<&mut LoopRecord> {
        let mut newest_first = self.loops.iter_mut().rev();
        newest_first.find(|record| record.loop_id == loop_id)
    }

    /// Returns the loops from the first one to `loop_id`, oldest first. A parent that does not come before its child
    /// ends the chain.
    ///
    /// # Errors
    /// [`Error::UnknownLoop`] if the session has no loop `loop_id`.
    pub fn chain(&self, loop_id: &str) -> Result<Vec<&LoopRecord>> {
        let mut chain = Vec::new();
        let mut next = Some(loop_id);
        for record in self.loops.iter().rev() {
            if next == Some(record.loop_id.as_str()) {
                next = record.parent_loop_id.as_deref();
                chain.push(record);
            }
        }
        chain.reverse();
        match chain.is_empty() {
            false => Ok(chain),
            true => Err(Error::UnknownLoop {
                session_id: self.session_id.clone(),
                loop_id: loop_id.to_owned(),
            }),
        }
    }
}
