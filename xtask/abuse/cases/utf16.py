"""A transcript is UTF-16, as PowerShell writes it: the refusal names the encoding."""
import json
import os

from memory import Memory
from transcripts import user

memory = Memory()
path = os.path.join(memory.folder, "session.jsonl")
with open(path, "w", encoding="utf-16") as file:
    file.write(json.dumps(user("The harbour code is PELICAN-9.")) + "\n")
refused = memory.run("import", path)
assert refused.returncode != 0
assert "utf-16" in refused.stderr.lower(), refused.stderr
