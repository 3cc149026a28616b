#!/usr/bin/env bash
# LangChain: convert_to_openai_messages leaves Anthropic's thinking blocks in the content, a type that OpenAI does not have.
# Expectation: thinking is left out, as calls are moved to their own field
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install langchain-core==1.8.3
echo "version: langchain-core==1.8.3"
echo "expectation: thinking is left out, as calls are moved to their own field"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.utils import convert_to_openai_messages

answer = AIMessage(
    content=[
        {"type": "thinking", "thinking": "The file is small.", "signature": "c2ln"},
        {"type": "text", "text": "I read it."},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.txt"}},
    ],
    tool_calls=[{"id": "toolu_1", "name": "read", "args": {"path": "a.txt"}}],
)
message = convert_to_openai_messages([HumanMessage("Read it."), answer])[1]
types = [part["type"] for part in message["content"]]
print("behaviour: the call is moved, and the thinking stays as a part of the content")
print("output:", types, [call["id"] for call in message["tool_calls"]])
assert types == ["thinking", "text"], "the behaviour changed"
PYTHON
