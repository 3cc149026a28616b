"""A failed result has a picture, and the Messages API takes only text in an error: the picture is not sent in it."""
import json

from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "Take a screenshot."),
    claude("assistant", "a1", "u1", [use("toolu_01", "Screenshot")]),
    claude(
        "user", "r1", "a1",
        [
            result(
                "toolu_01",
                [
                    text("timeout after 30 s"),
                    {
                        "type": "image",
                        "source": {
                            "type": "base64", "media_type": "image/png",
                            "data": (
                                "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg="
                                "="
                            ),
                        },
                    },
                ],
                is_error=True,
            ),
        ],
    ),
    claude("assistant", "a2", "r1", [text("It timed out.")]),
]

memory = Memory()
blocks = [block for message in memory.request(memory.add(LINES))["messages"] for block in message["content"]]
(failed,) = [block for block in blocks if block["type"] == "tool_result"]
assert "timeout after" in json.dumps(failed)
if failed.get("is_error") and isinstance(failed["content"], list):
    assert all(part["type"] == "text" for part in failed["content"]), failed
