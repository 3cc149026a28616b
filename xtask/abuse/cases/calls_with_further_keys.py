"""Calls in plain lines have an index, extra content, or the type custom: they stay calls with their results."""
from memory import Memory
from transcripts import answer, assistant, base64_text, call, user

LOOKUP = call("call_9f", "lookup", '{"q":"tide"}')
SIGNED = {"extra_content": {"google": {"thought_signature": base64_text(200)}}}
TIDES = "06:12 and 18:40"
INDEX = [
    user("When is high tide?"),
    assistant(None, tool_calls=[{**LOOKUP, "index": 0}]),
    {**answer("call_9f", TIDES), "name": "lookup"},
    assistant("At 06:12 and 18:40."),
]
EXTRA_CONTENT = [
    user("When is high tide at Brest?"),
    assistant("", tool_calls=[{**LOOKUP, **SIGNED}]),
    answer("call_9f", TIDES),
]
CUSTOM = [
    user("When is high tide at Vigo?"),
    assistant("", tool_calls=[{"id": "call_9f", "type": "custom", "custom": {"name": "lookup", "input": "tide"}}]),
    answer("call_9f", TIDES),
]

for name, lines in (("index", INDEX), ("extra content", EXTRA_CONTENT), ("custom", CUSTOM)):
    memory = Memory()
    messages = memory.request(memory.add(lines), "openai")["messages"]
    assert any(message.get("tool_calls") for message in messages), name
    assert any(message["role"] == "tool" for message in messages), name
