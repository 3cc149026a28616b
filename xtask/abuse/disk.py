"""A disk that loses power: which writes of a recorded command are on it afterwards."""
import os
import shutil
import struct
import subprocess

from memory import CHANCE, leave_out

SECTOR = 512
# What happens to the writes since the last sync.
WAYS = ("none", "all", "some", "beginning", "torn")


def recorded(memory, base, command):
    """What a command does to the files of the database: letter, end of the file's name, offset or length, bytes."""
    if not shutil.which("cc"):
        leave_out("it needs a C compiler")
    library = memory.folder + "/recorder.so"
    if not os.path.exists(library):
        source = os.path.join(os.path.dirname(__file__), "recorder.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
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
    assert any(letter == "S" for letter, *_ in operations), "the preload library recorded no sync"
    return [operation for operation in operations if not operation[1].endswith("-shm")]


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


def put_disk_after(memory, base, operations, way):
    """Gives the database the files that the disk has after these operations, and returns their bytes."""
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
    memory.copy_of(base)
    for name, data in files.items():
        with open(memory.store + name, "wb") as file:
            file.write(data)
    return b"".join(files.values())
