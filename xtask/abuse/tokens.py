"""Tokens of a request as another library counts them, with the tables of OpenAI's models."""
import bpe_openai

TABLES = bpe_openai.get_encoding("o200k_base")


def count(text):
    return len(TABLES.encode_ordinary(text))


def of_request(request):
    """Tokens of a chat request, by OpenAI's rule of three more for each message and call."""
    total = 3
    for message in request["messages"]:
        content = message["content"] or ""
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        total += 3 + sum(map(count, parts))
        for call in message.get("tool_calls") or []:
            total += 3 + count(call["function"]["name"]) + count(call["function"]["arguments"])
    return total
