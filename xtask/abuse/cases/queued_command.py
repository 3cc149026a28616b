"""A user types while a tool runs, and Claude Code writes the words as an attachment: they are the user's words."""
from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "Start the preview server of the site."),
    claude("assistant", "a1", "u1", [use("toolu_01", command="npm run preview")]),
    {
        "type": "attachment", "parentUuid": "a1", "isSidechain": False, "uuid": "q1",
        "sessionId": "11111111-2222-4333-8444-555555555555", "timestamp": "2026-05-04T10:00:03.000Z",
        "attachment": {
            "type": "queued_command", "prompt": "Use port 8471 and never touch port 8080.", "commandMode": "prompt",
        },
    },
    claude("user", "r1", "a1", [result("toolu_01", "listening on 5173")]),
    claude("assistant", "a2", "r1", [text("Moved to the port you asked for.")]),
]

memory = Memory()
session = memory.add(LINES)
assert "8471" in memory.shown(session)
assert [hit["role"] for hit in memory.hits(session, "8471")] == ["user"]
