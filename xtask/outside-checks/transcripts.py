#!/usr/bin/env python3
"""Compares what the program stores with a second, independent parse of the transcripts of coding agents.

    transcripts.py PROGRAM PATH…

Each PATH is a transcript or a folder of them. Every file is imported into a new database, every session is exported, and each
export is compared with this script's own parse of the file: order, roles, texts, reasoning, calls (id, name, arguments), results
(call, text, error), images, and the entry's own id in formats that have one. Each folder is then imported as a whole into one
database, where every session must be the same. Files that this script does not know must be refused. Prints a row for each
format, the notes and unknown parts by kind, and each difference; ends with 1 if there is one.
It shares no code with the program's readers, and was written from the files alone. The log differs from a file on purpose here:
- Claude Code: context of hooks and attached files were shown to the model, so they are messages, with a heading of the program's.
  After a boundary the agent writes kept messages again, and a mod writes its own: the log has the originals only.
- Every agent: summaries of compactions and of left branches are notes. Texts without a character count nowhere.
- Gemini CLI: $set repeats the list with new ids, functionResponses repeat results of toolCalls, and a line with a known id adds
  what is new, at its place in the file. Subjects and descriptions of thoughts are joined: white space is not compared.
- Gemini CLI, opencode: the results of an answer follow all its calls.
- opencode: the last answer of a session is left for a later import while it has no time of completion.
- OpenHands: the words of an action are its `thought`, to which the action `think` adds its argument.
- Codex: only an output's text says that a command failed. Cline: `[NAME …] Result:` answers the next open call.
"""
import collections
import contextlib
import functools
import glob
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

def json_lines(path):
    """The objects of a file with an object a line, without an incomplete last line."""
    with open(path, encoding='utf-8', errors='replace') as file:
        for line in file:
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                yield from [value] if isinstance(value, dict) else []

def kind_of(block):
    """The kind of a block; of one that the program does not know, the kind in the file."""
    kind = block.get('type', '?')
    kind = block['raw'].get('type', '?') if kind == 'unknown' else kind
    return 'image' if kind == 'input_image' else kind

def flat(content):
    """A result as a text: texts joined, other blocks by their kind."""
    content = [content] if isinstance(content, str) else filter(None, content or [])
    texts = (part if isinstance(part, str) else part.get('text', f'<{kind_of(part)}>') for part in content)
    return '\n'.join(filter(None, texts))

class Log(list):
    """The items of one session, in order. An item is (id of its entry or None, kind, …)."""

    def text(self, role, text, entry=None):
        if text and text.strip():
            self.append((entry, 'text', role, text))

    def thinking(self, text, entry=None):
        self.text('thinking', re.sub(r'\s+', '', text or ''), entry)

    def call(self, call, name, arguments, entry=None):
        """A text of arguments that is JSON counts as its value."""
        with contextlib.suppress(TypeError, ValueError):
            arguments = json.loads(arguments)
        self.append((entry, 'call', call, name, json.dumps(arguments, sort_keys=True, ensure_ascii=False)))

    def result(self, call, content, error=False, entry=None):
        self.append((entry, 'result', call, flat(content).strip(), bool(error)))

    def blocks(self, role, content, entry=None):
        """A message of blocks, as Anthropic, pi and Codex write them."""
        for block in [{'type': 'text', 'text': content}] if isinstance(content, str) else content or []:
            kind = block['type']
            if 'text' in block:
                self.text(role, block['text'], entry)
            elif kind == 'thinking':
                self.thinking(block['thinking'], entry)
            elif kind in ('tool_use', 'toolCall'):
                self.call(block['id'], block['name'], block.get('input', block.get('arguments')), entry)
            elif kind == 'tool_result':
                self.result(block['tool_use_id'], block.get('content'), block.get('is_error'), entry)
            else:
                self.append((entry, kind_of(block), role))

def branches(entries, own, parent):
    """The entries of each branch of a tree, from its root to its leaf."""
    by_id = {entry[own]: entry for entry in entries}
    for leaf in set(by_id) - {entry[parent] for entry in entries}:
        branch = []
        while leaf in by_id:
            branch.append(by_id[leaf])
            leaf = by_id[leaf][parent]
        yield branch[::-1]

