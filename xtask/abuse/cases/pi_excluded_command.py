"""A user of pi keeps the output of a command from the model: it is stored, and not in the context."""
from memory import Memory
from transcripts import pi, pi_entry, pi_session


def bash(id, parent, command, output, **more):
    return pi_entry("message", id, parent, message={"role": "bashExecution", "command": command, "output": output,
                    "exitCode": 0, "cancelled": False, "truncated": False, "timestamp": 1777888802000, **more})


LINES = pi_session(
    pi("m1", None, "user", "Hello"),
    bash("m2", "m1", "cat token.txt", "TOKEN=ZEBRA-SEVEN", excludeFromContext=True),
    bash("m3", "m2", "ls", "README.md"),
    pi("m4", "m3", "user", "What is here?"),
)

memory = Memory()
session = memory.add(LINES)
shown = memory.shown(session)
assert "ZEBRA-SEVEN" not in shown
assert "README.md" in shown
assert "ZEBRA-SEVEN" in memory.text("export", session)
