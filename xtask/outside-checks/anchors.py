#!/usr/bin/env python3
"""Plants corruptions into databases of agent-memory and into anchors, and counts how many are found.

    anchors.py PROGRAM [--write PAGE | --check PAGE]

Makes a database from fixtures, with compactions, forks and an erasure, and anchors of it: receipts, signed certificates, and the
transcripts themselves. All must be accepted. Then plants each corruption, by Python's sqlite3 or by the bytes of a file, into a copy:
- into the database, where `agent-memory verify`, `verify --against`, and docs/verifier/verify.py on its export are asked;
- into the export or an anchor, where only those that read it are asked.
Prints the counts by kind; PAGE is written or compared. Ends with 1 unless `verify --against` and verify.py reject all that they are
asked for.
"""
import collections
import contextlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'docs', 'verifier'))
import verify  # noqa: E402

CHAT, WEEK = 'support-desk-3', '120981b4-fb17-4e97-a418-8bc95aab0bc4'
FILES = {name: os.path.join(ROOT, 'fixtures', *name.split('/'), 'session.jsonl')
         for name in ('jsonl/support-chat', 'claude-code/release-week', 'pi/branched', 'jsonl/huge-results')}
# An Ed25519 private key in PKCS #8 is these bytes and 32 bytes of the key.
PKCS8 = bytes.fromhex('302e020100300506032b657004220420')
ASKED = ('verify', 'verify --against', 'verify.py')

Found = collections.namedtuple('Found', 'kind name answers')


class Work:
    def __init__(self, program, folder):
        self.program, self.folder, self.count, self.found = program, folder, 0, []

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, store, *arguments, ok=(0,)):
        done = subprocess.run([self.program, '--store', store, *arguments], capture_output=True, text=True, timeout=120)
        if ok and done.returncode not in ok:
            sys.exit(f'{arguments} ended with {done.returncode}: {done.stderr}{done.stdout}')
        return done

    def new(self, name):
        self.count += 1
        return self.path(f'{self.count}-{name}')

    def key(self, seed):
        import base64
        path = self.new('key.pem')
        with open(path, 'w', encoding='ascii') as file:
            body = base64.b64encode(PKCS8 + bytes([seed]) * 32).decode()
            file.write(f'-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n')
        return path

    def build(self, edits=None, erase=True, options=()):
        """A new database from the fixtures. `edits` changes the lines of the chat."""
        store = self.new('memory.db')
        chat = self.new('chat.jsonl')
        lines = open(FILES['jsonl/support-chat'], encoding='utf-8').readlines()
        with open(chat, 'w', encoding='utf-8') as file:
            file.writelines(edits(lines) if edits else lines)
        self.run(store, 'import', chat, *(path for name, path in FILES.items() if name != 'jsonl/support-chat'))
        self.run(store, 'compact', CHAT, '--fresh-tail', '8', ok=(0, 3))
        self.run(store, 'compact', WEEK, *options)
        self.run(store, 'fork', WEEK, '--at', '300', '--name', 'twin')
        self.run(store, 'import', '--session', 'twin', FILES['jsonl/huge-results'])
        self.run(store, 'compact', 'twin')
        if erase:
            self.run(store, 'erase', WEEK, '--from', '3', '--to', '4', '--reason', 'a password')
            self.run(store, 'compact', WEEK, *options)
        self.run(store, 'fork', WEEK, '--at', '50', '--name', 'late')
        return store

    def export(self, store):
        path = self.new('export.db')
        done = self.run(store, 'export', '--sqlite', path, ok=())
        return path if done.returncode == 0 else None

    def copy(self, path, name='memory.db'):
        new = self.new(name)
        shutil.copyfile(path, new)
        return new

    def verify_py(self, export, anchors, signer):
        """Whether the verifier rejects an export; also when there is none."""
        if export is None:
            return True
        with contextlib.redirect_stdout(io.StringIO()):
            return verify.main([export, *anchors, *signed_by(signer)]) != 0

    def against(self, store, anchors, signer):
        done = self.run(store, 'verify', *signed_by(signer), '--against', *anchors, ok=())
        return done.returncode != 0


def signed_by(signer):
    return ['--signer', signer] if signer else []


