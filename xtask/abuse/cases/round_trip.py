"""What is exported is imported again with every key and number, also those that the program does not know."""
import os

from memory import Memory
from transcripts import base64_text, claude, result, text, thinking, use

LINES = [
    claude(
        "user", "u1", None,
        [
            text("See \u202eevil\u202c and zero\u200bwidth 👩\u200d💻 é"),
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        ],
    ),
    claude(
        "assistant", "a1", "u1",
        [thinking("hm", base64_text(200)), use("toolu_01", "Edit", b=1.5, a=12345678901234567890, path="x\x00y")],
    ),
    claude(
        "user", "r1", "a1", [result("toolu_01", [text("ok")], is_error=False, cache_control={"type": "ephemeral"})],
        toolUseResult={"stdout": "ok", "interrupted": False},
    ),
    {
        "type": "brand-new-record", "uuid": "n1", "sessionId": "11111111-2222-4333-8444-555555555555",
        "timestamp": "2026-05-04T10:00:09.000Z", "payload": {"k": [1, 2, {"x": None}]},
    },
    claude("assistant", "a2", "r1", [{"type": "future_block", "data": {"n": 1}}, text("done")], effort="high"),
]

memory, copy = Memory(), Memory()
session = memory.add(LINES)
exported = memory.text("export", session)
path = os.path.join(copy.folder, "exported.jsonl")
with open(path, "w") as file:
    file.write(exported)
copy.text("import", "--session", "copy", path)
entries, copies = memory.export(session), copy.export("copy")
assert len(entries) == 5
for entry in entries + copies:
    entry.pop("tokens", None)
assert entries == copies
for unknown in ("12345678901234567890", "1.5", "brand-new-record", "future_block", '"interrupted":false', '"effort":'):
    assert unknown in exported.replace('": ', '":'), unknown
