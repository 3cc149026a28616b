#!/usr/bin/env python3
"""Runs a real coding agent offline against the mock, and prints its answers and the path of its transcript.

  run.py AGENT [PROMPT…] [--resume ID|last] [--compact [TEXT]] [--timeout S]
  run.py shell                     a shell with the agents' environment
  run.py mock start|stop|restart   `run.py AGENT` starts it by itself

AGENT is cc, pi, codex, opencode, gemini or qwen. Each PROMPT is one turn of one session; `#play NAME` in it picks a script of
scripts.json. --compact compacts after the turns, with the agent's own command (TEXT: its instructions):
  cc /compact; qwen /compress; pi rpc "compact"; opencode its server's summarize;
  codex has none for programs: a turn that reports a full window, then one more, which compacts first; gemini: not possible.
The configuration stays as it is: configs.py writes it anew, and `agent-memory install` puts the program into it.
"""

import argparse
import glob
import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid

KIT = os.path.dirname(os.path.abspath(__file__))


def environment():
    """The environment that env.sh sets."""
    script = 'KIT=$0; . "$KIT/env.sh"; agent_environment; env -0'
    out = subprocess.run(['bash', '-c', script, KIT], capture_output=True, check=True).stdout.decode()
    return dict(line.split('=', 1) for line in out.split('\0') if '=' in line)


ENV = environment()
DIR, HOME = ENV['AGENTS_DIR'], ENV['HOME']


def at(agent):
    """Where the agent runs: opencode takes its folder from PWD."""
    folder = f'{DIR}/ws/{agent}'
    return {'cwd': folder, 'env': {**ENV, 'PWD': folder}}


NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def http(method, url, body=None, timeout=120):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, method=method, data=data, headers={'content-type': 'application/json'})
    answer = NO_PROXY.open(request, timeout=timeout).read()
    return json.loads(answer) if answer else None


def wait_for(url, seconds):
    for _ in range(seconds * 5):
        try:
            return http('GET', url, timeout=2)
        except urllib.error.HTTPError:
            return None
        except OSError:
            time.sleep(0.2)
    sys.exit(f'run: nothing answers at {url}')


# --- the mock

PID_FILE = DIR + '/mock.pid'
MOCK_URL = f'http://127.0.0.1:{ENV["MOCK_PORT"]}/a/kit/v1/models'


def mock_stop():
    if os.path.exists(PID_FILE):
        with open(PID_FILE) as f:
            pid = int(f.read())
        try:
            with open(f'/proc/{pid}/cmdline') as f:
                if 'mock.py' in f.read():
                    os.kill(pid, 15)
        except OSError:
            pass
        os.remove(PID_FILE)


