"""Calls of another model are sent to Gemini 3, which demands a signature: the first has the documented placeholder."""
from memory import Memory
from providers import gemini
from transcripts import answer, assistant, call, user

LINES = [
    user("Read the meter."),
    assistant(None, tool_calls=[call("call_1", "read_meter", "{}"), call("call_2", "read_clock", "{}")]),
    answer("call_1", "5512"),
    answer("call_2", "12:01"),
]

memory = Memory()
request = memory.request(memory.add(LINES), "gemini")
assert not gemini(request), gemini(request)
calls = [part for content in request["contents"] for part in content["parts"] if "functionCall" in part]
assert "thoughtSignature" in calls[0], calls
