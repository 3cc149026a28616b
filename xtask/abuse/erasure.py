"""A session with secrets in every place of a line, and the search for them in the files of a database."""
import glob
import os
import sqlite3

import zstandard

from memory import Memory
from transcripts import SESSION, claude, text, words

DICTIONARY = os.path.join(os.path.dirname(__file__), "../../crates/store-sql/src/dictionary.bin")
# Stored frames lack it.
MAGIC = bytes.fromhex("28b52ffd")

# The messages with secrets.
FIRST, LAST = 10, 13
ERASE = ("erase", SESSION, "--from", str(FIRST), "--to", str(LAST), "--reason", "secrets")
SECRETS = [f"SECRETWORD{number}" for number in range(FIRST, LAST + 1)] + ["SECRETBRANCH", "SECRETFOLDER", "SECRETMODEL"]


def line(number):
    """A message, with secrets in its words, branch, folder and model if it is one of those."""
    secret = FIRST <= number <= LAST
    more = f" SECRETWORD{number}xyzzy forty-two-{number} " if secret else " "
    said = words(60, number) + more + words(60, -number)
    kind = "user" if number % 2 else "assistant"
    message = claude(kind, f"u{number}", f"u{number - 1}" if number > 1 else None, said if number % 2 else [text(said)],
                     at=f"2026-01-01T{number // 60 % 24:02}:{number % 60:02}:00.000Z")
    message["gitBranch"] = "SECRETBRANCH" if secret else "main"
    if number == 11:
        message["cwd"] = "/home/kim/SECRETFOLDER"
    if number == 12:
        message["message"]["model"] = "SECRETMODEL"
    return message


LINES = [line(number) for number in range(1, 61)]


def compacted_with_a_fork():
    memory = Memory()
    memory.add(LINES)
    memory.text("compact", SESSION)
    memory.text("fork", SESSION, "--at", "20", "--name", "fork")
    return memory


def decompressed(data, facts=""):
    dictionary = zstandard.ZstdCompressionDict(open(DICTIONARY, "rb").read() + facts.encode())
    try:
        return zstandard.ZstdDecompressor(dict_data=dictionary).decompress(MAGIC + data, max_output_size=1 << 26)
    except (zstandard.ZstdError, MemoryError):  # It is no frame.
        return b""


def values(store):
    """Table, column and bytes of each text and blob, and also of what the compressed ones contain."""
    database = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    facts = dict(database.execute("select conversation, text from facts").fetchall())
    tables = "select name from sqlite_schema where type = 'table' and name not like 'sqlite%'"
    for (table,) in database.execute(tables).fetchall():
        for row in database.execute(f'select * from "{table}"'):
            for column in row.keys():
                value = row[column]
                if isinstance(value, str):
                    yield table, column, value.encode()
                elif isinstance(value, bytes):
                    yield table, column, value
                    yield table, column, decompressed(value)
                    if table == "message":
                        yield table, column, decompressed(value, facts.get(row["conversation"], ""))
    database.close()


def remains(store, secrets):
    """The places where one of the words is still readable, in any case."""
    secrets = [secret.lower().encode() for secret in secrets]
    files = [(os.path.basename(file), "bytes", open(file, "rb").read()) for file in glob.glob(store + "*")]
    return sorted({(table, column, secret.decode()) for table, column, data in [*files, *values(store)]
                   for secret in secrets if secret in data.lower()})
