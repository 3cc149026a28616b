"""The log of an SDK's stream-json has a sub-agent's steps among the session's: the session keeps its id, and the steps
are apart."""
from memory import Memory
from transcripts import result, text, use

SESSION = "33333333-2222-4333-8444-555555555555"


def line(kind, uuid, content, call=None):
    """A message of the log; `call` is the one that started the sub-agent."""
    message = {"role": kind, "content": [content]}
    if kind == "assistant":
        message = {"id": "msg_" + uuid, "type": "message", "role": kind, "model": "claude-sonnet-4-5", "content": [content],
                   "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    return {"type": kind, "message": message, "parent_tool_use_id": call, "session_id": SESSION, "uuid": uuid}


LINES = [
    {"type": "system", "subtype": "init", "cwd": "/home/kim/site", "session_id": SESSION, "tools": ["Task", "Bash"],
     "model": "claude-sonnet-4-5", "uuid": "i1"},
    line("user", "u1", text("Who owns example.net?")),
    line("assistant", "a1", use("toolu_T", "Task", description="look up", prompt="Find who owns example.net", subagent_type="x")),
    line("user", "s0", text("Find who owns example.net"), "toolu_T"),
    line("assistant", "s1", use("toolu_S", command="whois example.net"), "toolu_T"),
    line("user", "s2", result("toolu_S", "registrant BADGER Ltd, 4000 lines of noise"), "toolu_T"),
    line("assistant", "s3", text("Owner: BADGER Ltd"), "toolu_T"),
    line("user", "r1", result("toolu_T", [text("Owner: BADGER Ltd")])),
    line("assistant", "a2", text("It is BADGER Ltd.")),
    {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 5, "num_turns": 2,
     "result": "It is BADGER Ltd.", "session_id": SESSION, "total_cost_usd": 0.01, "uuid": "z1"},
]

memory = Memory()
memory.add(LINES)
(session, *_) = memory.sessions()
assert session["session"].startswith("33333333"), session
assert "4000 lines of noise" not in memory.shown(session["session"])
memory.assert_valid(session["session"])
