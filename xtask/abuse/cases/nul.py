"""Texts have the character NUL in them: they are kept as they are, and the words after it are found."""
import json

from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "before\x00after the marker word QUILLON"),
    claude("assistant", "a1", "u1", [text("bin"), use("toolu_01", command="printf 'a\x00b'")]),
    claude("user", "r1", "a1", [result("toolu_01", "\x00\x00head\x00tail word OSTREA\x00")]),
    claude("assistant", "a2", "r1", [text("There were NULs \x00 in it, word TERNLY.")]),
]

memory = Memory()
session = memory.add(LINES)
for words in ("QUILLON", "OSTREA", "TERNLY", "after the marker"):
    assert memory.hits(session, words), words
for words in ("QUILLON", "OSTREA"):
    assert memory.hits(session, words, "--mode", "literal"), words
memory.assert_valid(session)
entries = memory.export(session)
assert entries[0]["parts"][0]["text"] == "before\0after the marker word QUILLON"
assert json.dumps("\0\0head\0tail word OSTREA\0")[1:-1] in json.dumps(entries[2]["parts"][0]["content"])
memory.assert_verified()
