"""A user of pi left a branch: `compact FILE` compacts the branch in use."""
from memory import Memory
from transcripts import pi, pi_session

LINES = pi_session(
    pi("m1", None, "user", "Speed up the import."),
    pi("m2", "m1", "assistant", "Two ways are open."),
    pi("m3", "m2", "user", "Take way A: rewrite it in C."),
    pi("m4", "m3", "assistant", "Rewriting in C."),
    pi("m5", "m2", "user", "No: take way B, batch the writes."),
    pi("m6", "m5", "assistant", "Batching the writes."),
    pi("m7", "m6", "user", "Good, go on."),
)

memory = Memory()
session = memory.json("compact", memory.write(LINES))["session"]
shown = memory.shown(session)
assert "batch the writes" in shown.lower()
assert "rewrite it in C" not in shown
