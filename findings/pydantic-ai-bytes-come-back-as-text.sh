#!/usr/bin/env bash
# Pydantic AI: a history that is saved and loaded has other values in the results of tools: bytes are Base64 text, NaN is nothing.
# Expectation: the loaded history is equal to the saved one, or saving fails
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install pydantic-ai-slim==2.68.0
echo "version: pydantic-ai-slim==2.68.0"
echo "expectation: the loaded history is equal to the saved one, or saving fails"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ToolReturnPart


def loaded(value):
    history = [ModelRequest(parts=[ToolReturnPart("look", value, tool_call_id="1")])]
    saved = ModelMessagesTypeAdapter.dump_json(history)
    return ModelMessagesTypeAdapter.validate_json(saved)[0].parts[0].content


pairs = [(value, loaded(value)) for value in (bytes([0, 255]), float("nan"), {(2, 3): "b"})]
print("behaviour: other values, and no error")
print("output:", pairs)
assert [after for _, after in pairs] == ["AP8=", None, {"2,3": "b"}], "the behaviour changed"
PYTHON
