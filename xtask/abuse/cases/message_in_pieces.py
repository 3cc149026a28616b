"""A long message is read in pieces, over the protocol and by the command: every character comes once."""
import random
import re

from mcp_client import Client
from memory import Memory
from transcripts import assistant, user

PIECES = ("word ", '"q" ', "\n~~~\n", "漢字", "\n\t", "🧑🏿‍🚒", "\u200b", "é", "0123456789abcdef" * 4)
MESSAGE = "".join(random.Random(1).choices(PIECES, k=7500))[:77_595]

memory = Memory()
session = memory.add([user("short"), assistant(MESSAGE), user("end")])
client = Client(memory, "--session", session, "--reply-tokens", "3000")
read, more = "", {}
while True:
    answer = client.read("memory_expand", summary_id="message:2", token_cap=700, **more)
    head = re.search(r"clipped: bytes (\d+) to (\d+) of \d+\n~+\n", answer)
    start, end = int(head[1]), int(head[2])
    read += answer[head.end():].encode()[:end - start].decode()
    cursor = re.search(r'repeat the call with cursor "([^"]+)"\.\n\Z', answer)
    if not cursor:
        break
    more = {"cursor": cursor[1]}
client.close()
assert read == MESSAGE, len(read)
read, more = "", ()
while True:
    answer = memory.json("expand", session, "message:2", "--cap", "900", *more)
    read += "".join(part.get("text", "") for child in answer["children"] for part in child["parts"])
    if not answer.get("cursor"):
        break
    more = ("--cursor", answer["cursor"])
assert read == MESSAGE, len(read)
