"""Many processes on one PostgreSQL database, while processes, connections and the primary server are killed.

Starts a primary with a synchronous standby, and pgbouncer in transaction mode before it. Writers extend files and import
them, workers compact, ranges are erased. Every second one process and one connection are killed; once the primary is, and
the standby takes over. At the end every line must be there once and in order, and every erased range must be erased.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

from load import Load, Part, content, free_port, simplified

ERASED = ("[erased]", "")


class Servers:
    """A primary, its standby, and pgbouncer."""

    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        self.ports = [free_port(), free_port()]
        self.pooler_port = free_port()
        self.primary = 0
        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []

    def call(self, program, *arguments):
        command = self.user + [os.path.join(self.programs, program), *arguments]
        # The server inherits the outputs of pg_ctl: a pipe would never end.
        with tempfile.TemporaryFile("w+") as output:
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT).returncode
            output.seek(0)
            if code:
                raise RuntimeError(f"{program} failed: {output.read()}")

    def data(self, server):
        return os.path.join(self.folder, f"data{server}")

    def server(self, server, action, *arguments):
        self.call("pg_ctl", f"--pgdata={self.data(server)}", "--silent", action, *arguments)

    def begin(self, server):
        options = f"-p {self.ports[server]} -k {self.folder} -h 127.0.0.1"
        self.server(server, "start", f"--log={self.data(server)}.log", f"--options={options}")

    def sql(self, text, port=None, database="agent_memory"):
        psql = [os.path.join(self.programs, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-F", "\t"]
        place = f"host=127.0.0.1 port={port or self.ports[self.primary]} user=postgres dbname={database} connect_timeout=5"
        answer = subprocess.run([*psql, "-d", place, "-c", text], capture_output=True, text=True, timeout=120)
        if answer.returncode:
            raise RuntimeError(answer.stderr.strip())
        return answer.stdout

    def start(self):
        os.makedirs(os.path.join(self.folder, "pooler"))
        if self.user:
            for name in (self.folder, os.path.join(self.folder, "pooler")):
                shutil.chown(name, "postgres", "postgres")
        self.call("initdb", f"--pgdata={self.data(0)}", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8",
                  "--auth=trust", "--no-sync")
        with open(os.path.join(self.data(0), "postgresql.conf"), "a", encoding="utf-8") as conf:
            conf.write("fsync = off\nsynchronous_commit = on\nwal_level = replica\nhot_standby = on\nmax_connections = 200\n")
        self.begin(0)
        self.call("createdb", "--host=127.0.0.1", f"--port={self.ports[0]}", "--username=postgres", "agent_memory")
        self.call("pg_basebackup", f"--pgdata={self.data(1)}", "--host=127.0.0.1", f"--port={self.ports[0]}",
                  "--username=postgres", "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
        self.begin(1)
        self.sql("alter system set synchronous_standby_names = '*'")
        self.sql("select pg_reload_conf()")
        until = time.monotonic() + 30
        while self.sql("select count(*) from pg_stat_replication where sync_state = 'sync'").strip() != "1":
            if time.monotonic() > until:
                raise RuntimeError("the standby does not follow")
            time.sleep(0.1)
        self.configure()
        pooler = os.path.join(self.folder, "pooler")
        self.pooler = subprocess.Popen(self.user + ["pgbouncer", "--quiet", os.path.join(pooler, "pgbouncer.ini")],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = f"postgres://postgres@127.0.0.1:{self.pooler_port}/agent_memory?statement-cache-capacity=0"
        until = time.monotonic() + 30
        while True:
            try:
                return self.sql("select 1", self.pooler_port)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def configure(self):
        """Writes the configuration of pgbouncer, which leads to the primary."""
        pooler = os.path.join(self.folder, "pooler")
        path = os.path.join(pooler, "pgbouncer.ini")
        with open(path + ".new", "w", encoding="utf-8") as ini:
            ini.write(f"""[databases]
