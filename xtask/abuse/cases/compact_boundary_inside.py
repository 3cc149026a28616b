"""The agent compacted in the middle of its file: the original words are shown, and not the agent's summary of them."""
from memory import Memory
from transcripts import claude, text

LINES = [
    claude("user", "u1", None, "The release train leaves on Thursday at 16:20."),
    claude("assistant", "a1", "u1", [text("Noted the departure.")]),
    {
        "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "parentUuid": None,
        "logicalParentUuid": "a1", "isSidechain": False, "uuid": "b1",
        "sessionId": "11111111-2222-4333-8444-555555555555", "timestamp": "2026-05-04T10:01:00.000Z",
        "compactMetadata": {"trigger": "manual", "preTokens": 154000},
    },
    claude(
        "user", "u2", "b1", "Summary so far: a release train exists.", isCompactSummary=True,
        isVisibleInTranscriptOnly=True,
    ),
    claude("user", "u3", "u2", "When does it leave?"),
]

memory = Memory()
session = memory.add(LINES)
shown = memory.shown(session)
assert "16:20" in shown
assert "Summary so far" not in shown
