"""A key that was erased is in no file, answer or context, and does not come back with its file."""
from erasure import remains
from memory import Memory, STRATEGIES
from transcripts import assistant, user

LINES = [user("My access key is QZX-SECRET-88123 and the host is bluff."), assistant("Stored: QZX-SECRET-88123.")]
for number in range(30):
    LINES.append(user(f"Question {number} about tides " + "lorem ipsum dolor " * 40))
    LINES.append(assistant(f"Answer {number} " + "sit amet " * 60))

memory = Memory()
session = memory.add(LINES)
for strategy in ("dag", "handoff"):
    memory.text("compact", session, "--strategy", strategy)
memory.text("erase", session, "--from", "1", "--to", "2", "--reason", "key leaked")
assert not remains(memory.store, ["QZX-SECRET", "secret-88", "88123"])
for mode in ("literal", "regex", "words", "prose"):
    assert not memory.hits(session, "QZX-SECRET-88123", "--mode", mode), mode
for strategy in STRATEGIES:
    assert "88123" not in memory.text("context", session, "--strategy", strategy), strategy
memory.assert_verified()
memory.add(LINES)
assert "QZX" not in memory.text("export", session)
