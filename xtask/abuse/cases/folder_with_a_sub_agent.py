"""A folder has a session and its sub-agent's file, beside it or below: the two are linked."""
import os

from memory import Memory
from transcripts import SESSION, claude, in_sub_agent, result, text, use

LOOK_UP = use("toolu_T", "Task", description="look up", prompt="Find who owns example.net", subagent_type="general-purpose")
MAIN = [
    claude("user", "u1", None, "Find the owner of the domain."),
    claude("assistant", "a1", "u1", [LOOK_UP]),
    claude("user", "r1", "a1", [result("toolu_T", [text("Owner: Example Trust")])]),
]
SUB = [
    in_sub_agent(claude("user", "s1", None, "Find who owns example.net"), "ag77"),
    in_sub_agent(claude("assistant", "s2", "s1", [text("Owner: Example Trust")]), "ag77"),
]

for folder in ("project", f"project/{SESSION}/subagents"):
    memory = Memory()
    memory.write(MAIN, f"project/{SESSION}.jsonl")
    memory.write(SUB, f"{folder}/agent-ag77.jsonl")
    memory.text("import", os.path.join(memory.folder, "project"))
    parents = {session["session"]: session["parent"] for session in memory.sessions()}
    assert parents == {SESSION: None, f"{SESSION}/ag77": SESSION}, parents
