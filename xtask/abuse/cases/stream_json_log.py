"""The log of an SDK's stream-json has a sub-agent's steps among the session's: the session keeps its id, and the steps
are apart."""
from memory import Memory

LINES = [
    {
        "type": "system", "subtype": "init", "cwd": "/home/kim/site",
        "session_id": "33333333-2222-4333-8444-555555555555", "tools": ["Task", "Bash"], "model": "claude-sonnet-4-5",
        "uuid": "i1",
    },
    {
        "type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "Who owns example.net?"}]},
        "parent_tool_use_id": None, "session_id": "33333333-2222-4333-8444-555555555555", "uuid": "u1",
    },
    {
        "type": "assistant",
        "message": {
            "id": "msg_a1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [
                {
                    "type": "tool_use", "id": "toolu_T", "name": "Task",
                    "input": {"description": "look up", "prompt": "Find who owns example.net", "subagent_type": "x"},
                },
            ],
            "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        "parent_tool_use_id": None, "session_id": "33333333-2222-4333-8444-555555555555", "uuid": "a1",
    },
    {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": "Find who owns example.net"}]},
        "parent_tool_use_id": "toolu_T", "session_id": "33333333-2222-4333-8444-555555555555", "uuid": "s0",
    },
    {
        "type": "assistant",
        "message": {
            "id": "msg_s1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [
                {"type": "tool_use", "id": "toolu_S", "name": "Bash", "input": {"command": "whois example.net"}},
            ],
            "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        "parent_tool_use_id": "toolu_T", "session_id": "33333333-2222-4333-8444-555555555555", "uuid": "s1",
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {
                    "type": "tool_result", "tool_use_id": "toolu_S",
                    "content": "registrant BADGER Ltd, 4000 lines of noise",
                },
            ],
        },
        "parent_tool_use_id": "toolu_T", "session_id": "33333333-2222-4333-8444-555555555555", "uuid": "s2",
    },
    {
        "type": "assistant",
        "message": {
            "id": "msg_s3", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "Owner: BADGER Ltd"}], "stop_reason": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        "parent_tool_use_id": "toolu_T", "session_id": "33333333-2222-4333-8444-555555555555", "uuid": "s3",
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {
                    "type": "tool_result", "tool_use_id": "toolu_T",
                    "content": [{"type": "text", "text": "Owner: BADGER Ltd"}],
                },
            ],
        },
        "parent_tool_use_id": None, "session_id": "33333333-2222-4333-8444-555555555555", "uuid": "r1",
    },
    {
        "type": "assistant",
        "message": {
            "id": "msg_a2", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "It is BADGER Ltd."}], "stop_reason": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        "parent_tool_use_id": None, "session_id": "33333333-2222-4333-8444-555555555555", "uuid": "a2",
    },
    {
        "type": "result", "subtype": "success", "is_error": False, "duration_ms": 5, "num_turns": 2,
        "result": "It is BADGER Ltd.", "session_id": "33333333-2222-4333-8444-555555555555", "total_cost_usd": 0.01,
        "uuid": "z1",
    },
]

memory = Memory()
memory.add(LINES)
(session, *_) = memory.sessions()
assert session["session"].startswith("33333333"), session
assert "4000 lines of noise" not in memory.shown(session["session"])
memory.assert_valid(session["session"])