def mock_start():
    try:
        http('GET', MOCK_URL, timeout=2)
        return
    except OSError:
        pass
    with open(DIR + '/mock.log', 'w') as log:
        mock = subprocess.Popen(
            [sys.executable, KIT + '/mock.py', ENV['MOCK_PORT']],
            env=ENV,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    with open(PID_FILE, 'w') as f:
        f.write(str(mock.pid))
    wait_for(MOCK_URL, 10)


# --- one turn of each agent: (prompt, session or None) → (answer, session, transcript)


def command(agent, argv, timeout=None):
    try:
        done = subprocess.run(
            argv,
            **at(agent),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout or OPTIONS.timeout,
        )
    except subprocess.TimeoutExpired:
        sys.exit(f'run: {argv[0]} took longer than {OPTIONS.timeout} s')
    with open(f'{DIR}/{agent}.err', 'w') as f:
        f.write(done.stderr)
    if done.returncode != 0:
        print(f'run: {argv[0]} ended with {done.returncode}; its stderr is in {DIR}/{agent}.err', file=sys.stderr)
    return done.stdout.strip()


def newest(pattern):
    files = glob.glob(f'{HOME}/{pattern}', recursive=True)
    return max(files, key=os.path.getmtime) if files else None


def only(pattern):
    files = glob.glob(f'{HOME}/{pattern}', recursive=True)
    if not files:
        sys.exit(f'run: there is no {pattern} under {HOME}')
    return max(files, key=os.path.getmtime)


def cc(prompt, session):
    argv = ['claude', '--allowedTools', 'Bash Read Write Edit Task Agent mcp__agent-memory']
    if session == 'last':
        session = os.path.basename(only('.claude/projects/*/*.jsonl'))[:-6]
    new = session or str(uuid.uuid4())
    argv += ['--resume', session] if session else ['--session-id', new]
    return command('cc', argv + ['-p', prompt]), new, newest(f'.claude/projects/*/{new}.jsonl')


PI_OPTIONS = ['--provider', 'mock', '--model', 'mock-large']


def pi_file(session):
    return only(f'.pi/agent/sessions/*/*{"" if session == "last" else session}.jsonl')


def pi(prompt, session):
    argv = ['pi', *PI_OPTIONS]
    if session:
        argv += ['--session', pi_file(session)]
    out = command('pi', argv + ['-p', prompt])
    path = pi_file(session or 'last')
    return out, os.path.basename(path)[:-6].split('_', 1)[1], path


def codex(prompt, session):
    # Nobody is there to trust hooks.
    argv = ['codex', 'exec', '--dangerously-bypass-hook-trust']
    if session == 'last':
        session = os.path.basename(only('.codex/sessions/**/rollout-*.jsonl'))[:-6][-36:]
    if session:
        argv += ['resume', session]
    out = command('codex', argv + [prompt])
    if session:
        return out, session, only(f'.codex/sessions/**/rollout-*{session}.jsonl')
    for path in sorted(
        glob.glob(HOME + '/.codex/sessions/**/rollout-*.jsonl', recursive=True), key=os.path.getmtime, reverse=True
    ):
        with open(path, encoding='utf-8') as f:
            meta = json.loads(f.readline())['payload']
        if not meta.get('parent_thread_id'):  # a sub-agent's own file names its parent
            return out, meta['id'], path
    sys.exit(f'run: codex wrote no rollout; see {DIR}/codex.err')


def opencode(prompt, session):
    argv = ['opencode', 'run']
    if session:
        argv += ['-c'] if session == 'last' else ['--session', session]
    out = command('opencode', argv + [prompt])
    session = session if session and session != 'last' else opencode_newest()
    return out, session, opencode_export(session)


def opencode_newest():
    import sqlite3

    db = sqlite3.connect(f'file:{HOME}/.local/share/opencode/opencode.db?mode=ro', uri=True)
    return db.execute('select id from session where parent_id is null order by time_updated desc limit 1').fetchone()[0]


def opencode_export(session):
    os.makedirs(DIR + '/exports', exist_ok=True)
    path = f'{DIR}/exports/{session}.json'
    with open(path, 'w') as out, open(DIR + '/opencode.err', 'w') as err:
        subprocess.run(
            ['opencode', 'export', session],
            **at('opencode'),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
    return f'{HOME}/.local/share/opencode/opencode.db\n  the session as JSON: {path}'


def gemini(prompt, session):
    argv = ['gemini', '-m', 'gemini-2.5-pro', '--approval-mode', 'yolo']
    if session:
        argv += ['-r', 'latest' if session == 'last' else session]
    out = command('gemini', argv + ['-p', prompt])
    path = only('.gemini/tmp/*/chats/session-*.jsonl')
    with open(path, encoding='utf-8') as f:
        return out, json.loads(f.readline())['sessionId'], path


def qwen(prompt, session):
    argv = ['qwen', '--approval-mode', 'yolo']
    if session:
        argv += ['-c'] if session == 'last' else ['--resume', session]
    out = command('qwen', argv + ['-p', prompt])
    path = only('.qwen/projects/*/chats/*.jsonl')
    return out, os.path.basename(path)[:-6], path


TURNS = {'cc': cc, 'pi': pi, 'codex': codex, 'opencode': opencode, 'gemini': gemini, 'qwen': qwen}


# --- compactions that need more than a prompt


class PiRpc:
    """pi --mode rpc: one JSON object a line, both ways."""

    def __init__(self, session):
        with open(DIR + '/pi.err', 'w') as err:
            self.child = subprocess.Popen(
                ['pi', '--mode', 'rpc', *PI_OPTIONS, '--session', pi_file(session)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                **at('pi'),
                text=True,
            )
        self.events = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.events.put(json.loads(line))

    def call(self, **request):
        """Waits for the response to the request. After a `prompt`, wait for the event `agent_settled`."""
        self.child.stdin.write(json.dumps(request) + '\n')
        self.child.stdin.flush()
        return self.until(lambda e: e.get('type') == 'response' and e.get('command') == request['type'])

    def until(self, wanted):
        end = time.time() + OPTIONS.timeout
        while True:
            try:
                event = self.events.get(timeout=max(end - time.time(), 0))
            except queue.Empty:
                self.child.kill()
                sys.exit(f'run: no answer from pi; see {DIR}/pi.err')
            if wanted(event):
                return event

    def close(self):
        self.child.stdin.close()
        self.child.wait(10)


def compact_pi(text, session):
    rpc = PiRpc(session)
    answer = rpc.call(type='compact', **({'customInstructions': text} if text else {}))
    rpc.close()
    return json.dumps(answer, ensure_ascii=False)[:600]


def compact_opencode(text, session):
    with open(DIR + '/opencode-serve.log', 'w') as log:
        server = subprocess.Popen(
            ['opencode', 'serve', '--port', ENV['OPENCODE_PORT'], '--hostname', '127.0.0.1'],
            **at('opencode'),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        base = 'http://127.0.0.1:' + ENV['OPENCODE_PORT']
        wait_for(base + '/session', 30)
        answer = http(
            'POST',
            f'{base}/session/{session}/summarize',
            {'providerID': 'mock', 'modelID': 'mock-large'},
            OPTIONS.timeout,
        )
        return f'summarize: {json.dumps(answer)}'
    finally:
        server.terminate()
        server.wait(10)


def compact(agent, text, session):
    if agent == 'pi':
        return compact_pi(text, session)
    if agent == 'opencode':
        return compact_opencode(text, session)
    if agent == 'codex':
        codex('#play hot Fill the window.', session)
        return codex('#play hello After the compaction.', session)[0]
    if agent == 'gemini':
        sys.exit('run: Gemini CLI 0.61.0 has no compaction that a program can start')
    prompt = ('/compact ' if agent == 'cc' else '/compress ') + text
    return TURNS[agent](prompt.strip(), session)[0]


def main():
    global OPTIONS
    if sys.argv[1:2] == ['mock']:
        if sys.argv[2] in ('stop', 'restart'):
            mock_stop()
        if sys.argv[2] in ('start', 'restart'):
            mock_start()
        return
    if sys.argv[1:2] == ['shell']:
        mock_start()
        os.execvpe('bash', ['bash', '--norc'], ENV)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('agent', choices=['cc', 'pi', 'codex', 'opencode', 'gemini', 'qwen'])
    p.add_argument('prompt', nargs='*')
    p.add_argument('--resume')
    p.add_argument('--compact', nargs='?', const='', metavar='TEXT')
    p.add_argument('--timeout', default=120, type=int)
    OPTIONS = p.parse_intermixed_args()
    if not OPTIONS.prompt and OPTIONS.compact is None:
        p.error('a prompt, --compact, or both')
    if OPTIONS.compact is not None and not OPTIONS.prompt and not OPTIONS.resume:
        OPTIONS.resume = 'last'
    agent, session, path = OPTIONS.agent, OPTIONS.resume, None
    mock_start()
    for prompt in OPTIONS.prompt:
        out, session, path = TURNS[agent](prompt, session)
        print(out)
    if OPTIONS.compact is not None:
        session = resolve(agent, session)
        print('compaction:', compact(agent, OPTIONS.compact, session))
        path = where(agent, session)
    print(f'session {session}\ntranscript {path}')


def resolve(agent, session):
    """The id that `last` stands for."""
    if session != 'last':
        return session
    if agent == 'opencode':
        return opencode_newest()
    return os.path.basename(where(agent, ''))[:-6][-36:]


def where(agent, session):
    if agent == 'opencode':
        return opencode_export(session)
    return only(
        {
            'cc': f'.claude/projects/*/{session}*.jsonl',
            'pi': f'.pi/agent/sessions/*/*{session}.jsonl',
            'codex': f'.codex/sessions/**/rollout-*{session}.jsonl',
            'gemini': '.gemini/tmp/*/chats/session-*.jsonl',
            'qwen': f'.qwen/projects/*/chats/*{session}.jsonl',
        }[agent]
    )


OPTIONS = argparse.Namespace(timeout=120)
if __name__ == '__main__':
    main()
