//! Makes the blocks of a session: finds the loops in scope, and the loops that need a new block.

use crate::config::{BlockCompactionStrategy, CompactionConfig};
use crate::error::Result;
use crate::session::{LoopRecord, LoopSession};

/// Makes the blocks of a chain's last loop and of the older loops in scope, and stores them in the session. Returns the
/// ids of the loops that got a new block, the last loop first.
///
/// The last loop always gets a new block. An older loop gets a block over all of its turns, unless it already has such
/// a block: a block from the time when the loop was the last one is replaced. Messages never change. If one block
/// cannot be made, the session stays unchanged.
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

/// Returns the number of loops before `current_loop_id` that are in scope. It does not exceed the number of loops that
/// exist.
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

/// Number of loops in scope before the last one of the chain.
pub(crate) fn scope(chain: &[&LoopRecord], config: &CompactionConfig, budget: u64) -> usize {
    // Cost of an older loop after its compaction, as far as it is known before.
    let cost = |record: &&LoopRecord| match record.whole_summary() {
        Some(summary) => config.cost(&summary.messages),
        None => config.cost(&record.messages).min(config.max_summary_tokens),
    };
    let older = chain.iter().rev().skip(1);
    config.compaction_scope.count(older, budget, cost)
}
