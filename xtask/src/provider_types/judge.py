"""Holds requests against the types of the providers' own libraries: `judge.py FOLDER`, or `judge.py` for the self-test.

FOLDER has files NAME.SHAPE.json, with one request, and NAME.SHAPE.jsonl, with one a line; SHAPE is one of SHAPES. The
self-test comes first in any case: good requests must be accepted, and bad ones refused at the path that is bad.

The libraries' types are looser than what they say: typed dictionaries let unknown keys pass, iterables are looked into
only when they are read, responses are taken for requests, and a field has two names. So the schemas that pydantic makes of them are tightened.
"""

import copy
import json
import sys
from pathlib import Path
from typing import Any, List, Optional, Union

import anthropic.types
import google.genai.types
import openai.types.chat
import openai.types.responses
import openai.types.shared
import openai.types.shared_params
from google.ai import generativelanguage_v1beta
from google.protobuf import json_format
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

# The fields of a request: their types, and whether they are required.
FIELDS = {
    "openai": {
        "messages": (List[openai.types.chat.ChatCompletionMessageParam], True),
        "tools": (List[openai.types.chat.ChatCompletionToolUnionParam], False),
        "model": (str, False),
        "max_tokens": (int, False),
        "max_completion_tokens": (int, False),
        "temperature": (float, False),
        "reasoning_effort": (openai.types.shared.ReasoningEffort, False),
        "stream": (bool, False),
        "stream_options": (openai.types.chat.ChatCompletionStreamOptionsParam, False),
    },
    "responses": {
        "instructions": (Optional[str], False),
        "input": (openai.types.responses.ResponseInputParam, True),
        "tools": (List[openai.types.responses.ToolParam], False),
        "model": (str, False),
        "max_output_tokens": (int, False),
        "temperature": (float, False),
        "reasoning": (openai.types.shared_params.Reasoning, False),
        "store": (bool, False),
        "stream": (bool, False),
    },
    "anthropic": {
        "system": (Union[str, List[anthropic.types.TextBlockParam]], False),
        "messages": (List[anthropic.types.MessageParam], True),
        "tools": (List[anthropic.types.ToolParam], False),
        "model": (str, False),
        "max_tokens": (int, False),
        "temperature": (float, False),
        "thinking": (anthropic.types.ThinkingConfigParam, False),
        "output_config": (anthropic.types.OutputConfigParam, False),
        "stream": (bool, False),
    },
    "gemini": {
        "systemInstruction": (google.genai.types.Content, False),
        "contents": (List[google.genai.types.Content], True),
        "tools": (List[google.genai.types.Tool], False),
        "generationConfig": (google.genai.types.GenerationConfig, False),
    },
}
SHAPES = list(FIELDS)

# Stands for the path of what protobuf refuses: its errors name the place in words.
PROTOBUF = ("GenerateContentRequest",)


def is_response(node: Any, definitions: dict[str, Any]) -> bool:
    """Whether a schema is a response's model, which takes any key; requests are typed dictionaries."""
    if node["type"] == "definition-ref":
        return is_response(definitions[node["schema_ref"]], definitions)
    if node["type"] == "union":
        return all(is_response(choice_of(choice), definitions) for choice in node["choices"])
    if node["type"].startswith("function-"):
        return is_response(node["schema"], definitions)
    return node["type"] == "model"


def choice_of(choice: Any) -> Any:
    return choice[0] if isinstance(choice, (tuple, list)) else choice


def tighten(node: Any, definitions: dict[str, Any], models: bool) -> Any:
    """Refuses unknown keys and Python's names of fields, looks into iterables, and takes no response for a request.

    `models`: the requests are models themselves.
    """
    if isinstance(node, (list, tuple)):
        return type(node)(tighten(item, definitions, models) for item in node)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if kind == "union" and not models:
        requests = [c for c in node["choices"] if not is_response(choice_of(c), definitions)]
        node = {**node, "choices": requests or node["choices"]}
    if kind == "generator":
        node = {"type": "list", "items_schema": node["items_schema"]}
    if kind == "typed-dict" and node.get("extra_behavior") != "allow":
        if (node.get("config") or {}).get("extra_fields_behavior") != "allow":
            node = {**node, "extra_behavior": "forbid"}
    if kind == "model":
        # A constructor of its own would call the validator that is not tightened.
        node = {**node, "custom_init": False, "config": {**node.get("config", {}), "validate_by_name": False}}
    if kind in ("str", "bool", "int", "float"):
        # Not for the whole: bytes come as base64.
        node = {**node, "strict": True}
    kept = ("metadata", "serialization", "cls")
    return {key: value if key in kept else tighten(value, definitions, models) for key, value in node.items()}


