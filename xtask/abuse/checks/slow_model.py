"""A model that answers late, but within --model-timeout, writes every summary; a silent one is left after --idle-timeout.

With little time, as in the short form, the model answers sooner.
"""
import faulthandler
import http.server
import json
import threading
import time

from memory import SECONDS, Memory
from transcripts import conversation

# Seconds until the first and the last byte of an answer. The long form waits longer than most clients do.
FIRST, LAST = (200, 400) if SECONDS >= 30 else (2, 4)
IDLE = 5
# The script takes longer than others.
faulthandler.dump_traceback_later(LAST * 2 + 300, exit=True)


class SlowServer:
    """A server that streams an answer in pieces, or, if it is silent, accepts a request and sends nothing."""

    def __init__(self, silent):
        self.calls = calls = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                calls.append(body)
                if silent:
                    time.sleep(LAST + IDLE * 20)
                    return
                # Every third long word of the material.
                words = sorted({word for word in body["messages"][1]["content"].split() if word.isalpha() and len(word) > 8})
                said = ["They went on with the work that is listed. ", "They spoke of " + ", ".join(words[::3])[:400], "."]
                time.sleep(FIRST)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for piece in said:
                    self.event({"delta": {"content": piece}, "finish_reason": None})
                    time.sleep((LAST - FIRST) / len(said))
                self.event({"delta": {}, "finish_reason": "stop"})
                self.wfile.write(b"data: [DONE]\n\n")

            def event(self, choice):
                try:
                    self.wfile.write(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
                    self.wfile.flush()
                except OSError:
                    pass  # The client was killed.

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.options = ("--summarizer", "compatible:model", "--base-url", f"http://127.0.0.1:{server.server_port}/v1",
                        "--min-retained", "0", "--model-attempts", "1", "--fresh-tail", "4")


def compact(server, *options):
    memory = Memory()
    file = memory.write(conversation(40))
    begun = time.monotonic()
    done = memory.run("--json", "compact", file, *server.options, *options, timeout=LAST * 2 + 200)
    assert done.returncode == 0, done.stderr[-300:]
    return json.loads(done.stdout), done.stderr, time.monotonic() - begun


slow = SlowServer(silent=False)
report, err, took = compact(slow, "--model-timeout", "600", "--model-calls", "8")
assert slow.calls, report
assert took >= LAST, f"{took} s"
assert report["provisional"] == 0, f"{report['provisional']} summaries without the model after {took:.0f} s: {err[-300:]}"

silent = SlowServer(silent=True)
report, err, took = compact(silent, "--idle-timeout", str(IDLE), "--model-timeout", "600", "--model-calls", "8")
assert silent.calls and report["provisional"] > 0, report
assert took < IDLE * 4, f"{took:.0f} s with a silent server"
assert f"sent nothing for {IDLE} s" in json.dumps(report), report
