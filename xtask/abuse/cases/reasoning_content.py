"""A turn with open calls has reasoning_content: it is kept, found, and sent back, as some providers require."""
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("Which pump is worn?"),
    assistant(
        "", reasoning_content="Pump 3 draws more current, so look at its log first.",
        tool_calls=[{"id": "call_1", "type": "function", "function": {"name": "log", "arguments": "{\"pump\":3}"}}],
    ),
    {"role": "tool", "tool_call_id": "call_1", "content": "vibration 9.1"},
]

memory = Memory()
session = memory.add(LINES)
assert "Pump 3 draws" in memory.text("export", session)
assert memory.hits(session, "draws more current")
answers = [message for message in memory.request(session, "openai")["messages"] if message["role"] == "assistant"]
assert any(answer.get("reasoning_content") or answer.get("reasoning") for answer in answers), answers