def validator(shape: str, kind: Any) -> SchemaValidator:
    adapter = TypeAdapter(kind)
    # The models of google-genai are built on demand.
    adapter.rebuild(force=True)
    schema = adapter.core_schema
    definitions = {d["ref"]: d for d in schema.get("definitions", [])}
    # A model's own validator, if it was built before, is not tightened.
    return SchemaValidator(tighten(schema, definitions, shape == "gemini"), _use_prebuilt=False)


VALIDATORS = {
    shape: {name: (validator(shape, kind), required) for name, (kind, required) in fields.items()}
    for shape, fields in FIELDS.items()
}


def readable(errors: list[Any]) -> list[Any]:
    """Without the errors of a union's choices that are of another type or role than the value, if one choice fits."""
    tags = [e["loc"] for e in errors if e["type"] in ("literal_error", "missing") and e["loc"][-1:] in (("type",), ("role",))]
    others = {tag[:-1] for tag in tags if len(tag) > 1}

    def choice(loc: tuple[Any, ...], union: tuple[Any, ...]) -> Any:
        return loc[: len(union) + 1] if loc[: len(union)] == union and len(loc) > len(union) else None

    def dropped(loc: tuple[Any, ...]) -> bool:
        for other in others:
            if loc[: len(other)] == other:
                choices = {choice(e["loc"], other[:-1]) for e in errors} - {None}
                if choices - others or loc not in tags:
                    return True
        return False

    return [e for e in errors if not dropped(e["loc"])] or errors


def place_of(value: Any, loc: tuple[Any, ...]) -> tuple[Any, ...]:
    """The keys of an error's place, without the names of the choices that pydantic writes between them."""
    path = []
    for at, key in enumerate(loc):
        if isinstance(value, dict) and (key in value or at + 1 == len(loc)):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            continue
        path.append(key)
    return tuple(path)


def judge_protobuf(request: dict[str, Any]) -> list[tuple[tuple[Any, ...], str]]:
    """Google's own message, which knows what excludes what. Its settings are older than levels of thinking."""
    message = generativelanguage_v1beta.GenerateContentRequest.pb()()
    try:
        json_format.ParseDict({name: value for name, value in request.items() if name != "generationConfig"}, message)
    except json_format.ParseError as error:
        return [(PROTOBUF, str(error))]
    contents = [("contents", at, content) for at, content in enumerate(message.contents)]
    return [
        ((name, at, "parts", part_at), "the part has no data")
        for name, at, content in [*contents, ("systemInstruction", 0, message.system_instruction)]
        for part_at, part in enumerate(content.parts)
        if part.WhichOneof("data") is None
    ]


def judge(shape: str, request: Any) -> list[tuple[tuple[Any, ...], str]]:
    """What is wrong with a request: paths and reasons."""
    if not isinstance(request, dict):
        return [((), "the request is no object")]
    fields = VALIDATORS[shape]
    found = [((name,), "a request has no such field") for name in request if name not in fields]
    for name, (field, required) in fields.items():
        if name not in request:
            found += [((name,), "the field is missing")] if required else []
            continue
        try:
            field.validate_json(json.dumps(request[name]))
        except ValidationError as error:
            errors = readable(error.errors(include_url=False))
            found += [(place_of(request, (name, *error["loc"])), error["msg"]) for error in errors]
    if shape == "gemini":
        found += judge_protobuf(request)
    return list(dict.fromkeys(found))


# A good request of each shape.
GOOD: dict[str, Any] = {
    "openai": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "A cat."},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
        "model": "m",
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "responses": {
        "instructions": "Be brief.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "encrypted_content": "aGk=",
            },
            {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "b"},
            {"role": "assistant", "content": "A cat."},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "content": [{"type": "output_text", "text": "A cat.", "annotations": []}],
            },
        ],
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}],
        "model": "m",
        "max_output_tokens": 9,
        "reasoning": {"effort": "low"},
        "store": False,
        "stream": True,
    },
    "anthropic": {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "aGk="},
                    {"type": "redacted_thinking", "data": "aGk="},
                    {"type": "tool_use", "id": "1", "name": "look", "input": {"x": [1]}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "b"}],
                    }
                ],
            },
            {"role": "assistant", "content": "A cat."},
        ],
        "tools": [{"name": "look", "input_schema": {"type": "object", "additionalProperties": False}}],
        "model": "m",
        "max_tokens": 9,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low"},
        "stream": True,
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "Hm.", "thought": True},
                    {"functionCall": {"id": "1", "name": "look", "args": {"x": [1]}}, "thoughtSignature": "aGk="},
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "1", "name": "look", "response": {"output": "b"}}}],
            },
            {"role": "model", "parts": [{"text": "A cat."}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": {"type": "object"}}]}],
        "generationConfig": {"maxOutputTokens": 9, "temperature": 0.5, "thinkingConfig": {"thinkingBudget": 0}},
    },
}

