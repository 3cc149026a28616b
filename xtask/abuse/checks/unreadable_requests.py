"""A request that cannot be parsed gets an error, so that its client does not wait for ever."""
from mcp_client import Client
from memory import Memory
from transcripts import user


def call(pattern):
    return (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"memory_grep","arguments":{"pattern":'
            + pattern + b"}}}\n")


REQUESTS = {
    "half a surrogate pair": call(b'"\\ud800"'),
    "invalid UTF-8": call(b'"\xff"'),
    "deep arrays": call(b"[" * 300 + b"]" * 300),
    "half a line": b'{"jsonrpc":"2.0","id":7,\n',
    "no JSON": b"hello\n",
}

memory = Memory()
memory.add([user("x")])
for name, request in REQUESTS.items():
    client = Client(memory)
    client.send(request)
    assert client.answer(timeout=20) is not None, name
    client.kill()
