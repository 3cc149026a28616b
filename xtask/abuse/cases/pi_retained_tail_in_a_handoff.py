"""A compaction of pi in a long session carries the kept request in itself: a handoff shows it and the summary."""
from memory import Memory
from transcripts import pi, pi_entry, pi_session, user

REQUEST = "The latest request: order exactly 412 slates."
LINES = pi_session()
last = None
for number in range(0, 30, 2):
    LINES.append(pi(f"m{number}", last, "user", f"Part {number} of the roof: " + "tile beam nail slate " * 30))
    last = f"m{number + 1}"
    LINES.append(pi(last, f"m{number}", "assistant", f"Answer {number + 1} " + "wood stone " * 40))
LINES += [
    pi("keep", last, "user", REQUEST),
    pi_entry("compaction", "k1", "keep", summary="They talked about the roof in thirty parts.", tokensBefore=50000,
             retainedTail=[user(REQUEST)]),
    pi("after", "k1", "assistant", "Ordering."),
]

memory = Memory()
session = memory.add(LINES, "session.jsonl", "--summaries")
shown = memory.shown(session, "anthropic", 32_000, "--strategy", "handoff")
assert "thirty parts" in shown
assert "412 slates" in shown
