"""A model uses one call id in every turn, and twice in one: each result stays with its call."""
import json

from memory import Memory
from transcripts import answer, assistant, call, user



def measure(*numbers):
    return assistant(None, tool_calls=[call("call_0", "measure", json.dumps({"n": number})) for number in numbers])


LINES = [
    user("Measure three rooms."),
    measure(0), answer("call_0", "kitchen 11"),
    measure(1), answer("call_0", "cellar 22"),
    measure(2), answer("call_0", "attic 33"),
    measure(8, 9), answer("call_0", "stairs 88"), answer("call_0", "garage 99"),
    assistant("All measured."),
]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
asked, pairs = {}, {}
for message in memory.request(session, "openai")["messages"]:
    for asking in message.get("tool_calls") or []:
        asked[asking["id"]] = json.loads(asking["function"]["arguments"])["n"]
    if message["role"] == "tool":
        pairs[asked[message["tool_call_id"]]] = message["content"]
assert pairs == {0: "kitchen 11", 1: "cellar 22", 2: "attic 33", 8: "stairs 88", 9: "garage 99"}, pairs