def triggers_off(path, change):
    """Changes a database as one who knows its triggers: they are put aside meanwhile."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        triggers = db.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f'drop trigger "{name}"')
        changed = change(db) if callable(change) else sum(db.execute(one).rowcount for one in change.split(';'))
        assert changed != 0, change
        for _, sql in triggers:
            db.execute(sql)
        db.commit()


def entry_hash(row):
    fields = verify.Fields('agent-memory message 1')
    fields.text(row['kind'])
    fields.text(row['role'])
    for name in ('external_id', 'response', 'name', 'loop'):
        fields.optional(row[name])
    fields.number(-1 if row['turn'] is None else row['turn'], row['at'])
    fields.optional(row['meta'])
    fields.text(row['body'])
    return fields.end()


def rechain(db, no):
    """Numbers a log's entries anew, and computes its chain and head anew."""
    hashes = [row[0] for row in db.execute('select hash from log_entries where conversation_id = ? order by seq', [no])]
    return db.execute('update logs set chain = ?, head = ? where conversation_id = ?', [verify.chains(hashes)[-1], len(hashes), no]).rowcount


def renumber(db, no):
    db.execute('update log_entries set seq = -seq where conversation_id = ?', [no])
    rows = db.execute('select seq from log_entries where conversation_id = ? order by seq desc', [no]).fetchall()
    for seq, (old,) in enumerate(rows, 1):
        db.execute('update log_entries set seq = ? where conversation_id = ? and seq = ?', [seq, no, old])


def rehash(db, no, seq):
    db.row_factory = sqlite3.Row
    row = db.execute('select * from log_entries where conversation_id = ? and seq = ?', [no, seq]).fetchone()
    db.execute('update log_entries set hash = ? where conversation_id = ? and seq = ?', [entry_hash(row), no, seq])
    db.row_factory = None


def swap(db, no, a, b):
    for old, new in ((a, -1), (b, a), (-1, b)):
        db.execute('update log_entries set seq = ? where conversation_id = ? and seq = ?', [new, no, old])
    return 1


def insert(db, no, seq):
    db.execute('update log_entries set seq = -seq - 1 where conversation_id = ? and seq >= ?', [no, seq])
    db.execute('update log_entries set seq = -seq where conversation_id = ? and seq < 0', [no])
    columns = 'kind, role, response, name, loop, turn, at, meta, body, tokens, hash'
    return db.execute(f'insert into log_entries (conversation_id, seq, external_id, {columns}) select conversation_id, ?, '
                      f'null, {columns} from log_entries where conversation_id = ? and seq = ?', [seq, no, seq + 1]).rowcount


def resummarize(db, id):
    """Computes a summary's hash and id anew, in all tables."""
    db.row_factory = sqlite3.Row
    node = db.execute('select * from summary_hashes join summaries on id = summary_id where id = ?', [id]).fetchone()
    links = db.execute("select * from summary_links where role = 'child' and summary_id = ? order by ordinal", [id]).fetchall()
    db.row_factory = None
    fields = verify.Fields('agent-memory summary 2')
    fields.raw(node['source_hash'])
    fields.number(len(links))
    for link in links:
        fields.number(link['first'], link['last'])
        fields.optional(link['linked'])
    fields.number(node['first'], node['last'], node['depth'])
    for text in (node['recipe'], node['content'], node['ranks'] or b''):
        fields.text(text)
    fields.optional(node['messages'])
    hash = fields.end()
    new = 'sum_' + hash.hex()[:16]
    db.execute('update summary_hashes set hash = ? where summary_id = ?', [hash, id])
    for table, column in (('summaries', 'id'), ('summary_hashes', 'summary_id'), ('summary_links', 'summary_id'),
                          ('summary_links', 'linked'), ('published_spans', 'summary_id')):
        db.execute(f'update {table} set {column} = ? where {column} = ?', [new, id])


def republish(db, no):
    """Computes the history of a log's views anew."""
    for view, in db.execute('select view from views where conversation_id = ?', [no]).fetchall():
        hash = verify.ZERO
        for version, first, last in db.execute('select version, first, last from publications where conversation_id = ? and view = ? '
                                               'order by version', [no, view]).fetchall():
            fields = verify.Fields('agent-memory publication 1')
            fields.raw(hash)
            fields.number(version, first, last)
            for added in (0, 1):
                spans = db.execute('select first, kind, coalesce(summary_id, policy), coalesce(depth, -1), tokens from published_spans '
                                   'where (conversation_id, view, version, added) = (?, ?, ?, ?) order by first',
                                   [no, view, version, added]).fetchall()
                fields.number(len(spans))
                for start, kind, named, depth, tokens in spans:
                    fields.number(start)
                    fields.text(kind)
                    fields.optional(named)
                    fields.number(depth, tokens)
            hash = fields.end()
            db.execute('update publications set hash = ? where (conversation_id, view, version) = (?, ?, ?)', [hash, no, view, version])
        db.execute('update views set chain = ? where (conversation_id, view) = (?, ?)', [hash, no, view])
    return 1


