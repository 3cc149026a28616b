"""Plain lines have calls and results in the blocks of the Messages API: they are calls and results."""
from memory import Memory
from transcripts import assistant, result, text, use, user

LINES = [
    user([text("Read the changelog.")]),
    assistant([text("Reading."), use("toolu_A", "read_file", path="/srv/app/CHANGELOG.md")]),
    user([result("toolu_A", [text("2.4.0: drops Python 3.8")])]),
    assistant([text("2.4.0 drops Python 3.8.")]),
]

memory = Memory()
session = memory.add(LINES)
messages = memory.request(session)["messages"]
kinds = {block["type"] for message in messages if isinstance(message["content"], list) for block in message["content"]}
assert {"tool_use", "tool_result"} <= kinds, kinds
assert memory.uses(session, "CHANGELOG.md")
assert '\\"type\\"' not in memory.shown(session, "openai")
