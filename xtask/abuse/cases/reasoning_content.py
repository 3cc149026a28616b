"""A turn with open calls has reasoning_content: it is kept, found, and sent back, as some providers require."""
from memory import Memory
from transcripts import answer, assistant, call, user

LINES = [
    user("Which pump is worn?"),
    assistant("", reasoning_content="Pump 3 draws more current, so look at its log first.",
              tool_calls=[call("call_1", "log", '{"pump":3}')]),
    answer("call_1", "vibration 9.1"),
]

memory = Memory()
session = memory.add(LINES)
assert "Pump 3 draws" in memory.text("export", session)
assert memory.hits(session, "draws more current")
sent = [message for message in memory.request(session, "openai")["messages"] if message["role"] == "assistant"]
assert any(message.get("reasoning_content") or message.get("reasoning") for message in sent), sent
