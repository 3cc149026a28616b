"""A client writes the whole history a second time into its file: each message is kept once."""
from memory import Memory
from transcripts import claude, text

LINES = [
    claude("user", "u1", None, "What is the capital of Chile?"),
    claude("assistant", "a1", "u1", [text("Santiago.")]),
    claude("user", "u1", None, "What is the capital of Chile?"),
    claude("assistant", "a1", "u1", [text("Santiago.")]),
    claude("user", "u2", "a1", "How many people live there?"),
    claude("assistant", "a2", "u2", [text("About seven million in the region.")]),
    claude("user", "u1", None, "What is the capital of Chile?"),
    claude("assistant", "a1", "u1", [text("Santiago.")]),
    claude("user", "u2", "a1", "How many people live there?"),
    claude("assistant", "a2", "u2", [text("About seven million in the region.")]),
]

memory = Memory()
session = memory.add(LINES)
assert memory.shown(session).count("Santiago") == 1
memory.add(LINES)
assert memory.sessions()[0]["messages"] == 4
