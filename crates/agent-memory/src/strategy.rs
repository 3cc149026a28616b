//! Strategies of compaction, and their planners.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use block_overlay::planner::{BlockPlanner, BlockPolicy};
use compaction_plan::{ClearingPlanner, Planner};
use dag_compactor::{DagPlanner, DagPolicy};
use handoff_compactor::{HandoffPlanner, HandoffPolicy, LiveHandoffPolicy};
use memory_model::RawJson;
use memory_store::FullStore;
use serde::{Deserialize, Serialize};
use turn_map::ClearPolicy;

use crate::defaults::default_conventions;
use crate::error::{Error, ErrorKind, Result};

/// Key under which the store keeps a session's strategy.
const KEY: &str = "strategy";

/// Method of compacting a session. Each strategy has a separate view over the same log, so that a session can change
/// its strategy at any time without loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strategy {
    /// A DAG of summaries: leaves summarize messages, and condensed summaries summarize summaries. The view (the
    /// compacted log) is named `dag`.
    #[default]
    Dag,
    /// One rolling summary, followed by the last messages. The view (the compacted log) is named `handoff`.
    Handoff,
    /// One block for each of the agent's last loops. A loop is one run of the agent, such as a prompt with the turns up
    /// to its answer. The block of the last loop shows the first turns, a summary, and recent turns with shortened tool
    /// output. The block of an earlier loop is a summary. Older loops are left out and counted. The view (the compacted
    /// log) is named `blocks`.
    Blocks,
}

impl Strategy {
    /// All three strategies.
    pub const ALL: [Self; 3] = [Self::Dag, Self::Handoff, Self::Blocks];

    /// Returns the name of the strategy, which is also the name of its view.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dag => "dag",
            Self::Handoff => "handoff",
            Self::Blocks => "blocks",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Strategy {
    type Err = Error;

    /// Parses a strategy's name.
    ///
    /// # Errors
    /// `Invalid` for a name that is not in [`Strategy::ALL`].
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == name);
        found.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("there is no strategy {name}: the strategies are dag, handoff and blocks"),
            )
        })
    }
}

/// The planners of a memory. A planner selects the messages to compact.
#[derive(Debug)]
pub(crate) struct Planners {
    /// Planner for sessions that have no stored strategy.
    pub(crate) default: Arc<dyn Planner>,
    dag: Arc<dyn Planner>,
    handoff: Arc<dyn Planner>,
    handoff_policy: LiveHandoffPolicy,
    blocks: Arc<dyn Planner>,
}

impl Planners {
    pub(crate) fn new(
        dag: DagPolicy,
        handoff: LiveHandoffPolicy,
        blocks: BlockPolicy,
        strategy: Strategy,
        custom: Option<Arc<dyn Planner>>,
        clear: Option<&ClearPolicy>,
    ) -> Self {
        let clearing = |planner: Arc<dyn Planner>| -> Arc<dyn Planner> {
            match clear {
                Some(policy) => Arc::new(ClearingPlanner::new(planner, policy.clone())),
                None => planner,
            }
        };
        let dag = clearing(Arc::new(DagPlanner::new(dag)));
        let handoff_policy = handoff;
        let handoff = HandoffPlanner::live(handoff_policy.clone());
        let handoff = handoff.with_conventions(default_conventions());
        let handoff = clearing(Arc::new(handoff));
        let blocks = clearing(Arc::new(BlockPlanner::new(blocks)));
        let default = match (custom, strategy) {
            (Some(custom), _) => clearing(custom),
            (None, Strategy::Dag) => Arc::clone(&dag),
            (None, Strategy::Handoff) => Arc::clone(&handoff),
            (None, Strategy::Blocks) => Arc::clone(&blocks),
        };
        Self {
            default,
            dag,
            handoff,
            handoff_policy,
            blocks,
        }
    }

    /// Returns the current policy of handoffs.
    pub(crate) fn handoff_policy(&self) -> HandoffPolicy {
        self.handoff_policy.get()
    }

    pub(crate) fn planner(&self, strategy: Strategy) -> Arc<dyn Planner> {
        match strategy {
            Strategy::Dag => Arc::clone(&self.dag),
            Strategy::Handoff => Arc::clone(&self.handoff),
            Strategy::Blocks => Arc::clone(&self.blocks),
        }
    }
}

/// Reads a session's stored strategy; `None` if none is stored.
pub(crate) async fn chosen(
    store: &dyn FullStore,
    id: memory_model::ConversationId,
) -> Result<Option<Strategy>> {
    let Some(state) = store.state(id, KEY).await? else {
        return Ok(None);
    };
    let name: String = serde_json::from_str(state.value.as_str()).map_err(|error| {
        Error::new(
            ErrorKind::Store(memory_store::ErrorKind::Corrupt),
            format!("the stored strategy cannot be read: {error}; choose one again"),
        )
    })?;
    name.parse().map(Some)
}

/// Stores a session's strategy. If another process stores one at the same time, the later one counts.
pub(crate) async fn choose(
    store: &dyn FullStore,
    id: memory_model::ConversationId,
    strategy: Strategy,
) -> Result<()> {
    let value = RawJson::from_value(&strategy).map_err(|error| {
        Error::new(
            ErrorKind::Invalid,
            format!("the strategy {strategy} cannot be stored: {error}"),
        )
    })?;
    loop {
        let stored = store.state(id, KEY).await?;
        if stored.as_ref().is_some_and(|stored| stored.value == value) {
            return Ok(());
        }
        let revision = stored.map_or(0, |state| state.revision);
        match store.put_state(id, KEY, revision, Some(&value)).await {
            Err(error) if error.kind() == memory_store::ErrorKind::Stale => {}
            put => return Ok(put.map(drop)?),
        }
    }
}
