#!/usr/bin/env python3
"""Runs a scenario with each real agent, with the program installed: drive.py PROGRAM [AGENT…]

install → work → compaction → resume → automatic compaction → resume → kill -9 in a tool → resume → remove. After each step the
requests that the agent sent are checked: the person's last request is in them word for word, each call has its result, and the
program's outline is in them at most once. At the end the log has every text and call of the transcript, and the agent's files are
what they were. Prints a line for each check, and ends with 1 if one failed.
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import run

NAMES = {
    'cc': 'claude-code',
    'codex': 'codex',
    'gemini': 'gemini-cli',
    'opencode': 'opencode',
    'pi': 'pi',
    'qwen': 'qwen-code',
}
# Agents with a compaction that a program can start, and with one that starts by itself.
MANUAL, AUTOMATIC = ('cc', 'opencode', 'pi', 'qwen'), ('cc', 'codex', 'opencode', 'pi')
COMPACTIONS = ('session.compact', 'session_before_compact', 'session.compacting', 'PreCompact')
CARD = "The state of this session, from agent-memory's log"
OURS = ('<agent-memory>', '[Request interrupted', '<task-notification>', 'MOCK-BUILT-IN-SUMMARY')

PROGRAM = ''
failed = 0


def check(agent, what, fine, detail=''):
    global failed
    failed += not fine
    print(f'{agent:9}{"ok    " if fine else "FAILED"} {what}{"" if fine else ": " + str(detail)[:600]}', flush=True)


def program(*args):
    done = subprocess.run([PROGRAM, *args], env=run.ENV, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f'{args}: {done.stderr}')
    return done.stdout


def compactions(session):
    """The number of the session's events of compactions."""
    with open(run.HOME + '/.local/share/agent-memory/memory.db-hook.log', encoding='utf-8') as f:
        events = [json.loads(line) for line in f]
    return sum(e['event'] in COMPACTIONS and e['session'] == session for e in events)


# --- what the agent sent


def captures(agent):
    return sorted(glob.glob(f'{run.DIR}/captures/{agent}/*-POST-*.json'))


def requests(agent, known, needle):
    """The bodies of the new requests of the conversation: those with tools and this text."""
    for path in captures(agent)[known:]:
        try:
            with open(path, encoding='utf-8') as f:
                body = json.load(f)['body']
        except json.JSONDecodeError:  # it is being written
            continue
        if body.get('tools') and needle in json.dumps(body, ensure_ascii=False):
            yield body


def calls_and_results(body):
    """The ids of calls and results in their order."""
    for m in body.get('messages', []):
        for call in m.get('tool_calls') or []:
            yield 'call', call['id']
        if m.get('role') == 'tool':
            yield 'result', m['tool_call_id']
        for block in m['content'] if isinstance(m.get('content'), list) else []:
            if block.get('type') == 'tool_use':
                yield 'call', block['id']
            if block.get('type') == 'tool_result':
                yield 'result', block['tool_use_id']
    for item in body.get('input', []):
        if item.get('type') in ('function_call', 'custom_tool_call'):
            yield 'call', item['call_id']
        if item.get('type') in ('function_call_output', 'custom_tool_call_output'):
            yield 'result', item['call_id']
    for m in body.get('contents', []):
        for n, part in enumerate(m.get('parts', [])):
            for kind, key in (('call', 'functionCall'), ('result', 'functionResponse')):
                if key in part:
                    yield kind, part[key].get('id') or part[key]['name']


def unpaired(body):
    open_calls, seen = [], set()
    for kind, name in calls_and_results(body):
        if kind == 'call':
            if name in seen and 'contents' not in body:
                return f'the call {name} comes twice'
            seen.add(name)
            open_calls.append(name)
        elif name in open_calls:
            open_calls.remove(name)
        else:
            return f'the result {name} has no call'
    return f'calls without a result: {open_calls}' if open_calls else None


# --- what the agent wrote


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)


def blocks(content):
    return [{'type': 'text', 'text': content}] if isinstance(content, str) else content or []


def written(agent, path):
    """The texts and the ids of calls in a transcript."""
    if agent == 'opencode':
        with open(path.split(': ')[-1], encoding='utf-8') as f:
            for m in json.load(f)['messages']:
                for part in m['parts']:
                    if part['type'] == 'text' and not part.get('synthetic'):
                        yield part['text']
                    if part['type'] == 'tool':
                        yield part['callID']
        return
    with open(path, encoding='utf-8') as f:
        lines = [json.loads(line) for line in f]
    for line in lines:
        kind, message = line.get('type'), line.get('message') or {}
        if agent == 'cc' and kind in ('user', 'assistant') and not line.get('isCompactSummary') and not line.get('isMeta'):
            for block in blocks(message.get('content')):
                yield block.get('text') or block.get('id') or ''
        if agent == 'pi' and kind == 'message' and message['role'] in ('user', 'assistant'):
            for block in blocks(message.get('content')):
                yield block.get('text') or block.get('id') or ''
        if agent == 'codex' and kind == 'response_item':
            yield line['payload'].get('call_id') or ''
        if agent == 'qwen' and kind in ('user', 'assistant'):
            for part in message.get('parts', []):
                yield (part.get('functionCall') or {}).get('id') or ('' if part.get('thought') else part.get('text') or '')
        if agent == 'gemini':
            yield from (call['id'] for call in line.get('toolCalls', []))
            yield line['content'] if kind == 'gemini' and isinstance(line.get('content'), str) else ''


# --- the scenario


