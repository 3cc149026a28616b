"""A web search of the provider has kilobytes of encrypted content: no model is sent them as text."""
from memory import Memory
from providers import JUDGES
from transcripts import base64_text, claude

LINES = [
    claude("user", "u1", None, "Which year was the bridge opened?"),
    claude(
        "assistant", "a1", "u1",
        [
            {
                "type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search",
                "input": {"query": "bridge opened year"},
            },
            {
                "type": "web_search_tool_result", "tool_use_id": "srvtoolu_01",
                "content": [
                    {
                        "type": "web_search_result", "url": "https://example.org/bridge", "title": "The bridge",
                        "encrypted_content": base64_text(8000), "page_age": "May 2, 2024",
                    },
                ],
            },
            {
                "type": "text", "text": "It was opened in 1907.",
                "citations": [
                    {
                        "type": "web_search_result_location", "url": "https://example.org/bridge",
                        "title": "The bridge", "encrypted_index": base64_text(200, seed=2),
                        "cited_text": "opened in 1907",
                    },
                ],
            },
        ],
    ),
    claude("user", "u2", "a1", "Thanks."),
]

memory = Memory()
session = memory.add(LINES)
memory.assert_valid(session)
for shape in JUDGES:
    sent = memory.shown(session, shape)
    # The provider takes its own blocks back.
    native = shape == "anthropic" and '"web_search_tool_result"' in sent
    assert native or base64_text(8000)[:60] not in sent, shape
