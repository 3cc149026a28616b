"""A user of pi left a branch: `compact FILE` compacts the branch in use."""
from memory import Memory

LINES = [
    {
        "type": "session", "version": 3, "id": "0f0f0f0f-1111-4111-8111-0000000000aa",
        "timestamp": "2026-05-04T10:00:00.000Z", "cwd": "/home/kim/site",
    },
    {
        "type": "message", "id": "m1", "parentId": None, "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {"role": "user", "content": "Speed up the import.", "timestamp": 1777888801000},
    },
    {
        "type": "message", "id": "m2", "parentId": "m1", "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {
            "role": "assistant", "content": [{"type": "text", "text": "Two ways are open."}], "stopReason": "stop",
            "timestamp": 1777888801000,
        },
    },
    {
        "type": "message", "id": "m3", "parentId": "m2", "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {"role": "user", "content": "Take way A: rewrite it in C.", "timestamp": 1777888801000},
    },
    {
        "type": "message", "id": "m4", "parentId": "m3", "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {
            "role": "assistant", "content": [{"type": "text", "text": "Rewriting in C."}], "stopReason": "stop",
            "timestamp": 1777888801000,
        },
    },
    {
        "type": "message", "id": "m5", "parentId": "m2", "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {"role": "user", "content": "No: take way B, batch the writes.", "timestamp": 1777888801000},
    },
    {
        "type": "message", "id": "m6", "parentId": "m5", "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {
            "role": "assistant", "content": [{"type": "text", "text": "Batching the writes."}], "stopReason": "stop",
            "timestamp": 1777888801000,
        },
    },
    {
        "type": "message", "id": "m7", "parentId": "m6", "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {"role": "user", "content": "Good, go on.", "timestamp": 1777888801000},
    },
]

memory = Memory()
session = memory.json("compact", memory.write(LINES))["session"]
shown = memory.shown(session)
assert "batch the writes" in shown.lower()
assert "rewrite it in C" not in shown
