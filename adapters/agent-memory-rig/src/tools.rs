//! Definitions of tools, and usage.

use agent_memory::tokens::Usage;
use agent_memory::{RawJson, ToolDefinition};
use rig_core::completion::message::{EmptyToolName, ToolName};
use rig_core::completion::{ToolDefinition as RigTool, Usage as RigUsage};
use serde_json::{Value, json};

/// Returns rig's definition of a tool.
///
/// # Errors
/// When the tool has no name: rig's tools have one.
pub fn to_rig_tool(tool: &ToolDefinition) -> Result<RigTool, EmptyToolName> {
    let parameters: Value = serde_json::from_str(tool.parameters.as_str())
        // JSON that nests too deeply for a value describes no arguments that a provider accepts.
        .unwrap_or_else(|_| json!({"type": "object"}));
    let description = tool.description.clone().unwrap_or_default();
    let name = ToolName::new(tool.name.as_str())?;
    Ok(RigTool::new(name, description, parameters))
}

/// Returns the definition of one of rig's tools, which `OpenSession::tools` counts and keeps room for.
pub fn from_rig_tool(tool: &RigTool) -> ToolDefinition {
    let parameters = RawJson::from_value(&tool.parameters)
        // A value is always JSON.
        .unwrap_or_else(|_| RawJson::from_raw(serde_json::value::RawValue::NULL));
    let definition = ToolDefinition::new(tool.name.as_str(), parameters);
    match tool.description.as_str() {
        "" => definition,
        description => definition.with_description(description),
    }
}

/// Returns the usage that rig reports; `None` without a count of the input.
///
/// rig's input includes what was read from the prompt cache and written to it; here these are counted
/// apart.
pub fn from_rig_usage(usage: &RigUsage) -> Option<Usage> {
    let cache_read = usage.cached_input_tokens.unwrap_or(0);
    let cache_write = usage.cache_creation_input_tokens.unwrap_or(0);
    let cached = cache_read.saturating_add(cache_write);
    Some(Usage {
        input: usage.input_tokens?.saturating_sub(cached),
        output: usage.output_tokens.unwrap_or(0),
        cache_read,
        cache_write,
        total: usage.total_tokens,
    })
}

/// Returns rig's usage.
pub fn to_rig_usage(usage: &Usage) -> RigUsage {
    let mut rigs = RigUsage::new();
    rigs.input_tokens = Some(
        usage
            .input
            .saturating_add(usage.cache_read)
            .saturating_add(usage.cache_write),
    );
    rigs.output_tokens = Some(usage.output);
    rigs.cached_input_tokens = (usage.cache_read > 0).then_some(usage.cache_read);
    rigs.cache_creation_input_tokens = (usage.cache_write > 0).then_some(usage.cache_write);
    rigs.total_tokens = usage.total;
    rigs
}
