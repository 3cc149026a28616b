"""A client writes growing snapshots of one response: its text is shown once."""
from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "List the branches."),
    claude(
        "assistant", "a1", "u1", [text("I will list the branches with git.")], at="2026-05-04T10:00:01.000Z",
        mid="msg_7",
    ),
    claude(
        "assistant", "a2", "a1",
        [text("I will list the branches with git."), use("toolu_01", command="git branch --all")],
        at="2026-05-04T10:00:02.000Z", mid="msg_7",
    ),
    claude("user", "r1", "a2", [result("toolu_01", "* main")]),
    claude("assistant", "a3", "r1", [text("Only main.")]),
]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
assert memory.shown(session).count("I will list the branches with git.") == 1
