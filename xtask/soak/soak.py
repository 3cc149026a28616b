"""Many processes of the program on one SQLite database, until a number of messages is stored and a time has passed.

Long-running processes (serve, mcp, work) and repeated commands append and read. Memory, files and latencies are sampled. At
the end every acknowledged message must be there once, verbatim and in order, and the figures must be within their bounds.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict

from load import LONGEST, Load, Part, WORDS, content, free_port

# Time between two samples, in seconds.
EVERY = 5
# Messages after which a writer begins another session.
SESSION = 4_000
# Share of the time after which the run ends without all messages.
LIMIT = 1.25
# Bounds: resident memory of a process, length of the write-ahead log, growth of memory and of the 99th percentile.
MEMORY, LOG, GROWTH = 256 << 20, 256 << 20, 2.0
# Exit codes of a command that another process kept from its work.
BUSY = (9, 10)
TOKEN = "soak-soak-soak-soak"


class Soak(Load):
    def __init__(self, options, folder):
        store = os.path.join(folder, "memory.db")
        super().__init__(options.binary, store, folder)
        self.options = options
        self.files = os.path.join(folder, "files")
        os.makedirs(self.files)
        self.began = time.monotonic()
        self.parts, self.names = [], 0
        # Of each kind of operation, pairs of its time since the beginning and its duration.
        self.times = defaultdict(list)
        self.samples = []
        self.long = {}
        self.working = True
        self.port = free_port()

    def now(self):
        return time.monotonic() - self.began

    def part(self, kind):
        with self.lock:
            self.names += 1
            part = Part(self.files, f"{kind}-{self.names:05}", 0)
            part.kind = kind
            self.parts.append(part)
        return part

    def written(self):
        return sum(part.acknowledged for part in self.parts)

    def finished_part(self, draw):
        """Returns one of the latest sessions that has messages."""
        with self.lock:
            latest = [part for part in self.parts[-40:] if part.acknowledged]
        return draw.choice(latest) if latest else None

    def due(self):
        """Returns whether another message may be written now: messages are spread over the time."""
        share = min(1.0, self.now() / (60 * self.options.minutes * 0.97))
        return self.written() < self.options.messages * share

    def timed(self, kind, call):
        began = time.monotonic()
        done = call()
        self.times[kind].append((began - self.began, time.monotonic() - began))
        return done

    def command_of(self, kind, *arguments):
        """Runs a command. Returns whether it succeeded. Only a lock of another process may keep it from that."""
        code, _ = self.timed(kind, lambda: self.run(kind, *arguments))
        if code not in (0, -1, *BUSY):
            self.violate(f"{' '.join(arguments)} ended with {code}")
        return code == 0

    # Writers.

    def importer(self, number):
        draw, part = random.Random(number), None
        while self.working:
            if not self.due():
                time.sleep(0.05)
                continue
            if part is None or part.written >= SESSION:
                part = self.part("import")
            part.extend(draw.randint(200, 800))
            lines = part.written
            while not self.command_of("import", "import", part.path):
                time.sleep(0.2)
                if not self.working:
                    return
            part.acknowledged = lines

    def hooks(self, number):
        """A hook always exits with 0, so its messages are acknowledged by an import at the end."""
        draw, part = random.Random(number), None
        while self.working:
            if part is None or part.written >= SESSION:
                part = self.part("hook")
            part.extend(draw.randint(1, 20))
            event = {"hook_event_name": "Stop", "session_id": part.session, "transcript_path": part.path, "cwd": self.folder}
            process = self.start("hook", "hook", "claude-code", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
            _, stderr = self.timed("hook", lambda: process.communicate(json.dumps(event), timeout=300))
            self.ended(process, "hook", stderr)
            time.sleep(0.5)

    def request(self, kind, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data,
                                         {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
        try:
            with self.timed(kind, lambda: urllib.request.urlopen(request, timeout=120)) as answer:
                return json.loads(answer.read())
        except (urllib.error.URLError, OSError) as error:
            text = error.read().decode() if isinstance(error, urllib.error.HTTPError) else str(error)
            with self.lock:
                self.errors[f"serve: {text[:160]}"] += 1
            if "busy" not in text:
                self.violate(f"{path}: {text[:300]}")
            return None

    def appends(self, number):
        """Appends single messages and short lists over HTTP, and reads contexts."""
        draw, part = random.Random(number), None
        while self.working:
            if part is None or part.written >= SESSION:
                part = self.part("serve")
            first, count = part.acknowledged, draw.randint(1, 8)
            lines = [f"{part.name}-{number}" for number in range(first, first + count)]
            messages = [{"role": "user", "parts": [{"type": "text", "text": content(line)}], "external_id": line}
                        for line in lines]
            part.written = first + count
            if self.request("append", f"/v1/sessions/{part.session}/messages", {"messages": messages}) is not None:
                part.acknowledged = part.written
            if draw.random() < 0.3:
                self.request("read", f"/v1/sessions/{part.session}/context?budget=8000")
            if draw.random() < 0.1:
                query = " ".join(draw.sample(WORDS, 3))
                self.request("read", f"/v1/sessions/{part.session}/recall", {"query": query})
            time.sleep(0.1)

    # Readers.

    def tools(self, number):
        """Calls the tools of the server of the Model Context Protocol."""
        draw, server, at = random.Random(number), self.long["mcp"], 1
        while self.working:
            part = self.finished_part(draw)
            if part is not None:
                at += 1
                call = {"name": "memory_grep", "arguments": {"session": part.session, "pattern": draw.choice(WORDS)}}
                asked = {"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": call}
                answer = self.timed("read", lambda: self.ask(server, asked))
                if answer.get("result", {}).get("isError", True):
                    self.violate(f"mcp: {str(answer)[:300]}")
            time.sleep(0.3)

    @staticmethod
    def ask(server, asked):
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline() or "{}")

    def reader(self, number):
        draw = random.Random(number)
        while self.working:
            part = self.finished_part(draw)
            if part is not None:
                word = draw.choice(WORDS)
                self.command_of(*draw.choice([
                    ("context", "context", part.session, "--budget", "8000"),
                    ("grep", "grep", part.session, word),
                    ("recall", "recall", part.session, word),
                    ("export", "export", part.session),
                ]))
            time.sleep(0.2)

    def compactor(self, number):
        draw = random.Random(number)
        while self.working:
            part = self.finished_part(draw)
            if part is not None:
                self.command_of("compact", "compact", part.session)
            time.sleep(1)

    # Samples.

    def sample(self):
        def length(path):
            try:
                return os.stat(path).st_size
            except FileNotFoundError:
                return 0

        memory = {}
        for kind, process in self.long.items():
            if process.poll() is not None and self.working:
                self.violate(f"{kind} ended with {process.returncode}")
                self.working = False
            try:
                with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                    lines = dict(line.split(":", 1) for line in status if ":" in line)
                memory[kind] = int(lines.get("VmRSS", "0 kB").split()[0]) << 10
            except OSError:
                pass
        self.samples.append({"at": self.now(), "memory": memory, "log": length(self.store + "-wal"),
                             "database": length(self.store), "messages": self.written()})

    def start_long(self):
        os.environ["AGENT_MEMORY_TOKEN"] = TOKEN
        outputs = {kind: open(os.path.join(self.folder, kind + ".err"), "w", encoding="utf-8") for kind in ("serve", "mcp", "work")}
        # The tools of `mcp` have an argument for the session once there are several.
        first = [self.part("import"), self.part("import")]
        for part in first:
            part.extend(10)
        if not self.importing(first):
            raise RuntimeError(f"the first import failed: {self.errors}")
        self.long = {
            "serve": self.start("serve", "serve", "--port", str(self.port), stdout=subprocess.DEVNULL, stderr=outputs["serve"]),
            "mcp": self.start("mcp", "mcp", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=outputs["mcp"], text=True),
            "work": self.start("work", "work", stdout=subprocess.DEVNULL, stderr=outputs["work"]),
        }
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
        self.ask(self.long["mcp"], {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        self.long["mcp"].stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        until = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/sessions",
                                                              headers={"Authorization": f"Bearer {TOKEN}"}), timeout=5)
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
                if self.long["serve"].poll() is not None:
                    with open(os.path.join(self.folder, "serve.err"), encoding="utf-8") as errors:
                        raise RuntimeError(errors.read()) from None

    def stop_long(self):
        self.long["mcp"].stdin.close()
        for kind, process in self.long.items():
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                self.violate(f"{kind} did not end in 60 s after SIGTERM")

    # The whole.

    def play(self):
        options = self.options
        self.start_long()
        self.load = [os.getloadavg()[1]]
        self.began = time.monotonic()
        roles = [self.importer, self.hooks, self.reader, self.compactor, self.importer]
        commands = [roles[n % len(roles)] for n in range(max(1, options.processes - len(self.long)))]
        threads = [threading.Thread(target=self.guarded, args=(role, n))
                   for n, role in enumerate([self.appends, self.tools, *commands])]
        for thread in threads:
            thread.start()
        said, backed_up = 0.0, False
        try:
            while self.working and (self.now() < 60 * options.minutes or self.written() < options.messages):
                time.sleep(max(0.0, EVERY * len(self.samples) - self.now()))
                self.sample()
                if self.now() > 60 * options.minutes * LIMIT:
                    print(f"only {self.written()} messages in {self.now() / 60:.0f} minutes", flush=True)
                    break
                if not backed_up and self.now() > 30 * options.minutes:
                    backed_up = True
                    threads.append(threading.Thread(target=self.guarded, args=(self.backup, 0)))
                    threads[-1].start()
                if self.now() - said > 60:
                    said = self.now()
                    last = self.samples[-1]
                    print(f"{said / 60:.0f} min: {last['messages']} messages, log {last['log'] >> 20} MiB, "
                          f"database {last['database'] >> 20} MiB", flush=True)
        finally:
            self.working = False
            for thread in threads:
                thread.join()
            self.seconds = self.now()
            self.load.append(os.getloadavg()[1])
            self.stop_long()
        self.check()
        self.wrong = list(self.violations)
        self.judge()

    def guarded(self, role, number):
        try:
            role(number)
        except Exception as error:
            self.violate(f"{role.__name__}: {error!r}")
            self.working = False

    def backup(self, _):
        """Copies the database under load, and verifies the copy."""
        path = os.path.join(self.folder, "backup.db")
        if self.command_of("backup", "backup", path):
            process = subprocess.run([self.binary, "--store", path, "verify"], capture_output=True, text=True, check=False)
            if process.returncode:
                self.violate(f"the backup: {process.stdout[-300:]} {process.stderr[-300:]}")
            os.unlink(path)

    def check(self):
        """Compares what each session has with what was written."""
        for part in self.parts:
            if part.kind == "hook":
                if part.written and not self.entries(part):
                    self.violate(f"{part.session}: no hook has stored a message")
                if not self.importing([part]):
                    self.violate(f"{part.session} cannot be imported after the load: {self.errors}")
        # A verification reads every message.
        code, text = self.run("verify", "verify", "--json", longest=LONGEST + self.written() / 1_000)
        if code or not json.loads(text)["ok"]:
            self.violate(f"verify: {text[:300]}")
        else:
            self.counts["summaries"] = json.loads(text)["summaries"]
        for part in self.parts:
            if not part.acknowledged:
                continue
            entries = self.entries(part)
            if [entry["seq"] for entry in entries] != list(range(1, len(entries) + 1)):
                self.violate(f"{part.session}: its positions have holes")
            ids = [entry["external_id"] for entry in entries]
            # A request that failed may have stored its messages.
            if ids != [f"{part.name}-{n}" for n in range(len(ids))] or not part.acknowledged <= len(ids) <= part.written:
                self.violate(f"{part.session}: its messages are not all there once and in order")
            for entry in entries:
                if "".join(piece.get("text", "") for piece in entry["parts"]) != content(entry["external_id"]):
                    self.violate(f"{part.session}: message {entry['seq']} was changed")
        self.counts["messages acknowledged"] = self.written()
        self.counts["sessions"] = len(self.parts)
        self.counts["seconds under load"] = round(self.seconds)

    def entries(self, part):
        """Returns the stored entries of a session; none if it cannot be exported."""
        code, text = self.run("export", "export", part.session)
        return [json.loads(line) for line in text.splitlines()] if code == 0 else []

    def quarter(self, kind, number):
        """Returns the durations of one of the four quarters of the time, in seconds."""
        length = self.seconds / 4
        return [took for at, took in self.times[kind] if length * number <= at < length * (number + 1)]

    def judge(self):
        """Compares the figures with their bounds."""
        self.figures = {}
        for kind in ("append", "read"):
            second, last = (percentile(self.quarter(kind, number), 0.99) for number in (1, 3))
            self.figures[kind] = (second, last)
            if last > GROWTH * second:
                self.violate(f"{kind}: 99th percentile {last * 1000:.0f} ms in the last quarter, {second * 1000:.0f} in the second")
        for kind in self.long:
            memory = [(sample["at"], sample["memory"].get(kind, 0)) for sample in self.samples]
            second, last = ([size for at, size in memory if low <= at / self.seconds < high] for low, high in ((0.25, 0.5), (0.75, 2)))
            most = max(size for _, size in memory)
            self.figures[kind] = (percentile(second, 0.5), percentile(last, 0.5), most)
            if most > MEMORY:
                self.violate(f"{kind} had {most >> 20} MiB of memory")
            if percentile(last, 0.5) > GROWTH * percentile(second, 0.5):
                self.violate(f"the memory of {kind} grew from {percentile(second, 0.5)} to {percentile(last, 0.5)} bytes")
        most = max(sample["log"] for sample in self.samples)
        if most > LOG:
            self.violate(f"the write-ahead log had {most >> 20} MiB")


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0


# The picture and the page.

WIDTH, HEIGHT, LEFT, TOP, GAP = 860, 150, 70, 60, 62
COLORS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad")


def nice(most):
    """Returns a round number that is at least `most`."""
    step = 1.0
    while True:
        for factor in (1, 2, 5):
            if step * factor >= most:
                return step * factor
        step *= 10


def panel(top, title, unit, minutes, lines, is_last):
    """Returns the SVG elements of one diagram. `lines` has a name and the points of each line."""
    most = nice(max((value for _, points in lines for _, value in points), default=1) or 1)
    place = lambda x, y: (LEFT + x / minutes * (WIDTH - LEFT - 130), top + HEIGHT - y / most * HEIGHT)
    right = place(minutes, 0)[0]
    out = [f'<text x="{LEFT}" y="{top - 10}" font-weight="bold">{title}, {unit}</text>']
    for share in (0, 0.5, 1):
        y = place(0, most * share)[1]
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{most * share:g}</text>')
    step = nice(minutes / 6)
    tick = 0.0
    while tick <= minutes:
        x = place(tick, 0)[0]
        out.append(f'<line x1="{x:.1f}" y1="{top + HEIGHT}" x2="{x:.1f}" y2="{top + HEIGHT + 4}" stroke="#555"/>')
        out.append(f'<text x="{x:.1f}" y="{top + HEIGHT + 17}" text-anchor="middle">{tick:g}</text>')
        tick += step
    if is_last:
        out.append(f'<text x="{(LEFT + right) / 2:.1f}" y="{top + HEIGHT + 34}" text-anchor="middle">time, minutes</text>')
    for number, (name, points) in enumerate(lines):
        color = COLORS[number % len(COLORS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.3"/>')
        out.append(f'<text x="{right + 10:.1f}" y="{top + 12 + 17 * number}" fill="{color}">{name}</text>')
    return out


def per_minute(soak, kind, share):
    """Returns a percentile of the durations of each minute, in milliseconds."""
    minutes = defaultdict(list)
    for at, took in soak.times[kind]:
        minutes[int(at // 60)].append(took)
    return [(minute + 0.5, percentile(took, share) * 1000) for minute, took in sorted(minutes.items())]


def picture(soak, command):
    minutes = max(soak.seconds / 60, 0.1)
    at = [(sample["at"] / 60, sample) for sample in soak.samples]
    panels = [
        ("Resident memory", "MiB", [(kind, [(x, one["memory"].get(kind, 0) / (1 << 20)) for x, one in at]) for kind in soak.long]),
        ("Write-ahead log", "MiB", [("memory.db-wal", [(x, one["log"] / (1 << 20)) for x, one in at])]),
        ("Database", "MiB", [("memory.db", [(x, one["database"] / (1 << 20)) for x, one in at])]),
        ("Stored messages", "thousands", [("acknowledged", [(x, one["messages"] / 1000) for x, one in at])]),
        ("Append over HTTP, each minute", "ms", [(name, per_minute(soak, "append", share)) for name, share in (("median", 0.5), ("99th percentile", 0.99))]),
        ("Read over HTTP and MCP, each minute", "ms", [(name, per_minute(soak, "read", share)) for name, share in (("median", 0.5), ("99th percentile", 0.99))]),
    ]
    height = TOP + len(panels) * (HEIGHT + GAP) + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
           'font-family="sans-serif" font-size="12">', f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="{LEFT}" y="24" font-size="15">{soak.options.processes} processes on one SQLite database</text>']
    for number, (title, unit, lines) in enumerate(panels):
        out += panel(TOP + number * (HEIGHT + GAP), title, unit, minutes, lines, number == len(panels) - 1)
    out += [f'<text x="{LEFT}" y="{height - 8}">{command}</text>', "</svg>"]
    return "\n".join(out) + "\n"


def page(soak, command):
    mib = lambda size: f"{size / (1 << 20):,.1f}"
    ms = lambda took: f"{took * 1000:,.1f}"
    commands = []
    for kind in sorted(soak.times):
        took = [took for _, took in soak.times[kind]]
        commands.append(f"| {kind} | {len(took):,} | {ms(percentile(took, 0.5))} | {ms(percentile(took, 0.99))} | {ms(max(took))} |")
    memory = [f"| memory of `{kind}`, MiB | {mib(soak.figures[kind][0])} | {mib(soak.figures[kind][1])} | {mib(soak.figures[kind][2])} |"
              for kind in soak.long]
    waits = [f"{count:,} × {name}" for name, count in sorted(soak.errors.items())] or ["none"]
    last = soak.samples[-1]
    fewer = "" if soak.counts["messages acknowledged"] >= soak.options.messages else \
        f" The run was to store {soak.options.messages:,}, and ended without them after {soak.seconds / 60:.0f} minutes."
    right = "Every acknowledged message is there once, verbatim and in order, and `verify` found no violation."
    if soak.wrong:
        right = "**Wrong**: " + "; ".join(soak.wrong) + "."
    over = "".join(f"\n**Out of bounds**: {text}.\n" for text in soak.violations[len(soak.wrong):])
    log = lambda low, high: [one["log"] for one in soak.samples if low <= one["at"] / soak.seconds < high]
    return f"""# Many processes on one SQLite database

