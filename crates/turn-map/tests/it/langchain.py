"""Records what LangChain's trim_messages makes of random lists, for langchain.rs.

    python -m venv judge && judge/bin/pip install langchain-core==1.7.2
    judge/bin/python crates/turn-map/tests/it/langchain.py > crates/turn-map/tests/it/langchain.jsonl

The first line is the version. Every other line is a case: the messages, the arguments, and the positions
of the result's messages, with the texts of those that were changed, or what was raised. A message is its
role, its content (a text, or a list of texts and of null for an image) and, if any, the ids of its calls
or the id of the call that it answers.
"""

import json
import random
import sys
from importlib.metadata import version

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)

CASES = 500
WORDS = "red green blue ünï 日本 a to see what is in the long file".split()
NAMES = {"system": "system", "user": "human", "assistant": "ai", "tool": "tool"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def text(rng):
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 4))]
    return "\n".join(lines) + rng.choice(["", "", "", "\n"])


def content(rng, blocks):
    if rng.random() >= blocks:
        return text(rng)
    return [text(rng) if rng.random() < 0.8 else None for _ in range(rng.randint(1, 4))]


class Lists:
    """Lists as agents write them, a fifth of them with broken pairs."""

    def __init__(self, rng):
        self.rng = rng
        self.next = 0

    def call(self):
        self.next += 1
        return f"c{self.next}"

    def round(self, broken):
        rng = self.rng
        if rng.random() < 0.4:
            return [["assistant", content(rng, 0.3)]]
        calls = [self.call() for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        said = text(rng) if rng.random() < 0.5 else ""
        results = [["tool", text(rng), call] for call in calls]
        rng.shuffle(results)
        if broken and rng.random() < 0.4:
            results.pop()
        if broken and rng.random() < 0.3:
            results.append(["tool", text(rng), f"none{self.next}"])
        if broken and results and rng.random() < 0.3:
            results.insert(rng.randrange(len(results)), ["user", text(rng)])
        return [["assistant", said, calls], *results]

    def list(self):
        rng = self.rng
        broken = rng.random() < 0.2
        messages = []
        if rng.random() < 0.6:
            messages.append(["system", text(rng)])
        for _ in range(rng.randint(0, 4)):
            if rng.random() < 0.9:
                messages.append(["user", content(rng, 0.3)])
            for _ in range(rng.randint(0, 3)):
                messages.extend(self.round(broken))
        return messages


def message(position, value):
    role, content, *ids = value
    if isinstance(content, list):
        content = [IMAGE if said is None else {"type": "text", "text": said} for said in content]
    if role == "system":
        return SystemMessage(content, id=str(position))
    if role == "user":
        return HumanMessage(content, id=str(position))
    if role == "tool":
        return ToolMessage(content, tool_call_id=ids[0], id=str(position))
    calls = [{"id": call, "name": "read", "args": {}} for call in (ids[0] if ids else [])]
    return AIMessage(content, tool_calls=calls, id=str(position))


def blocks(message):
    return [message.content] if isinstance(message.content, str) else message.content


def letters(messages):
    """Three for each message, ten for an image or a call, and a fourth of each text's characters."""
    total = 0
    for message in messages:
        total += 3 + 10 * len(getattr(message, "tool_calls", None) or [])
        for block in blocks(message):
            said = block if isinstance(block, str) else block.get("text")
            total += 10 if said is None else (len(said) + 3) // 4
    return total


COUNTERS = {"letters": letters, "messages": len}
SPLITTERS = {"lines": None, "words": lambda text: text.replace(" ", " \0").split("\0"), "characters": list}


def arguments(rng, messages):
    counter = rng.choice(["letters", "letters", "letters", "messages"])
    whole = COUNTERS[counter]([message(at, value) for at, value in enumerate(messages)])
    roles = lambda odds: sorted(rng.sample(sorted(NAMES), rng.choice([1, 1, 2]))) if rng.random() < odds else []
    first = rng.random() < 0.35
    # Some combinations that trim_messages refuses.
    refused = rng.random() < 0.1
    return {
        "max_tokens": rng.randint(0, whole + 5),
        "counter": counter,
        "strategy": "first" if first else "last",
        "allow_partial": rng.random() < 0.7,
        "start_on": roles(0.5) if refused or not first else [],
        "end_on": roles(0.4),
        "include_system": rng.random() < 0.5 if refused or not first else False,
        "text_splitter": rng.choice(sorted(SPLITTERS)),
    }


def judged(messages, given):
    try:
        result = trim_messages(
            [message(at, value) for at, value in enumerate(messages)],
            max_tokens=given["max_tokens"],
            token_counter=COUNTERS[given["counter"]],
            strategy=given["strategy"],
            allow_partial=given["allow_partial"],
            start_on=[NAMES[role] for role in given["start_on"]] or None,
            end_on=[NAMES[role] for role in given["end_on"]] or None,
            include_system=given["include_system"],
            text_splitter=SPLITTERS[given["text_splitter"]],
        )
    except ValueError as error:
        return {"raised": str(error)}
    kept = [int(message.id) for message in result]
    changed = [
        [at, [block if isinstance(block, str) else block.get("text") for block in blocks(part)]]
        for at, part in zip(kept, result, strict=True)
        if part.content != message(at, messages[at]).content
    ]
    return {"kept": kept, "changed": changed}


def main():
    rng = random.Random(20260802)
    write = lambda value: print(json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True))
    write({"langchain-core": version("langchain-core")})
    for _ in range(CASES):
        messages = Lists(rng).list()
        given = arguments(rng, messages)
        write({"messages": messages, "given": given, **judged(messages, given)})


if __name__ == "__main__":
    sys.exit(main())
