"""Pictures have no data, a placeholder, or a data URL as their data: no request has them as they are."""
from memory import Memory
from transcripts import base64_text, claude, result, text, use

LINES = [
    claude(
        "user", "u1", None,
        [
            text("What is on it?"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
        ],
    ),
    claude("assistant", "a1", "u1", [use("toolu_01", "Read", file_path="/home/kim/a.png")]),
    claude(
        "user", "r1", "a1",
        [
            result(
                "toolu_01",
                [
                    {
                        "type": "image",
                        "source": {
                            "type": "base64", "media_type": "image/png",
                            "data": "[blob missing: sha256 of the picture]",
                        },
                    },
                ],
            ),
        ],
    ),
    claude("assistant", "a2", "r1", [text("Nothing there.")]),
    claude(
        "user", "u2", "a2",
        [
            {
                "type": "image",
                "source": {
                    "type": "base64", "media_type": "image/png", "data": "data:image/png;base64," + base64_text(412),
                },
            },
            text("And here?"),
        ],
    ),
]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
