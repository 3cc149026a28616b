"""Results have resources, audio and documents of text: requests are valid, and the words are found."""
from memory import Memory
from transcripts import claude, result, text, use

LINES = [
    claude("user", "u1", None, "Open the report."),
    claude("assistant", "a1", "u1", [use("toolu_01", "mcp__docs__open", uri="doc://report")]),
    claude(
        "user", "r1", "a1",
        [
            result(
                "toolu_01",
                [
                    {
                        "type": "resource",
                        "resource": {
                            "uri": "doc://report/1", "mimeType": "text/plain",
                            "text": "Revenue: \"8.1 M\"\nMargin: 21 %",
                        },
                    },
                    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
                    {"type": "resource_link", "uri": "doc://annex", "name": "annex"},
                    {"type": "tool_reference", "tool_name": "x"},
                ],
            ),
        ],
    ),
    claude("assistant", "a2", "r1", [text("Margin is 21 %.")]),
    claude(
        "user", "u2", "a2",
        [
            {
                "type": "document",
                "source": {
                    "type": "text", "media_type": "text/plain", "data": "Annex: \"the lease ends in 2031\"\nsigned",
                },
                "title": "annex.txt", "citations": {"enabled": True},
            },
            {
                "type": "search_result", "source": "https://example.org", "title": "t",
                "content": [{"type": "text", "text": "Found \"lease 2031\" there"}],
            },
            text("Compare."),
        ],
    ),
]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
for words in ('Revenue: "8.1 M"', 'Annex: "the lease ends in 2031"', 'Found "lease 2031" there'):
    assert memory.hits(session, words, "--mode", "literal"), words
