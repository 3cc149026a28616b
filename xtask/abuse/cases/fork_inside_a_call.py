"""A session is forked between a call and its result: the fork's requests are valid, and have no later words."""
from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "Deploy the preview."),
    claude(
        "assistant", "a1", "u1",
        [text("Deploying."), use("toolu_01", command="deploy a"), use("toolu_02", command="deploy b")], mid="m1",
    ),
    claude("user", "r1", "a1", [result("toolu_01", "a is up")]),
    claude("user", "r2", "r1", [result("toolu_02", "b is up")]),
    claude("assistant", "a2", "r2", [text("Both are up.")]),
]

memory = Memory()
session = memory.add(LINES)
for at in range(1, 5):
    memory.text("fork", session, "--at", str(at), "--name", f"f{at}")
    memory.assert_valid(f"f{at}")
    if at < 4:
        assert "b is up" not in memory.shown(f"f{at}"), at
memory.assert_verified()
