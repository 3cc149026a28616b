"""Names of tools have dots, slashes, Cyrillic letters or 95 characters, ids have 67, arguments are no object: requests
are valid."""
from memory import Memory
from transcripts import answer, assistant, call, user

BIG = '{"big":12345678901234567890123}'
CALLS = [
    ("calendar.respondToEvent", BIG),
    ("mcp/server/tool", "[1,2]"),
    ("mcp__" + "x" * 90, "not json"),
    ("инструмент", ""),
    ("9lives", BIG),
    ("a b c", BIG),
    ("", BIG),
]
LINES = [user("Use them all.")]
for number, (name, arguments) in enumerate(CALLS):
    id = f"call|{number}|" + "f" * 60
    LINES += [assistant(None, tool_calls=[call(id, name, arguments)]), answer(id, f"result {number}")]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
blocks = [block for message in memory.request(session)["messages"] for block in message["content"]]
assert sum(block["type"] == "tool_result" for block in blocks) == 7, blocks
for message in memory.request(session, "openai")["messages"]:
    # OpenAI's API refuses longer ones.
    assert all(len(call["id"]) <= 40 for call in message.get("tool_calls") or []), message
