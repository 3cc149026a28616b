#!/usr/bin/env bash
# OpenAI Agents SDK: for chat completions, a picture in the output of a function is left out without a word.
# Expectation: the picture is sent in another message, or an error says that it cannot be sent
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install openai-agents==0.24.0
echo "version: openai-agents==0.24.0"
echo "expectation: the picture is sent in another message, or an error says that it cannot be sent"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from agents.models.chatcmpl_converter import Converter

items = [
    {"role": "user", "content": "What is on the screen?"},
    {"type": "function_call", "call_id": "call_1", "name": "screenshot", "arguments": "{}"},
    {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [
            {"type": "input_text", "text": "The screen:"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
        ],
    },
]
result = Converter.items_to_messages(items)[-1]
print("behaviour: the result has the text alone")
print("output:", result)
assert [part["type"] for part in result["content"]] == ["text"], "the behaviour changed"
PYTHON