class Scenario:
    def __init__(self, agent):
        self.agent, self.session, self.path = agent, None, None
        self.asked = []
        self.token = f'{agent}-{int(time.time())}'

    def turn(self, script, words):
        """One turn. The words that were asked for before are looked for in its requests."""
        prompt = f'{words} ({self.token}-{len(self.asked)}) #play {script}'
        last = self.asked[-1] if self.asked else None
        self.asked.append(prompt)
        known = len(captures(self.agent))
        self.out, self.session, self.path = run.TURNS[self.agent](prompt, self.session)
        bodies = list(requests(self.agent, known, prompt))
        return last, bodies

    def checked(self, what, script, words):
        last, bodies = self.turn(script, words)
        texts = [json.dumps(body, ensure_ascii=False) for body in bodies]
        self.check(f'{what}: the request reaches the model', bool(bodies), self.out)
        if not bodies:
            return
        self.check(f'{what}: the last request is there word for word', last in texts[0], last)
        if self.agent != 'gemini':  # it repeats results by itself when it resumes
            self.check(f'{what}: each call has its result', not any(map(unpaired, bodies)), [unpaired(b) for b in bodies])
        cards = max(text.count(CARD) for text in texts)
        self.check(f'{what}: the outline is there at most once', cards <= 1, cards)

    def check(self, what, fine, detail=''):
        check(self.agent, what, fine, detail)

    def compact(self):
        known = len(captures(self.agent))
        out = run.compact(self.agent, '', self.session)
        self.check('manual compaction', 'rror' not in out, out)
        print(f'{self.agent:9}       {len(captures(self.agent)) - known} requests of the model during the compaction')

    def kill(self):
        """Kills the agent while its tool runs."""
        plain, known = run.command, len(captures(self.agent))

        def killed(agent, argv, timeout=None):
            child = subprocess.Popen(
                argv,
                **run.at(agent),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            end = time.time() + 60
            while not any(True for _ in requests(agent, known, self.asked[-1])) and time.time() < end:
                time.sleep(0.2)
            time.sleep(3)
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return ''

        run.command = killed
        try:
            self.turn('slow', 'Wait for it.')
        finally:
            run.command = plain

    def run(self):
        agent, name = self.agent, NAMES[self.agent]
        subprocess.run([run.KIT + '/configs.py', agent], env=run.ENV, check=True)
        program('install', name, '--remove')
        paths = [f['path'] for f in json.loads(program('--json', 'install', name, '--dry-run'))['files']]
        before = {path: read(path) for path in paths}
        program('install', name)
        again = json.loads(program('--json', 'install', name))
        self.check('a second installation changes nothing', all(f['change'] == 'unchanged' for f in again['files']))
        self.turn('start', 'An overview of the project, please.')
        self.turn('many', 'Look at the log in steps.')
        self.turn('par3', 'Three things at once.')
        self.turn('many', 'And once more, in steps.')
        if agent in MANUAL:
            self.compact()
            self.checked('after the compaction', 'par3', 'Go on with the three things.')
        self.turn('big', 'Read all of it.')
        if agent in AUTOMATIC:
            known = compactions(self.session)
            # Claude Code looks at the size within a process only, so before the next step of a turn.
            self.turn('hotstep' if agent == 'cc' else 'hot', 'Fill the window.')
            self.checked('after an automatic compaction', 'par3', 'Go on after that.')
            self.check('the automatic compaction was answered', compactions(self.session) > known)
        self.checked('resumed', 'many', 'More steps.')
        self.kill()
        self.checked('resumed after kill -9', 'par3', 'Go on after the kill.')
        self.exported()
        report = json.loads(program('--json', 'doctor'))
        events = next(a for a in report['agents'] if a['agent'] == name)['events']
        self.check('doctor knows the events, and none failed', events['events'] and not events['errors'], events)
        print(f'{agent:9}       {events["events"]} events, p50 {events["p50_ms"]} ms, p99 {events["p99_ms"]} ms')
        program('install', name, '--remove')
        left = [path for path in paths if PROGRAM in (read(path) or '')]
        self.check('nothing of ours is left in the files', not left, left)
        # The agents write into these by themselves.
        theirs = ('.claude.json', '.qwen/settings.json', 'opencode.json')
        changed = [path for path in paths if read(path) != before[path] and not path.endswith(theirs)]
        self.check('the files are what they were', not changed, changed)

    def exported(self):
        # The work after the last event may go on for a moment.
        for _ in range(20):
            time.sleep(1)
            log = program('export', self.session)
            have = '\n'.join(text for line in log.splitlines() for text in strings(json.loads(line)))
            want = {text.strip() for text in written(self.agent, self.path) if not any(o in text for o in OURS)}
            missing = [text for text in want if text not in have]
            if not missing:
                break
        self.check(f'the log has all {len(want)} texts and calls of the transcript', not missing, missing)
        pairs = [p for line in log.splitlines() for p in json.loads(line).get('parts', [])]
        ids = [p['id'] for p in pairs if p['type'] == 'tool_call']
        self.check('no call is stored twice', len(ids) == len(set(ids)), len(ids) - len(set(ids)))


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding='utf-8') as f:
        return f.read()


def main():
    global PROGRAM
    PROGRAM, agents = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(NAMES)
    shutil.rmtree(run.HOME + '/.local/share/agent-memory', ignore_errors=True)
    run.ENV.pop('AGENT_MEMORY_STORE', None)
    run.ENV['HOT'] = '990000'  # Claude Code takes the model's window for one of a million tokens
    run.mock_stop()
    run.mock_start()
    try:
        for agent in agents:
            try:
                Scenario(agent).run()
            except (Exception, SystemExit) as error:
                check(agent, 'the scenario ends', False, repr(error))
    finally:
        run.mock_stop()
    print(f'{failed} checks failed' if failed else 'all checks passed')
    sys.exit(failed > 0)


main()
