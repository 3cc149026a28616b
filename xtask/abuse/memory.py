"""A database of its own for a case or a check, and the program on it. The judgement uses only the program's commands.

A script is called as `python NAME.py PROGRAM [SECONDS [SEED]]`. It ends with 0 if the program is right, and with 77 if
this machine lacks something that the script needs.
"""
import atexit
import faulthandler
import glob
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import providers

PROGRAM = os.path.abspath(sys.argv[1])
# The time for a check that makes random choices.
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
CHANCE = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
# A script that hangs ends, too.
faulthandler.dump_traceback_later(SECONDS + 300, exit=True)
STRATEGIES = ("dag", "handoff", "blocks")


def folder():
    """A new folder, which is removed at the end."""
    path = tempfile.mkdtemp(prefix="agent-memory-abuse-")
    atexit.register(shutil.rmtree, path, True)
    return path


def leave_out(reason):
    """Ends the script without a judgement."""
    print(reason)
    sys.exit(77)


def rounds():
    """Numbers of rounds, at least one, until the time ends."""
    end = time.monotonic() + SECONDS
    return itertools.takewhile(lambda number: number == 0 or time.monotonic() < end, itertools.count())


def json_line(value):
    """One line of a transcript. Half a surrogate pair is only possible as an escape."""
    line = json.dumps(value, ensure_ascii=False) + "\n"
    try:
        return line.encode()
    except UnicodeEncodeError:
        return (json.dumps(value) + "\n").encode()


class Memory:
    def __init__(self):
        self.folder = folder()
        self.store = os.path.join(self.folder, "memory.db")

    def command(self, *words):
        return [PROGRAM, "--store", self.store, *words]

    def copy_of(self, other):
        """Takes the database of another, instead of its own."""
        for file in glob.glob(self.store + "*"):
            os.remove(file)
        shutil.copy(other.store, self.store)

    def start(self, *words):
        """A running command."""
        return subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words, timeout=300, **options):
        """A finished command, whatever its exit code."""
        return subprocess.run(self.command(*words), capture_output=True, encoding="utf-8", errors="replace",
                              timeout=timeout, **options)

    def text(self, *words):
        """The output of a command that must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, f"{words} ended with {done.returncode}: {done.stderr[-300:]}"
        return done.stdout

    def json(self, *words):
        return json.loads(self.text("--json", *words))

    def write(self, lines, name="session.jsonl"):
        """Writes a transcript and returns its path."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.writelines(map(json_line, lines))
        return path

    def load(self, lines, name="session.jsonl", *options):
        """Imports a transcript and returns the report on its first session."""
        return self.json("import", *options, self.write(lines, name))["sessions"][0]

    def add(self, lines, name="session.jsonl", *options):
        """Imports a transcript and returns its session."""
        return self.load(lines, name, *options)["session"]

    def sessions(self):
        return self.json("sessions")["sessions"]

    def context(self, session, budget=32_000, *options):
        return self.json("context", session, "--budget", str(budget), *options)

    def request(self, session, shape="anthropic", budget=32_000, *options):
        """The context as a request of a provider's API."""
        return self.context(session, budget, "--as", shape, *options)

    def shown(self, session, shape="anthropic", budget=32_000, *options):
        """The text of a request."""
        return json.dumps(self.request(session, shape, budget, *options), ensure_ascii=False)

    def assert_valid(self, session, budget=32_000, *options):
        """Each provider would accept the request."""
        for shape, judge in providers.JUDGES.items():
            problems = judge(self.request(session, shape, budget, *options))
            assert not problems, f"a request of {budget} tokens for {shape} {' '.join(options)}: {problems}"

    def hits(self, session, pattern, *options):
        return self.json("grep", session, *options, "--", pattern)["hits"]

    def uses(self, session, file, *options):
        return self.json("files", session, file, *options)["uses"]

    def export(self, session):
        return [json.loads(line) for line in self.text("export", session).splitlines()]

    def assert_verified(self):
        done = self.run("verify")
        assert done.returncode == 0, f"verify: {done.stdout[-300:]} {done.stderr[-300:]}"
