"""A server with the API of OpenAI, whose model repeats the secrets that it reads."""
import http.server
import json
import re
import threading
import time


class ModelServer:
    def __init__(self, delay):
        """Answers after the seconds that `delay` returns."""
        self.calls = calls = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                asked = time.monotonic()
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                secrets = sorted(set(re.findall(r"SECRETWORD\d+zz", body)))
                calls.append((asked, secrets))
                time.sleep(delay())
                said = f"The user named {' and '.join(secrets[:12])}, and said more than that."
                message = {"role": "assistant", "content": said}
                answer = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass  # The client was killed.

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.options = ("--summarizer", "compatible:model", "--base-url", f"http://127.0.0.1:{server.server_port}/v1",
                        "--min-retained", "0")
