#!/usr/bin/env python3
"""Checks an exported database of agent-memory, and compares it with receipts and certificates.

    agent-memory export --sqlite EXPORT
    python3 verify.py EXPORT [FILE…] [--signer HEX]

EXPORT is a file of `agent-memory export --sqlite`. Each FILE holds receipts (`agent-memory receipt`) and certificates
(`agent-memory certify`). With --signer there must be a certificate, and every one has to be signed by this Ed25519 public
key. Every hash is computed anew:
of entries, logs, summaries, views and partitions. Prints each violation, and ends with 7 if there is one, else with 0.
It needs only Python's standard library, shares no code with agent-memory, and follows the definitions in docs/proof.md.
"""
import hashlib
import json
import pathlib
import sqlite3
import struct
import sys

ZERO = bytes(32)
ERASED = '[erased]'


class Fields:
    """SHA-256 over fields. Numbers are 64-bit little-endian; texts and bytes are prefixed with their length."""

    def __init__(self, domain):
        self.sha = hashlib.sha256()
        self.text(domain)

    def raw(self, value):
        self.sha.update(value)

    def number(self, *values):
        for value in values:
            self.raw(struct.pack('<q', value))

    def text(self, value):
        value = value.encode('utf-8', 'surrogatepass') if isinstance(value, str) else bytes(value)
        self.raw(struct.pack('<Q', len(value)) + value)

    def optional(self, value):
        self.raw(b'\0' if value is None else b'\1')
        if value is not None:
            self.text(value)

    def end(self):
        return self.sha.digest()


