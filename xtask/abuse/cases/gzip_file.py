"""A transcript is compressed by gzip: the refusal says to decompress it."""
import gzip
import os

from memory import json_line, Memory
from transcripts import user

memory = Memory()
path = os.path.join(memory.folder, "session.jsonl.gz")
with gzip.open(path, "wb") as file:
    file.write(json_line(user("The harbour code is PELICAN-9.")))
refused = memory.run("import", path)
assert refused.returncode != 0
assert "decompress" in refused.stderr, refused.stderr
