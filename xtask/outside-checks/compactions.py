#!/usr/bin/env python3
"""Compares `agent-memory audit` with a second, independent reading of the compactions in transcripts of coding agents.

    compactions.py PROGRAM FILE…

Each FILE is a transcript of Claude Code, Codex, pi or Qwen Code without branches. This script finds the records of compactions in
the raw lines, and compares for each: its record, time, cause and size by the agent's own count; the text of its summary; the number
of messages before it, kept word for word and added by the program; the newest request, the changed files and whether they were kept,
by the rules in docs/cli.md. Prints a row for each file and each difference; ends with 1 if there is one.
It shares no code with the program's readers.
"""
import collections
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from transcripts import queued, words_of_user  # noqa: E402

Message = collections.namedtuple('Message', 'id role texts calls results marks blocks by_program counted')
Compaction = collections.namedtuple('Compaction', 'id time trigger counted summary kept added')

WRITERS = {'Edit': 'file_path', 'MultiEdit': 'file_path', 'Write': 'file_path', 'NotebookEdit': 'notebook_path',
           'edit': 'path', 'write': 'path', 'write_file': 'file_path', 'replace': 'file_path'}
TAGS = re.compile(r'<(command-message|command-args|local-command-caveat|local-command-stdout|system-reminder|task-notification'
                  r'|environment_context|user_instructions|bash-stdout|bash-stderr|hook_context)>.*?</\1>', re.S)

def blocks_of(content):
    return [{'type': 'text', 'text': content}] if isinstance(content, str) else content or []

def texts_of(blocks):
    return [block['text'] for block in blocks if block.get('text') and block.get('type', 'text') != 'thinking']

def all_texts(value):
    """All strings of a message's content that a model reads."""
    if isinstance(value, dict):
        hidden = ('type', 'id', 'tool_use_id', 'signature', 'data', 'thoughtSignature', 'media_type', 'is_error')
        value = [part for key, part in value.items() if key not in hidden]
    if isinstance(value, list):
        return [text for part in value for text in all_texts(part)]
    return [value] if isinstance(value, str) else []

def message(own, role, blocks, by_program=False, folder='', usage=None):
    calls = {}
    results = {}
    for block in blocks:
        kind = block.get('type')
        if kind in ('tool_use', 'toolCall'):
            arguments = block.get('input', block.get('arguments')) or {}
            path = arguments.get(WRITERS.get(block['name']), arguments.get('filePath'))
            calls[block['id']] = path and block['name'] in WRITERS and os.path.normpath(os.path.join(folder, path))
        elif kind == 'tool_result':
            results[block['tool_use_id']] = bool(block.get('is_error'))
    marks = {(block.get('type'), *(str(block.get(key)) for key in ('id', 'tool_use_id', 'text', 'thinking'))) for block in blocks}
    keys = ('id', 'tool_use_id', 'text', 'thinking', 'input', 'content', 'is_error')
    parts = [(block.get('type'), *(json.dumps(block.get(key)) for key in keys)) for block in blocks]
    def tokens(*keys):
        return sum((usage or {}).get(key) or 0 for key in keys)
    cached = tokens('cache_read_input_tokens', 'cacheRead')
    new = tokens('input_tokens', 'cache_creation_input_tokens', 'input', 'cacheWrite')
    counted = {'cached': cached, 'new': new} if cached + new else None
    return Message(own, role, all_texts(blocks), calls, results, marks, parts, by_program, counted)

class Queued(list):
    def text(self, _role, text):
        self.append(text)

