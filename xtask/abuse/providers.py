"""The rules of the providers' APIs for a request: each function returns the problems that its API would refuse."""
import base64
import binascii
import json
import re

ID = re.compile(r"^[a-zA-Z0-9_-]+$")
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
GEMINI_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$")
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def is_base64(data):
    try:
        return bool(base64.b64decode(data, validate=True))
    except binascii.Error:
        return False


def is_unicode(request):
    try:
        json.dumps(request, ensure_ascii=False).encode()
        return True
    except UnicodeEncodeError:
        return False


def blocks_of(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def anthropic(request):
    messages = request.get("messages", [])
    problems = [] if is_unicode(request) else ["not Unicode"]
    if not messages:
        return problems + ["no messages"]
    if messages[0]["role"] != "user":
        problems.append("the first message is not the user's")
    seen, calls, last_role = set(), [], None
    for number, message in enumerate(messages):
        at = str(number)
        blocks = blocks_of(message)
        if message["role"] == last_role:
            problems.append(f"{at}: the same role twice")
        if not blocks:
            problems.append(f"{at}: empty")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(calls) != sorted(results):
            problems.append(f"{at}: calls {calls}, results {results}")
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if calls and message["role"] != "assistant":
            problems.append(f"{at}: a call of the user")
        other = False
        for index, block in enumerate(blocks):
            problems += anthropic_block(block, f"{at}.{index}")
            kind = block["type"]
            if kind == "tool_result" and other:
                problems.append(f"{at}.{index}: a result after other content")
            other |= kind != "tool_result"
            if kind == "tool_use":
                if block["id"] in seen:
                    problems.append(f"{at}.{index}: the id {block['id']} twice")
                seen.add(block["id"])
            if kind in ("thinking", "redacted_thinking") and index == len(blocks) - 1:
                problems.append(f"{at}.{index}: thinking is last")
        last_role = message["role"]
    if calls:
        problems.append(f"open calls at the end: {calls}")
    return problems


def anthropic_block(block, at):
    problems = []
    kind = block["type"]
    if kind == "text" and not block["text"].strip():
        problems.append(f"{at}: blank text")
    elif kind == "tool_use":
        if not ID.match(block["id"]):
            problems.append(f"{at}: id {block['id']}")
        if not NAME.match(block["name"]):
            problems.append(f"{at}: name {block['name']}")
        if not isinstance(block["input"], dict):
            problems.append(f"{at}: the input is no object")
    elif kind == "tool_result":
        content = block.get("content")
        if isinstance(content, list):
            for index, part in enumerate(content):
                problems += anthropic_block(part, f"{at}.{index}")
        if block.get("is_error") and not content:
            problems.append(f"{at}: an error without content")
    elif kind == "image" and block["source"]["type"] == "base64":
        if not is_base64(block["source"]["data"]):
            problems.append(f"{at}: data of an image {block['source']['data'][:30]!r}")
        if block["source"]["media_type"] not in IMAGES:
            problems.append(f"{at}: type of an image")
    elif kind == "document" and block["source"]["type"] == "base64" and not is_base64(block["source"]["data"]):
        problems.append(f"{at}: data of a document")
    elif kind == "thinking" and not block.get("signature"):
        problems.append(f"{at}: thinking without a signature")
    return problems


def data_url(url, at):
    return [f"{at}: data of an image"] if url.startswith("data:") and not is_base64(url.split(",", 1)[1]) else []


def openai(request):
    problems = [] if is_unicode(request) else ["not Unicode"]
    calls, seen = [], set()
    for number, message in enumerate(request.get("messages", [])):
        role, content = message["role"], message.get("content")
        if role == "tool":
            if message["tool_call_id"] in calls:
                calls.remove(message["tool_call_id"])
            else:
                problems.append(f"{number}: a result without a call, {message['tool_call_id']}")
        elif calls:
            problems.append(f"{number}: calls without results, {calls}")
            calls = []
        if role == "assistant":
            if message.get("tool_calls") == []:
                problems.append(f"{number}: an empty list of calls")
            if not message.get("tool_calls") and not content:
                problems.append(f"{number}: an empty message of the assistant")
            for call in message.get("tool_calls") or []:
                calls.append(call["id"])
                if call["id"] in seen:
                    problems.append(f"{number}: the id {call['id']} twice")
                seen.add(call["id"])
                if not NAME.match(call["function"]["name"]):
                    problems.append(f"{number}: name {call['function']['name']}")
                if not isinstance(call["function"]["arguments"], str):
                    problems.append(f"{number}: the arguments are no text")
        if role == "user" and not content:
            problems.append(f"{number}: an empty message of the user")
        for part in content if isinstance(content, list) else []:
            if part["type"] == "image_url":
                problems += data_url(part["image_url"]["url"], number)
    if calls:
        problems.append(f"open calls at the end: {calls}")
    return problems


def responses(request):
    items = request.get("input", [])
    problems = [] if is_unicode(request) else ["not Unicode"]
    calls, outputs = set(), set()
    for number, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            if item["call_id"] in calls:
                problems.append(f"{number}: the id {item['call_id']} twice")
            calls.add(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in calls:
                problems.append(f"{number}: an output without a call")
            if item["call_id"] in outputs:
                problems.append(f"{number}: an output twice")
            outputs.add(item["call_id"])
        elif kind == "reasoning":
            after = items[number + 1].get("type", "message") if number + 1 < len(items) else None
            if after not in ("function_call", "message", "reasoning"):
                problems.append(f"{number}: reasoning is last")
        elif kind == "message":
            if not item["content"]:
                problems.append(f"{number}: an empty message")
            for part in item["content"] if isinstance(item["content"], list) else []:
                if part["type"] == "input_image":
                    problems += data_url(part["image_url"], number)
    return problems + [f"the call {call} has no output" for call in sorted(calls - outputs)]


def gemini(request):
    contents = request.get("contents", [])
    problems = [] if is_unicode(request) else ["not Unicode"]
    calls, last_role = [], None
    for number, content in enumerate(contents):
        parts = content["parts"]
        if not parts:
            problems.append(f"{number}: no parts")
        if content["role"] == last_role:
            problems.append(f"{number}: the same role twice")
        answers = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if calls != answers:
            problems.append(f"{number}: calls of {calls}, responses of {answers}")
        calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        for part in parts:
            if part.get("text") == "" and "thoughtSignature" not in part:
                problems.append(f"{number}: empty text")
            if "functionCall" in part and not GEMINI_NAME.match(part["functionCall"]["name"]):
                problems.append(f"{number}: name {part['functionCall']['name']}")
            if "functionCall" in part and not isinstance(part["functionCall"]["args"], dict):
                problems.append(f"{number}: the arguments are no object")
            if "inlineData" in part and not is_base64(part["inlineData"]["data"]):
                problems.append(f"{number}: data of a file")
        last_role = content["role"]
    if contents and contents[0]["role"] != "user":
        problems.append("the first message is not the user's")
    if calls:
        problems.append("open calls at the end")
    return problems


JUDGES = {"anthropic": anthropic, "openai": openai, "responses": responses, "gemini": gemini}
