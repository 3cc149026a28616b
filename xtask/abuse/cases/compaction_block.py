"""Blocks of the API's own compaction, one of them empty: the words are shown as text, and no empty block is sent."""
from memory import Memory
from transcripts import claude, text

LINES = [
    claude("user", "u1", None, "Go on."),
    claude(
        "assistant", "a1", "u1",
        [
            {"type": "compaction", "content": "Earlier: the licence server is on host basalt, port 27000."},
            text("Going on."),
        ],
    ),
    claude("user", "u2", "a1", "And now?"),
    claude("assistant", "a2", "u2", [{"type": "compaction", "content": None}, text("Still here.")]),
]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
blocks = [block for message in memory.request(session)["messages"] for block in message["content"]]
assert "basalt" in memory.shown(session)
assert not [block for block in blocks if block["type"] == "compaction" and not block.get("content")], blocks
assert not [block for block in blocks if block["type"] == "text" and block["text"].lstrip().startswith("{")], blocks
