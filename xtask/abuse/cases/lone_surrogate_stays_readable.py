"""Texts with half a surrogate pair are found by a literal search, and shown as text instead of JSON."""
from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "Invoice 7731 \ud83d says \"net 30 days\"\nsee C:\\books\\may"),
    claude("assistant", "a1", "u1", [use("toolu_01", "Read", file_path="/home/kim/invoice.txt")]),
    claude("user", "r1", "a1", [result("toolu_01", "total \"4,150.00\" due\n\ud83d paid by wire\tref K-77")]),
    claude("assistant", "a2", "r1", [text("The total is \"4,150.00\"; paid by wire \ud83d.")]),
]

memory = Memory()
session = memory.add(LINES)
for words in ('says "net 30 days"', "C:\\books\\may", 'total "4,150.00" due'):
    assert memory.hits(session, words, "--mode", "literal"), words
first = memory.request(session)["messages"][0]["content"][0]["text"]
assert '"type":"text"' not in first.replace(" ", "") and "\\n" not in first, first
