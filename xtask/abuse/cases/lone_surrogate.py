"""A transcript has half a surrogate pair in a text, arguments and a result: it is imported, and requests are valid."""
from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "Invoice 7731 \ud83d says \"net 30 days\"\nsee C:\\books\\may"),
    claude(
        "assistant", "a1", "u1",
        [text("Reading it."), use("toolu_01", "Read", file_path="/home/kim/\ud83d/invoice.txt")],
    ),
    claude("user", "r1", "a1", [result("toolu_01", "total \"4,150.00\" due\n\ud83d paid by wire\tref K-77")]),
    claude("assistant", "a2", "r1", [text("The total is \"4,150.00\"; paid by wire \ud83d.")]),
]

memory = Memory()
report = memory.load(LINES)
assert report["messages"] == 4, report
memory.assert_valid(report["session"])
memory.assert_verified()