def in_export(week, chat, shown, spoken):
    """Corruptions of the exported tables: kind, name, change."""
    log = f'update log_entries set %s where conversation_id = {chat} and seq = %d'
    node = f"where summary_id = '{shown}'"
    unerased = '(select summary_id from summary_hashes where erased = 0 and first > 4 limit 1)'
    last = f'conversation_id = {week} and version = (select max(version) from publications where conversation_id = {week})'
    span = f"update published_spans set %s where conversation_id = {week} and added = 1 and summary_id = '{shown}'"
    word = "body = replace(body, 'parcel', 'packet')"

    def then(*steps):
        def change(db):
            for step in steps:
                done = step(db) if callable(step) else db.execute(step).rowcount
                assert done != 0, step
            return 1
        return change

    anew = [lambda db: rehash(db, chat, 1), lambda db: rechain(db, chat)]
    out = [
        ('words of an entry', 'changed', log % (word, 1)),
        ('words of an entry', 'changed, with its hash', then(log % (word, 1), anew[0])),
        ('words of an entry', 'changed, with all hashes of the log', then(log % (word, 1), *anew)),
        ('words of an entry', 'removed without a record', log % ('body = null', 1)),
        ('words of an entry', 'changed in what a fork shares', f"update log_entries set body = body || ' ' where conversation_id = "
                                                              f'{week} and seq = 7'),
    ]
    for name, change in (('meta', "meta = '{}'"), ('time', 'at = at + 1'), ('role', "role = 'system'"), ('id', "external_id = 'x'"),
                         ('name', "name = 'Eve'"), ('kind', "kind = 'note'")):
        out.append(('fields of an entry', name, log % (change, 1)))
        out.append(('fields of an entry', f'{name}, with all hashes of the log', then(log % (change, 1), *anew)))
    drop = f'delete from log_entries where conversation_id = {chat} and seq = '
    end = f'(select max(seq) from log_entries where conversation_id = {chat})'
    chain = lambda db: rechain(db, chat)  # noqa: E731
    again = lambda db: renumber(db, chat)  # noqa: E731
    out += [
        ('entries', 'one dropped', drop + '9'),
        ('entries', 'one dropped, numbered and chained anew', then(drop + '9', again, chain)),
        ('entries', 'the last dropped', drop + end),
        ('entries', 'the last dropped, chained anew', then(drop + end, chain)),
        ('entries', 'two swapped', lambda db: swap(db, chat, 5, 6)),
        ('entries', 'two swapped, chained anew', then(lambda db: swap(db, chat, 5, 6), chain)),
        ('entries', 'one inserted', lambda db: insert(db, chat, 5)),
        ('entries', 'one inserted, chained anew', then(lambda db: insert(db, chat, 5), chain)),
        ('entries', 'hash changed, chained anew', then(log % ("hash = zeroblob(32)", 5), chain)),
        ('entries', 'a session removed', then(f'delete from log_entries where conversation_id = {chat}', *(
            f'delete from {table} where conversation_id = {chat}' for table in ('logs',)),
            f'delete from conversations where id = {chat}')),
        ('entries', 'the parent of a fork shortened', then(f'delete from log_entries where conversation_id = {week} and seq > 290',
                                                          lambda db: rechain(db, week))),
        ('summaries', 'text', f"update summaries set content = content || '.' where id = '{shown}'"),
        ('summaries', 'text, with all hashes', then(f"update summaries set content = content || '.' where id = '{shown}'",
                                                   lambda db: resummarize(db, shown), lambda db: republish(db, week))),
        ('summaries', 'range', f'update summary_hashes set last = last - 1 {node}'),
        ('summaries', 'depth', f"update summaries set depth = depth + 1 where id = '{shown}'"),
        ('summaries', 'recipe', f"update summary_hashes set recipe = 'another' {node}"),
        ('summaries', 'ranks', f"update summary_hashes set ranks = x'0102' {node}"),
        ('summaries', 'model', f"update summary_hashes set model = 'another' {node}"),
        ('summaries', 'rendering', f"update summary_hashes set rendering = 'another' {node}"),
        ('summaries', 'source hash', f'update summary_hashes set source_hash = zeroblob(32) {node}'),
        ('summaries', 'dropped', f"delete from summary_hashes {node}"),
        ('links of summaries', 'range of a child', f"update summary_links set last = last - 1 {node} and role = 'child' and ordinal = 0"),
        ('links of summaries', 'a child dropped', f"delete from summary_links {node} and role = 'child' and ordinal = 0"),
        ('links of summaries', 'a source dropped', f"delete from summary_links {node} and role = 'source' and ordinal = 0"),
        ('links of summaries', 'a source added', f"insert into summary_links values ('{shown}', 'source', 99, 1, 1, null)"),
        ('spans', 'tokens', span % 'tokens = tokens - 1'),
        ('spans', 'tokens, with the history', then(span % 'tokens = tokens - 1', lambda db: republish(db, week))),
        ('spans', 'start', span % 'first = first + 1'),
        ('spans', 'kind', span % "kind = 'omitted', summary_id = null, depth = null"),
        ('spans', 'kind, with the history', then(span % "kind = 'omitted', summary_id = null, depth = null, tokens = 0",
                                                lambda db: republish(db, week))),
        ('spans', 'dropped', f"delete from published_spans where conversation_id = {week} and added = 1 and summary_id = '{shown}'"),
        ('versions of views', 'lowered', f'update views set version = version - 1 where conversation_id = {week}'),
        ('versions of views', 'the last dropped', f'delete from publications where {last}'),
        ('versions of views', 'the last dropped, with the history', then(
            f'delete from published_spans where {last}', f'delete from publications where {last}',
            f'update views set version = version - 1 where conversation_id = {week}', lambda db: republish(db, week))),
        ('versions of views', 'range of a publication', f'update publications set last = last - 1 where {last}'),
        ('versions of views', 'chain', f'update views set chain = zeroblob(32) where conversation_id = {week}'),
        ('versions of views', 'the view dropped', f'delete from views where conversation_id = {week}'),
        ('erasures', 'record removed', f'delete from erasures where conversation_id = {week}'),
        ('erasures', 'record removed, count lowered', then(f'delete from erasures where conversation_id = {week}',
                                                          f'update logs set erasures = 0 where conversation_id = {week}')),
        ('erasures', 'count lowered', f'update logs set erasures = 0 where conversation_id = {week}'),
        ('erasures', 'another range recorded', f'update erasures set first = 9, last = 9 where conversation_id = {week}'),
        ('erased words back', 'with the record', lambda db: spoken(db, 'log_entries')),
        ('erased words back', 'record removed', then(lambda db: spoken(db, 'log_entries'), 'delete from erasures')),
        ('erased words back', 'record removed, count lowered', then(
            lambda db: spoken(db, 'log_entries'), 'delete from erasures', 'update logs set erasures = 0')),
        ('erasures', 'of a summary, without one of its entries', then(
            "update summaries set content = '[erased]' where id = " + unerased,
            "update summary_hashes set erased = 1, ranks = null, messages = null where summary_id = " + unerased)),
        ('versions of views', 'spans without a publication', f'''insert into published_spans select conversation_id, view, 99,
            added, first, kind, summary_id, policy, depth, tokens from published_spans where conversation_id = {week} limit 1'''),
        ('erased words back', 'of a summary', "update summaries set content = 'The password is hunter2.' where id = "
                                              '(select summary_id from summary_hashes where erased = 1 limit 1)'),
    ]
    return out