def claude(lines):
    """The log in file order; kept messages are those that the record names, or those that are written again behind it."""
    log, known, behind, last, duplicates, queue, attached = [], {}, False, None, set(), [], {}
    sent = {text for line in lines for text in words_of_user(line)}
    for line in lines:
        own = line.get('uuid')
        if line.get('isSidechain') or (own, json.dumps(line, sort_keys=True)) in duplicates:
            continue
        duplicates.add((own, json.dumps(line, sort_keys=True)))
        kind, time = line.get('type'), line.get('timestamp')
        if line.get('subtype') == 'compact_boundary':
            facts = line['compactMetadata']
            named = (facts.get('preservedMessages') or {}).get('uuids') or []
            last = Compaction(own, time, facts.get('trigger'), facts.get('preTokens'), [], [], [])
            last.kept.extend(known[uuid] for uuid in named if uuid in known)
            log.append(last)
            behind = True
            continue
        if kind == 'queue-operation':
            typed = Queued()
            queued(typed, line, queue, sent)
            log.extend(message(None, 'user', [{'type': 'text', 'text': text}]) for text in typed)
            continue
        if kind == 'attachment':
            attachment = line['attachment']
            written = (json.dumps(attachment), time)
            if behind and written in attached:
                last.kept.append((attached[written], time))
                continue
            if attachment['type'] == 'queued_command' and attachment.get('commandMode', 'prompt') == 'prompt':
                found = message(own, 'user', blocks_of(attachment['prompt']))
            elif attachment['type'] in ('file', 'hook_additional_context', 'nested_memory', 'edited_text_file') or (
                    attachment['type'] == 'hook_success' and attachment.get('hookEvent') in ('SessionStart', 'UserPromptSubmit')):
                found = message(own, 'program', [{'type': 'text', 'text': text} for text in all_texts(attachment)], True)
                if attachment['type'] == 'hook_success' and not attachment.get('content'):
                    continue
            else:
                continue
        elif kind in ('user', 'assistant') and isinstance(line.get('message'), dict):
            if line.get('isApiErrorMessage'):
                continue
            blocks = blocks_of(line['message']['content'])
            if line.get('isCompactSummary'):
                last.summary.append('\n'.join(texts_of(blocks)))
                continue
            results = bool(blocks) and all(block['type'] == 'tool_result' for block in blocks)
            role = 'tool' if results and kind == 'user' else kind
            found = message(own, role, blocks, folder=line.get('cwd') or '', usage=line['message'].get('usage'))
            is_hook = line.get('rowSource') == 'hook' or line['message'].get('model') == '<synthetic>'
            if behind:
                same = [one for one, at in known.values() if one.blocks == found.blocks and (is_hook or at == time)]
                parts = {mark for one, _ in known.values() for mark in one.marks}
                if same:
                    last.kept.append((same[-1], time))
                    continue
                if is_hook and (role == 'user' or found.marks <= parts or results):
                    for block in blocks:
                        last.summary.extend(all_texts([block.get(key) for key in ('text', 'input', 'content')]))
                    continue
                behind = False
            text = '\n'.join(texts_of(blocks))
            command = '<command-name>/compact</command-name>' in text
            is_added = role == 'user' and blocks and (line.get('isMeta') or command or not typed_text(text))
            found = found._replace(by_program=bool(is_added))
        else:
            continue
        log.append(found)
        known.setdefault(own, (found, time))
        if kind == 'attachment':
            attached[written] = found
    for at, one in enumerate(log):
        if isinstance(one, Compaction):
            one.kept[:] = list({kept.id: kept for kept, _ in one.kept}.values())
            one.added.extend(added(log, at))
    return log

def added(log, at):
    """The messages right behind a compaction that the program wrote."""
    for one in log[at + 1:]:
        if isinstance(one, Compaction) or not one.by_program:
            return
        yield one

def pi(lines):
    """The log of a file without branches: a compaction keeps the messages from one on."""
    log = []
    for line in lines[1:]:
        if line['type'] == 'message':
            inner = line['message']
            if inner['role'] == 'system' and not inner['content']:
                continue
            role = {'toolResult': 'tool', 'bashExecution': 'user'}.get(inner['role'], inner['role'])
            if inner['role'] == 'toolResult':
                blocks = [{'type': 'tool_result', 'tool_use_id': inner['toolCallId'], 'content': inner['content'],
                           'is_error': inner.get('isError')}]
            elif inner['role'] == 'bashExecution':
                blocks = [{'type': 'text', 'text': f"{inner['command']}\n{inner['output']}"}]
            else:
                blocks = blocks_of(inner['content'])
            log.append(message(line['id'], role, blocks, usage=inner.get('usage')))
        elif line['type'] == 'compaction':
            first = line.get('firstKeptEntryId')
            before = [one for one in log if isinstance(one, Message)]
            start = next((at for at, one in enumerate(before) if one.id == first), None)
            if start is None and first:
                # The first kept entry is none that the model sees.
                order = [entry.get('id') for entry in lines]
                behind = set(order[order.index(first):])
                start = next((at for at, one in enumerate(before) if one.id in behind), len(before))
            kept = before[start:] if start is not None else []
            log.append(Compaction(line['id'], line['timestamp'], None, line.get('tokensBefore'), [line['summary']], kept, []))
    return log

