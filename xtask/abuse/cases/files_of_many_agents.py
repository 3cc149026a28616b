"""Tools of ten agents edit files under ten names of arguments: each edit is found. A shell's redirection alone is no
certain change."""
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("Edit everything."),
    assistant(
        None,
        tool_calls=[
            {
                "id": "c0", "type": "function",
                "function": {
                    "name": "MultiEdit",
                    "arguments": (
                        "{\"file_path\": \"/srv/app/one.rs\", \"edits\": [{\"old_string\": \"a\", \"new_string\": \"b\"}]}"
                    ),
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c0", "content": "ok"},
    assistant(
        None,
        tool_calls=[
            {
                "id": "c1", "type": "function",
                "function": {
                    "name": "NotebookEdit",
                    "arguments": "{\"notebook_path\": \"/srv/app/two.ipynb\", \"new_source\": \"x\"}",
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    assistant(
        None,
        tool_calls=[
            {
                "id": "c2", "type": "function",
                "function": {
                    "name": "apply_patch",
                    "arguments": (
                        "{\"input\": \"*** Begin Patch\\n*** Update File: three.py\\n@@\\n-a\\n+b\\n*** End Patch\"}"
                    ),
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c2", "content": "ok"},
    assistant(
        None,
        tool_calls=[
            {
                "id": "c3", "type": "function",
                "function": {
                    "name": "mcp__filesystem__write_file",
                    "arguments": "{\"path\": \"/srv/app/four.md\", \"content\": \"x\"}",
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c3", "content": "ok"},
    assistant(
        None,
        tool_calls=[
            {
                "id": "c4", "type": "function",
                "function": {
                    "name": "str_replace_based_edit_tool",
                    "arguments": (
                        "{\"command\": \"str_replace\", \"path\": \"/srv/app/five.ts\", \"old_str\": \"a\", \"new_str\": \"b\"}"
                    ),
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c4", "content": "ok"},
    assistant(
        None,
        tool_calls=[
            {
                "id": "c5", "type": "function",
                "function": {
                    "name": "shell", "arguments": "{\"command\": [\"bash\", \"-lc\", \"sed -i s/a/b/ six.cfg\"]}",
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c5", "content": "ok"},
    assistant(
        None,
        tool_calls=[
            {
                "id": "c6", "type": "function",
                "function": {
                    "name": "write_file",
                    "arguments": "{\"file_path\": \"C:\\\\work\\\\seven.go\", \"content\": \"x\"}",
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c6", "content": "ok"},
    assistant(
        None,
        tool_calls=[
            {
                "id": "c7", "type": "function",
                "function": {
                    "name": "edit",
                    "arguments": "{\"filePath\": \"/srv/app/eight.vue\", \"oldString\": \"a\", \"newString\": \"b\"}",
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c7", "content": "ok"},
    assistant(
        None,
        tool_calls=[
            {
                "id": "c8", "type": "function",
                "function": {
                    "name": "edit_file", "arguments": "{\"target_file\": \"nine.kt\", \"code_edit\": \"x\"}",
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c8", "content": "ok"},
    assistant(
        None,
        tool_calls=[
            {
                "id": "c9", "type": "function",
                "function": {
                    "name": "create_file", "arguments": "{\"filePath\": \"/srv/app/ten.swift\", \"content\": \"x\"}",
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c9", "content": "ok"},
]

memory = Memory()
session = memory.add(LINES)
FILES = ("one.rs", "two.ipynb", "three.py", "four.md", "five.ts", "six.cfg", "seven.go", "eight.vue", "nine.kt",
         "ten.swift")
for file in FILES:
    assert memory.uses(session, file), file
    if file != "six.cfg":
        assert memory.uses(session, file, "--action", "changed"), file
