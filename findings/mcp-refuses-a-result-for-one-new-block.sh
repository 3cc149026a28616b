#!/usr/bin/env bash
# MCP's Python SDK: one block of a type that it does not know makes the whole result of a tool invalid, with the blocks that it knows.
# Expectation: known blocks are read, and an unknown one is kept as it is
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install mcp==2.1.1
echo "version: mcp==2.1.1"
echo "expectation: known blocks are read, and an unknown one is kept as it is"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import mcp.types
from pydantic import ValidationError

result = {"content": [{"type": "text", "text": "known"}, {"type": "a-later-type", "data": "x"}]}
try:
    mcp.types.CallToolResult.model_validate(result)
    error = None
except ValidationError as found:
    error = found
extra = mcp.types.TextContent.model_validate({"type": "text", "text": "known", "later": 1}).model_dump()
print("behaviour: an error for the block, while a field that it does not know is dropped without one")
print("output:", type(error).__name__, error and error.error_count(), "later" in extra)
assert error is not None and "later" not in extra, "the behaviour changed"
PYTHON