def replaced(history, key, before, summary):
    """The messages of a list in the place of the conversation, by their texts; and its other texts."""
    kept, others, free = [], [], list(before)
    for one in history:
        text = '\n'.join(texts_of(one[key]))
        role = {'model': 'assistant', 'developer': 'system'}.get(one['role'], one['role'])
        same = [known for known in free if known.role == role and '\n'.join(known.texts) == text]
        if same:
            free.remove(same[-1])
            kept.append(same[-1])
        elif text.strip():
            others.append(text)
    if not any(summary in text for text in others):
        others.append(summary)
    return kept, others

def codex(lines):
    log = []
    for line in lines:
        item = line.get('payload') or {}
        if line.get('type') == 'compacted':
            before = [one for one in log if isinstance(one, Message)]
            kept, texts = replaced(item.get('replacement_history') or [], 'content', before, item['message'])
            log.append(Compaction(None, line['timestamp'], None, None, texts, kept, []))
        elif line.get('type') == 'response_item' and not (line.get('metadata') or {}).get('compaction_output'):
            kind = item['type']
            role = item.get('role', 'assistant') if kind == 'message' else 'tool' if kind.endswith('_output') else 'assistant'
            role = {'developer': 'system'}.get(role, role)
            text = '\n'.join(texts_of(item.get('content') or [])) if kind == 'message' else ''
            blocks = [{'type': 'text', 'text': text}] if text else [{'type': kind, 'value': item}]
            by_program = role == 'system' or (role == 'user' and not typed_text(text))
            log.append(message(item.get('id'), role, blocks, by_program))
    for at, one in enumerate(log):
        if isinstance(one, Compaction):
            one.added.extend(added(log, at))
    return log

def qwen(lines):
    log = []
    for line in lines:
        if line.get('subtype') == 'chat_compression':
            payload = line['systemPayload']
            history = payload['compressedHistory']
            before = [one for one in log if isinstance(one, Message)]
            first = '\n'.join(texts_of(history[0]['parts']))
            kept, texts = replaced(history, 'parts', before, first)
            info = payload['info']
            log.append(Compaction(line['uuid'], line['timestamp'], info.get('triggerReason'), info.get('originalTokenCount'), texts,
                                  kept, []))
        elif line['type'] in ('user', 'assistant', 'tool_result'):
            parts = line['message']['parts']
            blocks = []
            for part in parts:
                call, result = part.get('functionCall'), part.get('functionResponse')
                if call:
                    blocks.append({'type': 'tool_use', 'id': call['id'], 'name': call['name'], 'input': call['args']})
                elif result:
                    failed = (line.get('toolCallResult') or {}).get('status') != 'success'
                    blocks.append({'type': 'tool_result', 'tool_use_id': result['id'], 'content': result['response'],
                                   'is_error': failed})
                elif not part.get('thought'):
                    blocks.append({'type': 'text', **part})
            role = {'tool_result': 'tool'}.get(line['type'], line['type'])
            log.append(message(line['uuid'], role, blocks))
    return log

def typed_text(text):
    """What a person typed of a user's text."""
    text = TAGS.sub('', text)
    text = re.sub(r'<command-name>(.*?)</command-name>', r'\1', text).strip()
    return '' if text.startswith(('Caveat: The messages below', '[Request interrupted', '<')) else text

def newest_request(messages):
    for one in reversed(messages):
        if one.role != 'user' or one.by_program:
            continue
        text = typed_text('\n'.join(one.texts))
        is_mark = '\n' not in text and (re.fullmatch(r'[\[(].*[\])]', text) or text.startswith('! ') or re.fullmatch(r'/\S*', text))
        if text and not is_mark:
            return text
    return None

def changed_files(messages):
    failed = {call for one in messages for call, is_error in one.results.items() if is_error}
    files = set()
    for one in messages:
        files |= {path for call, path in one.calls.items() if path and call not in failed}
    return files

# The rules of "kept", as docs/cli.md tells them.

COMMON = set('the and for you that this with from are was were but can will have has its into all any out now'.split())

def words(text):
    out = set()
    for word in re.findall(r'(?:[^\W_]|-)+', text.lower()):
        has_digit = re.search(r'[0-9]', word)
        for part in [word.strip('-')] if has_digit else word.split('-'):
            if any(c >= '\u2e80' for c in part):
                out |= {part[at:at + 2] for at in range(len(part) - 1)}
            elif re.fullmatch(r'[0-9-]*', part):
                out |= {part} if len(part) > 1 else set()
            elif len(part) > 2 and part not in COMMON:
                out.add(part[:5])
    return out

