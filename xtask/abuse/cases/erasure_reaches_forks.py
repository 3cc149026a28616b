"""Words are erased in a session with a fork: they are gone from the fork, and the dry run names it."""
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("hello"),
    assistant("hi"),
    user("the pin is 4471-K"),
    assistant("ok 4471-K"),
    user("go on"),
]

memory = Memory()
session = memory.add(LINES)
memory.text("fork", session, "--at", "4", "--name", "side")
memory.text("compact", "side", "--fresh-tail", "1")
erase = ("erase", session, "--from", "3", "--to", "4", "--reason", "pin")
assert "side" in memory.text("--json", *erase, "--dry-run")
memory.text(*erase)
for each in (session, "side"):
    assert "4471" not in memory.text("export", each), each
    assert "4471" not in memory.text("context", each), each
memory.assert_verified()
