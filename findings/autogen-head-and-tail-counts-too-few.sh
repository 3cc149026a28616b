#!/usr/bin/env bash
# AutoGen: HeadAndTailChatCompletionContext tells the model how many messages were skipped, and does not count a call that it drops too.
# Expectation: the number of skipped messages is the number of messages that are not in the list
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install autogen-core==0.7.5
echo "version: autogen-core==0.7.5"
echo "expectation: the number of skipped messages is the number of messages that are not in the list"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio

from autogen_core import FunctionCall
from autogen_core.model_context import HeadAndTailChatCompletionContext
from autogen_core.models import AssistantMessage, FunctionExecutionResult, FunctionExecutionResultMessage, UserMessage

call = FunctionCall(id="1", name="look", arguments="{}")
result = FunctionExecutionResult(content="found", call_id="1", name="look", is_error=False)
messages = [
    UserMessage(content="question", source="user"),
    AssistantMessage(content=[call], source="agent"),
    FunctionExecutionResultMessage(content=[result]),
    AssistantMessage(content="answer", source="agent"),
    UserMessage(content="thanks", source="user"),
    AssistantMessage(content="welcome", source="agent"),
]


async def main():
    context = HeadAndTailChatCompletionContext(head_size=2, tail_size=1)
    for message in messages:
        await context.add_message(message)
    return await context.get_messages()


shown = asyncio.run(main())
remark = next(str(message.content) for message in shown if "kipped" in str(message.content))
missing = len(messages) - (len(shown) - 1)
print("behaviour: the remark names fewer messages than are missing")
print("output:", repr(remark), "missing:", missing)
assert missing == 4 and "3" in remark, "the behaviour changed"
PYTHON
