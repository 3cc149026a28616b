//! Tools and usage.

use agent_memory::tokens::Usage;
use agent_memory::{RawJson, ToolDefinition};
use agent_memory_rig::{from_rig_tool, from_rig_usage, to_rig_tool, to_rig_usage};

#[test]
fn tools_come_back() {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let tool = ToolDefinition::new("read", RawJson::parse(schema).unwrap());
    let described = tool.clone().with_description("Returns a file's text.");
    for tool in [tool, described] {
        assert_eq!(from_rig_tool(&to_rig_tool(&tool).unwrap()), tool);
    }
    let nameless = ToolDefinition::new("", RawJson::parse("{}").unwrap());
    assert!(to_rig_tool(&nameless).is_err());
}

#[test]
fn cached_tokens_are_counted_apart() {
    let usage = Usage {
        input: 10,
        output: 5,
        cache_read: 100,
        cache_write: 20,
        total: Some(135),
    };
    let rigs = to_rig_usage(&usage);
    assert_eq!(rigs.input_tokens, Some(130));
    assert_eq!(from_rig_usage(&rigs), Some(usage));
    assert_eq!(from_rig_usage(&Default::default()), None);
}
