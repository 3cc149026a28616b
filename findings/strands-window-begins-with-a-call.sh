#!/usr/bin/env bash
# Strands Agents: a sliding window begins with a call of the assistant if the newest message is a result, and with the user otherwise.
# Expectation: a window always begins with a message of the user, as the Converse API asks
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install strands-agents==1.62.0
echo "version: strands-agents==1.62.0"
echo "expectation: a window always begins with a message of the user, as the Converse API asks"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from types import SimpleNamespace

from strands.agent.conversation_manager import SlidingWindowConversationManager


def user(text):
    return {"role": "user", "content": [{"text": text}]}


def assistant(text):
    return {"role": "assistant", "content": [{"text": text}]}


call = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "look", "input": {}}}]}
result = {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "status": "success", "content": [{"text": "found"}]}}]}


def window(size, messages):
    agent = SimpleNamespace(messages=list(messages))
    SlidingWindowConversationManager(window_size=size).apply_management(agent)
    return [(message["role"], *message["content"][0]) for message in agent.messages]


done = window(3, [user("one"), call, result, assistant("answer"), user("two")])
open_call = window(2, [user("one"), assistant("answer"), user("two"), call, result])
print("behaviour: one message of three in the first case, and a window without the question in the second")
print("output:", done, open_call)
assert done == [("user", "text")], "the behaviour changed"
assert open_call == [("assistant", "toolUse"), ("user", "toolResult")], "the behaviour changed"
PYTHON
