"""Drives `agent-memory mcp` with the client of the Python package `mcp`: argument 1 is the program.

Over standard input and output and over HTTP, with the handshake of older revisions of the protocol and without: lists
and calls every tool, passes bad arguments, reads a huge message page by page, and leaves in the middle of a call.
"""

import asyncio
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PROGRAM = sys.argv[1]
MODES = ["legacy", "2026-07-28", "auto"]
HUGE = "".join(f"line {n} of a long result, word after word\n" for n in range(60_000))
# A reply has fewer than 10,000 tokens; a token of such text is rarely more than five characters.
REPLY_CHARACTERS = 50_000
SECONDS = 60


def check(true, what):
    if not true:
        raise AssertionError(what)


class Place:
    """A database with three sessions, of which clients are given one or two."""

    def __init__(self, folder):
        self.store = str(pathlib.Path(folder) / "memory.db")
        say = lambda role, text, **more: json.dumps({"role": role, "content": text, **more})
        call = {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "edit_file",
                       "arguments": {"path": "src/main.rs", "old_string": "a", "new_string": "b"}}],
        }
        result = {"role": "tool", "parts": [{"type": "tool_result", "call_id": "c1", "content": "ok"}]}
        first = [say("user", f"Remark {n} about the harbour.") for n in range(60)]
        first += [json.dumps(call), json.dumps(result), say("user", HUGE)]
        self.sessions = {
            "first": first,
            "second": [say("user", "The second speaks of lighthouses.")],
            "hidden": [say("user", "canary-of-the-hidden-session")],
        }
        for name, lines in self.sessions.items():
            file = pathlib.Path(folder) / f"{name}.jsonl"
            file.write_text("\n".join(lines) + "\n")
            self.run("import", str(file), "--session", name)
        # The huge message is near the end and stays as it is.
        compacted = json.loads(self.run("--json", "compact", "first", "--leaf-messages", "5", "--fresh-tail", "5"))
        self.summary = compacted["summary"]
        check(self.summary, "the first session has a summary")

    def run(self, *arguments):
        done = subprocess.run([PROGRAM, "--store", self.store, *arguments], capture_output=True, text=True,
                              timeout=SECONDS)
        check(done.returncode == 0, f"{arguments}: {done.stderr}")
        return done.stdout

    def arguments(self, *sessions):
        chosen = [word for name in sessions for word in ("--session", name)]
        return ["--store", self.store, "mcp", *chosen]

    def stdio(self, *sessions, options=()):
        return StdioServerParameters(command=PROGRAM, args=[*self.arguments(*sessions), *options])