def flat(text):
    return ' '.join(text.split()).lower()

def says(text, item):
    if flat(item) in flat(text):
        return True
    lines = [words(line) for line in text.splitlines() if line.strip()]
    rows = len([line for line in item.splitlines() if line.strip()]) + 2
    wanted = words(item)
    numbers = {word for word in wanted if re.fullmatch(r'[0-9-]+', word)}
    others = wanted - numbers
    for at in range(len(lines)):
        near = set().union(*lines[at:at + rows])
        if others and 3 * len(others & near) >= 2 * len(others) and numbers <= near:
            return True
    return False

def requests(text, request):
    lines = [line for line in request[:300].splitlines() if len(words(line)) > 2]
    return 2 * sum(says(text, line) for line in lines) >= len(lines) if lines else says(text, request)

def kept_files(text, files):
    names = collections.Counter(file.split('/')[-1] for file in files)
    for file in files:
        name = file.split('/')[-1]
        name = '/'.join(file.split('/')[-2:]) if names[name] > 1 else name
        if re.search(rf'(?<![\w-]){re.escape(name)}(?![\w-])', text):
            yield file

def compare(program, path):
    with open(path, encoding='utf-8') as file:
        lines = [json.loads(line) for line in file if line.strip()]
    first = lines[0]
    if first.get('type') == 'session':
        log = pi(lines)
    elif first.get('type') == 'session_meta':
        log = codex(lines)
    elif any('provenance' in line and 'parts' in (line.get('message') or {}) for line in lines):
        log = qwen(lines)
    else:
        log = claude(lines)
    found = [at for at, one in enumerate(log) if isinstance(one, Compaction)]
    run = subprocess.run([program, 'audit', '--json', '--no-redact', path], capture_output=True, text=True, check=True)
    report = json.loads(run.stdout)
    differences = []
    def check(what, ours, theirs):
        if ours != theirs:
            differences.append(f'{what}: {ours!r} here, {theirs!r} in the program')
    check('compactions', len(found), len(report['compactions']))
    before, since = [], 0
    for number, (at, told) in enumerate(zip(found, report['compactions']), 1):
        one = log[at]
        past = [entry for entry in log[:at] if isinstance(entry, Message)]
        context = before + [entry for entry in log[since:at] if isinstance(entry, Message)]
        after = one.kept + one.added
        text = '\n'.join(one.summary + [text for kept in after for text in kept.texts])
        def compared(what, ours, theirs):
            check(f'compaction {number}: {what}', ours, theirs)
        if one.id:
            compared('record', one.id, told['entry'])
        compared('time', one.time[:19], told['created_at'][:19])
        compared('cause', one.trigger, told['trigger'])
        compared("the agent's count", one.counted, told['before']['tokens_by_agent'])
        compared('summary', flat('\n'.join(one.summary)), flat(told['after']['summary']))
        compared('messages before', len(context), told['before']['messages'])
        compared('messages kept', len(one.kept), told['after']['messages'])
        compared('messages added', len(one.added), told['after']['added'])
        def counts(entries):
            return [entry.counted for entry in entries if isinstance(entry, Message) and entry.counted]
        behind = log[at + 1 + len(one.added):]
        compared("the provider's count before", (counts(log[since:at]) or [None])[-1], told['cache']['counted_before'])
        compared("the provider's count after", (counts(behind) or [None])[0], told['cache']['counted_after'])
        items = collections.defaultdict(list)
        for item in told['items']:
            items[item['kind']].append((item['text'], item['kept']))
        request = newest_request(past)
        compared('newest request', [(flat(request), requests(text, request))] if request else [],
                 [(flat(text), kept) for text, kept in items['newest_request']])
        files = changed_files(past)
        kept = set(kept_files(text, files))
        compared('changed files', sorted((file, file in kept) for file in files), sorted(items['changed_file']))
        before, since = after, at + 1 + len(one.added)
    print(f"{len(found):3} compactions  {'the same' if not differences else 'different'}  {path}")
    for difference in differences:
        print('    ' + difference[:600])
    return not differences

def main():
    program, *paths = sys.argv[1:]
    results = [compare(program, path) for path in paths]
    sys.exit(0 if all(results) and results else 1)

if __name__ == '__main__':
    main()
