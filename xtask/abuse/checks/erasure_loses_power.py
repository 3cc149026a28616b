"""The power fails during an erasure, and the disk has lost, reordered or torn the writes since the last sync: the
database is as before or as after, an acknowledged erasure stays, and a second erasure leaves none of the words."""
import os
import shutil
import struct
import subprocess

from erasure import ERASE, SECRETS, compacted_with_a_fork, remains
from memory import CHANCE, Memory, leave_out, rounds
from transcripts import SESSION

DELETE = ("delete", SESSION, "--reason", "secrets")
SECTOR = 512

if not shutil.which("cc"):
    leave_out("it needs a C compiler")
base = compacted_with_a_fork()
memory = Memory()
library = memory.folder + "/recorder.so"
source = os.path.join(os.path.dirname(__file__), "../recorder.c")
subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)


def recorded(command):
    """What a command does to the files of the database: letter, end of the file's name, offset or length, bytes."""
    memory.copy_of(base)
    record = memory.folder + "/record"
    settings = {"LD_PRELOAD": library, "RECORDED": memory.store, "RECORD": record}
    done = memory.run(*command, env={**os.environ, **settings})
    assert done.returncode == 0, done.stderr
    data, at, operations = open(record, "rb").read(), 0, []
    while at < len(data):
        letter, path_length = struct.unpack_from("<cI", data, at)
        at += 5
        path = data[at:at + path_length].decode()
        at += path_length
        offset, length = struct.unpack_from("<QQ", data, at)
        at += 16
        operations.append((letter.decode(), path.removeprefix(memory.store), offset, data[at:at + length]))
        at += length
    return [operation for operation in operations if operation[1] != "-shm"]


def write(file, offset, data):
    if data is None:
        del file[offset:]
        return
    file.extend(bytes(max(0, offset - len(file))))
    file[offset:offset + len(data)] = data


def lost(writes, way):
    """The writes since the last sync that reached the disk."""
    if way == "none":
        return []
    if way == "beginning":
        return writes[:CHANCE.randint(0, len(writes))]
    if way == "some":
        kept = CHANCE.choice((0.2, 0.5, 0.9))
        return [each for each in writes if CHANCE.random() < kept]
    if way == "torn":
        return [(offset + start, data and data[start:start + SECTOR]) for offset, data in writes
                for start in range(0, len(data or "x"), SECTOR) if CHANCE.random() < 0.8]
    return writes


def disk_after(operations, way):
    files, pending = {"": bytearray(open(base.store, "rb").read())}, {}
    for letter, name, offset, data in operations:
        if letter in "WT":
            pending.setdefault(name, []).append((offset, data if letter == "W" else None))
        elif letter == "S":
            for each in pending.pop(name, []):
                write(files.setdefault(name, bytearray()), *each)
        elif letter == "U":
            pending.pop(name, None)
            # The folder may not have been written yet.
            if CHANCE.random() < 0.8:
                files.pop(name, None)
    for name, writes in pending.items():
        for each in lost(writes, way):
            write(files.setdefault(name, bytearray()), *each)
    return files


before = base.text("export", SESSION)
RECORDED = {}
for command in (ERASE, DELETE):
    operations = recorded(command)
    assert any(letter == "S" for letter, *_ in operations), "the preload library recorded no sync"
    RECORDED[command] = (operations, memory.run("export", SESSION).stdout)
for _ in rounds():
    command = CHANCE.choice(list(RECORDED))
    operations, after = RECORDED[command]
    acknowledged = CHANCE.random() < 0.25
    count = len(operations) if acknowledged else CHANCE.randint(1, len(operations))
    way = CHANCE.choice(("none", "all", "some", "beginning", "torn"))
    at = f"{command[0]}, {count} of {len(operations)} operations, {way} of the unsynced writes"
    files = disk_after(operations[:count], way)
    memory.copy_of(base)
    for name, data in files.items():
        with open(memory.store + name, "wb") as file:
            file.write(data)
    if acknowledged:
        # Before any command mends it.
        raw = b"".join(files.values()).lower()
        assert not [secret for secret in SECRETS if secret.lower().encode() in raw], at
    verified = memory.run("verify")
    assert verified.returncode == 0, (at, verified.stdout)
    left = memory.run("export", SESSION).stdout
    assert left in ((after,) if acknowledged else (before, after)), at
    if acknowledged:
        assert not remains(memory.store, SECRETS), (at, remains(memory.store, SECRETS))
    memory.text(*command)
    memory.assert_verified()
    assert not remains(memory.store, SECRETS), (at, remains(memory.store, SECRETS))
