//! Making the blocks of a session: which loops are in scope, and which need a new block.

use memory_model::Timestamp;
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};

use crate::block::CompactionBlock;
use crate::config::{BlockCompactionStrategy, BlockInput};
use crate::config::{CompactionConfig, CompactionScope};
use crate::error::Result;
use crate::layout::LoopLayout;
use crate::loops::LoopRecord;
use crate::message::LoopMessage;
use crate::session::LoopSession;

/// What compacting a session and building a context of it depend on, besides the session.
#[derive(Debug)]
#[non_exhaustive]
pub struct BlockSettings<'a, M> {
    /// How to compact.
    pub config: &'a CompactionConfig<M>,
    /// Maximum cost of a context, in tokens.
    pub max_context_tokens: u64,
    /// Counts tokens.
    pub estimator: &'a dyn TokenEstimator,
    /// The time that blocks get.
    pub now: Timestamp,
}

impl<'a, M> BlockSettings<'a, M> {
    /// Creates the settings.
    pub fn new(
        config: &'a CompactionConfig<M>,
        max_context_tokens: u64,
        estimator: &'a dyn TokenEstimator,
        now: Timestamp,
    ) -> Self {
        Self {
            config,
            max_context_tokens,
            estimator,
            now,
        }
    }
}

/// A block that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockMade {
    /// Id of the loop.
    pub loop_id: String,
    /// Cost of the loop's messages, in tokens.
    pub source_tokens: u64,
    /// Cost of what the block shows, in tokens; messages that are shown as they are count too.
    pub tokens: u64,
}

/// Makes the blocks of the newest loop of a chain and of the older loops in scope, and returns those that
/// it made, newest first.
///
/// The newest loop always gets a new block. An older one gets a block over all of its turns, unless it
/// has one: a block that was made while it was the newest is made again. Messages never change, and
/// nothing changes where a block cannot be made.
///
/// # Errors
/// [`ErrorKind::UnknownLoop`](crate::ErrorKind::UnknownLoop), and those of the strategy.
pub async fn compact_session_loops<M: LoopMessage>(
    session: &mut LoopSession<M>,
    current_loop_id: &str,
    strategy: &dyn BlockCompactionStrategy<M>,
    settings: &BlockSettings<'_, M>,
) -> Result<Vec<BlockMade>> {
    let current = session.require(current_loop_id)?;
    let mut made = vec![make_block(current, true, strategy, settings).await?];
    let older = resolve_scope(session, current_loop_id, settings);
    for record in session.ancestors(current_loop_id).skip(1).take(older) {
        if has_whole_block(record, settings.config) || record.messages.is_empty() {
            continue;
        }
        made.push(make_block(record, false, strategy, settings).await?);
    }
    let mut report = Vec::with_capacity(made.len());
    for (one, block) in made {
        session.update(&one.loop_id, |record| record.compaction_block = Some(block));
        report.push(one);
    }
    Ok(report)
}

/// Whether an older loop's block stands for all of its turns.
pub(crate) fn has_whole_block<M: LoopMessage>(
    record: &LoopRecord<M>,
    config: &CompactionConfig<M>,
) -> bool {
    record.compaction_block.as_ref().is_some_and(|block| {
        let layout = LoopLayout::new(&record.messages, config.turn_rule);
        block.is_whole(layout.turns().count(), record.messages.len())
    })
}

async fn make_block<M: LoopMessage>(
    record: &LoopRecord<M>,
    is_most_recent: bool,
    strategy: &dyn BlockCompactionStrategy<M>,
    settings: &BlockSettings<'_, M>,
) -> Result<(BlockMade, CompactionBlock<M>)> {
    let layout = LoopLayout::new(&record.messages, settings.config.turn_rule);
    let input = BlockInput::new(
        record,
        &layout,
        settings.config,
        is_most_recent,
        settings.estimator,
        settings.now,
    );
    let block = strategy.compact(&input).await?;
    let estimator = settings.estimator;
    let shown = block.keep_first.map(|range| input.messages(range));
    let sections = [&block.keep_compacted, &block.keep_recent];
    let sections = sections
        .into_iter()
        .flatten()
        .map(|section| section.messages.as_slice());
    let shown = shown.into_iter().chain(sections);
    let made = BlockMade {
        loop_id: record.loop_id.clone(),
        source_tokens: estimator.messages(&record.messages),
        tokens: shown.map(|messages| estimator.messages(messages)).sum(),
    };
    Ok((made, block))
}

/// Returns how many loops before the given one are in scope, at most as many as there are. Parents that
/// the session does not have end the chain.
pub fn resolve_scope<M: LoopMessage>(
    session: &LoopSession<M>,
    current_loop_id: &str,
    settings: &BlockSettings<'_, M>,
) -> usize {
    let older = session.ancestors(current_loop_id).skip(1);
    let cost: &dyn Fn(&LoopRecord<M>) -> u64 = match settings.config.compaction_scope {
        CompactionScope::FixedCount(count) => return older.take(count).count(),
        CompactionScope::TokenBudget => &|record| compacted_cost(record, settings),
        CompactionScope::TokenBudgetRaw => &|record| settings.estimator.messages(&record.messages),
    };
    let mut rest = settings.max_context_tokens;
    older
        .take_while(|record| match rest.checked_sub(cost(record)) {
            Some(left) => {
                rest = left;
                true
            }
            None => false,
        })
        .count()
}

/// What an older loop costs once it is compacted, in tokens, as far as that is known before.
fn compacted_cost<M: LoopMessage>(record: &LoopRecord<M>, settings: &BlockSettings<'_, M>) -> u64 {
    let whole = has_whole_block(record, settings.config);
    let block = record.compaction_block.as_ref().filter(|_| whole);
    match block.and_then(|block| block.keep_compacted.as_ref()) {
        Some(section) => settings.estimator.messages(&section.messages),
        None => {
            let most = settings.config.max_summary_tokens;
            settings.estimator.messages(&record.messages).min(most)
        }
    }
}
