"""Calls of another model are sent to Gemini 3, which demands a signature: the first has the documented placeholder."""
from memory import Memory
from providers import gemini
from transcripts import assistant, user

LINES = [
    user("Read the meter."),
    assistant(
        None,
        tool_calls=[
            {"id": "call_1", "type": "function", "function": {"name": "read_meter", "arguments": "{}"}},
            {"id": "call_2", "type": "function", "function": {"name": "read_clock", "arguments": "{}"}},
        ],
    ),
    {"role": "tool", "tool_call_id": "call_1", "content": "5512"},
    {"role": "tool", "tool_call_id": "call_2", "content": "12:01"},
]

memory = Memory()
request = memory.request(memory.add(LINES), "gemini")
assert not gemini(request), gemini(request)
calls = [part for content in request["contents"] for part in content["parts"] if "functionCall" in part]
assert "thoughtSignature" in calls[0], calls
