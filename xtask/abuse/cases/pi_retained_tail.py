"""A compaction of pi repeats the messages that it keeps: the kept request is shown in both views."""
from memory import Memory

LINES = [
    {
        "type": "session", "version": 3, "id": "0c0c0c0c-1111-4111-8111-0000000000aa",
        "timestamp": "2026-05-04T10:00:00.000Z", "cwd": "/home/kim/site",
    },
    {
        "type": "message", "id": "m1", "parentId": None, "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {"role": "user", "content": "Old request about the roof.", "timestamp": 1777888801000},
    },
    {
        "type": "message", "id": "m2", "parentId": "m1", "timestamp": "2026-05-04T10:00:02.000Z",
        "message": {
            "role": "assistant", "content": [{"type": "text", "text": "The roof is tiled."}], "stopReason": "stop",
            "timestamp": 1777888802000,
        },
    },
    {
        "type": "message", "id": "m3", "parentId": "m2", "timestamp": "2026-05-04T10:00:03.000Z",
        "message": {
            "role": "user", "content": "The latest request: order exactly 412 slates.", "timestamp": 1777888803000,
        },
    },
    {
        "type": "compaction", "id": "k1", "parentId": "m3", "timestamp": "2026-05-04T10:00:04.000Z",
        "summary": "They talked about the roof.", "tokensBefore": 50000,
        "retainedTail": [
            {"role": "user", "content": "The latest request: order exactly 412 slates.", "timestamp": 1777888803000},
        ],
    },
    {
        "type": "message", "id": "m4", "parentId": "k1", "timestamp": "2026-05-04T10:00:05.000Z",
        "message": {
            "role": "assistant", "content": [{"type": "text", "text": "Ordering."}], "stopReason": "stop",
            "timestamp": 1777888805000,
        },
    },
]

memory = Memory()
session = memory.add(LINES, "session.jsonl", "--summaries")
assert "412 slates" in memory.shown(session, "anthropic", 32_000, "--strategy", "handoff")
assert "412 slates" in memory.shown(session)
