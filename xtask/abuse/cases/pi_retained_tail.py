"""A compaction of pi repeats the messages that it keeps: the kept request is shown in both views."""
from memory import Memory
from transcripts import pi, pi_entry, pi_session

KEPT = pi("m3", "m2", "user", "The latest request: order exactly 412 slates.")
LINES = pi_session(
    pi("m1", None, "user", "Old request about the roof."),
    pi("m2", "m1", "assistant", "The roof is tiled."),
    KEPT,
    pi_entry("compaction", "k1", "m3", summary="They talked about the roof.", tokensBefore=50000,
             retainedTail=[KEPT["message"]]),
    pi("m4", "k1", "assistant", "Ordering."),
)

memory = Memory()
session = memory.add(LINES, "session.jsonl", "--summaries")
assert "412 slates" in memory.shown(session, "anthropic", 32_000, "--strategy", "handoff")
assert "412 slates" in memory.shown(session)