# What makes it bad: the path of a value, and the value that takes its place; GONE takes it away. A finding must name
# the path, one inside, or the object around it.
GONE = object()
BAD: list[tuple[str, tuple[Any, ...], Any]] = [
    ("openai", ("name",), "m"),
    ("openai", ("max_output_tokens",), 9),
    ("openai", ("reasoning_effort",), "much"),
    ("openai", ("stream",), "yes"),
    ("openai", ("stream_options", "usage"), True),
    ("openai", ("messages",), GONE),
    ("openai", ("messages", 0, "role"), "model"),
    ("openai", ("messages", 0, "content"), GONE),
    ("openai", ("messages", 0, "content"), None),
    ("openai", ("messages", 1, "content", 0, "type"), "input_text"),
    ("openai", ("messages", 1, "content", 0, "extra"), 1),
    ("openai", ("messages", 1, "content", 1, "image_url"), "https://a.b/c.png"),
    ("openai", ("messages", 2, "tool_calls", 0, "function", "arguments"), {}),
    ("openai", ("messages", 2, "tool_calls", 0, "function", "extra"), 1),
    ("openai", ("messages", 2, "tool_calls", 0, "id"), GONE),
    ("openai", ("messages", 2, "tool_calls", 0, "id"), 1),
    ("openai", ("messages", 3, "tool_call_id"), GONE),
    ("openai", ("messages", 3, "content", 0, "type"), "image_url"),
    ("openai", ("messages", 4, "reasoning"), "Hm."),
    ("openai", ("tools", 0, "function", "parameters"), "{}"),
    ("openai", ("tools", 0, "function", "input_schema"), {}),
    ("responses", ("messages",), []),
    ("responses", ("max_tokens",), 9),
    ("responses", ("reasoning", "effort"), "much"),
    ("responses", ("reasoning_effort",), "low"),
    ("responses", ("stream_options",), {"include_usage": True}),
    ("responses", ("instructions",), []),
    ("responses", ("input", 0, "role"), "tool"),
    ("responses", ("input", 0, "content", 0, "type"), "text"),
    ("responses", ("input", 0, "content", 0, "extra"), 1),
    ("responses", ("input", 0, "content", 1, "image_url"), {"url": "https://a.b/c.png"}),
    ("responses", ("input", 1, "summary"), GONE),
    ("responses", ("input", 1, "summary", 0, "type"), "text"),
    ("responses", ("input", 2, "arguments"), {}),
    ("responses", ("input", 2, "call_id"), GONE),
    ("responses", ("input", 2, "tool_call_id"), "1"),
    ("responses", ("input", 3, "output"), None),
    ("responses", ("input", 4, "content"), [{"type": "output_text", "text": "A cat."}]),
    ("responses", ("input", 5, "content", 0, "text"), GONE),
    ("responses", ("tools", 0, "function"), {}),
    ("anthropic", ("system",), [{"type": "text"}]),
    ("anthropic", ("system", 0, "cache_control"), {"type": "for ever"}),
    ("anthropic", ("max_tokens",), "9"),
    ("anthropic", ("thinking",), {"type": "on"}),
    ("anthropic", ("output_config", "effort"), "minimal"),
    ("anthropic", ("reasoning_effort",), "low"),
    ("anthropic", ("system", 0, "extra"), 1),
    ("anthropic", ("messages", 0, "role"), "tool"),
    ("anthropic", ("messages", 0, "name"), "ada"),
    ("anthropic", ("messages", 0, "content", 0, "extra"), 1),
    ("anthropic", ("messages", 0, "content", 1, "source", "media_type"), "image/svg+xml"),
    ("anthropic", ("messages", 0, "content", 1, "source", "extra"), 1),
    ("anthropic", ("messages", 1, "content", 0, "signature"), GONE),
    ("anthropic", ("messages", 1, "content", 0, "cache_control"), {"type": "ephemeral"}),
    ("anthropic", ("messages", 1, "content", 1, "data"), GONE),
    ("anthropic", ("messages", 1, "content", 2, "input"), "{}"),
    ("anthropic", ("messages", 1, "content", 2, "id"), GONE),
    ("anthropic", ("messages", 2, "content", 0, "tool_use_id"), GONE),
    ("anthropic", ("messages", 2, "content", 0, "is_error"), "yes"),
    ("anthropic", ("messages", 2, "content", 0, "content", 0, "type"), "tool_use"),
    ("anthropic", ("messages", 2, "content", 0, "content", 0, "extra"), 1),
    ("anthropic", ("tools", 0, "input_schema"), GONE),
    ("anthropic", ("tools", 0, "parameters"), {}),
    ("gemini", ("system_instruction",), {"parts": [{"text": "Be brief."}]}),
    ("gemini", ("contents",), GONE),
    ("gemini", ("generation_config",), {}),
    ("gemini", ("generationConfig", "maxTokens"), 9),
    ("gemini", ("generationConfig", "thinkingConfig", "thinkingBudget"), "many"),
    ("gemini", ("stream",), True),
    ("gemini", ("contents", 0, "content"), "hi"),
    ("gemini", ("contents", 0, "parts", 0, "type"), "text"),
    ("gemini", ("contents", 0, "parts", 0), {}),
    ("gemini", ("contents", 0, "parts", 0, "text"), 1),
    ("gemini", ("contents", 0, "parts", 1, "text"), "two data"),
    ("gemini", ("contents", 0, "parts", 1, "inlineData", "data"), "?"),
    ("gemini", ("contents", 0, "parts", 1, "inlineData"), {"mime_type": "image/png", "data": "aGk="}),
    ("gemini", ("contents", 1, "parts", 1, "functionCall", "args"), "{}"),
    ("gemini", ("contents", 1, "parts", 1, "functionCall", "arguments"), {}),
    ("gemini", ("contents", 1, "parts", 1, "thoughtSignature"), 1),
    ("gemini", ("contents", 2, "parts", 0, "functionResponse", "response"), "b"),
    ("gemini", ("tools", 0, "functionDeclarations", 0, "input_schema"), {}),
    ("gemini", ("tools", 0, "functionDeclarations", 0, "parameters"), {"additionalProperties": False}),
]


