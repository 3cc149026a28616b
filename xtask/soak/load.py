"""Load on a database by processes of the program: files that grow, commands and how they end, and what went wrong."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
from collections import Counter

WORDS = """server budget migration parser retry cursor token window ledger replica vacuum schema commit branch harbour
garden window copper signal bridge river summary context pointer failure attempt latency request handler encoder module""".split()
ROLES = ("user", "assistant")
# Time after which a process that has not ended is a violation, in seconds.
LONGEST = 300


def content(line):
    """Returns the text of a line, which follows from its id."""
    draw = random.Random(line)
    return f"{line}: " + " ".join(draw.choices(WORDS, k=draw.randint(20, 90)))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Part:
    """The lines that one writer adds to one session, in a file of its own."""

    def __init__(self, folder, session, writer):
        self.session, self.name = session, f"{session}-w{writer}"
        self.path = os.path.join(folder, self.name + ".jsonl")
        self.written = self.acknowledged = 0

    def extend(self, lines):
        with open(self.path, "a", encoding="utf-8") as file:
            for number in range(self.written, self.written + lines):
                line = f"{self.name}-{number}"
                message = {"role": ROLES[number % 2], "content": content(line), "external_id": line, "session": self.session}
                file.write(json.dumps(message) + "\n")
        self.written += lines


class Load:
    """Processes of the program on one database."""

    def __init__(self, binary, store, folder):
        self.binary, self.store, self.folder = binary, store, folder
        os.makedirs(os.path.join(folder, "home"), exist_ok=True)
        self.lock = threading.Lock()
        self.running = {}
        self.counts, self.errors, self.violations = Counter(), Counter(), []

    def violate(self, text):
        print(f"VIOLATION: {text}", flush=True)
        with self.lock:
            self.violations.append(text)

    def command(self, *arguments):
        return [self.binary, "--store", self.store, *arguments]

    def start(self, kind, *arguments, **outputs):
        environment = {**os.environ, "HOME": os.path.join(self.folder, "home"), "RUST_BACKTRACE": "0"}
        process = subprocess.Popen(self.command(*arguments), env=environment, **{"stdin": subprocess.DEVNULL, **outputs})
        with self.lock:
            self.running[process.pid] = (process, kind)
            self.counts[f"{kind}: started"] += 1
        return process

    def ended(self, process, kind, stderr):
        """Notes how a process ended."""
        with self.lock:
            self.running.pop(process.pid, None)
            if process.returncode == 0:
                return
            if process.returncode == -signal.SIGKILL:
                self.counts[f"{kind}: killed"] += 1
                return
            lines = [line for line in stderr.splitlines() if line.startswith("error:")]
            line = lines[0] if lines else (stderr.splitlines() or ["no error"])[0]
            self.errors[f"{kind}, exit {process.returncode}: {simplified(line)}"] += 1
            if "panicked" in stderr or process.returncode < 0 or process.returncode == 101:
                self.violations.append(f"{kind} ended with {process.returncode}: {stderr[-500:]}")

    def run(self, kind, *arguments, longest=LONGEST):
        """Runs the program. Returns its exit code (-1 if it hung), and its output."""
        process = self.start(kind, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            stdout, stderr = process.communicate(timeout=longest)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.violate(f"{kind} did not end in {longest:.0f} s")
            return -1, ""
        self.ended(process, kind, stderr)
        return process.returncode, stdout

    def importing(self, parts):
        """Imports the files of some parts. All their lines are acknowledged after a success."""
        counts = [(part, part.written) for part in parts]
        code, _ = self.run("import", "import", *(part.path for part in parts))
        if code == 0:
            for part, written in counts:
                part.acknowledged = max(part.acknowledged, written)
        return code == 0

    def summary(self):
        for title, counter in (("", self.counts), ("errors that the program reported", self.errors)):
            print(f"\n{title}")
            for name, count in sorted(counter.items(), key=lambda item: (-item[1], item[0]) if title else item[0]):
                print(f"{count:>8}  {name}")
        print(f"\n{len(self.violations)} violations")
        for violation in self.violations[:20]:
            print(violation)


def simplified(line):
    """Returns a line without what differs from case to case."""
    line = re.sub(r"postgres://\S*: ", "", line)
    line = re.sub(r"session-\d+(-w\d+)?", "S", line)
    return re.sub(r"\d+", "N", line)[:160]