def claude_code(lines, of_sub_agent):
    lines = list({line.get('uuid', number): line for number, line in enumerate(lines)}.values())
    parents = {line['uuid']: line.get('parentUuid') for line in lines if 'uuid' in line}
    inner = {line['uuid'] for line in lines if line.get('isSidechain') and 'uuid' in line and not of_sub_agent}
    logs, seen, queue, behind_boundary = collections.defaultdict(Log), set(), [], False
    sent = {text for line in lines for text in words_of_user(line)}
    for line in lines:
        kind, uuid, time = line.get('type'), line.get('uuid'), line.get('timestamp')
        root = uuid if uuid in inner else None
        while parents.get(root) in inner:
            root = parents[root]
        log = logs[root]
        behind_boundary |= line.get('subtype') == 'compact_boundary'
        if kind == 'queue-operation':
            queued(log, line, queue, sent)
        elif kind == 'attachment':
            written = (json.dumps(line['attachment']), time)
            if not (behind_boundary and written in seen):
                attached(log, line['attachment'], uuid)
            seen.add(written)
        elif kind in ('user', 'assistant') and isinstance(line.get('message'), dict):
            content = line['message']['content']
            blocks = [{'type': 'text', 'text': content}] if isinstance(content, str) else content
            marks = {(block['type'], *map(block.get, ('id', 'tool_use_id', 'text', 'thinking'))) for block in blocks}
            timed = {(mark, time) for mark in marks}
            results = bool(blocks) and all(block['type'] == 'tool_result' for block in blocks)
            again = marks <= seen and (timed <= seen or results or line['message'].get('model') == '<synthetic>')
            rewritten = behind_boundary and (again or line.get('rowSource') == 'hook')
            if not (rewritten or line.get('isCompactSummary') or line.get('isApiErrorMessage')):
                seen |= marks | timed
                log.blocks('tool' if results and kind == 'user' else kind, blocks, uuid)
    return list(logs.values())

def attached(log, attachment, uuid):
    kind = attachment['type']
    if kind == 'queued_command' and attachment.get('commandMode', 'prompt') == 'prompt':
        log.blocks('user', attachment['prompt'], uuid)
    elif kind == 'hook_additional_context':
        for text in attachment['content']:
            log.text('tool', text, uuid)
    elif kind == 'file' and attachment['content'].get('type') == 'text':
        log.text('tool', attachment['content']['file']['content'], uuid)

def words_of_user(line):
    content = (line.get('attachment') or {}).get('prompt') or []
    if line.get('type') == 'user' and isinstance(line.get('message'), dict):
        content = line['message']['content']
    return [content] if isinstance(content, str) else [block['text'] for block in content if 'text' in block]

def queued(log, line, queue, sent):
    """Words typed while the agent was busy: `remove` sends the oldest to the model, in older versions without another line."""
    if line['operation'] == 'enqueue':
        queue.append(line.get('content') or '')
    elif line['operation'] == 'popAll':
        queue.clear()
    elif queue:
        text = queue.pop(0)
        if line['operation'] == 'remove' and text not in sent and not text.startswith('<task-notification>'):
            log.text('user', text)

def pi(lines):
    for number, entry in enumerate(lines[1:]):
        if 'id' not in entry:  # version 1 is linear
            entry.update(id=number, parentId=number - 1, name=None)
    for branch in branches(lines[1:], 'id', 'parentId'):
        log = Log()
        for entry in branch:
            own = entry.get('name', entry['id'])
            message = entry if entry['type'] == 'custom_message' else entry.get('message') or {}
            role = 'user' if message is entry else message.get('role')
            if role == 'toolResult':
                log.result(message['toolCallId'], message['content'], message.get('isError'), own)
            elif role == 'bashExecution':
                log.text('user', message['command'] + '\n' + message['output'], own)
            elif role:
                log.blocks(role, message.get('content'), own)
        yield log

