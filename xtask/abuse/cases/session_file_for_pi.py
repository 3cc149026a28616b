"""An exported session file has the keys that pi reads without asking whether they are there."""
import json

from memory import Memory
from transcripts import claude, result, use

LINES = [
    {
        "type": "session", "version": 3, "id": "0e0e0e0e-1111-4111-8111-0000000000aa",
        "timestamp": "2026-05-04T10:00:00.000Z", "cwd": "/home/kim/site",
    },
    {
        "type": "message", "id": "m1", "parentId": None, "timestamp": "2026-05-04T10:00:01.000Z",
        "message": {"role": "user", "content": "Hello", "timestamp": 1777888801000},
    },
    {
        "type": "message", "id": "m2", "parentId": "m1", "timestamp": "2026-05-04T10:00:02.000Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Hi"},
                {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
            ],
            "api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5",
            "usage": {
                "input": 12, "output": 3, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
            },
            "stopReason": "toolUse", "timestamp": 1777888802000,
        },
    },
    {
        "type": "message", "id": "m3", "parentId": "m2", "timestamp": "2026-05-04T10:00:03.000Z",
        "message": {
            "role": "toolResult", "toolCallId": "c1", "toolName": "bash",
            "content": [{"type": "text", "text": "README.md"}], "isError": False, "timestamp": 1777888803000,
        },
    },
]

CLAUDE = [
    claude("user", "u1", None, "go"),
    claude("assistant", "a1", "u1", [use("t1", command="ls")]),
    claude("user", "r1", "a1", [result("t1", "README.md")]),
]

for lines in (LINES, CLAUDE):
    memory = Memory()
    entries = [json.loads(line) for line in memory.text("export", memory.add(lines), "--session-file").splitlines()]
    assert "cwd" in entries[0], entries[0]
    messages = [entry["message"] for entry in entries if "message" in entry]
    for message in messages:
        if message["role"] == "assistant":
            missing = {"usage", "stopReason", "provider", "model", "api", "timestamp"} - set(message)
            assert not missing, missing
        if message["role"] == "toolResult":
            assert isinstance(message["content"], list), message
    assert any(message["role"] == "assistant" for message in messages)
