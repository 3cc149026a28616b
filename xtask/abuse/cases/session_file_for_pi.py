"""An exported session file has the keys that pi reads without asking whether they are there."""
import json

from memory import Memory
from transcripts import claude, pi, pi_entry, pi_session, result, text, use

ANSWER = {
    "role": "assistant",
    "content": [text("Hi"), {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}],
    "api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5",
    "usage": {
        "input": 12, "output": 3, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
    },
    "stopReason": "toolUse", "timestamp": 1777888802000,
}
LINES = pi_session(
    pi("m1", None, "user", "Hello"),
    pi_entry("message", "m2", "m1", message=ANSWER),
    pi("m3", "m2", "toolResult", [text("README.md")], toolCallId="c1", toolName="bash", isError=False),
)

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