def codex(lines):
    log = Log()
    for line in lines:
        item = line.get('payload') or {}
        kind = item.get('type') if line.get('type') == 'response_item' else None
        if kind == 'message' and not (line.get('metadata') or {}).get('compaction_output'):
            log.blocks('system' if item['role'] == 'developer' else item['role'], item['content'])
        elif kind == 'reasoning':
            for block in (item.get('summary') or []) + (item.get('content') or []):
                log.thinking(block['text'])
        elif kind in ('function_call', 'custom_tool_call'):
            log.call(item['call_id'], item['name'], item.get('arguments', item.get('input')))
        elif kind and kind.endswith('_call_output'):
            head = flat(item['output']).split('Output:\n')[0]
            failed = r'exited with code -?[1-9]|\baborted by user|"exit_code": ?-?[1-9]|^apply_patch verification failed'
            log.result(item['call_id'], item['output'], re.search(failed, head))
        elif kind and kind != 'message':
            log.append((None, kind, 'assistant'))
    return log

def opencode_database(path):
    database = sqlite3.connect(f'file:{path}?mode=ro', uri=True)
    parts, sessions = collections.defaultdict(list), collections.defaultdict(list)
    for own, data in database.execute('select message_id, data from part order by id'):
        parts[own].append(json.loads(data))
    for session, own, data in database.execute('select session_id, id, data from message order by time_created, id'):
        sessions[session].append({'info': {**json.loads(data), 'id': own}, 'parts': parts[own]})
    return [opencode(messages) for messages in sessions.values()]

def opencode(messages):
    log = Log()
    for message in messages:
        info, own = message['info'], message['info']['id']
        ended = info['role'] == 'user' or 'completed' in info['time'] or 'error' in info or message is not messages[-1]
        if info.get('summary') is True or not ended:
            continue
        for part in message['parts']:
            kind = part['type']
            if kind == 'text':
                log.text(info['role'], part['text'], own)
            elif kind == 'reasoning':
                log.thinking(part['text'], own)
            elif kind == 'tool':
                log.call(part['callID'], part['tool'], part['state'].get('input'), own)
            elif kind == 'file':
                log.append((own, 'image' if part['mime'].startswith('image/') else 'file', info['role']))
        for part in message['parts']:
            state = part.get('state') or {}
            if state.get('status') in ('completed', 'error'):
                images = ['<image>' for file in state.get('attachments') or [] if file['mime'].startswith('image/')]
                log.result(part['callID'], [state.get('output', state.get('error')), *images], state['status'] == 'error')
    return log

def gemini(messages):
    """The union of the messages by id."""
    calls = [call for message in messages for call in message.get('toolCalls') or []]
    log, answered, known = Log(), {call['id'] for call in calls if call.get('result')}, set()
    for message in messages:
        new = Log()
        role = 'assistant' if message['type'] == 'gemini' else message['type']
        content = message.get('content') or []
        for thought in message.get('thoughts') or []:
            new.thinking(thought.get('subject', '') + thought.get('description', ''))
        for part in [{'text': content}] if isinstance(content, str) else content:
            response = part.get('functionResponse')
            if response and response['id'] not in answered:
                new.result(response['id'], google_texts([part]), 'error' in response['response'])
            new.text(role, part.get('text'))
        for call in message.get('toolCalls') or []:
            new.call(call['id'], call['name'], call['args'])
        for call in message.get('toolCalls') or []:
            if call.get('result'):
                new.result(call['id'], google_texts(call['result']), call['status'] in ('error', 'cancelled'))
        log += [item for item in new if (message['id'], item) not in known]
        known |= {(message['id'], item) for item in new}
    return log

def google_texts(parts):
    for part in parts:
        response = part.get('functionResponse')
        if response:
            yield flat(response['response'].get('output', response['response'].get('error')))
            yield from google_texts(response.get('parts') or [])
        else:
            yield '<image>' if 'inlineData' in part else part.get('text')

def qwen(lines):
    for branch in branches(lines, 'uuid', 'parentUuid'):
        log = Log()
        for line in branch:
            own, failed = line['uuid'], (line.get('toolCallResult') or {}).get('status') in ('error', 'cancelled')
            for part in line['message']['parts'] if line['type'] in ('user', 'assistant', 'tool_result') else []:
                call = part.get('functionCall')
                if call:
                    log.call(call['id'], call['name'], call['args'], own)
                elif 'functionResponse' in part:
                    log.result(part['functionResponse']['id'], google_texts([part]), failed, own)
                elif part.get('thought'):
                    log.thinking(part['text'], own)
                else:
                    log.text(line['type'], part.get('text'), own)
        yield log

