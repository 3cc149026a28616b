"""A transcript ends in half a line, grows, and then has a line rewritten: the half waits, and the change is told."""
import json

from memory import json_line, Memory
from transcripts import claude, text

LINES = [
    claude("user", "u1", None, "First."),
    claude("assistant", "a1", "u1", [text("Answer one.")]),
]

THIRD = claude("user", "u2", "a1", "Second, with a tail that is cut")

memory = Memory()
path = memory.write(LINES)
with open(path, "ab") as file:
    file.write(json_line(THIRD)[:120])
assert memory.json("import", path)["sessions"][0]["messages"] == 2
report = memory.load([*LINES, THIRD])
assert report["inserted"] == 1, report
edited = json.loads(json.dumps(LINES[1]).replace("Answer one.", "Answer one, edited."))
report = memory.load([LINES[0], edited, THIRD])
assert report["conflicts"] > 0, report
assert [entry["parts"][0]["text"] for entry in memory.export(report["session"])][:2] == ["First.", "Answer one."]
