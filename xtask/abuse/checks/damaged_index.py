"""Rows of the search index are damaged: a search answers as before or fails, and a rebuilt index answers as before."""
import json
import os
import re
import sqlite3
from collections import Counter

from memory import CHANCE, Memory, rounds
from transcripts import conversation

LINES = conversation(600)
base, memory = Memory(), Memory()
SESSION = base.add(LINES)
base.text("compact", SESSION)
base.text("index", SESSION)
database = sqlite3.connect(base.store)
SEGMENTS = [row for (row,) in database.execute("select id from search_segment")]
CHUNKS = [row for (row,) in database.execute("select rowid from search_chunk")]
database.execute("pragma wal_checkpoint(truncate)")
database.close()
assert SEGMENTS and CHUNKS

counts = Counter(word for line in LINES for word in re.findall(r"[a-z]{5,}", line["content"]))
rare = [word for word, count in counts.items() if count <= 3][:5]
some = [word for word, count in counts.items() if 4 <= count <= 30][:3]
QUERIES = [(word, "literal") for word in rare + some] + [(word, "words") for word in some]
QUERIES.append((f"{rare[0]} {some[0]}", "prose"))


def ask():
    """The hits of all queries; None for a query that failed, as it may."""
    answers = []
    for query, mode in QUERIES:
        done = memory.run("--json", "grep", SESSION, "--mode", mode, "--limit", "1000", "--", query, timeout=60)
        assert done.returncode >= 0 and "panicked" not in done.stderr, done.stderr[-300:]
        hits = json.loads(done.stdout)["hits"] if done.returncode == 0 else None
        answers.append(hits and sorted(str((hit["kind"], hit.get("seq"), hit.get("summary_id"))) for hit in hits))
    return answers


def swap(database):
    first, second = CHANCE.choice(CHUNKS), CHANCE.choice(CHUNKS)
    rows = database.execute("select data, rowid from search_chunk where rowid in (?, ?)", (first, second)).fetchall()
    for (data, _), (_, row) in zip(rows, rows[::-1]):
        database.execute("update search_chunk set data = ? where rowid = ?", (data, row))


def overwrite(edit):
    def damage(database):
        chunk = CHANCE.choice(CHUNKS)
        (data,) = database.execute("select data from search_chunk where rowid = ?", (chunk,)).fetchone()
        database.execute("update search_chunk set data = ? where rowid = ?", (bytes(edit(bytearray(data))), chunk))
    return damage


def flip(data):
    data[CHANCE.randrange(len(data))] ^= 1 << CHANCE.randrange(8)
    return data


def segment(expression):
    update = f"update search_segment set {expression} where id = ?"
    return lambda database: database.execute(update, (CHANCE.choice(SEGMENTS),))


def delete(table, rows):
    return lambda database: database.execute(f"delete from {table} where rowid = ?", (CHANCE.choice(rows),))


DAMAGES = {
    "a bit of a chunk": overwrite(flip),
    "a chunk cut short": overwrite(lambda data: data[:CHANCE.randrange(len(data))]),
    "an empty chunk": overwrite(lambda data: b""),
    "a chunk of random bytes": overwrite(lambda data: os.urandom(len(data))),
    "no chunk": delete("search_chunk", CHUNKS),
    "two chunks swapped": swap,
    "another key": lambda database: database.execute("update search_chunk set key = ? where rowid = ?",
                                                     (os.urandom(4), CHANCE.choice(CHUNKS))),
    "no segment": delete("search_segment", SEGMENTS),
    "a later first message": segment("first = first + 1"),
    "an earlier first message": segment("first = first - 1"),
    "a negative first message": segment("first = -5"),
    "a later last message": segment("last = last + 1"),
    "an earlier last message": segment("last = last - 1"),
    "a last message far away": segment("last = 4294967294"),
    "another number of documents": segment("documents = documents + 1"),
    "the largest number of documents": segment("documents = 9223372036854775807"),
    "an unknown format": segment("format = 'zz@9'"),
    "another kind": segment("kind = case kind when 'messages' then 'summaries' else 'messages' end"),
}

memory.copy_of(base)
expected = ask()
assert all(expected)
for _ in rounds():
    memory.copy_of(base)
    name = CHANCE.choice(list(DAMAGES))
    database = sqlite3.connect(memory.store, isolation_level=None)
    try:
        DAMAGES[name](database)
    except sqlite3.IntegrityError:
        continue  # The schema refuses it.
    finally:
        database.execute("pragma wal_checkpoint(truncate)")
        database.close()
    for query, old, new in zip(QUERIES, expected, ask()):
        assert new is None or new == old, (name, query, new, old)
    memory.text("index", SESSION, "--rebuild")
    assert ask() == expected, (name, "after `index --rebuild`")