def openai(messages):
    log = Log()
    for message in messages:
        answered = message.get('tool_call_ids') or [message.get('tool_call_id')]
        if message['role'] == 'tool' and answered[0]:
            log.result(answered[0], message['content'])
            continue
        log.blocks(message['role'], message['content'])
        for call in message.get('tool_calls') or []:
            log.call(call['id'], call['function']['name'], call['function']['arguments'])
    return log

def cline(messages):
    log, open_calls = Log(), []
    for message in messages:
        if (role := message['role']) == 'assistant':
            open_calls = [block for block in message['content'] if block['type'] == 'tool_use']
        for block in message['content']:
            if role == 'user' and open_calls and re.match(rf"\[{open_calls[0]['name']}\b", block.get('text', '')):
                log.result(open_calls.pop(0)['id'], block['text'])
            else:
                log.blocks(role, [block])
    return log

def openhands(run):
    log, responses = Log(), set()
    for event in run['history']:
        own, origin, action = str(event['id']), event.get('tool_call_metadata'), event.get('action')
        if action in ('system', 'message'):
            log.text('system' if action == 'system' else event['source'], event['args']['content'], own)
        elif action and origin:
            response = origin['model_response']
            if response['id'] not in responses:
                log.text('assistant', event['args'].get('thought'), own)
            responses.add(response['id'])
            for call in response['choices'][0]['message']['tool_calls']:
                if call['id'] == origin['tool_call_id']:
                    log.call(call['id'], call['function']['name'], call['function']['arguments'], own)
        elif not action and origin:
            log.result(origin['tool_call_id'], event['content'], event.get('success') is False, own)
        elif not action:
            for item in [event, *(event['extras'].get('microagent_knowledge') or [])]:
                log.text('tool', item['content'], own)
    return log

def parser(path):
    """The name of a file's format and its sessions as lists of items. A file of no known format holds none."""
    if path.endswith('.db'):
        return 'opencode', opencode_database(path)
    try:
        with open(path, encoding='utf-8') as file:
            value = json.load(file)
    except ValueError:
        return parser_of_lines(path)
    first = value[0] if isinstance(value, list) and value else value
    keys = set(first) if isinstance(first, dict) else set()
    if 'traj' in keys:
        return 'tau-bench', [openai(run['traj']) for run in value]
    if isinstance(value, list) and {'role', 'content'} <= keys:
        return 'cline', [cline(value)]
    if {'history', 'trajectory_format'} & keys:
        return 'swe-agent', [openai(value.get('history') or value['messages'])]
    if 'projectHash' in keys:
        return 'gemini-cli', [gemini(value['messages'])]
    return ('opencode', [opencode(value['messages'])]) if {'info', 'messages'} <= keys else ('(refused)', [])

def parser_of_lines(path):
    lines = list(json_lines(path))
    for line in lines[:20]:
        if 'projectHash' in line:
            return 'gemini-cli', [gemini([line for line in lines if 'id' in line and 'type' in line])]
        if line.get('type') in ('session', 'session_meta'):
            return ('pi', pi(lines)) if line['type'] == 'session' else ('codex', [codex(lines)])
        if {'instance_id', 'history'} <= set(line):
            return 'openhands', map(openhands, lines)
        if {'uuid', 'sessionId'} <= set(line):
            if isinstance(line.get('message'), dict) and 'parts' in line['message']:
                return 'qwen-code', qwen(lines)
            return 'claude-code', claude_code(lines, os.path.basename(path).startswith('agent-'))
    return '(refused)', []

