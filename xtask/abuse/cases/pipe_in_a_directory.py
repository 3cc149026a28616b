"""A folder has a named pipe, a loop of links, a link to nothing and binary data in it: its import ends, with its one
session."""
import os

from memory import Memory
from transcripts import assistant, user

LINES = [
    user("in a directory"),
    assistant("yes"),
]

memory = Memory()
folder = os.path.join(memory.folder, "folder")
memory.write(LINES, "folder/session.jsonl")
os.mkfifo(folder + "/never.jsonl")
os.mkdir(folder + "/sub")
os.symlink(folder, folder + "/sub/loop")
os.symlink("/nowhere", folder + "/gone.jsonl")
with open(folder + "/binary.jsonl", "wb") as file:
    file.write(bytes(range(256)))
report = memory.json("import", folder)
assert len(report["sessions"]) == 1, report
