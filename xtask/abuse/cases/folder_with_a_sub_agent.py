"""A folder has a session and its sub-agent's file, beside it or below: the two are linked."""
import os

from memory import Memory
from transcripts import claude, result, text, use

MAIN = [
    claude("user", "u1", None, "Find the owner of the domain.", session="b2222222-2222-4333-8444-555555555555"),
    claude(
        "assistant", "a1", "u1",
        [
            use(
                "toolu_T", "Task", description="look up", prompt="Find who owns example.net",
                subagent_type="general-purpose",
            ),
        ],
        session="b2222222-2222-4333-8444-555555555555",
    ),
    claude(
        "user", "r1", "a1", [result("toolu_T", [text("Owner: Example Trust")])],
        session="b2222222-2222-4333-8444-555555555555",
    ),
]
SUB = [
    {
        "parentUuid": None, "isSidechain": True, "userType": "external", "cwd": "/home/kim/site",
        "sessionId": "b2222222-2222-4333-8444-555555555555", "version": "2.1.200", "gitBranch": "main",
        "type": "user", "message": {"role": "user", "content": "Find who owns example.net"}, "uuid": "s1",
        "timestamp": "2026-05-04T10:00:00.000Z", "agentId": "ag77",
    },
    {
        "parentUuid": "s1", "isSidechain": True, "userType": "external", "cwd": "/home/kim/site",
        "sessionId": "b2222222-2222-4333-8444-555555555555", "version": "2.1.200", "gitBranch": "main",
        "type": "assistant",
        "message": {
            "id": "msg_s2", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "Owner: Example Trust"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 5},
        },
        "uuid": "s2", "timestamp": "2026-05-04T10:00:00.000Z", "agentId": "ag77",
    },
]

SESSION = "b2222222-2222-4333-8444-555555555555"
for folder in ("project", f"project/{SESSION}/subagents"):
    memory = Memory()
    memory.write(MAIN, f"project/{SESSION}.jsonl")
    memory.write(SUB, f"{folder}/agent-ag77.jsonl")
    memory.text("import", os.path.join(memory.folder, "project"))
    parents = {session["session"]: session["parent"] for session in memory.sessions()}
    assert parents == {SESSION: None, f"{SESSION}/ag77": SESSION}, parents