class Http:
    """The program serving over HTTP."""

    def __init__(self, place, *sessions):
        self.process = subprocess.Popen([PROGRAM, *place.arguments(*sessions), "--http", "0"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        for line in self.process.stderr:
            if found := re.search(r"Bearer (\S+)$", line):
                self.token = {"Authorization": f"Bearer {found.group(1)}"}
            if found := re.search(r"http://\S+", line):
                self.url = found.group(0)
                return
        raise AssertionError("the program did not say where it serves")

    def transport(self):
        return streamable_http_client(self.url, http_client=httpx2.AsyncClient(headers=self.token, timeout=SECONDS))

    def close(self):
        self.process.terminate()
        out, _ = self.process.communicate(timeout=SECONDS)
        check(out == "", f"over HTTP nothing goes to standard output: {out!r}")


def text_of(result):
    return "".join(block.text for block in result.content)


async def call(client, name, arguments):
    """Calls a tool, and checks what holds for every reply."""
    result = await client.call_tool(name, arguments)
    text = text_of(result)
    check(text, f"{name} {arguments}: there is text")
    check(result.structured_content is None, f"{name} {arguments}: the text is all that a model is shown")
    check(len(text) < REPLY_CHARACTERS, f"{name} {arguments}: the reply has {len(text)} characters")
    check("canary" not in text, f"{name} {arguments}: {text}")
    return result, text


async def good(client, name, arguments):
    result, text = await call(client, name, arguments)
    check(not result.is_error, f"{name} {arguments}: {text}")
    return text


async def bad(client, name, arguments, *words):
    result, text = await call(client, name, arguments)
    check(result.is_error, f"{name} {arguments} must fail: {text}")
    for word in words:
        check(word in text, f"{name} {arguments}: {word!r} is not in {text!r}")


def cursor_in(text):
    """The cursor for the rest of an answer, if there is one."""
    found = re.search(r'with cursor "([^"]+)"', text)
    return found and found.group(1)


async def all_of(client, place):
    """One session: every tool, every resource, wrong calls, and a message of megabytes."""
    tools = (await client.list_tools()).tools
    check(tools and all(tool.name.startswith("memory_") for tool in tools), f"the tools are {tools}")
    for tool in tools:
        hints = tool.annotations
        check(hints.read_only_hint is True and hints.destructive_hint is False, f"{tool.name}: {hints}")
        check(hints.idempotent_hint is True and hints.open_world_hint is False, f"{tool.name}: {hints}")
        check(tool.input_schema["type"] == "object" and tool.description, f"{tool.name}")
    resources = (await client.list_resources()).resources
    uris = sorted(str(resource.uri) for resource in resources)
    check(uris == ["memory://recent", "memory://stats"], f"the resources are {uris}")
    recent = (await client.read_resource("memory://recent")).contents[0].text
    check("line 0 of a long result" in recent and len(recent) < REPLY_CHARACTERS, recent[:500])
    stats = json.loads((await client.read_resource("memory://stats")).contents[0].text)
    check([one["session"] for one in stats["sessions"]] == ["first"], stats)
    check(stats["sessions"][0]["messages"] == 63, stats)

    found = await good(client, "memory_grep", {"pattern": "Remark 17 about"})
    check(found.startswith("1. [18] ") and "These are all matches" in found, found)
    page = await good(client, "memory_grep", {"pattern": "harbour", "scope": "messages", "limit": 7})
    check("\n7. " in page and "\n8. " not in page, page)
    again = {"pattern": "harbour", "scope": "messages", "limit": 7, "cursor": cursor_in(page)}
    next_page = await good(client, "memory_grep", again)
    check(next_page.startswith("1. [8] "), next_page)
    described = await good(client, "memory_describe", {"summary_id": place.summary})
    check(described.startswith(place.summary), described)
    await good(client, "memory_expand", {"summary_id": place.summary})
    recalled = await good(client, "memory_recall", {"query": "What was remark 17?"})
    check("[18] user" in recalled, recalled)
    files = await good(client, "memory_files", {"path": "main.rs"})
    check(" changed by " in files, files)
    requests = await good(client, "memory_requests", {"limit": 2})
    check(requests.startswith("[63] user"), requests[:200])
    requests = await good(client, "memory_requests", {"limit": 2, "cursor": cursor_in(requests)})
    check(requests.startswith("[60] user: Remark 59"), requests)

    text, cursor, pages = "", None, 0
    while pages == 0 or cursor:
        asked = {"summary_id": "message:63", "token_cap": 1_000_000}
        page = await good(client, "memory_expand", asked | ({"cursor": cursor} if cursor else {}))
        # The piece of the message is between two fences. A line break after a cut line is not a part of it.
        piece = re.search(r"\n~~~\n(.*)\n~~~\n", page, re.DOTALL).group(1)
        text += piece
        cursor, pages = cursor_in(page), pages + 1
    check(text.replace("\n", "") == HUGE.replace("\n", ""), f"{pages} pages hold all of it: {len(text)} of {len(HUGE)}")
    check(pages > 1, "a huge message takes more than one page")

    await bad(client, "memory_grep", {}, "pattern is required")
    await bad(client, "memory_grep", {"patern": "x"}, "did you mean pattern")
    await bad(client, "memory_grep", {"pattern": 7}, "give a string")
    await bad(client, "memory_grep", {"pattern": "x", "cursor": "m1@00000000"}, "another call")
    await bad(client, "memory_grep", {"pattern": "x", "session": "hidden"}, "there is no argument")
    await bad(client, "memory_expand", {"summary_id": "message:999"}, "it has messages:1-63")
    await bad(client, "memory_expand", {"summary_id": "sum_0000000000000000"}, "no summary")
    await bad(client, "memory_expnd", {}, "did you mean memory_expand")
    try:
        await client.read_resource("memory://hidden")
    except Exception as error:
        check("memory://recent" in str(error), error)
    else:
        raise AssertionError("a resource that does not exist is an error")


async def two_sessions(client):
    """Two sessions: a call chooses among them, and reaches no other."""
    tools = (await client.list_tools()).tools
    for tool in tools:
        values = tool.input_schema["properties"]["session"]["enum"]
        check(values == ["first", "second"], f"{tool.name}: {values}")
    found = await good(client, "memory_grep", {"session": "second", "pattern": "lighthouses"})
    check(found.startswith("1. [1] "), found)
    page = await good(client, "memory_grep", {"session": "first", "pattern": "harbour", "limit": 1})
    foreign = {"session": "second", "pattern": "harbour", "limit": 1, "cursor": cursor_in(page)}
    await bad(client, "memory_grep", foreign, "another call")
    both = {"pattern": "harbour|lighthouses", "mode": "regex", "scope": "messages"}
    text = await good(client, "memory_grep", both)
    for name in ["first", "second"]:
        check(f'session "{name}"' in text, f"a grep without a session reads both: {text}")
    await bad(client, "memory_recall", {"query": "harbour"}, "session is required", '"first" or "second"')
    await bad(client, "memory_grep", {"session": "hidden", "pattern": "x"}, "there is no session")


async def codex_names(client):
    """History and notes as Codex's models call them."""
    names = [tool.name for tool in (await client.list_tools()).tools]
    check("history_search_contents" in names and "notes_write_file" in names, names)
    windows = await good(client, "history_list_windows", {})
    check("messages:" in windows and "as summary sum_" in windows, windows)
    items = await good(client, "history_list_items", {"recent_first": True, "limit": 1, "max_chars_per_item": 20})
    check(items.startswith("[63] user: line 0 of a long"), items)
    item = await good(client, "history_read_item", {"window_id": "messages:1-20", "item_id": "18"})
    check("Remark 17 about the harbour." in item, item)
    found = await good(client, "history_search_contents", {"query": "Remark 17"})
    check(found.startswith("1. [18] user"), found)
    found = await good(client, "history_search_contents", {"query": "remark 17"})
    check(found.startswith("No item has this text exactly") and "[18] user" in found, found)
    await good(client, "notes_write_file", {"path": "plan.md", "text": "first\n"})
    await good(client, "notes_append_to_file", {"path": "plan.md", "text": "second\n"})
    check("second" in await good(client, "notes_read_file", {"path": "plan.md"}), "a note is read back")
    await bad(client, "notes_write_file", {"path": "../plan.md", "text": "x"}, "name of dots")


async def anthropic_names(client):
    """The notes of another name and another process, as Claude calls them."""
    text = await good(client, "memory", {"command": "view", "path": "/memories/plan.md"})
    check("     2\tsecond" in text, text)
    edit = {"command": "str_replace", "path": "/memories/plan.md", "old_str": "second", "new_str": "2nd"}
    check("     2\t2nd" in await good(client, "memory", edit), "an edit shows the lines around it")
    await bad(client, "memory", {"command": "view", "path": "/memories/%2e%2e/x"}, "% escape")


def protocol_alone(place):
    """What the program writes to standard output is the protocol, line by line, also when it warns; and it ends when
    the client has gone, in the middle of a call too."""
    os.chmod(place.store, 0o644)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    ask = lambda n: {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {
        "name": "memory_recall", "arguments": {"query": "long result word after word"}}}

    def start():
        return subprocess.Popen([PROGRAM, *place.arguments("first")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    process = start()
    for message in [hello, ready, ask(2)]:
        process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    check([line["id"] for line in lines] == [1, 2], lines)
    check(lines[0]["result"]["protocolVersion"] == "2025-06-18", lines[0])
    out, err = process.communicate(timeout=SECONDS)
    check(out == "" and process.returncode == 0, (out, err, process.returncode))
    check("memory.db" in err, f"the warning goes to standard error: {err!r}")
    os.chmod(place.store, 0o600)

    # Gone in the middle of a call: the answer has nowhere to go.
    process = start()
    for message in [hello, ready] + [ask(n) for n in range(2, 30)]:
        process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    check(json.loads(process.stdout.readline())["id"] == 1, "the handshake is answered")
    process.stdout.close()
    process.stdin.close()
    process.wait(timeout=SECONDS)
    err = process.stderr.read()
    process.stderr.close()
    check("panic" not in err, err)
    # And before it has said anything.
    process = start()
    out, err = process.communicate(timeout=SECONDS)
    check(out == "" and process.returncode == 0, (out, err, process.returncode))


def loopback_alone(url, token):
    """Whoever does not have the token cannot ask, nor can a page in a browser: neither by its origin nor by a name that
    leads here."""
    check(url.startswith("http://127.0.0.1:"), url)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    plain = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def status(token=token, **headers):
        request = urllib.request.Request(url, json.dumps(hello).encode(), plain | token | headers)
        try:
            return urllib.request.urlopen(request, timeout=SECONDS).status
        except urllib.error.HTTPError as error:
            return error.code

    check(status() == 200, status())
    check(status({}) == 401, status({}))
    check(status({"Authorization": "Bearer guess"}) == 401, "a guess is no token")
    check(status(Origin="http://localhost:3000") == 403, status(Origin="http://localhost:3000"))
    check(status(Host="memory.example") == 403, status(Host="memory.example"))


async def main():
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        for mode in MODES:
            async with Client(place.stdio("first"), mode=mode) as client:
                await all_of(client, place)
            async with Client(place.stdio("first", "second"), mode=mode) as client:
                await two_sessions(client)
            async with Client(place.stdio("first", options=["--names", "codex"]), mode=mode) as client:
                await codex_names(client)
            async with Client(place.stdio("first", options=["--names", "anthropic"]), mode=mode) as client:
                await anthropic_names(client)
            print(f"stdio, {mode}: good")
        http = Http(place, "first")
        try:
            for mode in MODES:
                async with Client(http.transport(), mode=mode) as client:
                    await all_of(client, place)
                print(f"http, {mode}: good")
            loopback_alone(http.url, http.token)
        finally:
            http.close()
        protocol_alone(place)
        print("the program and its client agree")


asyncio.run(main())