def canonical(value):
    """Canonical JSON (RFC 8785) of a value without fractions and with keys in ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(',', ':'), sort_keys=True)


def chains(hashes):
    """The chain hash before each of the hashes, and after the last one."""
    chain = [ZERO]
    for one in hashes:
        chain.append(hashlib.sha256(chain[-1] + one).digest())
    return chain


# Ed25519, RFC 8032 section 5.1.
P = 2 ** 255 - 19
ORDER = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    u, v = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    w, s = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = v - u, s - w, s + w, v + u
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, point):
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = add(result, point)
        point = add(point, point)
        number >>= 1
    return result


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def point(data):
    """The point of 32 bytes, or None if they are no point."""
    y = int.from_bytes(data, 'little')
    sign, y = y >> 255, y & (1 << 255) - 1
    if len(data) != 32 or y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, 'little'))


def strong(data):
    """The point of 32 bytes, or None if they are no point, or one of a small order, which signs any text."""
    found = point(data)
    return None if found is None or same(times(8, found), (0, 1, 1, 0)) else found


def is_signed(key, text, signature):
    a, r, s = strong(key), strong(signature[:32]), int.from_bytes(signature[32:], 'little')
    if a is None or r is None or len(signature) != 64 or s >= ORDER:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), 'little') % ORDER
    return same(times(s, BASE), add(r, times(h, a)))


class Export:
    def __init__(self, path):
        self.wrong, self.certificates = [], 0
        db = sqlite3.connect(pathlib.Path(path).absolute().as_uri() + '?mode=ro', uri=True)
        db.row_factory = sqlite3.Row
        self.rows = lambda table, order: list(db.execute(f'select * from {table} order by {order}'))
        keys = {row['id']: row['session_id'] for row in self.rows('conversations', 'id')}
        self.logs = {row['conversation_id']: {**row, 'key': keys.get(row['conversation_id'])} for row in self.rows('logs', '1')}
        for missing in set(keys) - set(self.logs):
            self.say(f'{keys[missing]}: it has no log')
        self.by_key = {log['key']: log for log in self.logs.values()}
        for log in self.logs.values():
            log.update(erased=[], entries=[], views={})
        own, self.published = {}, {}
        for table in ('erasures', 'log_entries', 'summaries', 'views', 'publications', 'published_spans'):
            if {row['conversation_id'] for row in self.rows(table, '1')} - set(self.logs):
                raise ValueError(f'{table} has rows of a missing session')
        for row in self.rows('erasures', 'first, last, at'):
            self.logs[row['conversation_id']]['erased'].append((row['first'], row['last']))
        for row in self.rows('log_entries', 'conversation_id, seq'):
            own.setdefault(row['conversation_id'], []).append(row)
        for table, order in (('published_spans', 'first'), ('views', 'view'), ('publications', 'view, version')):
            for row in self.rows(table, order):
                self.published.setdefault((table, row['conversation_id']), []).append(row)
        # A fork has a higher number than its parent.
        for no, log in sorted(self.logs.items()):
            self.check_log(log, own.get(no, []))
        self.check_summaries()
        for no, log in self.logs.items():
            self.check_views(no, log)

    def say(self, text):
        self.wrong.append(text)

    def check_log(self, log, own):
        key, shared, parent = log['key'], log['shared'] or 0, self.logs.get(log['parent'])
        inherited = parent['entries'][:shared] if parent else []
        if len(inherited) != shared:
            self.say(f'{key}: its parent does not have the {shared} entries that it shares')
        if [row['seq'] for row in own] != list(range(shared + 1, log['head'] + 1)):
            self.say(f'{key}: its own entries are not {shared + 1}-{log["head"]}')
        for row in own:
            is_erased = any(first <= row['seq'] <= last for first, last in log['erased'])
            if is_erased != (row['body'] is None):
                self.say(f'{key}: entry {row["seq"]} ' + ('is recorded as erased, and has words' if is_erased else 'has no words'))
            if row['body'] is not None and not is_erased:
                fields = Fields('agent-memory message 1')
                fields.text(row['kind'])
                fields.text(row['role'])
                for name in ('external_id', 'response', 'name', 'loop'):
                    fields.optional(row[name])
                fields.number(-1 if row['turn'] is None else row['turn'], row['at'])
                fields.optional(row['meta'])
                fields.text(row['body'])
                if fields.end() != row['hash']:
                    self.say(f'{key}: entry {row["seq"]} was changed')
        if chains(row['hash'] for row in own)[-1] != log['chain']:
            self.say(f'{key}: the chain of its log is not that of its entries')
        # A fork does not count the erasures from before it was made.
        if log['erasures'] and not log['erased']:
            self.say(f'{key}: {log["erasures"]} erasures are counted, and none is recorded')
        log['entries'] = inherited + own
        log['chains'] = [chain.hex() for chain in chains(row['hash'] for row in log['entries'])]

    def check_summaries(self):
        links = {}
        for row in self.rows('summary_links', 'summary_id, role, ordinal'):
            links.setdefault((row['summary_id'], row['role']), []).append((row['first'], row['last'], row['linked']))
        hashes = {row['summary_id']: row for row in self.rows('summary_hashes', '1')}
        self.summaries = {}
        for row in self.rows('summaries', 'id'):
            if row['id'] in hashes:
                self.summaries[row['id']] = {**row, **hashes[row['id']]}
            else:
                self.say(f'{row["id"]}: it has no hash')
        # An erased summary is made from erased entries, directly or through other summaries.
        recorded, erased, found = {id for id, node in self.summaries.items() if node['erased']}, set(), None
        while found != set():
            found = {id for id in recorded - erased for role in ('child', 'source') for first, last, linked in links.get((id, role), [])
                     if linked in erased or any(first <= end and start <= last for start, end in
                                                self.logs[self.summaries[id]['conversation_id']]['erased'])}
            erased |= found
        for id in recorded - erased:
            self.say(f'{id}: it is recorded as erased, and none of its entries is')
        for id, node in self.summaries.items():
            children, sources = links.get((id, 'child'), []), links.get((id, 'source'), [])
            if node['erased'] and node['content'] != ERASED:
                self.say(f'{id}: it is recorded as erased, and has words')
            fields = Fields('agent-memory summary 2')
            fields.raw(node['source_hash'])
            fields.number(len(children))
            for first, last, linked in children:
                fields.number(first, last)
                fields.optional(linked)
            fields.number(node['first'], node['last'], node['depth'])
            fields.text(node['recipe'])
            fields.text(node['content'])
            fields.text(node['ranks'] or b'')
            fields.optional(node['messages'])
            if id != 'sum_' + node['hash'].hex()[:16] or not node['erased'] and fields.end() != node['hash']:
                self.say(f'{id}: it was changed')
            below = [self.summaries.get(linked) for _, _, linked in children + sources if linked]
            if None in below:
                self.say(f'{id}: a child or source is missing')
                continue
            ends = [node['first'] - 1] + [last for _, last, _ in children]
            if [first for first, _, _ in children] != [end + 1 for end in ends[:-1]] or ends[-1] != node['last']:
                self.say(f'{id}: its children do not cover {node["first"]}-{node["last"]}')
            named = [(first, last, self.summaries[linked]) for first, last, linked in children + sources if linked]
            if any((first, last) != (one['first'], one['last']) for first, last, one in named):
                self.say(f'{id}: a child or source covers another range')
            if node['depth'] != max([self.summaries[linked]['depth'] + 1 for _, _, linked in children if linked], default=0):
                self.say(f'{id}: its depth is not that of its children')
            fields = Fields('agent-memory summary source 1')
            entries = self.logs[node['conversation_id']]['entries']
            for first, last, linked in sources:
                for kind, one in [(1, self.summaries[linked])] if linked else [(0, row) for row in entries[first - 1:last]]:
                    fields.number(kind)
                    fields.raw(one['hash'])
            if not sources or fields.end() != node['source_hash']:
                self.say(f'{id}: its sources were changed')

    def check_views(self, no, log):
        changed = {}
        for row in self.published.get(('published_spans', no), []):
            changed.setdefault((row['view'], row['version'], row['added']), []).append(
                tuple(row[name] for name in ('first', 'kind', 'summary_id', 'policy', 'depth', 'tokens')))
        stored = {row['view']: row for row in self.published.get(('views', no), [])}
        published = self.published.get(('publications', no), [])
        for view, version in sorted({key[:2] for key in changed} - {(row['view'], row['version']) for row in published}):
            self.say(f'{log["key"]}: view {view} version {version} has spans, and was not published')
        for view in sorted({row['view'] for row in published} | set(stored)):
            name, hash, version = f'{log["key"]}: view {view}', ZERO, 0
            spans = {1: (1, 'raw', None, None, None, 0)}
            states = log['views'][view] = {0: (ZERO, [spans[1]])}
            for row in (row for row in published if row['view'] == view):
                version += 1
                fields = Fields('agent-memory publication 1')
                fields.raw(hash)
                fields.number(row['version'], row['first'], row['last'])
                for added in (0, 1):
                    rows = changed.get((view, row['version'], added), [])
                    fields.number(len(rows))
                    for span in rows:
                        first, kind, summary, policy, depth, tokens = span
                        fields.number(first)
                        fields.text(kind)
                        fields.optional(summary or policy)
                        fields.number(-1 if depth is None else depth, tokens)
                        if not added and spans.pop(first, None) != span or added and first in spans:
                            self.say(f'{name} version {version} changes a span at {first} that is not there')
                        spans.update({first: span} if added else {})
                hash = fields.end()
                if row['version'] != version or hash != row['hash']:
                    self.say(f'{name} version {version} was changed')
                states[version] = (hash, [spans[first] for first in sorted(spans)])
                self.check_partition(f'{name} version {version}', log, states[version][1])
            if view not in stored or (stored[view]['version'], stored[view]['chain']) != (version, hash):
                self.say(f'{name} does not end with its last publication')

    def check_partition(self, name, log, spans):
        if not spans or spans[0][0] != 1 or spans[-1][1] != 'raw':
            self.say(f'{name} does not begin at 1, or does not end with messages')
        for (first, kind, summary, _, depth, tokens), following in zip(spans, spans[1:]):
            node = self.summaries.get(summary)
            shown = node and (node['first'], node['last'], node['depth'], node['token_count'])
            if following[0] - 1 > log['head'] or kind == 'summary' and shown != (first, following[0] - 1, depth, tokens):
                self.say(f'{name}: the span at {first} is not that of {summary or "the log"}')

    def check_receipt(self, receipt):
        key, log = receipt['session'], self.by_key.get(receipt['session'])
        if log is None:
            return self.say(f'{key}: the session is missing')
        if len(log['entries']) < receipt['head']:
            return self.say(f'{key}: entries {len(log["entries"]) + 1}-{receipt["head"]} are missing')
        if log['chains'][receipt['head']] != receipt['hash']:
            self.say(f'{key}: entries 1-{receipt["head"]} are not those of the receipt')
        erased = {seq for first, last in log['erased'] for seq in range(first, last + 1)}
        gone = all(seq in erased for one in receipt['erased'] for seq in range(one['first'], one['last'] + 1))
        if log['erasures'] < receipt['erasures'] or not gone:
            self.say(f'{key}: an erasure is missing')

    def check_certificate(self, certificate, signer):
        known = ('format log estimator view version history spans partition budget replay public_key signature').split()
        if others := sorted(certificate.keys() - set(known)):
            raise ValueError(f'unknown fields {others}')
        receipt, key = certificate['log'], certificate['log']['session']
        self.check_receipt(receipt)
        signature, public = certificate.get('signature'), certificate.get('public_key')
        signed = {name: value for name, value in certificate.items() if name != 'signature'}
        self.certificates += 1
        if signer not in (None, public and public.lower()):
            self.say(f'{key}: the certificate is signed by {public}')
        if (signature or public or signer) and not (
                signature and public and is_signed(bytes.fromhex(public), canonical(signed).encode(), bytes.fromhex(signature))):
            self.say(f'{key}: the signature of the certificate is wrong')
        log = self.by_key.get(key)
        first = {0: (ZERO, [(1, 'raw', None, None, None, 0)])}
        state = log and log['views'].get(certificate['view'], first).get(certificate['version'])
        if state is None:
            return self.say(f'{key}: view {certificate["view"]} has no version {certificate["version"]}')
        spans = []
        for span, following in zip(state[1], state[1][1:] + [None]):
            last = min(receipt['head'], following[0] - 1 if following else receipt['head'])
            if span[0] <= last:
                one = {'kind': span[1], 'first': span[0], 'last': last, 'tokens': span[5]}
                one.update({'policy': span[3]} if span[3] else {})
                node = self.summaries.get(span[2])
                if node:
                    one['summary'] = {'id': node['id'], 'hash': node['hash'].hex(), 'recipe': node['recipe'],
                                      'rendering': node['rendering'], 'model': node['model']}
                spans.append(one)
        fields = Fields('agent-memory partition 1')
        fields.text(canonical(spans))
        expected = {'estimator': log['estimator'], 'history': state[0].hex(), 'partition': fields.end().hex(), 'spans': spans}
        for name, value in expected.items():
            if certificate[name] != value:
                self.say(f'{key}: the certified {name} is not that of the view')
        messages = [row for one in spans if one['kind'] == 'raw' for row in log['entries'][one['first'] - 1:one['last']]]
        cost = sum(one['tokens'] for one in spans) + sum(row['tokens'] for row in messages)
        if cost > certificate.get('budget', cost):
            self.say(f'{key}: the view costs {cost} tokens, more than the certified budget')


def once(pairs):
    """The object of these members. A reader of a repeated name may see another value than the one that is signed."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError('an object has a name twice')
    return found


