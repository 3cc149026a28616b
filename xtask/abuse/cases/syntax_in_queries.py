"""Queries have the signs of query languages in them: they find the text that has the signs, and never fail."""
import json

from memory import Memory
from transcripts import assistant, user

LINES = [
    user(
        (
            "Rust is memory:safe and say \"hi to the pre-edit hook; TODO: fix a.b.c in C++ (python too) foo A"
            "ND bar NEAR baz * 100% x_y it's 🦊 done"
        ),
    ),
    assistant("Agreed."),
]

SIGNS = ("memory:safe", 'say "hi', "foo AND bar", "(python", "TODO: fix", "pre-edit", "a.b.c", "C++", "NEAR baz", "100%",
         "x_y", "it's", "🦊", "*", '"', "'", "-edit", "AND", "col:", "(", "fo^o", "NOT foo", "{a b}:c")

memory = Memory()
session = memory.add(LINES)
for sign in SIGNS:
    for mode in ((), ("--mode", "words"), ("--mode", "prose"), ("--mode", "literal")):
        found = memory.run("--json", "grep", session, *mode, "--", sign)
        # A query of signs alone has no words.
        if mode and mode[1] in ("words", "prose") and found.returncode == 4:
            continue
        assert found.returncode == 0, (sign, mode, found.stderr)
        if sign in LINES[0]["content"] and mode in ((), ("--mode", "literal")):
            assert json.loads(found.stdout)["hits"], (sign, mode)
    memory.text("recall", session, "--", sign)