```sh
{command}
```

{soak.options.processes} processes of the program append to and read one database for {soak.seconds / 60:.0f} minutes: `serve`, `mcp`
and `work` run all the time, and the others are commands one after the other (imports of growing files, `hook`, `compact`,
`context`, `grep`, `recall`, `export`). Once the database is copied by `backup`, and the copy verified. The machine has
{os.cpu_count()} processors, which other programs used too (load average {soak.load[0]:.1f} at the beginning and {soak.load[1]:.1f} at the end):
compare within the page.

At the end {soak.counts["messages acknowledged"]:,} messages in {soak.counts["sessions"]:,} sessions were acknowledged.{fewer} Each session was
exported and compared, and the database verified. {right} There are
{soak.counts["summaries"]:,} summaries. The database has {mib(last["database"])} MiB.

![memory, files and latencies over time](soak.svg)

| | second quarter | last quarter | most |
|---|--:|--:|--:|
{chr(10).join(memory)}
| write-ahead log, MiB | {mib(percentile(log(0.25, 0.5), 0.5))} | {mib(percentile(log(0.75, 2), 0.5))} | {mib(max(log(0, 2)))} |
| append over HTTP, 99th percentile, ms | {ms(soak.figures["append"][0])} | {ms(soak.figures["append"][1])} | |
| read over HTTP and MCP, 99th percentile, ms | {ms(soak.figures["read"][0])} | {ms(soak.figures["read"][1])} | |

