//! Loops (runs of an agent's loop, each from a prompt to its answer), and the session that contains them.

use memory_model::Message;
use serde::{Deserialize, Serialize};
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};

use crate::block::{CompactedSection, CompactionBlock, Omission, TurnRange};
use crate::error::{Error, Result};
use crate::turns::TurnMap;

/// One run of an agent's loop, from a prompt to its answer: the original messages, which compaction never changes, and
/// their compacted form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopRecord {
    /// Id of this run of the agent's loop.
    pub loop_id: String,
    /// Id of the earlier run that this run continues. `None` for a first run.
    #[serde(default)]
    pub parent_loop_id: Option<String>,
    /// Messages of the run, in order.
    #[serde(default)]
    pub messages: Vec<Message>,
    /// Compacted form of the run, which contexts show instead of the messages. `None` to show the messages.
    #[serde(
        default,
        alias = "compactionBlock",
        skip_serializing_if = "Option::is_none"
    )]
    pub compaction_block: Option<CompactionBlock>,
}

impl LoopRecord {
    /// Returns an omission that counts the turns and their cost.
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

    /// Returns the summary of the whole run of the agent, if its block is one summary over all turns and messages.
    /// `None` if the run has no block. Also `None` if the block was made while the run was the last one, so that it has
    /// other sections, or before messages were added, so that it does not cover them.
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

/// The loops of one session. A loop is one run of the agent, from a prompt to its answer.
///
/// Each loop has the id of its parent, so branches and reruns form a tree. The [chain](Self::chain) of a loop is the
/// path from a first loop to this loop. A parent must come before its children in the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopSession {
    /// Id of the session.
    pub session_id: String,
    /// Loops of the session, in the order in which they began.
    #[serde(default)]
    pub loops: Vec<LoopRecord>,
}

impl LoopSession {
    /// Returns the loop (run of the agent) with the id `loop_id`. `None` if the session has no loop with this id.
    pub fn get(&self, loop_id: &str) -> Option<&LoopRecord> {
        self.loops.iter().rfind(|record| record.loop_id == loop_id)
    }

    /// Returns the loop (run of the agent) with the id `loop_id`, for changing it. `None` if the session has no loop
    /// with this id.
    pub fn get_mut(&mut self, loop_id: &str) -> Option<&mut LoopRecord> {
        let mut newest_first = self.loops.iter_mut().rev();
        newest_first.find(|record| record.loop_id == loop_id)
    }

    /// Returns the loop `loop_id` (a run of the agent), its parent (the loop that it continues), the parent's parent
    /// and so on, oldest first. A parent that does not come before its child in the list is ignored, so the chain
    /// begins with the child.
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
