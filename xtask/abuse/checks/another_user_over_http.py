"""Another user of the machine does not read a database of mode 600 by way of `mcp --http`."""
import os
import re
import subprocess

from memory import Memory, leave_out
from transcripts import user

READ = """
import json, sys, urllib.error, urllib.request
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "memory_expand", "arguments": {"summary_id": "message:1"}}}
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
try:
    request = urllib.request.Request(sys.argv[1], json.dumps(call).encode(), headers)
    print(urllib.request.urlopen(request, timeout=10).read())
except urllib.error.HTTPError as error:
    print(error.code)
"""

if os.getuid() != 0:
    leave_out("it needs root, to become another user")
memory = Memory()
memory.add([user("PRIVATE words")])
assert os.stat(memory.store).st_mode & 0o777 == 0o600
server = subprocess.Popen(memory.command("mcp", "--http", "0"), stderr=subprocess.PIPE, text=True)
try:
    url = next(found[0] for line in server.stderr if (found := re.search(r"http://\S+", line)))
    read = subprocess.run(["python3", "-c", READ, url], capture_output=True, text=True, user="nobody", cwd="/")
    assert read.stdout.strip() in ("401", "403"), read
finally:
    server.kill()
