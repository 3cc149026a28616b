"""One patch changes, adds, deletes and moves files: each is listed as changed."""
import json

from memory import Memory
from transcripts import answer, assistant, call, user

PATCH = """*** Begin Patch
*** Update File: lib/first.py
@@
-a
+b
*** Add File: lib/second.py
+x
*** Delete File: lib/third.py
*** Update File: lib/old.py
*** Move to: lib/moved.py
@@
-a
+b
*** End Patch"""
LINES = [
    user("Patch both."),
    assistant(None, tool_calls=[call("c1", "apply_patch", json.dumps({"input": PATCH}))]),
    answer("c1", "ok"),
]

memory = Memory()
session = memory.add(LINES)
for file in ("first.py", "second.py", "third.py", "old.py", "moved.py"):
    assert memory.uses(session, file, "--action", "changed"), file
