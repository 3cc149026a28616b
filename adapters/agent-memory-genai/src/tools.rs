//! Definitions of tools.

use agent_memory::{RawJson, ToolDefinition};
use genai::chat::Tool;
use serde_json::{Value, json};

/// Returns genai's tools for definitions of tools.
///
/// ```
/// use agent_memory_genai::agent_memory::{RawJson, ToolDefinition};
///
/// let schema = RawJson::parse(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#)?;
/// let read = ToolDefinition::new("read", schema).with_description("Returns a file's text.");
/// let tools = agent_memory_genai::to_genai_tools(&[read.clone()]);
/// assert_eq!(tools[0].name.as_str(), "read");
/// assert_eq!(agent_memory_genai::tool_definition(&tools[0]), read);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_genai_tools(tools: &[ToolDefinition]) -> Vec<Tool> {
    let tool = |definition: &ToolDefinition| {
        let schema: Value = serde_json::from_str(definition.parameters.as_str())
            // JSON that nests too deeply for a value describes no arguments that a provider accepts.
            .unwrap_or_else(|_| json!({"type": "object"}));
        let tool = Tool::new(definition.name.as_str()).with_schema(schema);
        match &definition.description {
            Some(description) => tool.with_description(description),
            None => tool,
        }
    };
    tools.iter().map(tool).collect()
}

/// Returns the definition of one of genai's tools. A tool without a schema takes no arguments. Settings that
/// only genai has, such as `strict` and the cache hint, are left out.
pub fn tool_definition(tool: &Tool) -> ToolDefinition {
    let schema = tool
        .schema
        .clone()
        .unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let parameters = RawJson::from_value(&schema)
        // A value is always JSON.
        .unwrap_or_else(|_| RawJson::from_raw(serde_json::value::RawValue::NULL));
    let definition = ToolDefinition::new(tool.name.as_str(), parameters);
    match &tool.description {
        Some(description) => definition.with_description(description),
        None => definition,
    }
}
