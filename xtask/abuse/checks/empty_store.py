"""`--store ""`, which a script writes whose variable is unset, is refused: the default database is another one."""
import os
import subprocess

from memory import PROGRAM, Memory
from transcripts import user

memory = Memory()
path = memory.write([user("x")])
home = {**os.environ, "HOME": memory.folder, "XDG_DATA_HOME": memory.folder}
done = subprocess.run([PROGRAM, "--store", "", "import", path], capture_output=True, text=True, env=home)
assert done.returncode != 0
assert sorted(os.listdir(memory.folder)) == ["session.jsonl"], os.listdir(memory.folder)