agent_memory = host=127.0.0.1 port={self.ports[self.primary]} dbname=agent_memory
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.pooler_port}
unix_socket_dir =
auth_type = trust
auth_file = {pooler}/users
admin_users = postgres
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_login_retry = 1
logfile = {pooler}/log
pidfile = {pooler}/pid
""")
        with open(os.path.join(pooler, "users"), "w", encoding="utf-8") as users:
            users.write('"postgres" ""\n')
        os.replace(path + ".new", path)

    def stop_primary(self):
        self.server(self.primary, "stop", "--mode=immediate")

    def promote(self):
        self.primary = 1
        # The new primary has no standby of its own to wait for.
        with open(os.path.join(self.data(1), "postgresql.auto.conf"), "a", encoding="utf-8") as conf:
            conf.write("synchronous_standby_names = ''\n")
        self.server(1, "reload")
        self.server(1, "promote", "--wait")

    def lead_to_primary(self):
        self.configure()
        self.sql("RELOAD", self.pooler_port, "pgbouncer")

    def end(self):
        if getattr(self, "pooler", None):
            self.pooler.terminate()
        for server in (0, 1):
            try:
                self.server(server, "stop", "--mode=immediate")
            except RuntimeError:
                pass


class Chaos(Load):
    def __init__(self, options, folder):
        # The store is known once the servers run.
        super().__init__(options.binary, None, folder)
        self.options = options
        self.servers = Servers(os.path.join(folder, "servers"), options.programs)
        os.makedirs(self.servers.folder)
        files = os.path.join(folder, "files")
        os.makedirs(files)
        self.parts = [[] for _ in range(options.processes)]
        for number in range(options.sessions):
            session = f"session-{number:03}"
            writers = {number % options.processes}
            # Every eighth session has two writers.
            if number % 8 == 0:
                writers.add((number + 1) % options.processes)
            for writer in writers:
                self.parts[writer].append(Part(files, session, writer))
        self.all_parts = [part for parts in self.parts for part in parts]
        self.written = 0
        self.erasures = []
        self.writing, self.troubling, self.working = True, True, True

    def writer(self, number):
        draw = random.Random(number)
        parts, waiting = self.parts[number], []
        while self.writing:
            if not waiting:
                waiting = draw.sample(parts, min(len(parts), draw.randint(1, 4)))
                for part in waiting:
                    lines = draw.randint(50, 200)
                    with self.lock:
                        lines = min(lines, self.options.messages - self.written)
                        self.written += lines
                    part.extend(lines)
                waiting = [part for part in waiting if part.written]
                if not waiting:
                    return
            if self.importing(waiting):
                waiting = []
            else:
                # An import that failed is run again, after a moment.
                time.sleep(0.2)
            if not waiting and self.written >= self.options.messages:
                return

    def worker(self, number):
        path = os.path.join(self.folder, f"worker{number}")
        while self.working:
            with open(path, "w", encoding="utf-8") as stderr:
                process = self.start("work", "work", "--log", stdout=subprocess.DEVNULL, stderr=stderr)
            while process.poll() is None and self.working:
                time.sleep(0.1)
            if not self.working and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    self.violate("a worker did not end in 60 s after SIGTERM")
                if process.returncode != 0:
                    with open(path, encoding="utf-8") as stderr:
                        self.violate(f"a worker ended with {process.returncode} after SIGTERM: {stderr.read()[-400:]}")
                else:
                    self.counts["work: ended cleanly on SIGTERM"] += 1
            with open(path, encoding="utf-8") as stderr:
                text = stderr.read()
            for line in text.splitlines():
                if re.match(r"session \S+: .|.*: trying again", line):
                    self.errors[f"work, noted: {simplified(line)}"] += 1
            self.ended(process, "work", text)

    def eraser(self):
        draw = random.Random("erase")
        while self.troubling:
            time.sleep(draw.uniform(3, 8))
            session = draw.choice(self.all_parts).session
            known = sum(part.acknowledged for part in self.all_parts if part.session == session)
            if known < 50:
                continue
            first = draw.randint(1, known - 20)
            erasure = [session, first, first + draw.randint(0, 19), False]
            self.erasures.append(erasure)
            self.erase(erasure)

    def erase(self, erasure):
        session, first, last, _ = erasure
        code, _ = self.run("erase", "erase", session, "--from", str(first), "--to", str(last), "--reason", "chaos")
        erasure[3] = erasure[3] or code == 0
        return code == 0

    def killer(self):
        draw = random.Random("kill")
        while self.troubling:
            time.sleep(1)
            with self.lock:
                running = list(self.running.values())
            if running and self.troubling:
                process, _ = draw.choice(running)
                process.kill()
                self.counts["processes killed"] += 1

    def terminator(self):
        while self.troubling:
            time.sleep(1)
            # Mostly one with an open transaction: these are few.
            text = "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'agent_memory' and " \
                   "backend_type = 'client backend' and pid <> pg_backend_pid() " \
                   "order by (state <> 'idle' and random() < 0.7) desc, random() limit 1"
            try:
                self.counts["connections terminated"] += self.servers.sql(text).count("t")
            except (RuntimeError, subprocess.TimeoutExpired):
                self.counts["connections not terminated: no server"] += 1

    def stored(self):
        """Returns the ids of all stored lines, as the primary has them, without the byte that says that they are texts."""
        text = "select substring(encode(external_id, 'escape') from 'session.*') from agent_memory.message"
        return Counter(self.servers.sql(text).split())

    def check_acknowledged(self, when):
        acknowledged = [(part, part.acknowledged) for part in self.all_parts]
        stored = self.stored()
        for part, lines in acknowledged:
            lost = [number for number in range(lines) if stored[f"{part.name}-{number}"] != 1]
            if lost:
                self.violate(f"{when}: {len(lost)} acknowledged lines of {part.name} are not there once, from line {lost[0]}")
        return sum(lines for _, lines in acknowledged)

    def fail_over(self):
        began = time.monotonic()
        self.servers.stop_primary()
        self.servers.promote()
        lines = self.check_acknowledged("after the failover")
        self.servers.lead_to_primary()
        self.counts["failovers"] += 1
        print(f"failover in {time.monotonic() - began:.1f} s: {lines} acknowledged lines are there", flush=True)

    def check(self):
        """Compares what each session has with what was written."""
        code, text = self.run("verify", "verify", "--json")
        if code or not json.loads(text)["ok"]:
            self.violate(f"verify: {text}")
        else:
            self.counts["summaries"] = json.loads(text)["summaries"]
        for session in sorted({part.session for part in self.all_parts if part.written}):
            erased = {seq for name, first, last, done in self.erasures if name == session for seq in range(first, last + 1)}
            parts = [part for part in self.all_parts if part.session == session]
            code, text = self.run("export", "export", session)
            entries = [json.loads(line) for line in text.splitlines()]
            if code or [entry["seq"] for entry in entries] != list(range(1, len(entries) + 1)):
                self.violate(f"{session}: its positions have holes")
            for part in parts:
                ids = [entry["external_id"] for entry in entries if entry["external_id"].startswith(part.name + "-")]
                if ids != [f"{part.name}-{number}" for number in range(part.written)]:
                    self.violate(f"{session}: the lines of {part.name} are not all there once and in order")
            if len(entries) != sum(part.written for part in parts):
                self.violate(f"{session}: {len(entries)} entries")
            for entry in entries:
                texts = "".join(piece.get("text", "") for piece in entry["parts"])
                right = texts in ERASED if entry["seq"] in erased else texts == content(entry["external_id"])
                if not right:
                    self.violate(f"{session}: entry {entry['seq']} is {texts[:60]!r}")

    def play(self):
        options, began = self.options, time.monotonic()
        self.servers.start()
        self.store = self.servers.url
        # The first process creates the tables.
        self.parts[0][0].extend(1)
        self.written = 1
        if not self.importing([self.parts[0][0]]):
            raise RuntimeError(f"the first import failed: {self.errors}")
        writers = [threading.Thread(target=self.writer, args=(n,)) for n in range(options.processes)]
        workers = [threading.Thread(target=self.worker, args=(n,)) for n in range(2)]
        trouble = [threading.Thread(target=run) for run in (self.eraser, self.killer, self.terminator)]
        for thread in writers + workers + trouble:
            thread.start()
        last_said, until = time.monotonic(), time.monotonic() + 60 * options.minutes
        try:
            while any(thread.is_alive() for thread in writers) and time.monotonic() < until:
                time.sleep(0.2)
                acknowledged = sum(part.acknowledged for part in self.all_parts)
                is_half = acknowledged >= options.messages // 2 or time.monotonic() > until - 30 * options.minutes
                if is_half and not self.counts["failovers"]:
                    self.fail_over()
                if time.monotonic() - last_said > 30:
                    last_said = time.monotonic()
                    print(f"{last_said - began:.0f} s: {acknowledged} lines acknowledged", flush=True)
        except BaseException:
            self.working = False
            raise
        finally:
            self.writing = self.troubling = False
            for thread in writers + trouble:
                thread.join()
        self.counts["seconds under load"] = round(time.monotonic() - began)
        self.counts["lines acknowledged under load"] = self.check_acknowledged("after the load")
        # What failed is run again, as a user would do.
        for parts in self.parts:
            for part in [part for part in parts if part.written]:
                if not any(self.importing([part]) for _ in range(5)):
                    self.violate(f"{part.name} can not be imported")
        for erasure in self.erasures:
            if not erasure[3] and not any(self.erase(erasure) for _ in range(5)):
                self.violate(f"{erasure} can not be erased")
        self.working = False
        for thread in workers:
            thread.join()
        self.check()
        self.counts["lines acknowledged"] = sum(part.acknowledged for part in self.all_parts)
        self.counts["ranges erased"] = len(self.erasures)
        self.counts["seconds"] = round(time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask postgres-chaos", description=__doc__.splitlines()[0])
    parser.add_argument("programs", help="folder with the server's programs")
    parser.add_argument("binary", help="the program agent-memory")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--keep", action="store_true", help="keep the folder with the servers' logs")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    if shutil.which("pgbouncer") is None:
        sys.exit("pgbouncer is not there: install it (Debian: pgbouncer)")
    folder = tempfile.mkdtemp(prefix="agent-memory-chaos-")
    os.chmod(folder, 0o755)
    chaos = Chaos(options, folder)
    try:
        chaos.play()
    finally:
        chaos.servers.end()
        chaos.summary()
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if chaos.violations else 0)


if __name__ == "__main__":
    main()