def in_database(week, chat, shown):
    """Corruptions of the database by its own tables: kind, name, change."""
    row = f'where conversation = {chat} and seq = '
    end = f'(select max(seq) from message where conversation = {chat})'
    live = f"where conversation = {week} and kind = 'summary'"
    shown = f"(select id from summary where conversation = {week} and public_id = '{shown}')"

    def remove(db):
        tables = db.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'").fetchall()
        for table, in tables:
            columns = {column[1] for column in db.execute(f'pragma table_info({table})')}
            for column, value in (('conversation', 'conversation'), ('parent', 'parent >> 32'), ('summary', 'summary >> 32'),
                                  ('segment', 'segment >> 32'), ('tree', 'tree')):
                if column in columns and (table, column) not in (('conversation', 'parent'), ('span', 'summary'),
                                                                 ('span_history', 'summary')):
                    db.execute(f'delete from {table} where {value} = {chat}')
        return 1

    return [
        ('words of an entry', 'changed', f"update message set body = cast('[{{\"type\":\"text\",\"text\":\"no\"}}]' as blob), codec = 0, "
                                         f'payload = null {row} 1'),
        ('fields of an entry', 'time', f'update message set at = at + 1 {row} 1'),
        ('fields of an entry', 'role', f"update message set role = 'system' {row} 1"),
        ('fields of an entry', 'hash', f'update message set hash = zeroblob(32) {row} 1'),
        ('entries', 'one dropped', f'delete from message {row} 9'),
        ('entries', 'the last dropped', f'delete from message {row} {end}'),
        ('entries', 'the last dropped, head lowered', f'delete from message {row} {end};'
                                                     f'update conversation set head = head - 1 where no = {chat}'),
        ('entries', 'two swapped', f'update message set hash = (select hash from message {row} 6), body = (select body from message '
                                   f'{row} 6), codec = (select codec from message {row} 6) {row} 5'),
        ('entries', 'a session removed with all its rows', remove),
        ('summaries', 'text', f"update summary set text = text || '.' where id = {shown}"),
        ('summaries', 'range', f'update summary set last = last - 1 where id = {shown}'),
        ('summaries', 'depth', f'update summary set depth = depth + 1 where id = {shown}'),
        ('summaries', 'model', f"update summary set model = 'another' where id = {shown}"),
        ('summaries', 'source hash', f'update summary set source_hash = zeroblob(32) where id = {shown}'),
        ('links of summaries', 'a child dropped', f'delete from summary_link where parent = {shown} and role = 0 and ordinal = 0'),
        ('links of summaries', 'range of a child', f'update summary_link set last = last - 1 where parent = {shown} and ordinal = 0'),
        ('spans', 'tokens', f'update span set tokens = tokens - 1 {live}'),
        ('spans', 'dropped', f'delete from span {live}'),
        ('spans', 'kind', f"update span set kind = 'omitted', summary = null, depth = 0, tokens = 0 {live}"),
        ('versions of views', 'lowered', f'update view set version = version - 1 where conversation = {week}'),
        ('versions of views', 'the last dropped', f'delete from publication where conversation = {week} and version = '
                                                  f'(select max(version) from publication where conversation = {week})'),
        ('versions of views', 'an earlier span dropped', f'delete from span_history where conversation = {week}'),
        ('erasures', 'record removed', f'delete from erasure where conversation = {week}'),
        ('erasures', 'record removed, count lowered', f'delete from erasure where conversation = {week};'
                                                     f'update conversation set erasures = 0 where no = {week}'),
        ('erasures', 'count lowered', f'update conversation set erasures = 0 where no = {week}'),
        ('erasures', 'of a summary, without one of its entries', 
         "update summary set text = '[erased]', ranks = null, messages = null, meta = null where id = "
         '(select id from summary where first > 4 and id not in (select summary from erased_summary) limit 1);'
         "insert into erased_summary select id, 0 from summary where text = '[erased]' and id not in (select summary from erased_summary);"
         'delete from search_chunk; delete from search_segment'),
        ('erased words back', 'of a summary', "update summary set text = 'The password is hunter2.' where id = "
                                              '(select summary from erased_summary limit 1)'),
    ]


