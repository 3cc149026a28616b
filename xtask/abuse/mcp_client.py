"""A small client of the Model Context Protocol over stdin and stdout."""
import json
import queue
import subprocess
import threading

START = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}


class Client:
    def __init__(self, memory, *options, start=True):
        self.process = subprocess.Popen(memory.command("mcp", *options), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.calls = 0
        if start:
            self.call("initialize", START)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def send(self, message):
        """Sends a message, or bytes as they are."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def answer(self, timeout=60):
        """The next message of the server, or None if none came."""
        try:
            line = self.lines.get(timeout=timeout)
        except queue.Empty:
            return None
        return None if line is None else json.loads(line)

    def call(self, method, params=None, id=None):
        """Sends a request and returns its answer."""
        self.calls += 1
        id = self.calls if id is None else id
        self.send({"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})})
        while True:
            answer = self.answer()
            assert answer is not None, f"{method} got no answer"
            if answer.get("id") == id:
                return answer

    def tool(self, name, **arguments):
        return self.call("tools/call", {"name": name, "arguments": arguments})

    def read(self, name, **arguments):
        """The text that a model reads."""
        answer = self.tool(name, **arguments)
        return answer["result"]["content"][0]["text"] if "result" in answer else json.dumps(answer["error"])

    def close(self):
        self.process.stdin.close()
        return self.process.wait(20)

    def kill(self):
        self.process.kill()
        self.process.wait()
