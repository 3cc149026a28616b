"""Tools of ten agents edit files under ten names of arguments: each edit is found. A shell's redirection alone is no
certain change."""
import json

from memory import Memory
from transcripts import answer, assistant, call, user

CALLS = [
    ("MultiEdit", {"file_path": "/srv/app/one.rs", "edits": [{"old_string": "a", "new_string": "b"}]}),
    ("NotebookEdit", {"notebook_path": "/srv/app/two.ipynb", "new_source": "x"}),
    ("apply_patch", {"input": "*** Begin Patch\n*** Update File: three.py\n@@\n-a\n+b\n*** End Patch"}),
    ("mcp__filesystem__write_file", {"path": "/srv/app/four.md", "content": "x"}),
    ("str_replace_based_edit_tool", {"command": "str_replace", "path": "/srv/app/five.ts", "old_str": "a", "new_str": "b"}),
    ("shell", {"command": ["bash", "-lc", "sed -i s/a/b/ six.cfg"]}),
    ("write_file", {"file_path": "C:\\work\\seven.go", "content": "x"}),
    ("edit", {"filePath": "/srv/app/eight.vue", "oldString": "a", "newString": "b"}),
    ("edit_file", {"target_file": "nine.kt", "code_edit": "x"}),
    ("create_file", {"filePath": "/srv/app/ten.swift", "content": "x"}),
]
LINES = [user("Edit everything.")]
for number, (name, arguments) in enumerate(CALLS):
    LINES += [assistant(None, tool_calls=[call(f"c{number}", name, json.dumps(arguments))]), answer(f"c{number}", "ok")]

memory = Memory()
session = memory.add(LINES)
FILES = ("one.rs", "two.ipynb", "three.py", "four.md", "five.ts", "six.cfg", "seven.go", "eight.vue", "nine.kt",
         "ten.swift")
for file in FILES:
    assert memory.uses(session, file), file
    if file != "six.cfg":
        assert memory.uses(session, file, "--action", "changed"), file
