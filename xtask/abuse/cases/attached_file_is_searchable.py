"""A client attaches a file and a hook's words for the model: they are found."""
from memory import Memory
from transcripts import claude, text

LINES = [
    claude("user", "u1", None, "Fix the rounding in @src/tax.rs"),
    {
        "type": "attachment", "parentUuid": "u1", "isSidechain": False, "uuid": "t1",
        "sessionId": "11111111-2222-4333-8444-555555555555", "timestamp": "2026-05-04T10:00:00.500Z",
        "attachment": {
            "type": "file", "filename": "/home/kim/site/src/tax.rs",
            "content": {
                "type": "text",
                "file": {
                    "filePath": "/home/kim/site/src/tax.rs", "content": "fn levy_rate() -> f64 { 0.1925 }",
                    "numLines": 1, "startLine": 1, "totalLines": 1,
                },
            },
        },
    },
    {
        "type": "attachment", "parentUuid": "t1", "isSidechain": False, "uuid": "t2",
        "sessionId": "11111111-2222-4333-8444-555555555555", "timestamp": "2026-05-04T10:00:00.600Z",
        "attachment": {
            "type": "hook_additional_context", "content": ["House rule: amounts are in mills."],
            "hookName": "UserPromptSubmit",
        },
    },
    claude("assistant", "a1", "t2", [text("The rate needs rounding.")]),
]

memory = Memory()
session = memory.add(LINES)
for words in ("levy_rate", "amounts are in mills"):
    assert memory.hits(session, words), words
