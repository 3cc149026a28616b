"""A compaction of pi in a long session carries the kept request in itself: a handoff shows it and the summary."""
from memory import Memory
from transcripts import text, user

def entry(id, parent, role, content):
    stop = {"stopReason": "stop"} if role == "assistant" else {}
    return {"type": "message", "id": id, "parentId": parent, "timestamp": "2026-05-04T10:00:00.000Z",
            "message": {"role": role, "content": content, **stop}}


REQUEST = "The latest request: order exactly 412 slates."
LINES = [{"type": "session", "version": 3, "id": "0d0d0d0d-1111-4111-8111-0000000000aa",
          "timestamp": "2026-05-04T10:00:00.000Z", "cwd": "/home/kim/site"}]
last = None
for number in range(0, 30, 2):
    LINES.append(entry(f"m{number}", last, "user", f"Part {number} of the roof: " + "tile beam nail slate " * 30))
    last = f"m{number + 1}"
    LINES.append(entry(last, f"m{number}", "assistant", [text(f"Answer {number + 1} " + "wood stone " * 40)]))
LINES += [
    entry("keep", last, "user", REQUEST),
    {"type": "compaction", "id": "k1", "parentId": "keep", "timestamp": "2026-05-04T10:00:00.000Z", "tokensBefore": 50000,
     "summary": "They talked about the roof in thirty parts.", "retainedTail": [user(REQUEST)]},
    entry("after", "k1", "assistant", [text("Ordering.")]),
]

memory = Memory()
session = memory.add(LINES, "session.jsonl", "--summaries")
shown = memory.shown(session, "anthropic", 32_000, "--strategy", "handoff")
assert "thirty parts" in shown
assert "412 slates" in shown
