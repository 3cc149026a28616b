"""An editor saved the transcript with a byte order mark and CRLF: the first line is read, too."""
import os

from memory import json_line, Memory
from transcripts import assistant, user

LINES = [
    user("The harbour code is PELICAN-9."),
    assistant("Noted."),
    user("Thanks."),
]

def with_mark(lines):
    memory = Memory()
    path = os.path.join(memory.folder, "session.jsonl")
    with open(path, "wb") as file:
        file.write(b"\xef\xbb\xbf" + b"".join(json_line(line).replace(b"\n", b"\r\n") for line in lines))
    return memory, memory.json("import", path)["sessions"][0]


memory, report = with_mark(LINES)
assert report["messages"] == 3, report
assert len(memory.hits(report["session"], "PELICAN-9")) == 1
_, report = with_mark(LINES[:1])
assert report["messages"] == 1, report
