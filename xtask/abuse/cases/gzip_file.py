"""A transcript is compressed by gzip, with any name: it is the transcript that it decompresses to, and one that is cut off
is refused with its name."""
import gzip
import os

from memory import json_line, Memory
from transcripts import user

memory = Memory()
plain = b"".join(json_line(user(text)) for text in ("The harbour code is PELICAN-9.", "Keep it to yourself."))
packed = gzip.compress(plain)


def write(name, content):
    path = os.path.join(memory.folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


cut = write("cut.jsonl.gz", packed[:-12])
refused = memory.run("import", cut)
assert refused.returncode != 0 and "cut.jsonl.gz" in refused.stderr, refused.stderr
for name in ("session.jsonl.gz", "session.jsonl"):
    read = memory.run("import", write(name, packed))
    assert read.returncode == 0, read.stderr
(session,) = memory.sessions()
assert len(memory.export(session["session"])) == 2
