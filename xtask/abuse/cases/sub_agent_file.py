"""A sub-agent has a file of its own, which is imported before or after its parent's: the sessions are linked, and stay
apart."""
from memory import Memory
from transcripts import claude, result, text, use

MAIN = [
    claude("user", "u1", None, "Find the owner of the domain.", session="22222222-2222-4333-8444-555555555555"),
    claude(
        "assistant", "a1", "u1",
        [
            use(
                "toolu_T", "Task", description="look up", prompt="Find who owns example.net",
                subagent_type="general-purpose",
            ),
        ],
        session="22222222-2222-4333-8444-555555555555",
    ),
    claude(
        "user", "r1", "a1", [result("toolu_T", [text("Owner: Example Trust")])],
        session="22222222-2222-4333-8444-555555555555", toolUseResult={"status": "completed", "agentId": "ag77"},
    ),
    claude(
        "assistant", "a2", "r1", [text("It is the Example Trust.")], session="22222222-2222-4333-8444-555555555555",
    ),
]
SUB = [
    {
        "parentUuid": None, "isSidechain": True, "userType": "external", "cwd": "/home/kim/site",
        "sessionId": "22222222-2222-4333-8444-555555555555", "version": "2.1.200", "gitBranch": "main",
        "type": "user", "message": {"role": "user", "content": "Find who owns example.net"}, "uuid": "s1",
        "timestamp": "2026-05-04T10:00:00.000Z", "agentId": "ag77",
    },
    {
        "parentUuid": "s1", "isSidechain": True, "userType": "external", "cwd": "/home/kim/site",
        "sessionId": "22222222-2222-4333-8444-555555555555", "version": "2.1.200", "gitBranch": "main",
        "type": "assistant",
        "message": {
            "id": "msg_s2", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [
                {"type": "tool_use", "id": "toolu_S", "name": "WebFetch", "input": {"url": "https://example.net"}},
            ],
            "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 5},
        },
        "uuid": "s2", "timestamp": "2026-05-04T10:00:00.000Z", "agentId": "ag77",
    },
    {
        "parentUuid": "s2", "isSidechain": True, "userType": "external", "cwd": "/home/kim/site",
        "sessionId": "22222222-2222-4333-8444-555555555555", "version": "2.1.200", "gitBranch": "main",
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {
                    "type": "tool_result", "tool_use_id": "toolu_S",
                    "content": "registrant: Example Trust, secret word BADGER",
                },
            ],
        },
        "uuid": "s3", "timestamp": "2026-05-04T10:00:00.000Z", "agentId": "ag77",
    },
    {
        "parentUuid": "s3", "isSidechain": True, "userType": "external", "cwd": "/home/kim/site",
        "sessionId": "22222222-2222-4333-8444-555555555555", "version": "2.1.200", "gitBranch": "main",
        "type": "assistant",
        "message": {
            "id": "msg_s4", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "Owner: Example Trust"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 5},
        },
        "uuid": "s4", "timestamp": "2026-05-04T10:00:00.000Z", "agentId": "ag77",
    },
]

FILES = {"main.jsonl": MAIN, "agent-ag77.jsonl": SUB}

for order in (list(FILES), list(FILES)[::-1]):
    memory = Memory()
    for name in order:
        memory.add(FILES[name], name)
    again = memory.load(FILES[order[0]], order[0])
    assert again["inserted"] == 0, again
    sessions = memory.sessions()
    assert [session["messages"] for session in sessions] == [4, 4], sessions
    assert [session["parent"] for session in sessions if session["parent"]] == ["22222222-2222-4333-8444-555555555555"]
    assert "BADGER" not in memory.shown("22222222")
    memory.assert_verified()