Memory and log are medians of samples each {EVERY} seconds. The run fails if a process has more than {MEMORY >> 20} MiB, if the log is
longer than {LOG >> 20} MiB, or if the median of a memory or a 99th percentile is more than {GROWTH:g} times as high in the last quarter as in
the second. A process remembers what it needs again of up to 1,024 sessions, so its memory grows with the first of them. A reader that takes long, such as `backup`, keeps the log from being truncated meanwhile.
{over}
| operation | number | median, ms | 99th percentile, ms | most, ms |
|---|--:|--:|--:|--:|
{chr(10).join(commands)}

`append` stores 1 to 8 messages by one request to `serve`, and `read` is a context of 8,000 tokens, a `recall` or a `grep` of a
session of up to {SESSION:,} messages. The other rows are whole processes, from their start to their end.

Commands that gave up because of another process, and were run again: {"; ".join(waits)}.
"""


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask soak", description=__doc__.splitlines()[0])
    parser.add_argument("pages", help="folder of the pages of measurements")
    parser.add_argument("binary", help="the program agent-memory")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--page", action="store_true", help="write the page and its picture")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    command = f"cargo xtask soak target/release/agent-memory --minutes {options.minutes:g} --messages {options.messages} " \
              f"--processes {options.processes} --page"
    folder = tempfile.mkdtemp(prefix="agent-memory-soak-")
    soak = Soak(options, folder)
    try:
        soak.play()
        if options.page:
            for name, text in (("soak.svg", picture(soak, command)), ("soak.md", page(soak, command))):
                with open(os.path.join(options.pages, name), "w", encoding="utf-8") as file:
                    file.write(text)
    finally:
        for process, _ in list(soak.running.values()):
            process.kill()
        soak.summary()
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if soak.violations else 0)


if __name__ == "__main__":
    main()
