#!/usr/bin/env bash
# LiteLLM: trim_messages drops a call and keeps its result, which then has no call and is refused by providers.
# Expectation: the oldest messages go, and a call goes or stays together with its result
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install litellm==1.110.2
echo "version: litellm==1.110.2"
echo "expectation: the oldest messages go, and a call goes or stays together with its result"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from litellm.utils import trim_messages

call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
messages = [
    {"role": "user", "content": "q1 " * 30},
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "call_1", "content": "result " * 50},
    {"role": "assistant", "content": "a1 " * 30},
    {"role": "user", "content": "q2"},
]
trimmed = trim_messages(messages, model="gpt-4o", max_tokens=90)
roles = [message["role"] for message in trimmed]
print("behaviour: a list that begins with a result")
print("output:", roles)
calls = [call for message in trimmed for call in message.get("tool_calls") or []]
assert roles[0] == "tool" and not calls, "the behaviour changed"
PYTHON
