"""One patch changes, adds, deletes and moves files: each is listed as changed."""
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("Patch both."),
    assistant(
        None,
        tool_calls=[
            {
                "id": "c1", "type": "function",
                "function": {
                    "name": "apply_patch",
                    "arguments": (
                        "{\"input\": \"*** Begin Patch\\n*** Update File: lib/first.py\\n@@\\n-a\\n+b\\n*** Add File: lib/second"
                        ".py\\n+x\\n*** Delete File: lib/third.py\\n*** Update File: lib/old.py\\n*** Move to: lib/moved.py\\"
                        "n@@\\n-a\\n+b\\n*** End Patch\"}"
                    ),
                },
            },
        ],
    ),
    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
]

memory = Memory()
session = memory.add(LINES)
for file in ("first.py", "second.py", "third.py", "old.py", "moved.py"):
    assert memory.uses(session, file, "--action", "changed"), file
