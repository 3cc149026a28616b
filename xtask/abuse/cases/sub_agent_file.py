"""A sub-agent has a file of its own, which is imported before or after its parent's: the sessions are linked, and stay
apart."""
from memory import Memory
from transcripts import SESSION, claude, in_sub_agent, result, text, use

LOOK_UP = use("toolu_T", "Task", description="look up", prompt="Find who owns example.net", subagent_type="general-purpose")
MAIN = [
    claude("user", "u1", None, "Find the owner of the domain."),
    claude("assistant", "a1", "u1", [LOOK_UP]),
    claude("user", "r1", "a1", [result("toolu_T", [text("Owner: Example Trust")])],
           toolUseResult={"status": "completed", "agentId": "ag77"}),
    claude("assistant", "a2", "r1", [text("It is the Example Trust.")]),
]
SUB = [
    in_sub_agent(line, "ag77") for line in [
        claude("user", "s1", None, "Find who owns example.net"),
        claude("assistant", "s2", "s1", [use("toolu_S", "WebFetch", url="https://example.net")]),
        claude("user", "s3", "s2", [result("toolu_S", "registrant: Example Trust, secret word BADGER")]),
        claude("assistant", "s4", "s3", [text("Owner: Example Trust")]),
    ]
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
    assert [session["parent"] for session in sessions if session["parent"]] == [SESSION]
    assert "BADGER" not in memory.shown(SESSION)
    memory.assert_verified()
