"""A user of pi keeps the output of a command from the model: it is stored, and not in the context."""
from memory import Memory

LINES = [
    {
        "type": "session", "version": 3, "id": "0a0a0a0a-1111-4111-8111-0000000000aa",
        "timestamp": "2026-05-04T10:00:00.000Z", "cwd": "/home/kim/site",
    },
    {
        "type": "message", "id": "m1", "parentId": None, "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {"role": "user", "content": "Hello", "timestamp": 1777888801000},
    },
    {
        "type": "message", "id": "m2", "parentId": "m1", "timestamp": "2026-05-04T10:00:02.000Z",
        "message": {
            "role": "bashExecution", "command": "cat token.txt", "output": "TOKEN=ZEBRA-SEVEN", "exitCode": 0,
            "cancelled": False, "truncated": False, "excludeFromContext": True, "timestamp": 1777888802000,
        },
    },
    {
        "type": "message", "id": "m3", "parentId": "m2", "timestamp": "2026-05-04T10:00:03.000Z",
        "message": {
            "role": "bashExecution", "command": "ls", "output": "README.md", "exitCode": 0, "cancelled": False,
            "truncated": False, "timestamp": 1777888803000,
        },
    },
    {
        "type": "message", "id": "m4", "parentId": "m3", "timestamp": "2026-05-04T10:00:04.000Z",
        "message": {"role": "user", "content": "What is here?", "timestamp": 1777888804000},
    },
]

memory = Memory()
session = memory.add(LINES)
shown = memory.shown(session)
assert "ZEBRA-SEVEN" not in shown
assert "README.md" in shown
assert "ZEBRA-SEVEN" in memory.text("export", session)
