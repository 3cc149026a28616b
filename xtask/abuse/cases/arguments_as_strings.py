"""Clients and models send numbers and lists as text to a tool, and empty or null options: they are understood."""
from mcp_client import Client
from memory import Memory
from transcripts import assistant, user

CALLS = [
    ("memory_grep", {"pattern": "valve", "limit": "3"}),
    ("memory_grep", {"pattern": "valve", "limit": 3.0}),
    ("memory_grep", {"pattern": "valve", "roles": '["user"]'}),
    ("memory_grep", {"pattern": "valve", "roles": "user"}),
    ("memory_grep", {"pattern": "valve", "limit": None, "mode": None}),
    ("memory_grep", {"pattern": "valve", "mode": ""}),
    ("memory_recall", {"query": "valve 7", "budget": "300"}),
    ("memory_expand", {"summary_id": "message:3", "token_cap": "500"}),
]
LINES = []
for number in range(40):
    LINES.append(user(f"Note {number}: the valve {number} is set to {3 * number} bar."))
    LINES.append(assistant(f"Valve {number} noted."))

memory = Memory()
session = memory.add(LINES)
memory.text("compact", session)
client = Client(memory, "--session", session)
for name, arguments in CALLS:
    answer = client.tool(name, **arguments)
    assert "result" in answer and not answer["result"].get("isError"), (name, arguments, answer)
client.close()