def in_receipt(receipts):
    """Corruptions of receipts: the changed list of receipts."""
    at = next(at for at, one in enumerate(receipts) if one['session'] == WEEK)
    for name, change in (('hash', {'hash': '00' * 32}), ('head raised', {'head': receipts[at]['head'] + 1}),
                         ('head lowered', {'head': receipts[at]['head'] - 1}), ('session', {'session': 'nobody'}),
                         ('erasures raised', {'erasures': 9}), ('erased range', {'erased': [{'first': 9, 'last': 10}]})):
        yield name, [{**one, **change} if no == at else one for no, one in enumerate(receipts)]


def in_certificate(certificate):
    """Corruptions of a certificate: the changed certificate, each field in turn."""
    def leaves(value, path=()):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(below, (dict, list)):
                yield from leaves(below, (*path, key))
            else:
                yield (*path, key), below
    for path, value in leaves(certificate):
        changed = json.loads(json.dumps(certificate))
        target = changed
        for key in path[:-1]:
            target = target[key]
        flipped = isinstance(value, str) and value and ('1' if value[0] == '0' else '0') + value[1:]
        target[path[-1]] = flipped or (value + 1 if isinstance(value, int) else 'x')
        yield '.'.join(map(str, path)), changed
    for name in ('signature', 'public_key'):
        yield f'without {name}', {key: value for key, value in certificate.items() if key != name}
    yield 'a span dropped', {**certificate, 'spans': certificate['spans'][:-1]}


def held(store):
    """What receipts and certificates hold of a database, read by SQL from a copy of it."""
    with tempfile.TemporaryDirectory() as folder:
        for end in ('', '-wal'):
            if os.path.exists(store + end):
                shutil.copyfile(store + end, os.path.join(folder, 'copy' + end))
        with contextlib.closing(sqlite3.connect(os.path.join(folder, 'copy'))) as db:
            return [db.execute(one).fetchall() for one in ('select key, head, chain, erasures from conversation order by key',
                                                           'select conversation, name, version, chain from view order by 1, 2')]


