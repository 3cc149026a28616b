"""A server that runs while another process erases goes on with the messages that are left, and serves no erased ones."""
from erasure import ERASE, FIRST, LAST, LINES
from mcp_client import Client
from memory import Memory
from transcripts import conversation

memory = Memory()
memory.add(LINES)
client = Client(memory)


def everything():
    return [client.read("memory_expand", summary_id=f"message:{number}") for number in range(1, len(LINES) + 1)]


before = everything()
memory.text(*ERASE)
for number, (old, new) in enumerate(zip(before, everything()), 1):
    if FIRST <= number <= LAST:
        assert "SECRETWORD" in old and "SECRETWORD" not in new, new
    else:
        assert old == new, (number, new)
client.close()

# All tools, many erasures, a fork, and at last the deletion of the session.
memory = Memory()
lines = conversation(200)
for number, message in enumerate(lines, 1):
    message["content"] += f" before SECRETWORD{number}zz"
session = memory.add(lines)
memory.text("compact", session)
memory.text("fork", session, "--at", "150", "--name", "fork")
client = Client(memory, "--session", session, "--session", "fork")


def read(number):
    """The answers that can have the secret of a message."""
    for each in (session, "fork"):
        yield client.read("memory_grep", pattern=f"SECRETWORD{number}zz", session=each)
        yield client.read("memory_recall", query=f"SECRETWORD{number}zz", session=each)
        yield client.read("memory_expand", summary_id=f"message:{number}", session=each)


for first in range(10, 150, 30):
    erased = range(first, first + 3)
    assert any(f"before SECRETWORD{first}zz" in answer for answer in read(first))
    if first == 130:
        memory.text("delete", session, "--reason", "secrets")
    else:
        memory.text("erase", session, "--from", str(erased[0]), "--to", str(erased[-1]), "--reason", "secrets")
    for number in erased:
        for answer in read(number):
            assert f"before SECRETWORD{number}zz" not in answer, answer
client.close()
