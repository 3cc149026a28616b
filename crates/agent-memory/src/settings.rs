//! Settings of a session handle.

use std::sync::Arc;

use compaction_plan::Planner;
use memory_model::ToolDefinition;

use crate::strategy::Strategy;
use crate::turn_policy::Window;

/// Settings of a session handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) window: Option<Window>,
    pub(crate) system: String,
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) strategy: Option<Strategy>,
    pub(crate) planner: Option<Arc<dyn Planner>>,
}
