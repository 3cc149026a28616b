"""Names of tools have dots, slashes, Cyrillic letters or 95 characters, ids have 67, arguments are no object: requests
are valid."""
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("Use them all."),
    assistant(
        None,
        tool_calls=[
            {
                "id": "call|0|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "type": "function",
                "function": {"name": "calendar.respondToEvent", "arguments": "{\"big\":12345678901234567890123}"},
            },
        ],
    ),
    {
        "role": "tool", "tool_call_id": "call|0|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "content": "result 0",
    },
    assistant(
        None,
        tool_calls=[
            {
                "id": "call|1|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "type": "function",
                "function": {"name": "mcp/server/tool", "arguments": "[1,2]"},
            },
        ],
    ),
    {
        "role": "tool", "tool_call_id": "call|1|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "content": "result 1",
    },
    assistant(
        None,
        tool_calls=[
            {
                "id": "call|2|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "type": "function",
                "function": {
                    "name": (
                        "mcp__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                    ),
                    "arguments": "not json",
                },
            },
        ],
    ),
    {
        "role": "tool", "tool_call_id": "call|2|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "content": "result 2",
    },
    assistant(
        None,
        tool_calls=[
            {
                "id": "call|3|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "type": "function",
                "function": {"name": "инструмент", "arguments": ""},
            },
        ],
    ),
    {
        "role": "tool", "tool_call_id": "call|3|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "content": "result 3",
    },
    assistant(
        None,
        tool_calls=[
            {
                "id": "call|4|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "type": "function",
                "function": {"name": "9lives", "arguments": "{\"big\":12345678901234567890123}"},
            },
        ],
    ),
    {
        "role": "tool", "tool_call_id": "call|4|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "content": "result 4",
    },
    assistant(
        None,
        tool_calls=[
            {
                "id": "call|5|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "type": "function",
                "function": {"name": "a b c", "arguments": "{\"big\":12345678901234567890123}"},
            },
        ],
    ),
    {
        "role": "tool", "tool_call_id": "call|5|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "content": "result 5",
    },
    assistant(
        None,
        tool_calls=[
            {
                "id": "call|6|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "type": "function",
                "function": {"name": "", "arguments": "{\"big\":12345678901234567890123}"},
            },
        ],
    ),
    {
        "role": "tool", "tool_call_id": "call|6|ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "content": "result 6",
    },
]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
blocks = [block for message in memory.request(session)["messages"] for block in message["content"]]
assert sum(block["type"] == "tool_result" for block in blocks) == 7, blocks
for message in memory.request(session, "openai")["messages"]:
    # OpenAI's API refuses longer ones.
    assert all(len(call["id"]) <= 40 for call in message.get("tool_calls") or []), message