def values(path):
    """The JSON values of a file, of which there must be one."""
    text, at = open(path, encoding='utf-8').read(), 0
    decoder = json.JSONDecoder(object_pairs_hook=once)
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        yield value
    if not at:
        raise ValueError('it is empty')


def main(arguments):
    signer = None
    if '--signer' in arguments:
        at = arguments.index('--signer')
        signer = ''.join(arguments[at + 1:at + 2]).lower()
        arguments = arguments[:at] + arguments[at + 2:]
        try:
            key = strong(bytes.fromhex(signer))
        except ValueError:
            key = None
        if key is None or not arguments:
            print('wrong: --signer is no Ed25519 public key of 64 hex digits, or a weak one')
            return 2
    try:
        export = Export(arguments[0])
    except (LookupError, TypeError, ValueError, sqlite3.Error) as error:
        print(f'wrong: {arguments[0]}: it is no whole export: {error!r}')
        return 7
    for path in arguments[1:]:
        try:
            for value in values(path):
                if value['format'] == 'agent-memory receipt 1':
                    export.check_receipt(value)
                elif value['format'] == 'agent-memory certificate 1':
                    export.check_certificate(value, signer)
                else:
                    export.say(f'{path}: its format is not known')
        except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
            export.say(f'{path}: it is no receipt or certificate: {error!r}')
    if signer and not export.certificates:
        export.say('no file is a certificate, as a signer needs')
    for text in export.wrong:
        print(f'wrong: {text}')
    print(f'{len(export.logs)} sessions, {sum(len(log["entries"]) for log in export.logs.values())} entries, '
          f'{len(export.summaries)} summaries: {len(export.wrong) or "no"} violations')
    return 7 if export.wrong else 0


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
