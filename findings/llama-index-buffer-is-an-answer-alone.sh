#!/usr/bin/env bash
# LlamaIndex: ChatMemoryBuffer may return a single message of the assistant as the whole history.
# Expectation: the history begins with the user, or is empty
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install llama-index-core==0.14.25
echo "version: llama-index-core==0.14.25"
echo "expectation: the history begins with the user, or is empty"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

buffer = ChatMemoryBuffer.from_defaults(token_limit=6, tokenizer_fn=str.split)
buffer.put(ChatMessage(role="user", content="two words"))
buffer.put(ChatMessage(role="assistant", content="calling it", additional_kwargs={"tool_calls": [{"id": "1"}]}))
buffer.put(ChatMessage(role="tool", content="found", additional_kwargs={"tool_call_id": "1"}))
buffer.put(ChatMessage(role="assistant", content="the answer"))
history = [(message.role.value, message.content) for message in buffer.get()]
print("behaviour: the assistant's last message alone")
print("output:", history)
assert history == [("assistant", "the answer")], "the behaviour changed"
PYTHON