def edited(request: Any, path: tuple[Any, ...], value: Any) -> Any:
    request = copy.deepcopy(request)
    place = request
    for key in path[:-1]:
        place = place[key]
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return request


def self_test() -> list[str]:
    """What the judge itself gets wrong."""
    wrong = []
    for shape, request in GOOD.items():
        wrong += [f"self-test: a good request of {shape} is refused: {found}" for found in judge(shape, request)]
    for shape, path, value in BAD:
        found = judge(shape, edited(GOOD[shape], path, value))
        if not any(at[: len(path)] == path or at == path[:-1] or at == PROTOBUF for at, _ in found):
            shown = "nothing" if value is GONE else json.dumps(value)
            wrong.append(f"self-test: a request of {shape} with {shown} at {list(path)} is accepted: {found}")
    return wrong


def requests_in(file: Path) -> list[tuple[str, str]]:
    """The requests of a file, each with the name to report it under."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        return [(file.name, text)]
    lines = enumerate(text.split("\n"), 1)
    return [(f"{file.name}:{number}", line) for number, line in lines if line.strip()]


def judge_folder(folder: Path) -> list[str]:
    judged = dict.fromkeys(SHAPES, 0)
    found = []
    for file in sorted(folder.iterdir()):
        if file.suffix not in (".json", ".jsonl"):
            continue
        shape = file.stem.rpartition(".")[2]
        if shape not in judged:
            found.append(f"{file.name}: name the file NAME.SHAPE{file.suffix}, with a shape of {', '.join(SHAPES)}")
            continue
        for name, text in requests_in(file):
            judged[shape] += 1
            try:
                request = json.loads(text)
            except ValueError as error:
                found.append(f"{name}: this is no JSON: {error}")
                continue
            found += [f"{name}: /{'/'.join(map(str, path))}: {reason}" for path, reason in judge(shape, request)]
    print("requests judged: " + ", ".join(f"{shape} {count}" for shape, count in judged.items()))
    missing = [shape for shape, count in judged.items() if count == 0]
    return found + [f"no request of the shape {shape}: write NAME.{shape}.json" for shape in missing]


def main() -> int:
    problems = self_test()
    print(f"self-test: {len(GOOD)} good requests, {len(BAD)} bad ones, {len(problems)} judged wrongly")
    if len(sys.argv) > 1 and not problems:
        problems = judge_folder(Path(sys.argv[1]))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
