"""A client of the Model Context Protocol knows another version, asks for what the server does not offer, or sends odd
lines: each request is answered."""
from mcp_client import Client, START
from memory import Memory
from transcripts import assistant, user

LINES = [
    user("Note 0: the valve 0 is set to 0 bar."),
    assistant("Valve 0 noted."),
    user("Note 1: the valve 1 is set to 3 bar."),
    assistant("Valve 1 noted."),
    user("Note 2: the valve 2 is set to 6 bar."),
    assistant("Valve 2 noted."),
]

memory = Memory()
session = memory.add(LINES)
client = Client(memory, "--session", session, start=False)
assert "result" in client.call("initialize", {**START, "protocolVersion": "2099-01-01"})
client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
for method in ("prompts/list", "completion/complete", "no/such"):
    answer = client.call(method, {})
    assert answer["error"]["code"] == -32601, answer
for method in ("resources/templates/list", "logging/setLevel"):
    client.call(method, {})
assert client.call("ping", id="abc-1")["result"] == {}
client.send(b'{"jsonrpc":"2.0","id":91,"method":"tools/list"}\r\n')
answer = client.answer()
assert answer["id"] == 91 and answer["result"]["tools"], answer
client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})
client.send(b"\n")
client.call("tools/call", {"name": "memory_grep"})
answer = client.tool("memory_nope")
assert "error" in answer or answer["result"]["isError"], answer
client.tool("memory_grep", pattern="x" * 200_000)
assert "valve" in client.read("memory_grep", pattern="valve")
client.close()
