"""A query of 120,000 words does not keep the server from answering others, nor from ending with its client."""
import subprocess
import time

from mcp_client import Client
from memory import Memory
from transcripts import conversation

# Seconds; a server that waits for the query takes many more.
MOST = 8

memory = Memory()
memory.add(conversation(2000))
WORDS = " ".join(f"w{number}" for number in range(120_000))
QUERY = {"name": "memory_grep", "arguments": {"pattern": WORDS, "mode": "prose"}}
ASK = {"jsonrpc": "2.0", "id": "query", "method": "tools/call", "params": QUERY}

client = Client(memory)
client.send(ASK)
start = time.monotonic()
client.call("ping")
waited = time.monotonic() - start
client.kill()
assert waited < MOST, f"a ping waited {waited:.1f} s"

client = Client(memory)
client.send(ASK)
client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "query"}})
client.process.stdin.close()
try:
    client.process.wait(MOST)
except subprocess.TimeoutExpired:
    client.kill()
    raise AssertionError("the server goes on without its client")
