//! Tools and usage.

use agent_memory_genai::agent_memory::tokens::Usage;
use agent_memory_genai::genai::chat::{Tool, Usage as GenaiUsage};
use agent_memory_genai::{from_genai_usage, to_genai_usage, tool_definition};

#[test]
fn cached_tokens_are_counted_apart() {
    let usage = Usage {
        input: 10,
        output: 5,
        cache_read: 100,
        cache_write: 20,
        total: Some(135),
    };
    let genais = to_genai_usage(&usage);
    assert_eq!(genais.prompt_tokens, Some(130));
    assert_eq!(from_genai_usage(&genais), Some(usage));
    assert_eq!(from_genai_usage(&GenaiUsage::default()), None);
    let vast = Usage {
        output: u64::MAX,
        ..usage
    };
    assert_eq!(to_genai_usage(&vast).completion_tokens, Some(i32::MAX));
}

#[test]
fn a_tool_without_a_schema_takes_no_arguments() {
    let tool = tool_definition(&Tool::new("now"));
    assert_eq!(
        tool.parameters.as_str(),
        r#"{"type":"object","properties":{}}"#
    );
}