def cut_logs(work):
    """Databases whose write-ahead log was lost, as a crash leaves them: name and path. First the whole one."""
    store = work.new('memory.db')
    first, rest = work.new('half.jsonl'), FILES['jsonl/support-chat']
    with open(first, 'w', encoding='utf-8') as file:
        file.writelines(open(rest, encoding='utf-8').readlines()[:20])
    work.run(store, 'import', first)
    # While this reader has a transaction open, the program cannot move the log into the database.
    reader = sqlite3.connect(store, isolation_level=None)
    reader.execute('begin')
    reader.execute('select count(*) from conversation').fetchone()
    for path in (rest, FILES['claude-code/release-week']):
        work.run(store, 'import', path)
    work.run(store, 'compact', WEEK)
    whole = work.copy(store)
    shutil.copyfile(store + '-wal', whole + '-wal')
    reader.close()
    log = open(whole + '-wal', 'rb').read()
    frame = 24 + int.from_bytes(log[8:12], 'big')
    frames = (len(log) - 32) // frame
    yield 'whole', whole
    cuts = [('deleted', None), ('emptied', b''), ('its header alone', log[:32])]
    cuts.append(('its first page overwritten', log[:32] + bytes(frame) + log[32 + frame:]))

    def cut(left):
        store = work.copy(whole)
        if left is not None:
            with open(store + '-wal', 'wb') as file:
                file.write(left)
        return store

    # The last pages hold the search index and kept states alone. So much has to be lost that entries or views are.
    least = next(lost for lost in range(1, frames) if held(cut(log[:-lost * frame])) != held(whole))
    needed = frames - least
    cuts += [(f'cut after {part} eighths', log[:32 + needed * part // 8 * frame]) for part in range(1, 8)]
    middle = 32 + needed // 2 * frame + 100
    cuts.append(('a bit flipped in the middle', log[:middle] + bytes([log[middle] ^ 1]) + log[middle + 1:]))
    cuts += [('the last page of an entry or a view lost', log[:-least * frame]), ('torn before it', log[:-least * frame - 9])]
    for name, left in cuts:
        store = cut(left)
        assert held(store) != held(whole), name
        yield name, store


def check(work):
    store = work.build()
    signer_file = work.key(7)
    anchors = [work.path('receipts.jsonl'), work.path('week.json'), work.path('twin.json')]
    with open(anchors[0], 'w', encoding='utf-8') as file:
        file.write(work.run(store, 'receipt').stdout)
    for path, session in ((anchors[1], WEEK), (anchors[2], 'twin')):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(work.run(store, 'certify', session, '--key', signer_file, '--budget', '120000').stdout)
    texts = [open(path, encoding='utf-8').read() for path in anchors]
    certificate = json.loads(texts[1])
    together = work.new('together.jsonl')
    with open(together, 'w', encoding='utf-8') as file:
        file.write(''.join(texts))
    signer = certificate['public_key']
    transcripts = list(FILES.values())
    export = work.export(store)

    # What is whole is accepted, also after later appends, compactions and erasures.
    later = work.copy(store)
    work.run(later, 'import', '--session', 'twin', FILES['jsonl/support-chat'], ok=(0,))
    work.run(later, 'compact', 'twin', '--fresh-tail', '4')
    work.run(later, 'erase', 'twin', '--from', '302', '--reason', 'a name')
    for whole in (store, later):
        accepted = [*anchors, together]
        if work.against(whole, accepted + transcripts, signer) or work.verify_py(work.export(whole), accepted, signer):
            done = work.run(whole, 'verify', '--signer', signer, '--against', *accepted, *transcripts, ok=())
            sys.exit(f'what is whole is rejected: {done.stdout}{done.stderr}')

    def ask(kind, name, database=None, exported=None, against=anchors, files=()):
        """Asks all that read what was changed."""
        answers = {}
        if database is not None:
            answers['verify'] = work.run(database, 'verify', ok=()).returncode != 0
            answers['verify --against'] = answers['verify'] or work.against(database, [*against, *files], signer)
            exported = work.export(database)
        if exported is not None or database is not None:
            answers['verify.py'] = work.verify_py(exported, against, signer)
        work.found.append(Found(kind, name, answers))

    numbers = sqlite3.connect(export)
    number = dict(numbers.execute('select session_id, id from conversations'))
    week, chat = number[WEEK], number[CHAT]
    shown = next(span['summary']['id'] for span in certificate['spans'] if 'summary' in span)
    before = work.build(erase=False)
    spoken_of = sqlite3.connect(work.export(before)).execute(
        'select body, meta, name, seq from log_entries where conversation_id = ? and seq in (3, 4)', [week]).fetchall()

    def spoken(db, table):
        return sum(db.execute(f'update {table} set body = ?, meta = ?, name = ? where conversation_id = {week} and seq = ?', row).rowcount
                   for row in spoken_of)

    for kind, name, change in in_export(week, chat, shown, spoken):
        changed = work.copy(export, 'export.db')
        with contextlib.closing(sqlite3.connect(changed)) as db:
            done = change(db) if callable(change) else db.execute(change).rowcount
            assert done != 0, (kind, name)
            db.commit()
        ask(f'export: {kind}', name, exported=changed)

    def words_back(db):
        for body, meta, name, seq in spoken_of:
            db.execute('update message set body = ?, meta = ?, name = ?, codec = 0 where conversation = ? and seq = ?',
                       [body.encode(), meta, name, week, seq])
        return 1

    def words_back_alone(db):
        db.execute('delete from erasure')
        db.execute('update conversation set erasures = 0')
        return words_back(db)

    planted = in_database(week, chat, shown)
    planted.append(('erased words back', 'with the record', words_back))
    planted.append(('erased words back', 'record removed, count lowered', words_back_alone))
    for kind, name, change in planted:
        changed = work.copy(store)
        triggers_off(changed, change)
        ask(f'database: {kind}', name, database=changed)

    # Databases that are valid by themselves.
    def edited(change):
        def edits(lines):
            lines = list(lines)
            change(lines)
            return lines
        return work.build(edits)

    def replace(lines, old, new):
        lines[0] = lines[0].replace(old, new)

    def moved(lines):
        lines[4], lines[5] = lines[5], lines[4]

    kind = 'another valid database'
    ask(kind, 'an older copy, before the erasure', database=before)
    older = work.build(lambda lines: lines[:40])
    ask(kind, 'an older copy, before the last entries', database=older)
    ask(kind, 'a word changed', database=edited(lambda lines: replace(lines, 'parcel', 'packet')), files=transcripts)
    ask(kind, 'an entry dropped', database=edited(lambda lines: lines.pop(9)), files=transcripts)
    ask(kind, 'an entry inserted', database=edited(lambda lines: lines.insert(9, lines[8].replace('chat-', 'more-'))))
    ask(kind, 'two entries swapped', database=edited(moved), files=transcripts)
    ask(kind, 'compacted otherwise', database=work.build(options=('--fresh-tail', '60')))
    ask(kind, 'without a session', database=edited(lambda lines: lines.clear() or lines.append(
        '{"session":"other","external_id":"1","role":"user","content":"Hello."}\n')))

    # The transcripts alone, without receipts and certificates.
    kind = 'another valid database, transcripts alone'
    for name, database in (('before the last entries', older),
                           ('a word changed', edited(lambda lines: replace(lines, 'parcel', 'packet'))),
                           ('an entry dropped', edited(lambda lines: lines.pop(9))), ('two entries swapped', edited(moved))):
        answers = {'verify': work.run(database, 'verify', ok=()).returncode != 0}
        answers['verify --against'] = work.against(database, transcripts, None)
        work.found.append(Found(kind, name, answers))

    cut = cut_logs(work)
    _, whole = next(cut)
    receipts_of_whole = work.new('receipts.jsonl')
    with open(receipts_of_whole, 'w', encoding='utf-8') as file:
        file.write(work.run(work_copy(work, whole), 'receipt').stdout)
    certified = work.new('certificate.json')
    with open(certified, 'w', encoding='utf-8') as file:
        file.write(work.run(work_copy(work, whole), 'certify', WEEK, '--key', signer_file).stdout)
    if work.against(work_copy(work, whole), [receipts_of_whole, certified], signer):
        sys.exit('a whole write-ahead log is rejected')
    for name, database in cut:
        ask('lost write-ahead log', name, database=database, against=[receipts_of_whole, certified])

    receipts = [json.loads(line) for line in open(anchors[0], encoding='utf-8')]
    for name, changed in in_receipt(receipts):
        path = work.new('receipts.jsonl')
        with open(path, 'w', encoding='utf-8') as file:
            file.writelines(json.dumps(one) + '\n' for one in changed)
        work.found.append(Found('receipt', name, {'verify --against': work.against(store, [path], None),
                                                  'verify.py': work.verify_py(export, [path], None)}))
    other = work.run(store, 'certify', WEEK, '--key', work.key(8)).stdout
    unsigned = {key: value for key, value in certificate.items() if key not in ('signature', 'public_key')}
    for name, changed, signer in [*((*one, signer) for one in in_certificate(certificate)),
                                  ('signed with another key', json.loads(other), signer),
                                  ('a budget below the cost, unsigned', {**unsigned, 'budget': 100}, None)]:
        path = work.new('certificate.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(changed, file, indent=1)
        work.found.append(Found('certificate', name, {'verify --against': work.against(store, [path], signer),
                                                      'verify.py': work.verify_py(export, [path], signer)}))
    lines = texts[0].splitlines(keepends=True)
    for name, changed in (('a changed certificate behind another', texts[2] + json.dumps({**certificate, 'version': 1})),
                          ('a changed receipt behind a certificate', texts[1] + texts[0].replace('"head":', '"head":1')),
                          ('a torn receipt behind a certificate', texts[1] + lines[0][:60]),
                          ('a receipt torn before others', lines[0] + lines[0][:60] + ''.join(lines[1:])),
                          ('nothing', '\n'),
                          ('a certificate with a name twice', texts[2].replace('{', '{"view": "other", ', 1)),
                          ('a value of 100,000 levels', '{"format": "agent-memory receipt 1", "at": ' + '[' * 100_000),
                          # R is the neutral element and S is 0, which holds for any text if the key is that element too.
                          ('a signature by a key of order 1', json.dumps({
                              **certificate, 'public_key': '01' + '00' * 31, 'signature': '01' + '00' * 63}))):
        path = work.new('together.json')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(changed)
        work.found.append(Found('several in a file', name, {'verify --against': work.against(store, [path], None),
                                                            'verify.py': work.verify_py(export, [path], None)}))
    work.found.append(Found('several in a file', 'receipts alone, where a signer is given', {
        'verify --against': work.against(store, anchors[:1], certificate['public_key']),
        'verify.py': work.verify_py(export, anchors[:1], certificate['public_key'])}))


def work_copy(work, whole):
    """A copy of a database with its write-ahead log: reading may move the log into the database."""
    store = work.copy(whole)
    shutil.copyfile(whole + '-wal', store + '-wal')
    return store


def table(found):
    kinds = {}
    for one in found:
        kinds.setdefault(one.kind, []).append(one)
    rows = [('planted into', 'corruptions', *(f'`{name}`' for name in ASKED))]
    for kind, ones in [*kinds.items(), ('all', found)]:
        row = [kind, str(len(ones))]
        for name in ASKED:
            asked = [one.answers[name] for one in ones if name in one.answers]
            row.append(f'{sum(asked)} of {len(asked)}' if asked else '')
        rows.append(row)
    rows.insert(1, ('---', '---:', '---:', '---:', '---:'))
    return ''.join('| ' + ' | '.join(row) + ' |\n' for row in rows)


PAGE = """<!-- generated by `python3 xtask/outside-checks/anchors.py PROGRAM --write docs/measurements/proof.md` -->

# Corruptions that are found

[proof.md](../proof.md) describes receipts, certificates, and the verifier. This page counts planted corruptions that each of these
rejects: `agent-memory verify`; `agent-memory verify --against` with receipts and signed certificates, where it says so with the
transcripts alone; and the independent verifier [`verify.py`](../verifier/verify.py) on the export, with the same receipts and
certificates. A database that cannot be exported counts as rejected. An empty field: what was changed is not read.

The database is made from fixtures, with compactions, forks and an erasure. It is accepted, and so is the same database after later
entries, compactions and erasures. Corruptions of the database and of the export are SQL; triggers of the database are put aside
meanwhile. "Another valid database" is made by the program from changed transcripts, or at an earlier time. A write-ahead log is
changed in a copy of the files that a reader kept from being cleaned up.

`bash .ci/run` repeats this with `python3 xtask/outside-checks/anchors.py PROGRAM --check docs/measurements/proof.md`.

{table}
"""


def main(program, mode=None, page=None):
    with tempfile.TemporaryDirectory() as folder:
        work = Work(os.path.abspath(program), folder)
        check(work)
    print(table(work.found))
    missed = [(one, name) for one in work.found for name in ASKED[1:] if not one.answers.get(name, True)]
    for one, name in missed:
        print(f'{name} accepts: {one.kind}: {one.name}')
    text = PAGE.format(table=table(work.found)).rstrip() + '\n'
    if mode == '--write':
        with open(page, 'w', encoding='utf-8') as file:
            file.write(text)
    if mode == '--check' and open(page, encoding='utf-8').read() != text:
        print(f'{page} differs: write it with --write')
        return 1
    return 1 if missed else 0


if __name__ == '__main__':
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
