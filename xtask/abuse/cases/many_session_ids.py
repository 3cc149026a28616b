"""A session that was resumed twice has three session ids in one file: it is one session."""
from memory import Memory
from transcripts import claude, text

LINES = [
    claude("user", "u1", None, "The backup code word is heron.", session="aaaaaaaa-1111-4111-8111-000000000001"),
    claude("assistant", "a1", "u1", [text("Noted.")], session="aaaaaaaa-1111-4111-8111-000000000001"),
    claude("user", "u2", "a1", "Continue after the resume.", session="bbbbbbbb-1111-4111-8111-000000000002"),
    claude("assistant", "a2", "u2", [text("Continuing.")], session="bbbbbbbb-1111-4111-8111-000000000002"),
    claude("user", "u3", "a2", "And once more.", session="cccccccc-1111-4111-8111-000000000003"),
]

memory = Memory()
memory.add(LINES)
(session,) = memory.sessions()
assert session["messages"] == 5, session
shown = memory.shown(session["session"])
assert "heron" in shown and "once more" in shown
