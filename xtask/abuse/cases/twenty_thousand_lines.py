"""A session of 20,000 lines is imported, compacted and searched. Summaries that repeat a text are hits too, so the case
counts messages."""
from memory import Memory
from transcripts import assistant, user

LINES = []
for number in range(20_000):
    marker = "the marker is OSPREY-31337" if number == 3 else ""
    words = f"line {number} {marker} {('water', 'stone', 'copper', 'signal')[number * 7919 % 4]} value {number * 7}"
    LINES.append(assistant(words) if number % 2 else user(words))

memory = Memory()
report = memory.load(LINES)
session = report["session"]
assert report["messages"] == 20_000, report
memory.text("compact", session)
assert memory.context(session, 8000)["tokens"] <= 8000
hits = memory.hits(session, "OSPREY-31337", "--scope", "messages")
assert [hit["seq"] for hit in hits] == [4], hits
assert "OSPREY" in memory.json("recall", session, "what is the marker?")["passages"][0]["text"]
memory.assert_verified()
assert memory.load(LINES)["inserted"] == 0
