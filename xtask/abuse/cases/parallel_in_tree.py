"""Parallel calls are written as two branches of the tree: both results stay."""
from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "Read both files."),
    claude("assistant", "a1", "u1", [use("toolu_01", "Read", file_path="/home/kim/site/one.txt")], mid="msg_1"),
    claude("assistant", "a2", "a1", [use("toolu_02", "Read", file_path="/home/kim/site/two.txt")], mid="msg_1"),
    claude("user", "r1", "a1", [result("toolu_01", "alpha contents")]),
    claude("user", "r2", "a2", [result("toolu_02", "beta contents")]),
    claude("assistant", "a3", "r2", [text("Read both.")]),
]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
assert "alpha contents" in memory.shown(session)
assert "beta contents" in memory.shown(session)
