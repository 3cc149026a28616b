"""Lines of transcripts, and texts to fill them, all invented."""
import base64
import random

SESSION = "11111111-2222-4333-8444-555555555555"


def claude(kind, uuid, parent, content, at="2026-05-04T10:00:00.000Z", mid=None, session=SESSION, **more):
    """A line as Claude Code writes it; `mid` is the id of the response that it is a part of."""
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message = {"id": mid or "msg_" + uuid, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                   "content": content, "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 5}}
    return {"parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/home/kim/site",
            "sessionId": session, "version": "2.1.200", "gitBranch": "main", "type": kind, "message": message,
            "uuid": uuid, "timestamp": at, **more}


def in_sub_agent(line, agent):
    """A line of Claude Code in the conversation of a sub-agent."""
    return {**line, "isSidechain": True, "agentId": agent}


def text(words):
    return {"type": "text", "text": words}


def thinking(words, signature):
    return {"type": "thinking", "thinking": words, "signature": signature}


def use(id, name="Bash", **input):
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def result(id, content, **more):
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def user(content, **more):
    """A plain line of a user."""
    return {"role": "user", "content": content, **more}


def assistant(content, **more):
    """A plain line of an assistant."""
    return {"role": "assistant", "content": content, **more}


def call(id, name, arguments):
    """A call in a plain line of an assistant; the arguments are a text."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(id, content):
    """A plain line with the result of a call."""
    return {"role": "tool", "tool_call_id": id, "content": content}


def pi(id, parent, role, content, **more):
    """A message as pi writes it."""
    if role == "assistant":
        content, more = [text(content)], {"stopReason": "stop", **more}
    return pi_entry("message", id, parent, message={"role": role, "content": content, "timestamp": 1777888801000, **more})


def pi_entry(kind, id, parent, **more):
    """A line as pi writes it."""
    return {"type": kind, "id": id, "parentId": parent, "timestamp": "2026-05-04T10:00:01.000Z", **more}


def pi_session(*entries):
    """The first line of a file of pi, and these lines."""
    first = {"type": "session", "version": 3, "id": "0f0f0f0f-1111-4111-8111-0000000000aa",
             "timestamp": "2026-05-04T10:00:00.000Z", "cwd": "/home/kim/site"}
    return [first, *entries]


def base64_text(length, seed=1):
    """Base64 of random bytes, which no tokenizer compresses."""
    return base64.b64encode(random.Random(seed).randbytes(length))[:length].decode()


WORDS = "alpha bravo carbon delta engine falcon garden hotel kernel lemon orbit pencil quartz signal tunnel".split()


def words(count, seed):
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def conversation(messages, seed=1):
    """Plain lines in a vocabulary of which few words are frequent and many are rare, as in a language."""
    chance = random.Random(seed)
    vocabulary = ["".join(chance.choices("abcdefghijklmnoprstuvw", k=chance.randint(5, 11))) for _ in range(3000)]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    texts = [" ".join(chance.choices(vocabulary, weights, k=chance.randint(10, 120))) for _ in range(messages)]
    return [assistant(text) if number % 2 else user(text) for number, text in enumerate(texts)]


def chain(turns):
    """Lines of Claude Code, each after the one before: pairs of a kind and its content."""
    lines = []
    for number, (kind, content) in enumerate(turns):
        lines.append(claude(kind, f"u{number}", f"u{number - 1}" if number else None, content))
    return lines
