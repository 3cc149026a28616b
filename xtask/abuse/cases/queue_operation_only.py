"""Words of a user are only in a record of the client's queue: they are kept."""
from memory import Memory
from transcripts import claude, result, use

LINES = [
    claude("user", "u1", None, "Start the preview server of the site."),
    claude("assistant", "a1", "u1", [use("toolu_01", command="npm run preview")]),
    {
        "type": "queue-operation", "operation": "enqueue", "timestamp": "2026-05-04T10:00:03.000Z",
        "sessionId": "11111111-2222-4333-8444-555555555555", "content": "Stop: the preview must use port 8471.",
    },
    {
        "type": "queue-operation", "operation": "remove", "reason": "absorbed_mid_turn",
        "timestamp": "2026-05-04T10:00:04.000Z", "sessionId": "11111111-2222-4333-8444-555555555555",
    },
    claude("user", "r1", "a1", [result("toolu_01", "listening on 5173")]),
]

memory = Memory()
session = memory.add(LINES)
assert "8471" in memory.text("export", session)
assert memory.hits(session, "8471")
