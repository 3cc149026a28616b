"""A model uses one call id in every turn, and twice in one: each result stays with its call."""
import json

from memory import Memory
from transcripts import assistant, user

LINES = [
    user("Measure three rooms."),
    assistant(
        None,
        tool_calls=[{"id": "call_0", "type": "function", "function": {"name": "measure", "arguments": "{\"n\":0}"}}],
    ),
    {"role": "tool", "tool_call_id": "call_0", "content": "kitchen 11"},
    assistant(
        None,
        tool_calls=[{"id": "call_0", "type": "function", "function": {"name": "measure", "arguments": "{\"n\":1}"}}],
    ),
    {"role": "tool", "tool_call_id": "call_0", "content": "cellar 22"},
    assistant(
        None,
        tool_calls=[{"id": "call_0", "type": "function", "function": {"name": "measure", "arguments": "{\"n\":2}"}}],
    ),
    {"role": "tool", "tool_call_id": "call_0", "content": "attic 33"},
    assistant(
        None,
        tool_calls=[
            {"id": "call_0", "type": "function", "function": {"name": "measure", "arguments": "{\"n\":8}"}},
            {"id": "call_0", "type": "function", "function": {"name": "measure", "arguments": "{\"n\":9}"}},
        ],
    ),
    {"role": "tool", "tool_call_id": "call_0", "content": "stairs 88"},
    {"role": "tool", "tool_call_id": "call_0", "content": "garage 99"},
    assistant("All measured."),
]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
asked, pairs = {}, {}
for message in memory.request(session, "openai")["messages"]:
    for call in message.get("tool_calls") or []:
        asked[call["id"]] = json.loads(call["function"]["arguments"])["n"]
    if message["role"] == "tool":
        pairs[asked[message["tool_call_id"]]] = message["content"]
assert pairs == {0: "kitchen 11", 1: "cellar 22", 2: "attic 33", 8: "stairs 88", 9: "garage 99"}, pairs
