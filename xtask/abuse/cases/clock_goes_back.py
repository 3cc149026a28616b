"""The clock is set back by three hours in a session: the order of the file stays."""
from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "The gate code is 1111.", at="2026-05-04T12:00:00.000Z"),
    claude("assistant", "a1", "u1", [use("toolu_01", command="set code 1111")], at="2026-05-04T12:00:05.000Z"),
    claude("user", "r1", "a1", [result("toolu_01", "ok")], at="2026-05-04T09:00:00.000Z"),
    claude("user", "u2", "r1", "Change of plan: the gate code is 2222 now.", at="2026-05-04T09:00:10.000Z"),
    claude("assistant", "a2", "u2", [text("The gate code is 2222.")], at="1970-01-01T00:00:00.000Z"),
    claude("user", "u3", "a2", "Thanks", at="not a time"),
]

memory = Memory()
session = memory.add(LINES)
shown = memory.shown(session)
assert shown.index("1111.") < shown.index("2222 now") < shown.index("Thanks")
memory.assert_valid(session)
assert "2222" in memory.json("recall", session, "what is the gate code?")["passages"][0]["text"]
assert memory.hits(session, "gate code", "--order", "newest")[0]["seq"] == 5
memory.assert_verified()
