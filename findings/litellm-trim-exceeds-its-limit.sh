#!/usr/bin/env bash
# LiteLLM: trim_messages returns more than max_tokens when the list ends with a result.
# Expectation: the list that is returned has at most max_tokens
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install litellm==1.110.2
echo "version: litellm==1.110.2"
echo "expectation: the list that is returned has at most max_tokens"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from litellm.utils import token_counter, trim_messages

call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
messages = [
    {"role": "user", "content": "question " * 100},
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "call_1", "content": "result " * 50},
]
trimmed = trim_messages(messages, model="gpt-4o", max_tokens=100)
count = token_counter(model="gpt-4o", messages=trimmed)
print("behaviour: its own counter counts more than the limit of 100")
print("output:", count, [message["role"] for message in trimmed])
assert count > 100, "the behaviour changed"
PYTHON
