//! Makes the blocks (compacted forms) of a session's loops (runs of the agent). Finds the loops to show, and the loops
//! that need a new block.

use crate::config::{BlockCompactionStrategy, CompactionConfig};
use crate::error::Result;
use crate::session::{LoopRecord, LoopSession};

/// Makes the blocks (compacted forms) of the agent's last loop and of the older loops in scope, and stores them in the
/// session. A loop is one run of the agent, from a prompt to its answer. [`CompactionConfig::compaction_scope`] selects
/// the older loops. Returns the ids of the loops that got a new block, the last loop first.
///
/// `current_loop_id` is the last loop. It always gets a new block. An older loop without a block gets one over all of
/// its turns. A block from the time when the loop was the last one is replaced. Messages never change. After an error,
/// the session is unchanged.
///
/// # Errors
/// [`Error::UnknownLoop`](crate::Error::UnknownLoop) if the session has no loop `current_loop_id`, and the errors of
/// the strategy.
pub async fn compact_session_loops(
    session: &mut LoopSession,
    current_loop_id: &str,
    strategy: &dyn BlockCompactionStrategy,
    config: &CompactionConfig,
    max_context_tokens: u64,
) -> Result<Vec<String>> {
    let chain = session.chain(current_loop_id)?;
    let older = scope(&chain, config, max_context_tokens);
    let mut blocks = Vec::new();
    for (age, record) in chain.iter().rev().take(older + 1).enumerate() {
        let is_most_recent = age == 0;
        if is_most_recent || (record.whole_summary().is_none() && !record.messages.is_empty()) {
            let block = strategy.compact(record, config, is_most_recent).await?;
            blocks.push((record.loop_id.clone(), block));
        }
    }
    let mut made = Vec::with_capacity(blocks.len());
    for (loop_id, block) in blocks {
        if let Some(record) = session.get_mut(&loop_id) {
            record.compaction_block = Some(block);
        }
        made.push(loop_id);
    }
    Ok(made)
}

/// Returns the number of loops (runs of the agent) before `current_loop_id` that are in scope: compacted and shown in
/// contexts. It is at most the number of loops before `current_loop_id`.
///
/// # Errors
/// [`Error::UnknownLoop`](crate::Error::UnknownLoop) if the session has no loop `current_loop_id`.
pub fn resolve_scope(
    session: &LoopSession,
    current_loop_id: &str,
    config: &CompactionConfig,
    max_context_tokens: u64,
) -> Result<usize> {
    let chain = session.chain(current_loop_id)?;
    Ok(scope(&chain, config, max_context_tokens))
}

/// Returns the number of older loops (runs of the agent) that are compacted and shown. `chain` are all loops up to the
/// last one, oldest first. `budget` is the maximum cost of a context, in tokens.
pub(crate) fn scope(chain: &[&LoopRecord], config: &CompactionConfig, budget: u64) -> usize {
    // Cost of an older loop after its compaction. Before the compaction, an upper bound.
    let cost = |record: &&LoopRecord| match record.whole_summary() {
        Some(summary) => config.cost(&summary.messages),
        None => config.cost(&record.messages).min(config.max_summary_tokens),
    };
    let older = chain.iter().rev().skip(1);
    config.compaction_scope.count(older, budget, cost)
}
