"""A server ends when its client is killed, also in the middle of many calls."""
import json
import os
import signal
import subprocess
import sys
import time

from memory import CHANCE, Memory, rounds
from mcp_client import START
from transcripts import conversation

CLIENT = """
import json, subprocess, sys, time
pipe = subprocess.PIPE
server = subprocess.Popen(json.loads(sys.argv[1]), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
print(server.pid, flush=True)
server.stdin.write(sys.argv[2].encode())
server.stdin.flush()
time.sleep(600)
"""


def runs(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


memory = Memory()
memory.add(conversation(200))
messages = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": START}]
messages += [{"jsonrpc": "2.0", "id": number, "method": "tools/call",
              "params": {"name": "memory_grep", "arguments": {"pattern": "a"}}} for number in range(1, 300)]
calls = "".join(json.dumps(message) + "\n" for message in messages)
for _ in rounds():
    client = subprocess.Popen([sys.executable, "-c", CLIENT, json.dumps(memory.command("mcp")), calls],
                              stdout=subprocess.PIPE)
    server = int(client.stdout.readline())
    time.sleep(CHANCE.uniform(0, 0.5))
    client.kill()
    client.wait()
    end = time.monotonic() + 20
    while runs(server) and time.monotonic() < end:
        time.sleep(0.05)
    if runs(server):
        os.kill(server, signal.SIGKILL)
        raise AssertionError("the server goes on without its client")