def stored(program, path):
    """What the program stores of a file or folder: (items, notes, unknown parts) of each session by name, and its error."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, '--store', folder + '/memory.db', '--json']
        run = functools.partial(subprocess.run, capture_output=True, text=True)
        done = run([*command, 'import', path])
        if done.returncode:
            return {}, f'exit code {done.returncode}: ' + json.loads(done.stderr.splitlines()[-1])['error']['kind']
        names = [session['session'] for session in json.loads(run([*command, 'sessions', '--all']).stdout)['sessions']]
        exports = {name: run([*command, 'export', '--', name]).stdout.splitlines() for name in names}
        return {name: exported(map(json.loads, lines)) for name, lines in exports.items()}, None

def exported(entries):
    log, notes, unknown = Log(), collections.Counter(), collections.Counter()
    for entry in entries:
        own, role, parts = entry['external_id'], entry['role'], entry['parts']
        if entry['kind'] == 'note':
            for raw in (part.get('raw', {'type': 'saved output'}) for part in parts):
                notes[(raw.get('attachment') or raw).get('type') or next(iter(raw))] += 1
            continue
        if role == 'tool' and re.match('Context from the hook |Attached file: ', parts[0].get('text', '')):
            parts = parts[1:]
        for part in parts:
            if part['type'] == 'reasoning':
                log.thinking(part['text'], own)
            elif part['type'] == 'tool_call':
                log.call(part['id'], part['name'], part['arguments'], own)
            elif part['type'] == 'tool_result':
                log.result(part['call_id'], part['content'], part.get('is_error'), own)
            else:
                log.blocks(role, [part], own)
            inside = part.get('content') if isinstance(part.get('content'), list) else []
            unknown.update(kind_of(block) for block in [part, *inside] if block['type'] == 'unknown')
    return log, notes, unknown

def difference(ours, theirs):
    """The first difference of two lists of items, or None. An id that the file lacks is not compared."""
    for place in range(max(len(ours), len(theirs))):
        our, their = (items[place] if place < len(items) else None for items in (ours, theirs))
        if not our or not their or our[1:] != their[1:] or our[0] not in (None, their[0]):
            shown = (json.dumps(item, ensure_ascii=False)[:300] for item in (our, their))
            return place, 'item {}: the file has {}, the program {}'.format(place + 1, *shown)

def differences(ours, sessions):
    """Each session of a file must be one of the stored sessions; the nearest one is shown."""
    for items in ours:
        found = [(difference(items, theirs), name) for name, (theirs, _, _) in sessions.items()]
        if all(different for different, _ in found):
            yield '{1}: {0[1]}'.format(*max(found)) if found else 'no session is stored'

def main():
    program, *paths = sys.argv[1:]
    rows, kinds, found = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter), []

    def judge(name, path, ours, exact):
        sessions, error = stored(program, path)
        new = list(differences(ours, sessions))
        if exact and not new and len(sessions) != len(ours):
            new = [f'{len(ours)} sessions in the file, stored: {", ".join(sessions) or error}']
        rows[name].update(['files', 'different' if new else 'equal'])
        found.extend(f'{path}: {text} {error or ""}' for text in new)
        kinds[name].update([error] if error else [])
        return sessions

    for path in paths:
        files = glob.glob(glob.escape(path) + '/**/*', recursive=True) if os.path.isdir(path) else [path]
        expected, parts_of_another = [], ('.meta.json', '-wal', '-shm')
        for file in sorted(file for file in files if os.path.isfile(file) and not file.endswith(parts_of_another)):
            name, ours = parser(file)
            ours = [items for items in ours if items]
            expected += ours
            for items, notes, unknown in judge(name, file, ours, True).values():
                ids = ([item[2] for item in items if item[1] == kind] for kind in ('call', 'result'))
                calls, results = map(collections.Counter, ids)
                rows[name].update(messages=len({item[0] for item in items}), notes=notes.total(), unknown=unknown.total())
                pairs = {'paired': calls & results, 'unanswered': calls - results, 'stray': results - calls}
                rows[name].update({column: those.total() for column, those in pairs.items()})
                kinds[name].update([f'note {kind}' for kind in notes.elements()])
                kinds[name].update([f'unknown {kind}' for kind in unknown.elements()])
        if os.path.isdir(path):
            judge('(whole folder)', path, expected, False)
    columns = 'files messages paired unanswered stray notes unknown equal different'.split()
    print(f'{"format":15}', *(f'{column:>10}' for column in columns))
    for name, row in rows.items():
        print(f'{name:15}', *(f'{row[column]:>10}' for column in columns))
    for name, counter in kinds.items():
        print(f'{name}:', ', '.join(f'{kind} {number}' for kind, number in counter.most_common()))
    print(''.join(f'different: {text}\n' for text in found), end='')
    return 1 if found else 0

if __name__ == '__main__':
    sys.exit(main())
