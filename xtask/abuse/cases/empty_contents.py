"""Texts, results and messages are empty: all are kept, and no request has an empty part."""
from memory import Memory
from transcripts import claude, result, text, thinking, use

LINES = [
    claude("user", "u1", None, "Make the folder."),
    claude("assistant", "a1", "u1", [thinking("mkdir is silent", "")], mid="m1"),
    claude("assistant", "a2", "a1", [text(""), use("toolu_01", command="mkdir x")], mid="m2"),
    claude("user", "r1", "a2", [result("toolu_01", "")]),
    claude("assistant", "a3", "r1", [use("toolu_02", command="touch y")], mid="m3"),
    claude("user", "r2", "a3", [result("toolu_02", [])]),
    claude("assistant", "a4", "r2", [use("toolu_03", command="false")], mid="m4"),
    claude("user", "r3", "a4", [result("toolu_03", [text("")], is_error=True)]),
    claude("assistant", "a5", "r3", [text("\n\n")], mid="m5"),
    claude("user", "u2", "a5", ""),
    claude("user", "u3", "u2", []),
    claude("assistant", "a6", "u3", [], mid="m6"),
    claude(
        "user", "u4", "a6", [text("  "), {"type": "text", "text": "Done?", "cache_control": {"type": "ephemeral"}}],
    ),
    claude("assistant", "a7", "u4", [text("Done.  \n")], mid="m7"),
]

memory = Memory()
report = memory.load(LINES)
assert report["messages"] == 14, report
memory.assert_valid(report["session"])
memory.assert_verified()
