"""Calls in plain lines have an index, extra content, or the type custom: they stay calls with their results."""
from memory import Memory
from transcripts import assistant, base64_text, user

INDEX = [
    user("When is high tide?"),
    assistant(
        None,
        tool_calls=[
            {
                "id": "call_9f", "type": "function", "function": {"name": "lookup", "arguments": "{\"q\":\"tide\"}"},
                "index": 0,
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "call_9f", "name": "lookup", "content": "06:12 and 18:40"},
    assistant("At 06:12 and 18:40."),
]
EXTRA_CONTENT = [
    user("When is high tide at Brest?"),
    assistant(
        "",
        tool_calls=[
            {
                "id": "call_9f", "type": "function", "function": {"name": "lookup", "arguments": "{\"q\":\"tide\"}"},
                "extra_content": {"google": {"thought_signature": base64_text(200)}},
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "call_9f", "content": "06:12 and 18:40"},
]
CUSTOM = [
    user("When is high tide at Vigo?"),
    assistant("", tool_calls=[{"id": "call_9f", "type": "custom", "custom": {"name": "lookup", "input": "tide"}}]),
    {"role": "tool", "tool_call_id": "call_9f", "content": "06:12 and 18:40"},
]

for name, lines in (("index", INDEX), ("extra content", EXTRA_CONTENT), ("custom", CUSTOM)):
    memory = Memory()
    messages = memory.request(memory.add(lines), "openai")["messages"]
    assert any(message.get("tool_calls") for message in messages), name
    assert any(message["role"] == "tool" for message in messages), name
