"""An argument of a tool has half a surrogate pair, or a line is no JSON: the client gets an answer and the server goes
on."""
from mcp_client import Client
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("The valve is at 3 bar (see note [7)."),
    assistant("Noted."),
]

memory = Memory()
client = Client(memory, "--session", memory.add(LINES))
call = {"name": "memory_grep", "arguments": {"pattern": "valve \ud83d"}}
client.send({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": call})
answer = client.answer()
assert answer is not None and answer["id"] == 99, answer
client.send(b"no json at all\n")
assert client.answer()["error"]["code"] == -32700
assert client.call("ping")["result"] == {}
client.close()
